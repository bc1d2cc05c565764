//! Machines on their way.
//!
//! A machine's memory goes over the links of both hosts, as fast as the slower one; DRS
//! carries out one recommendation at a time, so in each direction there is one. While it is
//! copied the machine runs where it was, its memory is held at both ends, and each end
//! spends processors on it, as many as `core` reckons with.

use sterna_core::Nanos;
use sterna_placement::hosts::Goal;

use super::outcome::Made;

/// A machine on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    pub(super) vm: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) goal: Goal,
    pub(super) bytes: f64,
    pub(super) began: Nanos,
    pub(super) ends: Nanos,
}

impl Copy {
    /// Whether it comes from a host or goes there.
    pub(super) fn touches(&self, host: usize) -> bool {
        self.from == host || self.to == host
    }

    /// It has come to its end.
    pub(super) fn made(&self) -> Made {
        Made {
            at: self.ends,
            vm: self.vm,
            from: self.from,
            to: self.to,
            goal: self.goal,
            bytes: self.bytes,
            took: self.ends.since(self.began),
        }
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies(pub(super) Vec<Copy>);

impl Copies {
    /// When the next one ends.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.0.iter().map(|copy| copy.ends).min()
    }

    /// How many come to a host or leave it.
    pub(super) fn at(&self, host: usize) -> usize {
        self.0.iter().filter(|copy| copy.touches(host)).count()
    }

    /// Bytes that are held for those that come to a host.
    pub(super) fn coming(&self, host: usize) -> f64 {
        let coming = self.0.iter().filter(|copy| copy.to == host);
        coming.map(|copy| copy.bytes).sum()
    }

    /// Where a machine goes, if it does.
    pub(super) fn of(&self, vm: usize) -> Option<&Copy> {
        self.0.iter().find(|copy| copy.vm == vm)
    }

    /// Takes out those that are over by now.
    pub(super) fn landed(&mut self, now: Nanos) -> Vec<Copy> {
        self.0.extract_if(.., |copy| copy.ends <= now).collect()
    }

    /// Takes out those of a host that fails.
    pub(super) fn lost(&mut self, host: usize) -> Vec<Copy> {
        self.0.extract_if(.., |copy| copy.touches(host)).collect()
    }
}
