//! The order of the first pass.
//!
//! # Rule
//!
//! The disk is divided into segments, and each is gone through once, forward. Where the
//! guest writes anywhere, or nowhere, so are the segments.
//!
//! A guest's write to a region that is copied already has to be made twice, and takes
//! the longer of both. So where the guest writes one place after another, what it comes
//! to last is copied first. (The page replaced is the one needed farthest in the future:
//! Belady, 1966.) Going forward, the copier would have the guest follow it, and each
//! write made twice.
//!
//! A stream either goes around the whole disk, or around a part of it, as a journal does.
//! Until it comes to where it has been nobody knows which. So next is, always going back
//! from where the stream is:
//!
//! 1. what no stream has passed, while that is behind the stream by less than half the
//!    disk: one around the disk comes there late, and one around a part of it never;
//! 2. what it has passed, the last first: it comes there after all else;
//! 3. the rest, in which one around the disk is now.
//!
//! Once a stream has come to where one has been, 3 comes before 2. The segment that it is
//! in is the last in any case.

use std::ops::Range;

use super::bits::Bits;

/// Segments of a disk, at most: 16 KiB of memory, gone through in microseconds. Those of
/// disks beyond 512 GiB are larger.
const SEGMENTS_MAX: u64 = 65536;

/// Segments that are left, and the one that is being gone through.
#[derive(Debug)]
pub(super) struct CopyOrder {
    /// Regions of the disk.
    regions: u64,
    /// Regions of a segment, a power of two.
    segment: u64,
    /// Segments that have not begun.
    left: Bits,
    /// No word before this one has any.
    first: usize,
    /// Regions in them.
    ahead: u64,
    /// The regions of the one that is being gone through.
    current: Range<u64>,
    /// Segments that a stream has been in.
    passed: Bits,
    /// A stream has come to where one has been.
    recurs: bool,
}

impl CopyOrder {
    /// The order of a disk of so many regions, in segments of at least so many.
    pub(super) fn new(regions: u64, least: u64) -> CopyOrder {
        let enough = regions.div_ceil(SEGMENTS_MAX).next_power_of_two();
        let segment = least.max(1).next_power_of_two().max(enough);
        let segments = regions.div_ceil(segment);
        CopyOrder {
            regions,
            segment,
            left: Bits::all(segments),
            first: 0,
            ahead: regions,
            current: 0..0,
            passed: Bits::none(segments),
            recurs: false,
        }
    }

    /// Begins again, with every segment left.
    pub(super) fn restart(&mut self) {
        self.left = Bits::all(self.segments());
        self.first = 0;
        self.ahead = self.regions;
        self.current = 0..0;
    }

    fn segments(&self) -> u64 {
        self.regions.div_ceil(self.segment)
    }

    /// Regions of a segment.
    pub(super) fn segment(&self) -> u64 {
        self.segment
    }

    /// The regions of the segment that is being gone through.
    pub(super) fn current(&self) -> &Range<u64> {
        &self.current
    }

    /// Regions of segments that have not begun.
    pub(super) fn ahead(&self) -> u64 {
        self.ahead
    }

    /// A stream has gone on from one region to another, or to the disk's end.
    pub(super) fn passes(&mut self, from: u64, to: u64) {
        let last = self.segments().saturating_sub(1);
        let [from, to] = [from, to].map(|region| (region / self.segment).min(last));
        if from == to {
            return;
        }
        for segment in from..=to {
            self.recurs |= segment > from && self.passed.has(segment);
            self.passed.set(segment);
        }
    }

    /// Goes on to the next segment, if one is left. The guest writes one place after
    /// another from the region `head` on, if it does.
    pub(super) fn go_on(&mut self, head: Option<u64>) -> bool {
        let next = match head.map(|region| region / self.segment) {
            Some(head) => self.last_needed(head.min(self.segments() - 1)),
            None => self.first_left(),
        };
        let Some(next) = next else {
            self.current = 0..0;
            return false;
        };
        self.left.clear(next);
        let start = next * self.segment;
        self.current = start..(start + self.segment).min(self.regions);
        self.ahead -= self.current.end - self.current.start;
        true
    }

    fn first_left(&mut self) -> Option<u64> {
        let words = &self.left.words()[self.first..];
        let at = words.iter().position(|word| *word != 0)?;
        let bits = u64::from(words[at].trailing_zeros());
        self.first += at;
        Some(self.first as u64 * 64 + bits)
    }

