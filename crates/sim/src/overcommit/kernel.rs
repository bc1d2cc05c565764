//! How much Linux reads at a fault.
//!
//! **Rule** (`__swapin_nr_pages` of mm/swap_state.c). Of what was read ahead, the kernel counts
//! what was used since the last fault, and reads about twice as much; at least half as much as the
//! last time, and at most a cluster of eight pages. Where nothing was used and the fault does not
//! follow the last one, it reads the page alone. What it reads is aligned: the pages around the
//! page that is asked for.

use std::ops::Range;

/// A cluster, in pages: `vm.page-cluster` is 3 unless somebody changes it.
const CLUSTER: u64 = 8;

/// What is read at a fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAhead {
    /// Pages at most.
    most: u64,
    /// Pages that were read ahead and used since the last fault.
    hits: u64,
    /// Pages that were read at the last fault.
    last: u64,
    /// The slot of the last fault.
    previous: u64,
}

impl ReadAhead {
    /// As Linux does it.
    pub(super) fn linux() -> ReadAhead {
        ReadAhead { most: CLUSTER, hits: 0, last: 0, previous: 0 }
    }

    /// One page at a time, whatever happens.
    pub(super) fn none() -> ReadAhead {
        ReadAhead { most: 1, ..ReadAhead::linux() }
    }

    /// A page that was read ahead is used.
    pub(super) fn hit(&mut self) {
        self.hits += 1;
    }

    /// The slots to read at a fault in this one.
    pub(super) fn fault(&mut self, slot: u64) -> Range<u64> {
        let wanted = match self.hits {
            0 if slot.abs_diff(self.previous) == 1 => 2,
            0 => 1,
            hits => (hits + 2).next_power_of_two().max(4),
        };
        let pages = wanted.min(self.most).max(self.last / 2);
        (self.hits, self.last, self.previous) = (0, pages, slot);
        let first = slot - slot % pages;
        first..first + pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_far_from_the_last_one_reads_one_page() {
        let mut ahead = ReadAhead::linux();
        assert_eq!(ahead.fault(1000), 1000..1001);
        assert_eq!(ahead.fault(77), 77..78);
        assert_eq!(ahead.fault(78), 78..80);
    }

    #[test]
    fn what_is_used_is_read_more_of_and_what_is_not_less() {
        let mut ahead = ReadAhead::linux();
        (0..3).for_each(|_| ahead.hit());
        assert_eq!(ahead.fault(1003), 1000..1008);
        assert_eq!(ahead.fault(21), 20..24);
        assert_eq!(ahead.fault(43), 42..44);
        assert_eq!(ahead.fault(9), 9..10);
        let mut none = ReadAhead::none();
        none.hit();
        assert_eq!(none.fault(1003), 1003..1004);
    }
}
