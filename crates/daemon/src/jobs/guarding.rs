//! Guards at work: a thread that is told of every sample and tells the copiers what
//! they may take.
//!
//! What has to be quick is not here: that a copier stops when its guest comes is the
//! mirror's own doing. Here a tenth of a second is soon enough.
//!
//! **Precedence.** The schedule comes first, then what must hold for the application,
//! then the deadline: a guard that makes the move late says by how much. With a
//! deadline alone, the copy is as slow as the deadline allows.
//!
//! **Failures.** Without samples nothing changes: copiers keep what they may take. A
//! daemon that starts learns anew.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;

use sterna_api::{Guard as Asked, GuardState, Guarding};
use sterna_core::Nanos;
use sterna_core::guard::{Aim, Guard, Observation, Part, Standing};
use sterna_core::measure::Window;
use sterna_core::mirror::{Allowance, Control, Phase, Progress};
use sterna_core::schedule::Schedule;
use sterna_engine::DiskId;

use super::Job;
use crate::clock;
use crate::daemon::{Daemon, lock};
use crate::local::Local;
use crate::samples::Tick;

/// Samples that may wait for the thread. It falls behind only if the engine does; then
/// the newest says no more than those that wait.
const WAITING: usize = 8;

/// A deadline is aimed at with so much to spare: what guests write during the copy is
/// copied again.
const SPARE: f64 = 1.1;

/// The least rate for a deadline, bytes per second: a copy that goes no further never
/// shows that it could.
const LEAST: f64 = (1 << 20) as f64;

/// What disks that are guarded did in a sample.
type Seen = HashMap<DiskId, Window>;

/// Starts the thread. It ends with the daemon.
pub(crate) fn start(daemon: &Arc<Daemon>) -> std::io::Result<()> {
    let (sender, samples) = sync_channel(WAITING);
    let listening = Arc::downgrade(daemon);
    daemon.samples.listen(move |tick| pass_on(&listening, tick, &sender));
    let daemon = Arc::downgrade(daemon);
    let thread = thread::Builder::new().name("sterna-guard".into());
    thread.spawn(move || guard_for_ever(&daemon, &samples))?;
    Ok(())
}

fn pass_on(daemon: &Weak<Daemon>, tick: &Tick, samples: &SyncSender<Seen>) {
    let Some(daemon) = daemon.upgrade() else { return };
    let guarded = daemon.all_jobs().into_iter().filter(|job| job.is_guarded());
    let seen: Seen = guarded.map(|job| (job.disk(), tick.window(job.disk()))).collect();
    if !seen.is_empty() {
        // A sample that finds no room is one of many.
        let _ = samples.try_send(seen);
    }
}

fn guard_for_ever(daemon: &Weak<Daemon>, samples: &Receiver<Seen>) {
    let mut posts: HashMap<u64, Post> = HashMap::new();
    while let Ok(seen) = samples.recv() {
        let Some(daemon) = daemon.upgrade() else { return };
        let jobs = daemon.all_jobs();
        posts.retain(|id, _| jobs.iter().any(|job| job.id() == *id && job.is_guarded()));
        for job in jobs.iter().filter(|job| job.is_guarded()) {
            let Some(window) = seen.get(&job.disk()) else { continue };
            let asked = lock(&job.state).asked.clone();
            let post = posts.entry(job.id()).or_insert_with(|| Post::new(&asked));
            if post.asked != asked {
                *post = Post::new(&asked);
            }
            daemon.guard(job, post, window);
        }
    }
}

/// What is known of one guard.
#[derive(Debug)]
struct Post {
    asked: Asked,
    guards: Vec<Guard>,
    schedule: Option<Schedule>,
    /// Bytes copied, and how long the guest was gone, at the last sample.
    last: Option<(u64, Nanos)>,
    told: Option<Allowance>,
    /// The busy rate, without the short pauses in which the guard compares.
    busy: Option<u64>,
    state: Option<GuardState>,
}

impl Post {
    fn new(asked: &Asked) -> Post {
        let part = |keep: f64| {
            let permille = (keep * 1000.0).round() as u16;
            Part::new(permille.clamp(Part::MIN, Part::MAX)).map(Aim::Keep)
        };
        let p99 = |micros| Aim::P99(Nanos::from_micros(micros));
        let aims = [
            asked.keep.and_then(part),
            asked.p99_us.map(p99),
            asked.idle_only.then_some(Aim::IdleOnly),
        ];
        Post {
            asked: asked.clone(),
            guards: aims.into_iter().flatten().map(Guard::new).collect(),
            // It was read when it was asked for.
            schedule: asked.window.as_ref().and_then(|text| text.parse().ok()),
            last: None,
            told: None,
            busy: None,
            state: None,
        }
    }