    /// The segment that is left and that a stream comes to last which is in `head`.
    fn last_needed(&self, head: u64) -> Option<u64> {
        let all = self.segments();
        let (left, passed) = (self.left.words(), self.passed.words());
        let new = |by| self.back(head, by, |word| left[word] & !passed[word]);
        let old = || self.back(head, all - 1, |word| left[word] & passed[word]);
        let next = match self.recurs {
            true => new(all - 1).or_else(old),
            false => new(all / 2).or_else(old).or_else(|| new(all - 1)),
        };
        // The one that it is in comes last.
        next.or_else(|| self.back(head, all, |word| left[word]))
    }

    /// The first of these going back from `head`, around the disk's beginning, by so
    /// many segments.
    fn back(&self, head: u64, by: u64, which: impl Fn(usize) -> u64) -> Option<u64> {
        let around = self.segments() - by.saturating_sub(head).min(self.segments());
        last(head.saturating_sub(by)..head, &which)
            .or_else(|| last(around.max(head)..self.segments(), &which))
    }
}

/// The last bit of these that is set in words.
fn last(bits: Range<u64>, word: impl Fn(usize) -> u64) -> Option<u64> {
    let mut end = bits.end;
    while end > bits.start {
        let at = (end - 1) / 64;
        // Of that word, what is before the end.
        let found = word(at as usize) & (u64::MAX >> (63 - (end - 1) % 64));
        if found != 0 {
            let bit = at * 64 + 63 - u64::from(found.leading_zeros());
            return (bit >= bits.start).then_some(bit);
        }
        end = at * 64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first regions of all segments, in their order.
    fn order(copy_order: &mut CopyOrder, head: impl Fn(u64) -> Option<u64>) -> Vec<u64> {
        let mut starts = Vec::new();
        while copy_order.go_on(head(starts.len() as u64)) {
            starts.push(copy_order.current().start);
        }
        assert_eq!(copy_order.ahead(), 0);
        starts
    }

    #[test]
    fn with_nobody_to_get_out_of_the_way_of_it_goes_forward() {
        let mut copy_order = CopyOrder::new(1000, 4);
        let starts = order(&mut copy_order, |_| None);
        assert_eq!(starts, (0..1000).step_by(4).collect::<Vec<_>>());
        assert!(!copy_order.go_on(None));
    }

    #[test]
    fn before_a_log_it_goes_backward_and_ends_where_the_log_is() {
        let starts = order(&mut CopyOrder::new(32, 4), |_| Some(13));
        assert_eq!(starts, [8, 4, 0, 28, 24, 20, 16, 12]);
    }

    #[test]
    fn a_log_half_as_fast_as_the_copier_never_comes_to_what_is_copied() {
        let mut copy_order = CopyOrder::new(64, 4);
        let mut starts = Vec::new();
        for turn in 0..16 {
            let (before, at) = (30 + turn * 2, 32 + turn * 2);
            copy_order.passes(before, at);
            assert!(!starts.contains(&(at / 4 * 4)), "{at} is copied: {starts:?}");
            assert!(copy_order.go_on(Some(at)));
            starts.push(copy_order.current().start);
        }
        // Backward from where it began, and when that is half of the disk, behind it.
        assert_eq!(starts[..6], [24, 20, 16, 12, 8, 36]);
        assert!(!copy_order.go_on(None), "that was all");
    }

    #[test]
    fn where_a_journal_goes_around_is_copied_last() {
        let mut copy_order = CopyOrder::new(64, 4);
        // From 16 to 28 and again.
        for (from, to) in [(16, 20), (20, 28), (16, 20)] {
            copy_order.passes(from, to);
        }
        let starts = order(&mut copy_order, |_| Some(20));
        assert_eq!(starts[..3], [12, 8, 4]);
        assert_eq!(starts[12..], [16, 28, 24, 20]);
    }

    #[test]
    fn all_of_a_disk_is_gone_through_whatever_the_guest_does() {
        for regions in [1, 3, 64, 65, 257, 4096, 5000] {
            let mut copy_order = CopyOrder::new(regions, 4);
            let mut at: u64 = 1;
            let mut gone = 0;
            loop {
                at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let head = (at >> 60 != 0).then_some((at >> 20) % regions);
                if let Some(head) = head.filter(|_| at >> 50 & 1 == 1) {
                    copy_order.passes(head.saturating_sub(at >> 55), head);
                }
                if !copy_order.go_on(head) {
                    break;
                }
                gone += copy_order.current().end - copy_order.current().start;
            }
            assert_eq!(gone, regions);
        }
    }

    #[test]
    fn a_large_disk_has_larger_segments() {
        let order = CopyOrder::new(1 << 30, 128);
        assert_eq!((order.segment(), order.left.words().len()), (1 << 14, 1024));
    }
}
