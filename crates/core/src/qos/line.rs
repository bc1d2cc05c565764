//! Who goes first of several schedulers that want the same places.
//!
//! Each says what it has at its head: the smallest goes first. When a place becomes
//! free, a scheduler that is not first leaves it to the one that is, and wakes it. Among
//! equals those alternate: whoever comes next after the one that was last.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use super::slots::SCHEDULERS_MAX;

/// What a scheduler could start first. A class may be on several of them, with one
/// number of its own: then the number within the class counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Head {
    pub(super) class: u64,
    pub(super) member: u64,
}

/// Nothing that could start.
const NOTHING: u64 = u64::MAX;

impl Head {
    /// The largest number that says something.
    pub(super) const LAST: u64 = NOTHING - 1;
}

#[derive(Debug, Default)]
pub(super) struct Line {
    heads: Heads,
    /// The schedulers there are, a bit each.
    present: AtomicU64,
    /// Who took a place last.
    last: AtomicU32,
}

/// The heads by the numbers of their schedulers. Who reads one while it changes may
/// see a half of each: then somebody is woken in vain.
#[derive(Debug)]
struct Heads {
    class: [AtomicU64; SCHEDULERS_MAX as usize],
    member: [AtomicU64; SCHEDULERS_MAX as usize],
}

impl Default for Heads {
    fn default() -> Self {
        let nothing = || [const { AtomicU64::new(NOTHING) }; SCHEDULERS_MAX as usize];
        Heads { class: nothing(), member: nothing() }
    }
}

impl Line {
    pub(super) fn join(&self, number: u32) {
        self.present.fetch_or(1 << number, SeqCst);
    }

    pub(super) fn leave(&self, number: u32) {
        self.rest(number);
        self.present.fetch_and(!(1 << number), SeqCst);
    }

    /// Says what a scheduler could start first.
    pub(super) fn say(&self, number: u32, head: Head) {
        self.heads.member[number as usize].store(head.member, SeqCst);
        self.heads.class[number as usize].store(head.class, SeqCst);
    }

    /// A scheduler could start nothing.
    pub(super) fn rest(&self, number: u32) {
        self.heads.class[number as usize].store(NOTHING, SeqCst);
    }

    /// A scheduler has taken a place.
    pub(super) fn took(&self, number: u32) {
        if self.last.load(SeqCst) != number {
            self.last.store(number, SeqCst);
        }
    }

    /// The scheduler that comes before this one, if any does.
    pub(super) fn goes_before(&self, number: u32, head: Head) -> Option<u32> {
        let last = self.last.load(SeqCst);
        let rank = |head: Head, number: u32| {
            (head, number.wrapping_sub(last + 1) % SCHEDULERS_MAX)
        };
        let mut others = self.present.load(SeqCst) & !(1 << number);
        let mut first = None;
        let mut least = rank(head, number);
        while others != 0 {
            let other = others.trailing_zeros();
            others &= others - 1;
            let class = self.heads.class[other as usize].load(SeqCst);
            let member = self.heads.member[other as usize].load(SeqCst);
            let rank = rank(Head { class, member }, other);
            if class != NOTHING && rank < least {
                (least, first) = (rank, Some(other));
            }
        }
        first
    }
}
