//! Places at a device: how many requests may be there at once.
//!
//! Schedulers on several threads share them. One that finds no place says that it
//! waits; whoever gives a place back is told who waited then, and must see to it
//! that they try again. Between looking and saying so a place may become free: so
//! who has said it tries once more. Either that second try finds the place, or who
//! gave it back finds the one that waits: the two numbers are kept in one order.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// Schedulers that may share places: the bits of a word.
pub const SCHEDULERS_MAX: u32 = u64::BITS;

/// Any number of requests.
const UNBOUNDED: u32 = u32::MAX;

/// Places that are shared.
#[derive(Debug)]
pub(super) struct Slots {
    max: AtomicU32,
    used: AtomicU32,
    /// A bit for each scheduler that waits.
    waiting: AtomicU64,
}

impl Slots {
    /// So many places; any number without one.
    pub(super) fn new(max: Option<u32>) -> Slots {
        Slots {
            max: AtomicU32::new(max.unwrap_or(UNBOUNDED)),
            used: AtomicU32::new(0),
            waiting: AtomicU64::new(0),
        }
    }

    /// Changes how many there are. Those who wait must try again.
    pub(super) fn set(&self, max: Option<u32>) {
        self.max.store(max.map_or(UNBOUNDED, |max| max.max(1)), SeqCst);
    }

    /// How many there are, if they are counted.
    pub(super) fn max(&self) -> Option<u32> {
        Some(self.max.load(SeqCst)).filter(|max| *max != UNBOUNDED)
    }

    /// Whether one is free now.
    pub(super) fn has_room(&self) -> bool {
        self.used.load(SeqCst) < self.max.load(SeqCst)
    }

    /// Takes one; if there is none, `scheduler` waits.
    pub(super) fn take(&self, scheduler: u32) -> bool {
        self.try_take() || {
            self.wait(scheduler);
            self.try_take()
        }
    }

    /// Says that a scheduler waits.
    pub(super) fn wait(&self, scheduler: u32) {
        self.waiting.fetch_or(1 << scheduler, SeqCst);
    }

    /// Takes one, if there is one.
    pub(super) fn try_take(&self) -> bool {
        let max = self.max.load(SeqCst);
        let more = |used: u32| (used < max).then_some(used + 1);
        self.used.fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    /// Gives one back. Who waited has to be woken.
    pub(super) fn give(&self) -> u64 {
        self.used.fetch_sub(1, SeqCst);
        self.waiters()
    }

    /// Those who wait; they do no longer.
    pub(super) fn waiters(&self) -> u64 {
        match self.waiting.load(SeqCst) {
            0 => 0,
            _ => self.waiting.swap(0, SeqCst),
        }
    }
}
