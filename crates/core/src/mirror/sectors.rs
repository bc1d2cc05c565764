//! The sectors of one region that cannot be read.
//!
//! A region has at most [`SECTORS_MAX`] of them, so a set is one word and a bad region
//! costs a few bytes of memory, however many of its sectors are bad. Sectors are those of
//! the images, unless that would be more of them than fit: then a "sector" is that part
//! of its region.

use crate::ByteRange;

/// Sectors of a region at most: those of 512 bytes of a region of 64 KiB.
pub const SECTORS_MAX: u64 = 128;

/// Some sectors of one region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sectors {
    /// The region's first byte.
    start: u64,
    /// Bytes of the region.
    len: u64,
    /// Bytes of a sector; the last one may be shorter.
    sector: u64,
    bits: u128,
}

impl Sectors {
    /// None of those of the region that is `region`, in sectors of `sector` bytes or as
    /// much more as keeps them few enough.
    pub(super) fn none_of(region: ByteRange, sector: u64) -> Sectors {
        let least = region.len.div_ceil(SECTORS_MAX).next_power_of_two();
        let sector = sector.max(least);
        Sectors { start: region.offset, len: region.len, sector, bits: 0 }
    }

    /// How many sectors the region has.
    pub(super) fn of_region(&self) -> u32 {
        self.len.div_ceil(self.sector.max(1)) as u32 // At most `SECTORS_MAX`.
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.bits == 0
    }

    /// Whether these are all of a region.
    pub(super) fn is_all(&self) -> bool {
        !self.is_none() && self.count() == self.of_region()
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.bits.count_ones()
    }

    /// Bytes in them.
    pub fn bytes(&self) -> u64 {
        self.ranges().iter().map(|range| range.len).sum()
    }

    pub(super) fn has(&self, sector: u32) -> bool {
        self.bits >> sector & 1 == 1
    }

    pub(super) fn add(&mut self, sector: u32) {
        self.bits |= 1 << sector;
    }

    /// Takes those out that lie wholly inside `range`.
    pub(super) fn remove_inside(&mut self, range: ByteRange) {
        for sector in 0..self.of_region() {
            let it = self.range(sector, sector + 1);
            if range.offset <= it.offset && it.end() <= range.end() {
                self.bits &= !(1 << sector);
            }
        }
    }

    /// The bytes of the sectors from `first` to before `end`.
    pub(super) fn range(&self, first: u32, end: u32) -> ByteRange {
        let offset = u64::from(first) * self.sector;
        let end = (u64::from(end) * self.sector).min(self.len);
        ByteRange::new(self.start + offset, end - offset)
    }

    /// Runs of sectors that are, or are not, in the set; in order.
    pub(super) fn runs(&self, are: bool) -> Vec<std::ops::Range<u32>> {
        let mut runs: Vec<std::ops::Range<u32>> = Vec::new();
        for sector in (0..self.of_region()).filter(|sector| self.has(*sector) == are) {
            match runs.last_mut() {
                Some(run) if run.end == sector => run.end += 1,
                _ => runs.push(sector..sector + 1),
            }
        }
        runs
    }

    /// Where they are on the disk, in order, neighbours joined.
    pub fn ranges(&self) -> Vec<ByteRange> {
        self.runs(true).into_iter().map(|run| self.range(run.start, run.end)).collect()
    }

    /// What is left of `range` without them, in order. All of it if there are none.
    pub fn rest_of(&self, range: ByteRange) -> Vec<ByteRange> {
        let (mut rest, mut at) = (Vec::new(), range.offset);
        for bad in self.ranges().into_iter().filter(|bad| bad.overlaps(range)) {
            if bad.offset > at {
                rest.push(ByteRange::new(at, bad.offset - at));
            }
            at = bad.end();
        }
        if at < range.end() {
            rest.push(ByteRange::new(at, range.end() - at));
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: ByteRange = ByteRange::new(1 << 20, 64 << 10);

    fn some(sectors: &[u32]) -> Sectors {
        let mut some = Sectors::none_of(REGION, 512);
        sectors.iter().for_each(|sector| some.add(*sector));
        some
    }

    #[test]
    fn neighbours_are_one_range_and_the_rest_is_around_them() {
        let bad = some(&[3, 4, 127]);
        let at = |sector: u64, count: u64| {
            ByteRange::new(REGION.offset + sector * 512, count * 512)
        };
        assert_eq!(bad.ranges(), [at(3, 2), at(127, 1)]);
        assert_eq!(bad.rest_of(REGION), [at(0, 3), at(5, 122)]);
        assert_eq!(bad.rest_of(at(4, 2)), [at(5, 1)]);
        assert_eq!(bad.rest_of(at(3, 2)), []);
        assert_eq!(Sectors::default().rest_of(REGION), [REGION]);
        assert_eq!((bad.count(), bad.bytes()), (3, 1536));
    }

    #[test]
    fn a_write_heals_what_it_covers_wholly() {
        let mut bad = some(&[3, 4, 5]);
        bad.remove_inside(ByteRange::new(REGION.offset + 3 * 512 + 1, 1024));
        assert_eq!(bad, some(&[3, 5]));
    }

    #[test]
    fn a_region_too_large_for_its_sectors_has_larger_ones() {
        let region = ByteRange::new(0, 1 << 20);
        let sectors = Sectors::none_of(region, 512);
        assert_eq!((sectors.of_region(), sectors.sector), (128, 8192));
        let short = Sectors::none_of(ByteRange::new(0, 1000), 512);
        assert_eq!((short.of_region(), short.range(1, 2).len), (2, 488));
    }
}
