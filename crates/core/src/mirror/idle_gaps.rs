//! Which of the guest's short gaps the copier may use.
//!
//! # Rule
//!
//! The guest that comes back finds the copier at the device, and its first request waits.
//! A database that asks for some pages, computes for 40 ms, and asks again, waits so
//! twenty times in a second, and no comparison of its IO/s with the copy and without it
//! shows that: the copier uses its gaps in both. So coming back has a price of its own,
//! which is how much longer the first answer takes after a gap that was used than after
//! one that was left alone. For every second that the guest is active, it may wait for
//! [`SHARE`] of that at the ends of gaps; some is saved up, and where nothing is, gaps
//! are left alone.
//!
//! # Special cases
//!
//! - Where the first answer takes no longer, every gap is used, but for one in
//!   [`COMPARED`]: else it would not be noticed that it does by now.
//! - An answer that takes longer than [`TOOK_MAX`] waited for something else.
//! - Until enough of both were seen, coming back is taken to cost what the copier is
//!   allowed to have at the device, [`DRAIN`].
//! - A gap of [`LONG`] is not short. It is used in any case, and what its end costs is
//!   nothing beside it.

use super::drain::DRAIN;
use crate::Nanos;
use crate::measure::Mean;

/// The part of its time that a guest may wait at the ends of gaps: a sixth of what a
/// guard of 97 % lets it lose, which does not know of it.
const SHARE: f64 = 0.005;

/// A first answer counts for no more: so long nothing waits for what the copier may have
/// at the device.
const TOOK_MAX: Nanos = Nanos(10 * DRAIN.0);

/// What is saved up at most, nanoseconds: a guest that seldom has gaps has some at once.
/// Not less than coming back can cost, so that what was dear is tried again.
const SAVED_MAX: f64 = TOOK_MAX.0 as f64;

/// One gap of so many is left alone where all could be used. A prime: what a guest does
/// again and again, it does rarely every seventh time.
const COMPARED: u32 = 7;

/// First answers of each kind before they are compared.
const ENOUGH: u32 = 4;

/// The part of a new first answer in the mean of its kind, once there are so many.
const SMOOTHING: f64 = 1.0 / 32.0;

/// A gap that is used in any case. The first request after it waits for what the copier
/// has in flight ([`DRAIN`]): 2 % of it.
pub(super) const LONG: Nanos = Nanos::from_millis(250);

/// What the ends of gaps cost, and what they may cost.
#[derive(Debug)]
pub(super) struct IdleGaps {
    /// How long first answers take, nanoseconds, after gaps that were used.
    used: Mean,
    /// And after those that were left alone.
    left: Mean,
    /// How long the guest may yet wait at the ends of gaps, nanoseconds.
    saved: f64,
    /// IdleGaps so far, to leave some alone.
    count: u32,
}

impl IdleGaps {
    pub(super) fn new() -> Self {
        let (used, left) = (Mean::default(), Mean::default());
        IdleGaps { used, left, saved: SAVED_MAX, count: 1 }
    }

    /// The guest was active for so long.
    pub(super) fn earn(&mut self, active: Nanos) {
        self.saved = (self.saved + SHARE * active.0 as f64).min(SAVED_MAX);
    }

    /// Whether the gap that begins now may be used before it is long.
    pub(super) fn may_use(&self) -> bool {
        self.saved >= self.cost() && !self.count.is_multiple_of(COMPARED)
    }

    /// The guest has come back from a short gap, used or left alone, and had its first
    /// answer in `took`.
    pub(super) fn ended(&mut self, used: bool, took: Nanos) {
        self.next();
        let took = took.min(TOOK_MAX).0 as f64;
        if used {
            self.used.add(took, SMOOTHING);
            self.saved -= self.cost();
        } else {
            self.left.add(took, SMOOTHING);
        }
    }

    /// A gap has ended of which nothing is to be learned.
    pub(super) fn next(&mut self) {
        self.count = self.count.wrapping_add(1);
    }

    /// What coming back costs the guest, nanoseconds.
    fn cost(&self) -> f64 {
        if self.used.count().min(self.left.count()) < ENOUGH {
            return DRAIN.0 as f64;
        }
        (self.used.value() - self.left.value()).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIVE: Nanos = Nanos::from_millis(10);
    const USUAL: Nanos = Nanos::from_millis(1);

    /// So many gaps of a guest that is active for 10 ms between two; a first answer takes
    /// so much longer after one that is used. Gives the part that is.
    fn used(gaps: &mut IdleGaps, cost: Nanos, count: u32) -> f64 {
        let mut used = 0;
        for _ in 0..count {
            gaps.earn(ACTIVE);
            let uses = gaps.may_use();
            used += u32::from(uses);
            let took = if uses { USUAL.plus(cost) } else { USUAL };
            gaps.ended(uses, took);
        }
        f64::from(used) / f64::from(count)
    }

    #[test]
    fn gaps_whose_ends_cost_something_are_used_as_far_as_that_is_little() {
        let mut gaps = IdleGaps::new();
        used(&mut gaps, Nanos::from_millis(2), 1000);
        let part = used(&mut gaps, Nanos::from_millis(2), 10_000);
        // Of 10 ms a two-hundredth is 0.05 ms: one gap in 40.
        assert!((0.022..=0.028).contains(&part), "{part}");
    }

    #[test]
    fn gaps_whose_ends_cost_nothing_are_used() {
        let mut gaps = IdleGaps::new();
        used(&mut gaps, Nanos(0), 1000);
        let part = used(&mut gaps, Nanos(0), 1000);
        assert!(part > 0.85, "{part}");
    }

    #[test]
    fn a_device_that_has_become_fast_is_found_out() {
        let mut gaps = IdleGaps::new();
        used(&mut gaps, Nanos::from_millis(100), 10_000);
        used(&mut gaps, Nanos(0), 100_000);
        let part = used(&mut gaps, Nanos(0), 1000);
        assert!(part > 0.85, "{part}");
    }

    #[test]
    fn a_device_that_has_become_slow_is_found_out() {
        let mut gaps = IdleGaps::new();
        used(&mut gaps, Nanos(0), 1000);
        used(&mut gaps, Nanos::from_millis(2), 200);
        let part = used(&mut gaps, Nanos::from_millis(2), 1000);
        assert!(part < 0.03, "{part}");
    }
}
