//! Cruise control at work: a thread that looks every second at what the classes did,
//! asks `core` what the others may have, and puts that in force.
//!
//! The others of a class (`period`) are all who use the datastores that its disks are on:
//! other classes, the copies of migrations, and the disks that are in no class, which are
//! held together as one. If several classes are cruised, each other class is held to the
//! smallest limit that any of them leaves it, and to what its policy says.
//!
//! The same thread gives datastores their windows (`windows`).
//!
//! It is fed by the samples and never asks the store, so that it goes on where the
//! state directory hangs. A daemon that starts begins from nothing: limits of the one
//! before ended with it, and are found again within seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sterna_api::{CruisePhase, CruiseState};
use sterna_core::DiskId;
use sterna_core::guard::cruise::{CruiseControl, CruiseHold, CruiseOutcome, PERIOD};
use sterna_core::qos::policy::{Cruise, PolicyId, resolve};
use sterna_core::qos::{Attained, Attainment, ClassId, Limit, Terms};
use sterna_core::schedule::Moment;
use sterna_os::{Local, clock, lock};
use sterna_runtime::tasks::{Feed, Task, feed};
use sterna_telemetry::samples::Tick;

use super::period::Period;
use super::promises::{
    Part, counts_for_reservation, left_by_limit, part_of_reservation, part_of_target,
};
use super::snapshot::{Entry, PolicySnapshot};
use super::windows::Windows;
use crate::ServiceLevels;

/// Periods that may wait for the thread. It only falls behind if the engine does, and
/// then the newest is not worth more than the one before.
const WAITING: usize = 2;

/// What classes are held to for the sake of targets, others' or their own.
pub(super) type HeldClasses = BTreeMap<ClassId, HeldTo>;

/// What a class is held to, and for the sake of which target first of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldTo {
    pub(super) limit: Limit,
    pub(super) policy: PolicyId,
}

/// Holds classes to what targets need.
pub fn cruising(levels: &Arc<ServiceLevels>) -> Task {
    let (periods, fed) = feed(WAITING);
    let mut period = Period::default();
    levels.storage.samples.listen(move |tick| gather(&mut period, tick, &periods));
    let mut loops = Loops::default();
    let cruise = move |levels: &Arc<ServiceLevels>, period| loops.step(levels, &period);
    Task::for_each("cruise", "hold classes to what targets need", fed, levels, cruise)
}

fn gather(period: &mut Period, tick: &Tick, periods: &Feed<Period>) {
    period.add(tick);
    if period.span >= PERIOD && !periods.give(std::mem::take(period)) {
        tracing::warn!("cruise control falls behind: a second is left out");
    }
}

/// A loop for each target, and what they come to.
#[derive(Debug, Default)]
struct Loops {
    controls: BTreeMap<PolicyId, Control>,
    held: HeldClasses,
    /// Disks in no class that are held.
    unclassed: BTreeSet<DiskId>,
    windows: Windows,
}

#[derive(Debug)]
struct Control {
    cruise: Cruise,
    control: CruiseControl,
    /// Where the class's disks were seen.
    datastores: BTreeSet<String>,
    /// The others that are held back, also while they rest.
    held: BTreeSet<ClassId>,
    state: CruiseState,
    /// The part of its target that the class had in the last period.
    kept: f64,
}

impl Loops {
    fn step(&mut self, levels: &ServiceLevels, period: &Period) {
        let (snapshot, now) = (levels.snapshot(), Local::now().moment());
        self.windows.step(levels, &snapshot, period, now);
        let mut kept: Vec<Part> = {
            let mut attained = lock(&levels.service.attained);
            attained.step(&snapshot, &self.windows, period);
            let each = attained.each();
            let part = |it: &Attained| {
                let left = left_by_limits(&snapshot, period, it, now);
                Part {
                    promise: (it.class, None),
                    part: part_of_reservation(it, left),
                    counts: counts_for_reservation(it, left),
                }
            };
            each.map(part).collect()
        };
        let mut held = HeldClasses::new();
        let mut open = BTreeSet::new();
        for entry in snapshot.entries() {
            let plan = entry.plan();
            let resolved = resolve(&plan, now);
            let Some((policy, cruise)) = resolved.cruise else { continue };
            open.insert(policy);
            let target = (policy, cruise, resolved.terms);
            let hold = self.cruise(&snapshot, period, entry, target, now);
            let part = self.controls.get(&policy).map_or(1.0, |one| one.kept);
            let counts = !period.whole(entry.record.id).0.is_idle();
            kept.push(Part { promise: (entry.record.id, Some(policy)), part, counts });
            let own = Some((entry.record.id, hold.own)).filter(|(_, own)| !own.is_none());
            for (class, limit) in hold.others.into_iter().chain(own) {
                let this = HeldTo { limit, policy };
                held.entry(class).and_modify(|it| it.tighten(this)).or_insert(this);
            }
        }
        lock(&levels.service.promises).step(&snapshot, period.span, &kept);
        lock(&levels.service.unrecorded).add(clock::now(), period.span, &kept);
        self.controls.retain(|policy, _| open.contains(policy));
        let states = self.controls.iter();
        let states = states.map(|(policy, one)| (*policy, one.state.clone())).collect();
        self.hold_unclassed(levels, period);
        let changed = std::mem::replace(&mut self.held, held.clone()) != held;
        levels.set_held(held, states, changed);
    }