    /// Looks at a sample; gives what the copier may take.
    fn step(&mut self, window: &Window, progress: &Progress) -> Allowance {
        let (copied, gone) = (progress.copied.0, progress.guest_gone);
        let (before, then) = self.last.replace((copied, gone)).unwrap_or((copied, gone));
        let seen = Observation {
            guest: window,
            copied: copied.saturating_sub(before),
            gone: gone.since(then),
        };
        let mut allowance = Allowance::default();
        for guard in &mut self.guards {
            let more = guard.step(&seen);
            allowance.busy = least(allowance.busy, more.busy);
            allowance.idle = least(allowance.idle, more.idle);
        }
        if let (true, Some(by)) = (self.guards.is_empty(), self.asked.finish_by) {
            let left = by.saturating_sub(clock::now()).max(1) as f64;
            let bytes = progress.total.0.saturating_sub(progress.synced.0) as f64;
            let rate = (bytes / left * SPARE).max(LEAST);
            allowance.busy = Some(rate as u64);
        }
        if self.is_closed() {
            allowance = Allowance { busy: Some(0), idle: Some(0) };
        }
        allowance
    }

    fn is_closed(&self) -> bool {
        let now = Local::now().moment();
        self.schedule.as_ref().is_some_and(|schedule| !schedule.is_open(now))
    }

    /// How it fares.
    fn fares(&mut self, progress: &Progress, allowance: Allowance) -> Guarding {
        let standings = self.guards.iter().map(Guard::standing);
        let worst = standings.max_by_key(|standing| match standing {
            Standing::Holding => 0,
            Standing::Learning => 1,
            Standing::Converging => 2,
            Standing::Unreachable(_) => 3,
        });
        let (mut state, mut reason) = match worst {
            None | Some(Standing::Holding) => (GuardState::Holding, None),
            Some(Standing::Learning) => (GuardState::Learning, None),
            Some(Standing::Converging) => (GuardState::Converging, None),
            Some(Standing::Unreachable(why)) => {
                (GuardState::Unreachable, Some(why.to_string()))
            }
        };
        if self.is_closed() {
            let window = self.asked.window.as_deref().unwrap_or_default();
            (state, reason) = (GuardState::Closed, Some(format!("open {window}")));
        }
        let late = self.asked.finish_by.and_then(|by| {
            let left = by as f64 - clock::now() as f64;
            Some(progress.eta?.as_secs_f64() - left).filter(|late| *late >= 1.0)
        });
        let kept = self.guards.iter().find_map(Guard::kept);
        let none_at_all = self.asked.idle_only
            || matches!(state, GuardState::Unreachable | GuardState::Closed);
        if none_at_all || allowance.busy != Some(0) {
            self.busy = allowance.busy;
        }
        Guarding {
            asked: self.asked.clone(),
            state: Some(state),
            reason,
            baseline_iops: kept.map(|(iops, _)| iops),
            kept: kept.map(|(_, part)| part),
            allowance: self.busy,
            late_s: late,
        }
    }
}

/// What a copier may take until the first sample: nothing while its guest is there, if
/// anything must hold.
pub(super) fn first_allowance(asked: &Asked) -> Allowance {
    match asked.is_none() {
        true => Allowance::default(),
        false => Allowance { busy: Some(0), idle: None },
    }
}

/// The smaller of two limits.
fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Daemon {
    /// One sample of one migration.
    fn guard(&self, job: &Job, post: &mut Post, window: &Window) {
        if !job.running() {
            return;
        }
        let Ok(progress) = self.engine.progress(job.engine_id()) else { return };
        if !matches!(progress.phase, Phase::Copying | Phase::Verifying) {
            lock(&job.state).guarding = None;
            return;
        }
        let allowance = post.step(window, &progress);
        if post.told != Some(allowance) {
            // A migration that ends at this moment needs no guard.
            if self.engine.control(job.engine_id(), Control::Allow(allowance)).is_err() {
                return;
            }
            post.told = Some(allowance);
        }
        let fares = post.fares(&progress, allowance);
        if post.state != fares.state {
            post.state = fares.state;
            let state = fares.state.map_or_else(String::new, |state| state.to_string());
            let why = fares.reason.as_deref().unwrap_or("");
            tracing::info!(migration = job.id, why, "guard: {state}");
        }
        lock(&job.state).guarding = Some(fares);
    }

    /// Lets a copier go on unguarded.
    pub(super) fn unguard(&self, job: &Job) {
        lock(&job.state).guarding = None;
        let free = Control::Allow(Allowance::default());
        // One that does not run needs no leave.
        let _ = self.engine.control(job.engine_id(), free);
    }
}

impl Job {
    /// Whether something must hold while it runs.
    fn is_guarded(&self) -> bool {
        !lock(&self.state).asked.is_none()
    }
}
