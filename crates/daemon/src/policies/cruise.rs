//! Cruise control at work: a thread that looks every second at what the classes did,
//! asks `core` what the others may have, and puts that in force.
//!
//! The others of a class are all who use the datastores that its disks are on: other
//! classes, the copies of migrations, and the disks that are in no class, which are
//! held together as one. Where several classes are cruised, the tightest of what they
//! leave a third holds; and what a policy says besides.
//!
//! The same thread gives datastores their windows (`places`).
//!
//! It is fed by the samples and never asks the store, so that it goes on where the
//! state directory hangs. A daemon that starts begins from nothing: limits of the one
//! before ended with it, and are found again within seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;

use sterna_api::{CruisePhase, CruiseState};
use sterna_core::guard::cruise::{CruiseControl, Other, Outcome, PERIOD};
use sterna_core::measure::Window;
use sterna_core::qos::policy::{Cruise, PolicyId, resolve};
use sterna_core::qos::{ClassId, Limit, Rate, Terms};
use sterna_engine::DiskId;

use super::book::{Book, Entry};
use super::places::{Places, needs_places};
use crate::clock;
use crate::daemon::Daemon;
use crate::local::Local;
use crate::samples::Tick;

/// Periods that may wait for the thread. It only falls behind if the engine does, and
/// then the newest is not worth more than the one before.
const WAITING: usize = 2;

/// What one party did on each datastore in a period.
type Done = BTreeMap<String, Window>;

/// What all did in a period.
#[derive(Debug, Default)]
struct Period {
    span: sterna_core::Nanos,
    classes: BTreeMap<ClassId, Done>,
    /// Disks in no class.
    alone: BTreeSet<DiskId>,
}

impl Period {
    fn add(&mut self, tick: &Tick) {
        self.span = self.span.plus(tick.span);
        for sample in &tick.disks {
            let Some(datastore) = &sample.datastore else { continue };
            if sample.class.is_none() {
                self.alone.insert(sample.disk);
            }
            let class = sample.class.unwrap_or(ClassId::OTHERS);
            self.enter(class, datastore, &sample.window);
        }
        for (datastore, window) in &tick.copied {
            self.enter(ClassId::MIGRATION, datastore, window);
        }
    }

    fn enter(&mut self, class: ClassId, datastore: &str, window: &Window) {
        let done = self.classes.entry(class).or_default();
        // Of the whole period in any case: who did nothing for a part of it did less.
        let all = done.entry(datastore.to_owned()).or_default();
        all.join(window);
        all.span = sterna_core::Nanos(0);
    }

    /// What a class did on some datastores.
    fn of(&self, class: ClassId, datastores: &BTreeSet<String>) -> Option<Window> {
        let done = self.classes.get(&class)?;
        let mut all = Window::default();
        let mut any = false;
        for (datastore, window) in done {
            if datastores.contains(datastore) {
                all.join(window);
                any = true;
            }
        }
        all.span = self.span;
        any.then_some(all)
    }

    /// What all did on the datastores on which somebody needs a window.
    fn contended(&self, book: &Book) -> BTreeMap<String, Window> {
        let needs = book.entries().filter(|entry| needs_places(entry));
        let used = needs.filter_map(|entry| self.classes.get(&entry.record.id));
        let names: BTreeSet<&String> = used.flat_map(BTreeMap::keys).collect();
        let all = |name: &String| {
            let mut all = Window::default();
            self.classes.values().filter_map(|done| done.get(name)).for_each(|window| {
                all.join(window);
            });
            all.span = self.span;
            (name.clone(), all)
        };
        names.into_iter().map(all).collect()
    }

    /// What a class did everywhere, and where.
    fn whole(&self, class: ClassId) -> (Window, BTreeSet<String>) {
        let done = self.classes.get(&class);
        let datastores = done.map(|done| done.keys().cloned().collect());
        let datastores: BTreeSet<String> = datastores.unwrap_or_default();
        let idle = Window { span: self.span, ..Window::default() };
        (self.of(class, &datastores).unwrap_or(idle), datastores)
    }
}

/// Starts the thread. It ends with the daemon.
pub(super) fn start(daemon: &Arc<Daemon>) -> std::io::Result<()> {
    let (sender, periods) = sync_channel(WAITING);
    let mut period = Period::default();
    daemon.samples.listen(move |tick| gather(&mut period, tick, &sender));
    let daemon = Arc::downgrade(daemon);
    let thread = thread::Builder::new().name("sterna-cruise".into());
    thread.spawn(move || cruise_for_ever(&daemon, &periods))?;
    Ok(())
}

fn gather(period: &mut Period, tick: &Tick, periods: &SyncSender<Period>) {
    period.add(tick);
    if period.span < PERIOD {
        return;
    }
    // Nobody to send it to is the end of the daemon.
    if let Err(TrySendError::Full(_)) = periods.try_send(std::mem::take(period)) {
        tracing::warn!("cruise control falls behind: a second is left out");
    }
}

