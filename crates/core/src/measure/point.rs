//! A point of a chart: one window of a timeline, or several in one.
//!
//! Of several windows, rates are those of all together, and means are weighted by
//! requests. Percentiles are never averaged: a point has those of its **worst** window, and
//! says how many windows it has.

use super::slot::{Slot, Summary};
use crate::Nanos;

/// What was done in one or several windows that follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When the first window began.
    pub start: Nanos,
    /// When the last one ended. In between may be pauses, in which nothing was done.
    pub end: Nanos,
    /// How many windows these are.
    pub windows: u32,
    /// Rates and means of all of them; its quantiles are the worst window's.
    pub did: Summary,
}

impl Point {
    pub(super) fn of(slot: &Slot) -> Point {
        let (start, end) = (slot.start(), slot.end());
        let did = Summary::of(end.since(start), std::slice::from_ref(slot));
        Point { start, end, windows: 1, did: worst(did, None, slot) }
    }

    /// Adds the window that follows.
    pub(super) fn join(&mut self, slot: &Slot) {
        let end = slot.end();
        let span = end.since(self.start);
        let other = Summary::of(end.since(slot.start()), std::slice::from_ref(slot));
        let joined = self.did.followed_by(&other, span);
        self.did = worst(joined, Some(&self.did), slot);
        (self.end, self.windows) = (end, self.windows.saturating_add(1));
    }
}

/// A summary with the quantiles of the worst window: of this one, or of those before.
fn worst(did: Summary, before: Option<&Summary>, slot: &Slot) -> Summary {
    let mine = slot.spread();
    let of = |at: usize, before: Option<Nanos>| mine.map(|all| all[at]).max(before);
    Summary {
        p50: of(0, before.and_then(|it| it.p50)),
        // Not kept of a point: nobody draws it.
        p95: None,
        p99: of(1, before.and_then(|it| it.p99)),
        max: of(2, before.and_then(|it| it.max)),
        ..did
    }
}
