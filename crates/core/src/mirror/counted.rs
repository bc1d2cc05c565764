//! A region map, and how many of its regions are behind.
//!
//! Counting looks at the whole map: milliseconds for each TiB, which a thread that
//! serves guests does not have. So a map is counted where that may take its time,
//! and handed in together with its count.

use std::ops::Range;

use super::RegionMap;

/// Regions that are counted together, so that the search for the last few of a
/// large disk does not walk its whole map.
const BLOCK: u64 = 4096;

/// A region map that has been counted.
#[derive(Debug)]
pub struct Counted<M> {
    pub(super) map: M,
    pub(super) behind: Behind,
}

impl<M: RegionMap> Counted<M> {
    /// Counts the regions of `map` that are not stored as `Synced`.
    pub fn new(map: M) -> Self {
        let regions = map.regions();
        let mut behind = Behind {
            total: 0,
            in_block: Vec::with_capacity(regions.div_ceil(BLOCK) as usize),
            regions,
        };
        for block in 0..regions.div_ceil(BLOCK) {
            let range = block * BLOCK..(block * BLOCK + BLOCK).min(regions);
            let count = map.count_not_synced(range);
            behind.total += count;
            behind.in_block.push(count as u16); // BLOCK fits.
        }
        Counted { map, behind }
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }
}

/// How many regions are behind, in all and in each block.
#[derive(Debug)]
pub(super) struct Behind {
    total: u64,
    in_block: Vec<u16>,
    regions: u64,
}

impl Behind {
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn add(&mut self, region: u64) {
        self.total += 1;
        self.in_block[(region / BLOCK) as usize] += 1;
    }

    pub(super) fn remove(&mut self, region: u64) {
        self.total -= 1;
        self.in_block[(region / BLOCK) as usize] -= 1;
    }

    /// All regions are behind.
    pub(super) fn fill(&mut self) {
        self.total = self.regions;
        for (block, behind) in (0..).zip(&mut self.in_block) {
            let left = self.regions - block * BLOCK;
            *behind = left.min(BLOCK) as u16; // BLOCK fits.
        }
    }

    /// The first of these regions in whose block one is behind; their end if there is
    /// none.
    pub(super) fn next_block(&self, of: Range<u64>) -> u64 {
        let (first, end) = (of.start / BLOCK, of.end.div_ceil(BLOCK));
        let blocks = self.in_block.get(first as usize..end as usize).unwrap_or_default();
        match blocks.iter().position(|&behind| behind > 0) {
            Some(0) => of.start,
            Some(blocks) => (first + blocks as u64) * BLOCK,
            None => of.end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::{MemoryMap, Stored};

    #[test]
    fn a_map_is_counted_block_by_block() {
        let regions = 2 * BLOCK + 10;
        let mut map = MemoryMap::new(regions, Stored::Synced);
        for region in [3, 4, 2 * BLOCK, regions - 1] {
            map.set(region, Stored::Suspect);
        }
        let Counted { mut behind, .. } = Counted::new(map);
        assert_eq!((behind.total(), &behind.in_block[..]), (4, &[2, 0, 2][..]));
        assert_eq!(behind.next_block(1..regions), 1);
        assert_eq!(behind.next_block(BLOCK + 1..regions), 2 * BLOCK);
        assert_eq!(behind.next_block(BLOCK + 1..BLOCK + 9), BLOCK + 9);
        behind.remove(2 * BLOCK);
        behind.remove(regions - 1);
        assert_eq!(behind.next_block(BLOCK..regions), regions);
        behind.fill();
        assert_eq!((behind.total(), behind.in_block[2]), (regions, 10));
    }
}
