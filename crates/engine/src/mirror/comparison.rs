//! A comparison on its way through its range.
//!
//! Regions of which both images say that they hold nothing but zeroes are equal, and are
//! not read: of a thin disk that is most of it. Both are asked first, about the whole
//! range. An image that cannot say, or fails to, has data everywhere. The rest is read
//! piece by piece on both sides.
//!
//! What an image says may be older than a guest's write. Such a write touches the job,
//! and the mirror compares its regions again, so this is no concern here.
//!
//! Asking costs a look-up on each side. Where nothing was found empty several times in a
//! row, [`Look`] asks only now and then, so a full disk is compared as quickly as if
//! nobody asked.

use sterna_core::ByteRange;

use super::runs;
use crate::image::Extent;

/// A comparison reads so much at a time from both sides: with two buffers for
/// each job it stays within the memory that copying has.
pub(super) const PIECE: u64 = 512 << 10;

/// A range shorter than this is read as fast as it is asked about.
const ASK_MIN: u64 = 256 << 10;

/// At most so many comparisons go by without asking: 64 MiB of the usual chunks, so the
/// beginning of an empty part is found soon.
const UNASKED_MAX: u32 = 64;

/// Whether a comparison asks for what is empty.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// How many of the next comparisons do not ask.
    unasked: u32,
    /// How many did not after the last one that asked in vain.
    last: u32,
}

impl Look {
    /// Whether the next comparison, of `len` bytes, asks.
    pub(super) fn next(&mut self, len: u64) -> bool {
        if len < ASK_MIN {
            return false;
        }
        let asks = self.unasked == 0;
        self.unasked = self.unasked.saturating_sub(1);
        asks
    }

    /// One that asked has ended, and did or did not find something empty.
    pub(super) fn found(&mut self, any: bool) {
        self.last = if any { 0 } else { (self.last * 2).clamp(1, UNASKED_MAX) };
        self.unasked = self.last;
    }
}

/// A comparison under way.
#[derive(Debug)]
pub(super) struct Comparison {
    range: ByteRange,
    /// The unit in which differences are told, a region.
    unit: u64,
    /// Whether both sides are asked before anything is read.
    pub(super) asks: bool,
    /// For each region, how many sides hold nothing but zeroes there.
    empty: Vec<u8>,
    /// Up to here all is compared.
    at: u64,
    /// Bytes of each side that were read.
    read: u64,
    differing: Vec<ByteRange>,
}

/// Sides of which a region must be empty to be equal unread.
const BOTH: u8 = 2;

impl Comparison {
    /// Of `range`, which begins with a region of `unit` bytes.
    pub(super) fn new(range: ByteRange, unit: u64, asks: bool) -> Self {
        let regions = if asks { range.len.div_ceil(unit) } else { 0 };
        Comparison {
            range,
            unit,
            asks,
            empty: vec![0; regions as usize],
            at: range.offset,
            read: 0,
            differing: Vec::new(),
        }
    }

    /// What one of the sides holds, from the range's start, as far as it said.
    pub(super) fn told(&mut self, extents: &[Extent]) {
        let mut zeroes: Option<ByteRange> = None;
        for extent in extents {
            match &mut zeroes {
                Some(run) if extent.zero && run.end() == extent.range.offset => {
                    run.len += extent.range.len;
                    continue;
                }
                _ => {}
            }
            if let Some(run) = zeroes.take() {
                self.count(run);
            }
            zeroes = extent.zero.then_some(extent.range);
        }
        if let Some(run) = zeroes {
            self.count(run);
        }
    }

    /// Counts the regions that lie wholly inside `zeroes`.
    fn count(&mut self, zeroes: ByteRange) {
        let start = zeroes.offset.max(self.range.offset) - self.range.offset;
        let end = zeroes.end().min(self.range.end()).saturating_sub(self.range.offset);
        let last =
            if end == self.range.len { self.empty.len() as u64 } else { end / self.unit };
        for region in start.div_ceil(self.unit)..last {
            self.empty[region as usize] += 1;
        }
    }

    /// The next piece to read on both sides; `None` if the range is compared.
    pub(super) fn piece(&mut self) -> Option<ByteRange> {
        while self.at < self.range.end() && self.is_empty(self.at) {
            self.at = (self.at + self.unit).min(self.range.end());
        }
        let most = (self.range.end() - self.at).min(PIECE);
        let mut len = most.min(self.unit);
        while len < most && !self.is_empty(self.at + len) {
            len = (len + self.unit).min(most);
        }
        (most > 0).then(|| ByteRange::new(self.at, len))
    }

