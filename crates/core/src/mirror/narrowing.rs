//! Which sectors of a region cannot be read, found out by halves.
//!
//! A piece that can be read is done with. One that cannot is halved, down to a single
//! sector, which then is *found*. A read that fails may take a drive's whole time for
//! recovery, which is seconds, so as few as possible are made: for one bad sector among
//! 128, eight. If all are bad, that takes 255 reads; more it never takes.
//!
//! A guest's write to a sector heals it: the drive writes it somewhere else. If that
//! happens while a piece with it is being read, a failure says nothing about that piece,
//! and it is read again.

use std::ops::Range;

use super::JobId;
use super::sectors::Sectors;
use crate::ByteRange;

/// A search under way.
#[derive(Debug)]
pub(super) struct Narrowing {
    pub(super) region: u64,
    /// It looks whether what is known to be bad still is.
    pub(super) again: bool,
    /// Pieces that are not looked at yet; the next one last.
    left: Vec<Range<u32>>,
    found: Sectors,
    /// The piece that is being read.
    probe: Option<(Range<u32>, Option<JobId>)>,
    healed: bool,
}

impl Narrowing {
    /// Looks for bad sectors of a region among those that are not `known` to be.
    pub(super) fn search(region: u64, known: Sectors) -> Narrowing {
        let left = known.runs(false);
        let (again, probe, healed) = (false, None, false);
        Narrowing { region, again, left, found: known, probe, healed }
    }

    /// Looks whether those that are `known` to be bad still are.
    pub(super) fn look_again(region: u64, known: Sectors) -> Narrowing {
        let mut found = known;
        known.ranges().into_iter().for_each(|range| found.remove_inside(range));
        // One by one: each of them has failed alone.
        let singly = known.runs(true).into_iter().flatten();
        let left = singly.map(|sector| sector..sector + 1).collect();
        Narrowing { region, again: true, left, found, probe: None, healed: false }
    }

    /// The next piece to be read; nothing while one is being read, or if that was all.
    pub(super) fn next(&mut self) -> Option<ByteRange> {
        if self.probe.is_some() {
            return None;
        }
        let piece = self.left.pop()?;
        let range = self.found.range(piece.start, piece.end);
        self.probe = Some((piece, None));
        self.healed = false;
        Some(range)
    }

    /// The piece is being read by this job.
    pub(super) fn started(&mut self, job: JobId) {
        if let Some((_, id)) = &mut self.probe {
            *id = Some(job);
        }
    }

    /// Whether this job reads a piece for it.
    pub(super) fn is_for(&self, job: JobId) -> bool {
        matches!(self.probe, Some((_, Some(id))) if id == job)
    }

    /// The piece could be read.
    pub(super) fn readable(&mut self) {
        self.probe = None;
    }

    /// Nothing is known of the piece: it is read again.
    pub(super) fn unknown(&mut self) {
        self.left.extend(self.probe.take().map(|(piece, _)| piece));
    }

    /// The piece could not be read.
    pub(super) fn unreadable(&mut self) {
        if self.healed {
            return self.unknown();
        }
        let Some((Range { start, end }, _)) = self.probe.take() else { return };
        if end - start == 1 {
            return self.found.add(start);
        }
        let middle = start.midpoint(end);
        self.left.extend([middle..end, start..middle]);
    }

    /// A guest's write to `range` has succeeded.
    pub(super) fn wrote(&mut self, range: ByteRange) {
        self.found.remove_inside(range);
        if let Some((piece, _)) = &self.probe {
            let piece = self.found.range(piece.start, piece.end);
            self.healed |= piece.overlaps(range);
        }
    }

    /// What was found, once all is looked at.
    pub(super) fn end(&self) -> Option<Sectors> {
        (self.left.is_empty() && self.probe.is_none()).then_some(self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: ByteRange = ByteRange::new(0, 64 << 10);

    fn none() -> Sectors {
        Sectors::none_of(REGION, 512)
    }

    fn some(sectors: impl IntoIterator<Item = u32>) -> Sectors {
        let mut some = none();
        sectors.into_iter().for_each(|sector| some.add(sector));
        some
    }

    /// Goes on to the end where these are bad. Gives what was found, and the reads.
    fn run(mut narrowing: Narrowing, bad: Sectors) -> (Sectors, u32) {
        let mut reads = 0;
        while let Some(range) = narrowing.next() {
            reads += 1;
            match bad.ranges().iter().any(|bad| bad.overlaps(range)) {
                true => narrowing.unreadable(),
                false => narrowing.readable(),
            }
        }
        (narrowing.end().expect("all is looked at"), reads)
    }

    #[test]
    fn a_bad_sector_is_found_with_few_reads_and_its_neighbours_are_not() {
        for sector in [0, 1, 63, 64, 127] {
            let bad = some([sector]);
            let (found, reads) = run(Narrowing::search(0, none()), bad);
            assert_eq!((found, reads), (bad, 15), "sector {sector}");
        }
    }

    #[test]
    fn whatever_is_bad_the_reads_are_bounded() {
        for bad in [some(0..128), some((0..128).step_by(2)), some(5..90), none()] {
            let (found, reads) = run(Narrowing::search(0, none()), bad);
            assert_eq!(found, bad);
            assert!(reads <= 255, "{reads}");
        }
    }

    #[test]
    fn what_is_known_is_not_read_and_later_nothing_else_is() {
        let known = some([9]);
        let (found, _) = run(Narrowing::search(0, known), some([9, 70]));
        assert_eq!(found, some([9, 70]));
        let (found, reads) = run(Narrowing::look_again(0, found), some([70]));
        assert_eq!((found, reads), (some([70]), 2));
    }

    #[test]
    fn a_failure_that_a_write_may_have_healed_says_nothing() {
        let mut narrowing = Narrowing::look_again(0, some([9]));
        let sector = narrowing.next().expect("the sector");
        narrowing.wrote(sector);
        narrowing.unreadable();
        assert_eq!(narrowing.end(), None);
        assert_eq!(narrowing.next(), Some(sector), "it is read again");
        narrowing.readable();
        assert_eq!(narrowing.end(), Some(none()));
    }
}
