//! The guard of a migration: what must hold for the guest, and the loop that holds it.

use super::keep::Keep;
use super::p99::Ceiling;
use super::{Aim, Observation, Standing};
use crate::Nanos;
use crate::mirror::Allowance;

/// The guard of one migration. Told of each window, it says what the copier may take
/// in the next.
///
/// What the copier takes while the guest is gone is not limited: the mirror sees by
/// itself, request by request, when that is over.
#[derive(Debug)]
pub struct Guard {
    aim: Aim,
    law: Law,
}

#[derive(Debug)]
enum Law {
    Keep(Keep),
    P99(Ceiling),
    IdleOnly,
}

impl Guard {
    /// A guard that has seen nothing yet.
    pub fn new(aim: Aim) -> Self {
        let law = match aim {
            Aim::Keep(part) => Law::Keep(Keep::new(1.0 - part.as_f64())),
            Aim::P99(bound) => Law::P99(Ceiling::new(bound)),
            Aim::IdleOnly => Law::IdleOnly,
        };
        Guard { aim, law }
    }

    /// What it holds.
    pub fn aim(&self) -> Aim {
        self.aim
    }

    /// What the copier may take before anything was seen.
    pub fn first(&self) -> Allowance {
        Allowance { busy: Some(0), idle: None }
    }

    /// Looks at a window; says what the copier may take in the next.
    pub fn step(&mut self, seen: &Observation<'_>) -> Allowance {
        let busy = match &mut self.law {
            Law::Keep(keep) => keep.step(seen),
            Law::P99(ceiling) => ceiling.step(seen),
            Law::IdleOnly => 0,
        };
        Allowance { busy: Some(busy), idle: None }
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        match &self.law {
            Law::Keep(keep) => keep.standing(),
            Law::P99(ceiling) => ceiling.standing(),
            Law::IdleOnly => Standing::Holding,
        }
    }

    /// The guest's IO/s without the copy, and the part of it (0 to 1) that it has
    /// beside it; known only where that is what is held.
    pub fn kept(&self) -> Option<(f64, f64)> {
        match &self.law {
            Law::Keep(keep) => keep.kept(),
            Law::P99(_) | Law::IdleOnly => None,
        }
    }

    /// The 99th percentile of the guest's response times over the last second; known
    /// only where that is what is held.
    pub fn p99(&self) -> Option<Nanos> {
        match &self.law {
            Law::P99(ceiling) => ceiling.p99(),
            Law::Keep(_) | Law::IdleOnly => None,
        }
    }

    /// The part of its IO/s (0 to 1) that copying at a busy rate, bytes per second,
    /// would leave the guest, if that is known.
    pub fn would_keep(&self, rate: u64) -> Option<f64> {
        match &self.law {
            Law::Keep(keep) => keep.would_keep(rate as f64),
            Law::P99(_) | Law::IdleOnly => None,
        }
    }
}
