//! The snapshot: classes and policies as the state has them, in memory.
//!
//! A change is first made in a copy of the snapshot, which is looked at as a whole. If it
//! can be, it is made in the store, and the snapshot is read anew from there.

use std::collections::{BTreeMap, HashMap};

use sterna_api::{Error, Result};
use sterna_core::qos::policy::{Aim, Plan, Policy, PolicyId, Standing, Stands, resolve};
use sterna_core::qos::{ClassId, Goal, Limit, Rate};
use sterna_core::schedule::Moment;
use sterna_core::{DiskId, Nanos};
use sterna_state::{ClassRecord, PolicyRecord, Store};

/// All classes.
#[derive(Clone, Debug, Default)]
pub struct PolicySnapshot {
    classes: BTreeMap<ClassId, Entry>,
    /// Which disk is in which class: it is asked for ten times a second.
    members: HashMap<DiskId, ClassId>,
}

/// A class with what belongs to it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The class.
    pub record: ClassRecord,
    /// Its disks.
    pub(crate) disks: Vec<DiskId>,
    /// Its policies, oldest first.
    pub policies: Vec<PolicyRecord>,
}

impl PolicySnapshot {
    /// What the store has.
    pub(super) fn read(store: &Store) -> Result<PolicySnapshot> {
        let mut classes = BTreeMap::new();
        for record in store.classes()? {
            let entry = Entry { record, disks: Vec::new(), policies: Vec::new() };
            classes.insert(entry.record.id, entry);
        }
        let members: HashMap<DiskId, ClassId> = store.members()?.into_iter().collect();
        for (&disk, &class) in &members {
            classes.entry(class).and_modify(|entry| entry.disks.push(disk));
        }
        for policy in store.policies()? {
            classes.entry(policy.class).and_modify(|entry| entry.policies.push(policy));
        }
        Ok(PolicySnapshot { classes, members })
    }

    /// All classes, the built-in ones first, then as they were made.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.classes.values()
    }

    /// The class of that name.
    pub(crate) fn class(&self, name: &str) -> Result<&Entry> {
        let entry = self.entries().find(|entry| entry.record.name == name);
        entry.ok_or_else(|| Error::not_found("class", name))
    }

    /// The class of that number.
    pub(crate) fn get(&self, class: ClassId) -> Option<&Entry> {
        self.classes.get(&class)
    }

    /// The class that a disk is in.
    pub fn class_of(&self, disk: DiskId) -> Option<&Entry> {
        self.get(*self.members.get(&disk)?)
    }

    /// A policy, with its class.
    pub(crate) fn policy(&self, id: PolicyId) -> Result<(&Entry, &PolicyRecord)> {
        let found = self.entries().find_map(|entry| {
            let policy = entry.policies.iter().find(|policy| policy.id == id);
            policy.map(|policy| (entry, policy))
        });
        found.ok_or_else(|| Error::not_found("policy", id.0))
    }

    /// The snapshot with this class as it would be.
    pub(crate) fn with(&self, entry: Entry) -> PolicySnapshot {
        let mut snapshot = self.clone();
        let id = entry.record.id;
        snapshot.members.retain(|_, class| *class != id);
        snapshot.members.extend(entry.disks.iter().map(|disk| (*disk, id)));
        snapshot.classes.insert(id, entry);
        snapshot
    }
}

impl Entry {
    /// What is asked for the class.
    pub(crate) fn plan(&self) -> Plan {
        let policies = self.policies.iter().map(|policy| Policy {
            id: policy.id,
            aim: policy.aim,
            schedule: policy.schedule.clone(),
        });
        Plan {
            reservation: self.record.reservation,
            shares: self.record.shares,
            policies: policies.collect(),
        }
    }

    /// What requests of the class are to take at most now, on average, if that is promised.
    pub fn promised_response(&self, now: Moment) -> Option<Nanos> {
        let plan = self.plan();
        let (_, cruise) = resolve(&plan, now).cruise?;
        let Goal::Response(target) = cruise.target else { return None };
        let more = target.0 / 100 * u64::from(cruise.tolerance.percent());
        Some(target.plus(Nanos(more)))
    }

    /// What its policies hold the class to now.
    pub fn limit(&self, now: Moment) -> Limit {
        resolve(&self.plan(), now).terms.limit
    }

    /// What is reserved for it now.
    pub fn reserved(&self, now: Moment) -> Option<Rate> {
        resolve(&self.plan(), now).terms.reservation
    }

    /// The limits of its policies that bind now, of one metric the tightest, with whose they
    /// are.
    pub fn limits(&self, now: Moment) -> Vec<(u64, Goal)> {
        let plan = self.plan();
        let limit = |one: &Standing<'_>| match one.policy.aim {
            Aim::Limit(goal) if one.stands == Stands::Binds => {
                Some((one.policy.id.0, goal))
            }
            _ => None,
        };
        resolve(&plan, now).standings.iter().filter_map(limit).collect()
    }

    /// Whether Sterna has made it, for itself.
    pub fn is_built_in(&self) -> bool {
        self.record.id == ClassId::MIGRATION
    }
}
