//! Who may copy at the same time, and how quickly they do then.

use super::setup::{Move, Setup};

/// So many moves may be at a datastore whatever they copy: one copies while the other one
/// begins, or switches over.
pub const LEAST: usize = 2;

/// And so many at most: each has its buffers and its guard, and the more there are, the
/// less each is felt to end.
pub const MOST: usize = 8;

/// What copies of others take of a datastore: of other plans, and of migrations that are of
/// none; there, or on whatever it is on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Others {
    /// How many.
    pub copies: usize,
    /// What they copy by themselves, in bytes per second.
    pub rate: f64,
}

/// What the moves that are under way take of the datastores.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Places {
    /// By datastore: how many, and what they copy by themselves; others' too.
    taken: Vec<(usize, f64)>,
    /// How many of the plan's own.
    under_way: usize,
}

impl Places {
    /// None is under way.
    pub(super) fn empty(setup: &Setup) -> Places {
        Places { taken: vec![(0, 0.0); setup.ends.len()], under_way: 0 }
    }

    /// None is under way but others' copies, by datastore.
    pub(super) fn beside(others: &[Others]) -> Places {
        let taken = others.iter().map(|it| (it.copies, it.rate)).collect();
        Places { taken, under_way: 0 }
    }

    /// One more is under way, from and to these.
    pub(super) fn take(&mut self, one: &Move, to: usize) {
        self.under_way += 1;
        for end in [one.from, to] {
            self.taken[end].0 += 1;
            self.taken[end].1 += one.rate;
        }
    }

    /// Whether one more may be at a datastore, if it copies little enough.
    pub(super) fn is_open(&self, setup: &Setup, end: usize) -> bool {
        self.is_one_more_possible(setup) && self.takes(setup, end, 0.0)
    }

    /// Whether one more may be.
    pub(super) fn has_place(&self, setup: &Setup, one: &Move, to: usize) -> bool {
        let takes = |end: usize| self.takes(setup, end, one.rate);
        self.is_one_more_possible(setup) && takes(one.from) && takes(to)
    }

    fn is_one_more_possible(&self, setup: &Setup) -> bool {
        self.under_way < setup.at_once.unwrap_or(usize::MAX).max(1)
    }

    /// Whether a datastore takes one more that copies so much. A plan always has one under
    /// way, whatever others do: it would wait for them for ever.
    fn takes(&self, setup: &Setup, end: usize, more: f64) -> bool {
        if self.under_way == 0 {
            return true;
        }
        let (count, rate) = self.taken[end];
        let fits = || setup.ends[end].speed.is_some_and(|speed| rate + more <= speed);
        count < LEAST || (count < MOST && fits())
    }

    /// The part of its own speed that a move has beside the others, above 0 and at most 1.
    pub(super) fn part(&self, setup: &Setup, one: &Move, to: usize) -> f64 {
        let part = |end: usize| match setup.ends[end].speed {
            Some(speed) if self.taken[end].1 > speed => speed / self.taken[end].1,
            _ => 1.0,
        };
        part(one.from).min(part(to)).max(f64::MIN_POSITIVE)
    }
}
