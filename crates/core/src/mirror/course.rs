//! The order of the first pass.
//!
//! The disk is divided into segments, and each is gone through once, forward. Where the
//! guest writes anywhere, or nowhere, so are the segments.
//!
//! A guest's write to a region that is copied already has to be made twice, and takes
//! the longer of both. So where the guest writes one place after another, the segments
//! go the other way: next is the one that the guest has left last, and so comes to last;
//! a log goes around its disk before it does. From there it is backward, around the
//! disk's beginning, to the segment that the guest is in. Going forward, the guest would
//! follow the copier through what is copied, and have each of its writes made twice.
//! (The page replaced is the one needed farthest in the future: Belady, 1966.)

use std::ops::Range;

/// Segments of a disk, at most: 8 KiB of memory, gone through in microseconds. Those of
/// disks beyond 512 GiB are larger.
const SEGMENTS_MAX: u64 = 65536;

/// Segments that are left, and the one that is being gone through.
#[derive(Debug)]
pub(super) struct Course {
    /// Regions of the disk.
    regions: u64,
    /// Regions of a segment, a power of two.
    segment: u64,
    /// Segments that have not begun, a bit for each.
    left: Vec<u64>,
    /// Regions in them.
    ahead: u64,
    /// The regions of the one that is being gone through.
    current: Range<u64>,
}

impl Course {
    /// A course through a disk of so many regions, in segments of at least so many.
    pub(super) fn new(regions: u64, least: u64) -> Course {
        let enough = regions.div_ceil(SEGMENTS_MAX).next_power_of_two();
        let segment = least.max(1).next_power_of_two().max(enough);
        let mut course =
            Course { regions, segment, left: Vec::new(), ahead: 0, current: 0..0 };
        course.restart();
        course
    }

    /// Begins again, with every segment left.
    pub(super) fn restart(&mut self) {
        let segments = self.regions.div_ceil(self.segment);
        self.left = vec![u64::MAX; segments.div_ceil(64) as usize];
        if let Some(last) = self.left.last_mut()
            && !segments.is_multiple_of(64)
        {
            *last = (1 << (segments % 64)) - 1;
        }
        self.ahead = self.regions;
        self.current = 0..0;
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

    /// Goes on to the next segment, if one is left. The guest writes one place after
    /// another from the region `head` on, if it does.
    pub(super) fn go_on(&mut self, head: Option<u64>) -> bool {
        let next = match head.map(|region| region / self.segment) {
            Some(head) => self.last_before(head).or_else(|| self.last_before(u64::MAX)),
            None => self.first(),
        };
        let Some(next) = next else {
            self.current = 0..0;
            return false;
        };
        self.left[(next / 64) as usize] &= !(1 << (next % 64));
        let start = next * self.segment;
        self.current = start..(start + self.segment).min(self.regions);
        self.ahead -= self.current.end - self.current.start;
        true
    }

    fn first(&self) -> Option<u64> {
        let word = self.left.iter().position(|word| *word != 0)?;
        Some(word as u64 * 64 + u64::from(self.left[word].trailing_zeros()))
    }

    /// The last one that is left before that segment.
    fn last_before(&self, segment: u64) -> Option<u64> {
        let whole = ((segment / 64) as usize).min(self.left.len());
        let part =
            self.left.get(whole).map_or(0, |word| word & ((1 << (segment % 64)) - 1));
        let last =
            |at: usize, word: u64| at as u64 * 64 + 63 - u64::from(word.leading_zeros());
        if part != 0 {
            return Some(last(whole, part));
        }
        let at = self.left[..whole].iter().rposition(|word| *word != 0)?;
        Some(last(at, self.left[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first regions of all segments, in their order.
    fn order(course: &mut Course, head: impl Fn(u64) -> Option<u64>) -> Vec<u64> {
        let mut starts = Vec::new();
        while course.go_on(head(starts.len() as u64)) {
            starts.push(course.current().start);
        }
        assert_eq!(course.ahead(), 0);
        starts
    }

    #[test]
    fn with_nobody_to_get_out_of_the_way_of_it_goes_forward() {
        let mut course = Course::new(1000, 4);
        let starts = order(&mut course, |_| None);
        assert_eq!(starts, (0..1000).step_by(4).collect::<Vec<_>>());
        assert!(!course.go_on(None));
    }

    #[test]
    fn before_a_log_it_goes_backward_and_ends_where_the_log_is() {
        let starts = order(&mut Course::new(32, 4), |_| Some(13));
        assert_eq!(starts, [8, 4, 0, 28, 24, 20, 16, 12]);
    }

    #[test]
    fn what_a_log_has_left_is_copied_next() {
        // It is as fast as the copier.
        let starts = order(&mut Course::new(32, 4), |turn| Some((13 + turn * 4) % 32));
        assert_eq!(starts, [8, 12, 16, 20, 24, 28, 0, 4]);
    }

    #[test]
    fn all_of_a_disk_is_gone_through_whatever_the_guest_does() {
        for regions in [1, 3, 64, 65, 257, 4096, 5000] {
            let mut course = Course::new(regions, 4);
            let mut at: u64 = 1;
            let mut gone = 0;
            loop {
                at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let head = (at >> 60 != 0).then_some((at >> 20) % regions);
                if !course.go_on(head) {
                    break;
                }
                gone += course.current().end - course.current().start;
            }
            assert_eq!(gone, regions);
        }
    }

    #[test]
    fn a_large_disk_has_larger_segments() {
        let course = Course::new(1 << 30, 128);
        assert_eq!((course.segment(), course.left.len()), (1 << 14, 1024));
    }
}