    fn is_empty(&self, at: u64) -> bool {
        let region = (at - self.range.offset) / self.unit;
        self.empty.get(region as usize) == Some(&BOTH)
    }

    /// The piece at hand was read on both sides.
    pub(super) fn was_read(&mut self, source: &[u8], destination: &[u8]) {
        for part in runs::differing(source, destination, self.unit as usize) {
            let range = ByteRange::new(self.at + part.start as u64, part.len() as u64);
            self.differing.push(range);
        }
        self.at += source.len() as u64;
        self.read += source.len() as u64;
    }

    /// Whether something was found empty, if it was asked for.
    pub(super) fn found_empty(&self) -> Option<bool> {
        self.asks.then(|| self.empty.contains(&BOTH))
    }

    /// What differs, in order, and how many bytes of each side were read.
    pub(super) fn end(&mut self) -> (Vec<ByteRange>, u64) {
        (std::mem::take(&mut self.differing), self.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 64 << 10;
    const START: u64 = 3 * UNIT;

    fn extent(first: u64, end: u64, zero: bool) -> Extent {
        let range = ByteRange::new(START + first, end - first);
        Extent { range, hole: zero, zero }
    }

    /// The pieces that are read of a range of 16 regions.
    fn pieces(source: &[Extent], destination: &[Extent]) -> Vec<(u64, u64)> {
        let range = ByteRange::new(START, 16 * UNIT);
        let mut comparison = Comparison::new(range, UNIT, true);
        comparison.told(source);
        comparison.told(destination);
        let mut pieces = Vec::new();
        while let Some(piece) = comparison.piece() {
            pieces.push(((piece.offset - START) / UNIT, piece.len / UNIT));
            let bytes = vec![0; piece.len as usize];
            comparison.was_read(&bytes, &bytes);
        }
        pieces
    }

    #[test]
    fn what_is_empty_on_both_sides_is_not_read() {
        let source = [extent(0, 4 * UNIT, true), extent(4 * UNIT, 16 * UNIT, false)];
        let destination = [extent(0, 2 * UNIT, true), extent(2 * UNIT, 16 * UNIT, false)];
        assert_eq!(pieces(&source, &destination), [(2, 8), (10, 6)]);
        let all = [extent(0, 16 * UNIT, true)];
        assert_eq!(pieces(&all, &all), []);
        assert_eq!(pieces(&all, &[]), [(0, 8), (8, 8)], "one side cannot say");
    }

    #[test]
    fn a_region_that_is_empty_in_parts_is_read() {
        let half = UNIT / 2;
        let source =
            [extent(0, UNIT + half, true), extent(UNIT + half, 16 * UNIT, false)];
        assert_eq!(pieces(&source, &source), [(1, 8), (9, 7)]);
        let touching = [extent(0, half, true), extent(half, 16 * UNIT, true)];
        assert_eq!(pieces(&touching, &touching), [], "two zero extents are one");
    }

    #[test]
    fn a_short_last_region_that_is_empty_is_not_read() {
        let range = ByteRange::new(START, UNIT + 512);
        let mut comparison = Comparison::new(range, UNIT, true);
        for _ in 0..BOTH {
            comparison.told(&[
                extent(0, UNIT, false),
                Extent {
                    range: ByteRange::new(START + UNIT, 512),
                    hole: true,
                    zero: true,
                },
            ]);
        }
        assert_eq!(comparison.piece(), Some(ByteRange::new(START, UNIT)));
        comparison.was_read(&[0; UNIT as usize], &[0; UNIT as usize]);
        assert_eq!(comparison.piece(), None);
        assert_eq!(comparison.end(), (vec![], UNIT));
    }

    #[test]
    fn a_full_disk_is_seldom_asked_about_and_an_empty_one_always() {
        let mut look = Look::default();
        let asked = (0..1000)
            .filter(|_| {
                let asks = look.next(1 << 20);
                if asks {
                    look.found(false);
                }
                asks
            })
            .count();
        assert!((15..30).contains(&asked), "{asked}");
        while !look.next(1 << 20) {}
        look.found(true);
        assert!(look.next(1 << 20), "what was empty goes on being empty");
    }
}
