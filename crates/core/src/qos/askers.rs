//! How many flows of a class ask for something, on all schedulers together.
//!
//! Counted by seconds: each flow counts itself once in each second in which it has a
//! request that waits, and as many ask as were counted in the last second, or in this one
//! if that is more. So a disk with one request at a time, which waits for nothing between
//! an answer and its next request, counts all the while; one that has gone is forgotten a
//! second later, and nobody has to say so.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Nanos;

/// How long a flow counts at least that has asked once.
const EPOCH: Nanos = Nanos::from_secs(1);

/// Flows at most: what 16 bits hold.
const MOST: u64 = u16::MAX as u64;

/// The second, how many were counted in the one before, and how many in it, in one word.
#[derive(Debug, Default)]
pub(super) struct Askers(AtomicU64);

#[derive(Clone, Copy)]
struct Counted {
    epoch: u32,
    before: u64,
    here: u64,
}

impl Counted {
    fn of(word: u64) -> Counted {
        let epoch = (word >> 32) as u32;
        Counted { epoch, before: word >> 16 & MOST, here: word & MOST }
    }

    fn word(self) -> u64 {
        u64::from(self.epoch) << 32 | self.before.min(MOST) << 16 | self.here.min(MOST)
    }

    /// As it is in a later second.
    fn at(self, epoch: u32) -> Counted {
        match epoch.wrapping_sub(self.epoch) {
            0 => self,
            1 => Counted { epoch, before: self.here, here: 0 },
            // A clock that is behind that of another thread counts where that one is.
            late if late > u32::MAX / 2 => self,
            _ => Counted { epoch, before: 0, here: 0 },
        }
    }
}

impl Askers {
    /// How many ask, with the flow that was last counted in `counted`, above zero.
    pub(super) fn count(&self, now: Nanos, counted: &mut u32) -> u64 {
        // The first second is 1: no flow was counted in it yet.
        let epoch = (now.0 / EPOCH.0 + 1) as u32;
        let mut seen = Counted::of(self.0.load(Relaxed)).at(epoch);
        if *counted != epoch {
            *counted = epoch;
            let one_more = |word: u64| {
                let seen = Counted::of(word).at(epoch);
                Some(Counted { here: seen.here + 1, ..seen }.word())
            };
            let before = self.0.fetch_update(Relaxed, Relaxed, one_more);
            seen = Counted::of(before.unwrap_or_else(|word| word)).at(epoch);
            seen.here += 1;
        }
        seen.before.max(seen.here).max(1)
    }
}