fn cruise_for_ever(daemon: &Weak<Daemon>, periods: &Receiver<Period>) {
    let mut loops = Loops::default();
    while let Ok(period) = periods.recv() {
        let Some(daemon) = daemon.upgrade() else { return };
        loops.step(&daemon, &period);
    }
}

/// A loop for each target, and what they come to.
#[derive(Debug, Default)]
struct Loops {
    controls: BTreeMap<PolicyId, Control>,
    /// What the classes are held to now.
    held: BTreeMap<ClassId, u64>,
    /// Disks in no class that are held.
    alone: BTreeSet<DiskId>,
    places: Places,
}

#[derive(Debug)]
struct Control {
    cruise: Cruise,
    control: CruiseControl,
    /// Where the class's disks were seen.
    datastores: BTreeSet<String>,
    state: CruiseState,
}

impl Loops {
    fn step(&mut self, daemon: &Daemon, period: &Period) {
        let (book, now) = (daemon.book(), Local::now().moment());
        self.places.step(daemon, &period.contended(&book));
        let mut held: BTreeMap<ClassId, u64> = BTreeMap::new();
        let mut open = BTreeSet::new();
        for entry in book.entries() {
            let plan = entry.plan();
            let Some((policy, cruise)) = resolve(&plan, now).cruise else { continue };
            open.insert(policy);
            let limits = self.cruise(&book, period, entry, policy, cruise);
            for (class, limit) in limits {
                held.entry(class)
                    .and_modify(|least| *least = limit.min(*least))
                    .or_insert(limit);
            }
        }
        self.controls.retain(|policy, _| open.contains(policy));
        let states = self.controls.iter();
        let states = states.map(|(policy, one)| (*policy, one.state.clone())).collect();
        self.hold_alone(daemon, period, held.contains_key(&ClassId::OTHERS));
        let changed = std::mem::replace(&mut self.held, held.clone()) != held;
        daemon.set_held(held, states, changed);
    }

    /// One period of one target.
    fn cruise(
        &mut self,
        book: &Book,
        period: &Period,
        entry: &Entry,
        policy: PolicyId,
        cruise: Cruise,
    ) -> BTreeMap<ClassId, u64> {
        let (class, name) = (entry.record.id, &entry.record.name);
        let begin = || Control {
            cruise,
            control: CruiseControl::new(cruise),
            datastores: BTreeSet::new(),
            state: state_of(CruisePhase::NotStarted),
        };
        let one = self.controls.entry(policy).or_insert_with(begin);
        if one.cruise != cruise {
            *one = begin();
        }
        let (own, datastores) = period.whole(class);
        if !datastores.is_empty() {
            one.datastores = datastores;
        }
        let others = period.classes.keys().filter(|other| **other != class);
        let others = others.filter_map(|&other| {
            let window = period.of(other, &one.datastores)?;
            let floor = book.get(other).map_or(0.0, |entry| floor(entry, &window));
            Some(Other { class: other, window, floor })
        });
        let limits = one.control.step(&own, &others.collect::<Vec<_>>());
        let (phase, reason) = match one.control.outcome() {
            Outcome::Holding => {
                (CruisePhase::Holding, one.control.note().map(Into::into))
            }
            Outcome::Converging => (CruisePhase::Converging, None),
            Outcome::Unreachable(reason) => {
                (CruisePhase::Unreachable, Some(reason.clone()))
            }
        };
        if one.state.phase != phase {
            let (id, target) = (policy.0, cruise.target);
            let why = reason.as_deref().unwrap_or("");
            tracing::info!(policy = id, class = name, %target, why, "cruise: {phase}");
            one.state = state_of(phase);
        }
        one.state.reason = reason;
        one.state.fallback = one.control.fallback().map(Into::into);
        limits
    }

    /// Puts the disks that are in no class together, or lets them go.
    fn hold_alone(&mut self, daemon: &Daemon, period: &Period, held: bool) {
        let wanted = if held { period.alone.clone() } else { BTreeSet::new() };
        let changed: Vec<_> = self.alone.symmetric_difference(&wanted).copied().collect();
        if !held {
            self.alone.clear();
        }
        self.alone.extend(&wanted);
        if !changed.is_empty() {
            daemon.hold_alone(self.alone.clone(), &changed);
        }
    }
}

fn state_of(phase: CruisePhase) -> CruiseState {
    CruiseState { phase, since: Some(clock::now()), reason: None, fallback: None }
}

/// What a class must not be held below, in bytes per second. A reservation in requests
/// is one of bytes at the size of request that the class has.
fn floor(entry: &Entry, window: &Window) -> f64 {
    match entry.plan().reservation {
        None => 0.0,
        Some(Rate::Bytes(rate)) => rate as f64,
        Some(Rate::Requests(rate)) => {
            let total = window.total();
            rate as f64 * (total.bytes as f64 / total.operations.max(1) as f64)
        }
    }
}

/// Terms that hold somebody to so many bytes per second.
pub(super) fn held_to(terms: Terms, most: Option<u64>) -> Terms {
    let Some(most) = most else { return terms };
    let bytes = Some(terms.limit.bytes.map_or(most, |limit| limit.min(most)));
    Terms { limit: Limit { bytes, ..terms.limit }, ..terms }
}
