//! How much work is ahead of the copier: what the time left is made from.
//!
//! A thin disk is mostly holes. The copier does not read what the source says is a hole, and
//! a comparison does not read what is a hole on both sides: neither takes time that counts.
//! So what is ahead is what has data, of that which is behind or not yet compared.
//!
//! Nobody asks for all holes before the copy begins. What is known by then is how much of the
//! source is allocated. That may be more than the data (blocks that were reserved and never
//! written are allocated, too), and less: a region of 64 KiB with one written block is copied
//! whole. If the copier has found more data than is allocated, the rest is taken to have as much
//! of it as what was passed. Once all is equal, what was no hole is data.
//!
//! A mirror that goes on after an earlier daemon does not know how much of what is equal by
//! now are holes. It goes by the lesser of what is behind and what is allocated, so that its
//! time left is rather too long than too short.

/// What is known of the data on a disk.
#[derive(Debug)]
pub(super) struct Ahead {
    size: u64,
    /// What the source has allocated, at most the size.
    allocated: u64,
    /// What was equal when this mirror began.
    equal_before: u64,
    /// What became equal since then without work, as the source has a hole there.
    holes: u64,
    /// What the comparison has read of each side.
    read: u64,
}

impl Ahead {
    /// Of a disk of `size` bytes, of which `equal` are equal on both sides already. No more
    /// than `allocated` bytes of the source have data, if it can say that.
    pub(super) fn new(size: u64, allocated: Option<u64>, equal: u64) -> Ahead {
        Ahead {
            size,
            allocated: allocated.unwrap_or(size).min(size),
            equal_before: equal,
            holes: 0,
            read: 0,
        }
    }

    /// So many bytes are holes on both sides.
    pub(super) fn skipped(&mut self, bytes: u64) {
        self.holes += bytes;
    }

    /// The comparison begins again where it had read no more than so many bytes.
    pub(super) fn compares_again(&mut self, before: u64) {
        self.read = self.read.min(before);
    }

    /// Nothing that was equal is believed any more, the holes included.
    pub(super) fn begins_again(&mut self) {
        (self.equal_before, self.holes, self.read) = (0, 0, 0);
    }

    /// The comparison has read so many bytes of each side.
    pub(super) fn compared(&mut self, bytes: u64) {
        self.read += bytes;
    }

    /// Bytes to be copied, of the `behind` that are not equal. Of these, `late` are known to
    /// have data.
    pub(super) fn to_copy(&self, behind: u64, late: u64) -> u64 {
        let behind_before = self.size.saturating_sub(self.equal_before);
        let (passed, copied) = self.passed(behind);
        let data = match self.allocated.min(behind_before).checked_sub(copied) {
            Some(data) => data,
            None => (behind as f64 * copied as f64 / passed as f64) as u64,
        };
        data.max(late).min(behind)
    }

    /// Bytes of each side to be read for the comparison, of the `unverified` that it has not
    /// come by, while so many bytes are `behind`. Of the unverified ones, `again` are compared
    /// again.
    pub(super) fn to_compare(&self, behind: u64, unverified: u64, again: u64) -> u64 {
        let data = match self.equal_before {
            0 => self.passed(behind).1 + self.to_copy(behind, 0),
            _ => self.allocated.min(self.size.saturating_sub(self.holes)),
        };
        // More data than there was: the guest has filled holes, of what is left perhaps all.
        let left = data.checked_sub(self.read).unwrap_or(unverified);
        left.max(again).min(unverified)
    }

    /// What became equal since this mirror began if so much is `behind`, and how much of that
    /// was no hole.
    fn passed(&self, behind: u64) -> (u64, u64) {
        let equal = self.size.saturating_sub(behind);
        let passed = equal.saturating_sub(self.equal_before);
        (passed, passed.saturating_sub(self.holes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn what_is_not_allocated_takes_no_time() {
        let mut ahead = Ahead::new(100 * GIB, Some(20 * GIB), 0);
        assert_eq!(ahead.to_copy(100 * GIB, 0), 20 * GIB);
        assert_eq!(ahead.to_compare(100 * GIB, 100 * GIB, 0), 20 * GIB);
        // Half of the disk is passed: 35 GiB of holes, 15 of data.
        ahead.skipped(35 * GIB);
        assert_eq!(ahead.to_copy(50 * GIB, 0), 5 * GIB);
        // The comparison has passed a quarter, and read half of that.
        ahead.compared(12 * GIB);
        assert_eq!(ahead.to_compare(50 * GIB, 75 * GIB, 0), 8 * GIB);
    }

    #[test]
    fn a_source_that_cannot_say_what_is_allocated_is_known_by_its_holes() {
        let mut ahead = Ahead::new(100 * GIB, None, 0);
        assert_eq!(ahead.to_copy(100 * GIB, 0), 100 * GIB);
        ahead.skipped(80 * GIB);
        assert_eq!(ahead.to_copy(0, 0), 0);
        assert_eq!(ahead.to_compare(0, 100 * GIB, 0), 20 * GIB);
    }

    #[test]
    fn regions_with_little_data_each_are_ahead_whole() {
        // Each second region has one block of data.
        let mut ahead = Ahead::new(100 * GIB, Some(3 * GIB), 0);
        ahead.skipped(20 * GIB);
        assert_eq!(ahead.to_copy(60 * GIB, 0), 30 * GIB);
        assert_eq!(ahead.to_compare(60 * GIB, 100 * GIB, 0), 50 * GIB);
        ahead.skipped(30 * GIB);
        ahead.compared(10 * GIB);
        assert_eq!(
            (ahead.to_copy(0, 0), ahead.to_compare(0, 80 * GIB, 0)),
            (0, 40 * GIB)
        );
    }

    #[test]
    fn a_move_that_goes_on_has_no_more_ahead_than_is_behind_or_allocated() {
        let ahead = Ahead::new(100 * GIB, Some(20 * GIB), 90 * GIB);
        assert_eq!(ahead.to_copy(10 * GIB, 0), 10 * GIB);
        assert_eq!(ahead.to_copy(4 * GIB, 0), 4 * GIB);
        let ahead = Ahead::new(100 * GIB, Some(20 * GIB), 30 * GIB);
        assert_eq!(ahead.to_copy(70 * GIB, 0), 20 * GIB);
    }

    #[test]
    fn what_is_compared_again_is_ahead_again() {
        let mut ahead = Ahead::new(100 * GIB, Some(50 * GIB), 0);
        ahead.skipped(50 * GIB);
        ahead.compared(40 * GIB);
        assert_eq!(ahead.to_compare(0, 20 * GIB, 0), 10 * GIB);
        ahead.compares_again(0);
        assert_eq!(ahead.to_compare(0, 100 * GIB, 0), 50 * GIB);
        ahead.begins_again();
        assert_eq!(ahead.to_copy(100 * GIB, 0), 50 * GIB);
    }

    #[test]
    fn what_the_guest_writes_into_holes_is_ahead_whatever_was_allocated() {
        let mut ahead = Ahead::new(100 * GIB, Some(GIB), 0);
        ahead.skipped(98 * GIB);
        ahead.compared(2 * GIB);
        assert_eq!(ahead.to_copy(3 * GIB, 2 * GIB), 2 * GIB);
        assert_eq!(ahead.to_compare(0, 5 * GIB, GIB), GIB);
        ahead.compared(GIB);
        assert_eq!(ahead.to_compare(0, 5 * GIB, 0), 5 * GIB);
    }
}
