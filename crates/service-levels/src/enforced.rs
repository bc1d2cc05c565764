//! What is in force: the engine is told what the snapshot comes to now.
//!
//! It is told only what changes. Who changes which class a disk is in, or which terms
//! a class has, holds the lock of [`Enforced`] from looking into the snapshot to telling the
//! engine, so that what is told last is what the snapshot says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sterna_api::{CruisePhase, CruiseState};
use sterna_core::DiskId;
use sterna_core::qos::policy::{PolicyId, Resolution, Stands, resolve};
use sterna_core::qos::{ClassId, Terms};
use sterna_engine::EngineError;
use sterna_os::{Local, lock};

use super::cruise::{HeldClasses, HeldTo, held_to};
use crate::ServiceLevels;

/// What the engine has been told.
#[derive(Debug, Default)]
pub(crate) struct Enforced {
    terms: BTreeMap<ClassId, Terms>,
    /// Policies whose schedule is open.
    open: BTreeSet<PolicyId>,
    /// What has become of targets.
    cruises: BTreeMap<PolicyId, CruiseState>,
    held: HeldClasses,
    /// Disks in no class that are held together.
    unclassed: BTreeSet<DiskId>,
}

impl Enforced {
    /// What a class is held to for the sake of a target, if it is.
    pub(super) fn held(&self, class: ClassId) -> Option<HeldTo> {
        self.held.get(&class).copied()
    }

    /// Whether a disk is held together with others that are in no class.
    pub(super) fn holds_unclassed(&self, disk: DiskId) -> bool {
        self.unclassed.contains(&disk)
    }

    /// What has become of a target.
    pub(super) fn cruise(&self, policy: PolicyId) -> CruiseState {
        self.cruises.get(&policy).cloned().unwrap_or(CruiseState {
            phase: CruisePhase::NotStarted,
            since: None,
            reason: None,
            fallback: None,
        })
    }

    /// Notes which policies are open now; says which have been switched.
    fn switch(&mut self, class: &str, now: &Resolution<'_>) {
        for standing in &now.standings {
            let id = standing.policy.id;
            let open = standing.stands != Stands::Closed;
            let switched = match open {
                true => self.open.insert(id),
                false => self.open.remove(&id),
            };
            if switched {
                let word = if open { "in force" } else { "not in force" };
                tracing::info!(policy = id.0, class, "policy {word}");
            }
        }
    }
}

impl ServiceLevels {
    /// Puts everything in force that the snapshot says, and nothing else. Gives how long
    /// that holds, if it does not hold for ever.
    pub(super) fn enforce(&self) -> Option<Duration> {
        let mut force = lock(&self.service.enforced);
        let (snapshot, now) = (self.snapshot(), Local::now());
        let mut until_change: Option<u32> = None;
        for entry in snapshot.entries() {
            let (id, plan) = (entry.record.id, entry.plan());
            let resolution = resolve(&plan, now.moment());
            force.switch(&entry.record.name, &resolution);
            let change = plan.until_change(now.moment());
            until_change = [until_change, change].into_iter().flatten().min();
            let terms = held_to(resolution.terms, force.held.get(&id));
            self.put_in_force(&mut force, id, terms);
        }
        if let Some(most) = force.held.get(&ClassId::OTHERS) {
            let terms = held_to(Terms::default(), Some(most));
            self.put_in_force(&mut force, ClassId::OTHERS, terms);
        }
        let held = |id: &ClassId| force.held.contains_key(id);
        let gone = force.terms.keys().copied();
        let gone = gone.filter(|id| snapshot.get(*id).is_none() && !held(id));
        let gone: Vec<_> = gone.collect();
        for class in gone {
            if self.set_terms(class, None) {
                force.terms.remove(&class);
            }
        }
        let is_there = |id: &PolicyId| snapshot.policy(*id).is_ok();
        force.open.retain(is_there);
        force.cruises.retain(|id, _| is_there(id));
        let change = until_change.map(|seconds| now.wait(seconds));
        // Where the clock is set, schedules may open and close by that.
        change.map(|change| now.wait_for_shift().map_or(change, |it| it.min(change)))
    }

    /// Puts in force what classes are held to for the sake of targets, if that has
    /// changed, and notes what has become of those.
    pub(super) fn set_held(
        &self,
        held: HeldClasses,
        cruises: BTreeMap<PolicyId, CruiseState>,
        changed: bool,
    ) {
        {
            let mut force = lock(&self.service.enforced);
            force.cruises = cruises;
            force.held = held;
        }
        if changed {
            self.enforce();
        }
    }

    /// Holds these disks, which are in no class, together; of which `changed` are new,
    /// or are let go.
    pub(super) fn hold_unclassed(&self, disks: BTreeSet<DiskId>, changed: &[DiskId]) {
        lock(&self.service.enforced).unclassed = disks;
        self.join_classes(changed);
    }

    /// Tells the engine the terms of a class, unless it has been told just those.
    fn put_in_force(&self, force: &mut Enforced, class: ClassId, terms: Terms) {
        let told = force.terms.get(&class) == Some(&terms);
        if !told && self.set_terms(class, Some(terms)) {
            force.terms.insert(class, terms);
        }
    }

    /// Tells the engine the terms of a class; whether it was told.
    fn set_terms(&self, class: ClassId, terms: Option<Terms>) -> bool {
        match self.storage.engine.set_terms(class, terms) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(class = class.0, %error, "terms are not in force");
                false
            }
        }
    }

    /// Puts disks into the classes that the snapshot has them in. One that is not served
    /// gets into its class when it is.
    pub(crate) fn join_classes(&self, disks: &[DiskId]) {
        let force = lock(&self.service.enforced);
        let snapshot = self.snapshot();
        for &disk in disks {
            let alone = force.unclassed.contains(&disk).then_some(ClassId::OTHERS);
            let class = snapshot.class_of(disk).map(|entry| entry.record.id).or(alone);
            match self.storage.engine.set_class(disk, class) {
                Ok(()) | Err(EngineError::NotAttached) => {}
                Err(error) => {
                    tracing::warn!(%disk, %error, "the disk is not in its class");
                }
            }
        }
    }
}