    /// One period of one target.
    fn cruise(
        &mut self,
        snapshot: &PolicySnapshot,
        period: &Period,
        entry: &Entry,
        (policy, cruise, terms): (PolicyId, Cruise, Terms),
        now: Moment,
    ) -> CruiseHold {
        let Terms { limit, depth, .. } = terms;
        let (class, name) = (entry.record.id, &entry.record.name);
        let begin = || Control {
            cruise,
            control: CruiseControl::new(cruise),
            datastores: BTreeSet::new(),
            held: BTreeSet::new(),
            state: state_of(CruisePhase::NotStarted),
            kept: 1.0,
        };
        let one = self.controls.entry(policy).or_insert_with(begin);
        if one.cruise != cruise {
            *one = begin();
        }
        let (own, datastores) = period.whole(class);
        if !datastores.is_empty() {
            one.datastores = datastores;
        }
        let others = period.others(snapshot, class, &one.datastores, &one.held, now);
        one.control.limit_own(limit, depth);
        let hold = one.control.step(&own, &others);
        one.held = hold.others.keys().copied().collect();
        let (phase, reason) = match one.control.outcome() {
            CruiseOutcome::Holding => {
                (CruisePhase::Holding, one.control.note().map(Into::into))
            }
            CruiseOutcome::Converging => (CruisePhase::Converging, None),
            CruiseOutcome::Unreachable(reason) => {
                (CruisePhase::Unreachable, Some(reason.clone()))
            }
        };
        if one.state.phase != phase {
            let (id, target) = (policy.0, cruise.target);
            let why = reason.as_deref().unwrap_or("");
            tracing::info!(policy = id, class = name, %target, why, "cruise: {phase}");
            one.state = state_of(phase);
        }
        one.kept = match phase {
            CruisePhase::Holding => 1.0,
            _ => part_of_target(cruise.target, &own),
        };
        one.state.reason = reason;
        one.state.fallback = one.control.fallback().map(Into::into);
        hold
    }

    /// Puts the disks in no class together that are where somebody is in their way, or
    /// lets them go.
    fn hold_unclassed(&mut self, levels: &ServiceLevels, period: &Period) {
        let holds = |one: &&Control| one.held.contains(&ClassId::OTHERS);
        let controls = self.controls.values().filter(holds);
        let there: BTreeSet<&String> = controls.flat_map(|one| &one.datastores).collect();
        let held = |disk: &DiskId| match period.unclassed.get(disk) {
            Some(datastore) => there.contains(datastore),
            // One that rests stays with the others: it may come back.
            None => !there.is_empty() && self.unclassed.contains(disk),
        };
        let seen = period.unclassed.keys().chain(&self.unclassed).copied();
        let wanted: BTreeSet<DiskId> = seen.filter(held).collect();
        let changed: Vec<_> =
            self.unclassed.symmetric_difference(&wanted).copied().collect();
        self.unclassed = wanted;
        if !changed.is_empty() {
            levels.hold_unclassed(self.unclassed.clone(), &changed);
        }
    }
}

/// How much of what is reserved for a class its limits leave, if it is at one.
fn left_by_limits(
    snapshot: &PolicySnapshot,
    period: &Period,
    attained: &Attained,
    now: Moment,
) -> Option<f64> {
    let is_limited = attained.state == Attainment::Limited;
    let entry = snapshot.get(attained.class).filter(|_| is_limited)?;
    let limit = resolve(&entry.plan(), now).terms.limit;
    left_by_limit(attained.reserved, &limit, &period.whole(attained.class).0)
}

fn state_of(phase: CruisePhase) -> CruiseState {
    CruiseState { phase, since: Some(clock::now()), reason: None, fallback: None }
}

impl HeldTo {
    /// Held to this as well.
    fn tighten(&mut self, other: HeldTo) {
        let limit = tightest(self.limit, other.limit);
        if limit != self.limit {
            *self = HeldTo { limit, ..other };
        }
    }
}

/// The tighter of two limits, in each metric.
fn tightest(one: Limit, other: Limit) -> Limit {
    let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    Limit {
        bytes: least(one.bytes, other.bytes),
        requests: least(one.requests, other.requests),
        response: one.response.max(other.response),
    }
}

/// Terms that also hold somebody to this.
pub(super) fn held_to(terms: Terms, held: Option<&HeldTo>) -> Terms {
    let limit = held.map_or(Limit::default(), |held| held.limit);
    Terms { limit: tightest(terms.limit, limit), ..terms }
}
