//! What there is: hosts, VMs on them, the pools that these are in, and rules.

pub use sterna_core::entitle::Terms;

use super::amounts::{Amounts, Resource};
use super::rule::Rule;

/// Everything that moves are chosen from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The pools. A pool comes after the one that it is in.
    pub pools: Vec<Pool>,
    /// The VMs.
    pub vms: Vec<Vm>,
    /// What is asked of where VMs are.
    pub rules: Vec<Rule>,
}

/// A host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// What it has for VMs.
    pub capacity: Amounts,
}

/// A resource pool.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pool {
    /// The pool that it is in, which comes before it; nothing at the top.
    pub parent: Option<usize>,
    /// Of processors.
    pub cpu: Terms,
    /// Of memory.
    pub memory: Terms,
}

impl Pool {
    pub(super) fn terms(&self, resource: Resource) -> &Terms {
        match resource {
            Resource::Cpu => &self.cpu,
            Resource::Memory => &self.memory,
        }
    }
}

/// A VM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vm {
    /// The host that it is on.
    pub host: usize,
    /// The pool that it is in; nothing at the top.
    pub pool: Option<usize>,
    /// Its processors, and its memory: what it can use at most.
    pub size: Amounts,
    /// Of processors.
    pub cpu: Terms,
    /// Of memory.
    pub memory: Terms,
    /// What it asks for.
    pub demand: Demand,
    /// Why it stays, if it does.
    pub pinned: Option<Pinned>,
}

impl Vm {
    pub(super) fn terms(&self, resource: Resource) -> &Terms {
        match resource {
            Resource::Cpu => &self.cpu,
            Resource::Memory => &self.memory,
        }
    }

    /// What it can make use of at the moment.
    pub(super) fn wants(&self, resource: Resource) -> f64 {
        let most = self.size.get(resource).min(self.demand.mean.get(resource));
        most.min(self.terms(resource).limit.unwrap_or(f64::INFINITY)).max(0.0)
    }

    /// What a move of it copies, in bytes.
    pub(super) fn bytes(&self) -> f64 {
        self.demand.mean.memory.min(self.size.memory).max(0.0)
    }
}

/// What a VM asks for, over a window of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// On average. Of memory: what it holds.
    pub mean: Amounts,
    /// How much that varies: the standard deviation.
    pub deviation: Amounts,
    /// The part of the memory that it holds which it also uses, from 0 to 1.
    pub active: f64,
}

/// Why a VM stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinned {
    /// Nobody knows what it asks for (yet).
    NotSeen,
    /// It is on its way to the host that it counts for.
    Moving,
    /// It could not be sent as it is: it stands still, or has a disk that keeps it there.
    Unsendable,
    /// It has moved not long ago.
    Cooling,
    /// Somebody else has moved it not long ago.
    Foreign,
    /// A move of it has failed not long ago.
    Failed,
}
