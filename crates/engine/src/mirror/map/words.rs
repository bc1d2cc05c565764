//! The words of the region map: sixteen regions and what proves them whole.
//!
//! Whatever concerns many regions goes word by word: a map has a million words for
//! each TiB. The states are in memory as well, and are read from there.

use std::ops::Range;

use sterna_core::Bytes;
use sterna_core::mirror::{RegionMap, Stored};

use super::header::{HEADER_LEN, Header};
use super::{MapError, MapFile, MapKey};

/// Regions in a word.
pub(super) const PER_WORD: u64 = 16;
/// Bytes of a word.
pub(super) const WORD: u64 = 8;
/// 16 regions, all `Synced`.
const ALL_SYNCED: u32 = 0xAAAA_AAAA;
/// 16 regions, all `Suspect`.
const ALL_SUSPECT: u32 = 0xFFFF_FFFF;
/// The lower bit of each region's two.
const LOWER_BITS: u32 = 0x5555_5555;

impl MapKey {
    /// How many words hold the states of its regions.
    pub(super) fn words(&self) -> u64 {
        self.regions().div_ceil(PER_WORD)
    }

    /// The length of its file in bytes.
    pub(super) fn file_len(&self) -> u64 {
        at(self.words())
    }
}

impl MapFile {
    /// Makes every region `Suspect`: a stale copy of the disk is to be compared
    /// and reused.
    pub fn suspect_all(&mut self) {
        for index in 0..self.header.key.words() {
            self.states[index as usize] = ALL_SUSPECT & self.used_bits(index);
        }
        self.store_all();
    }

    /// The bits of a word that stand for regions; the last word has spare ones.
    fn used_bits(&self, index: u64) -> u32 {
        lowest(self.regions() - index * PER_WORD)
    }

    fn states(&self, index: u64) -> u32 {
        self.states[index as usize]
    }
}

/// Where a word is in the file.
pub(super) fn at(index: u64) -> u64 {
    HEADER_LEN as u64 + index * WORD
}

/// The words with these states from `first` on, as they are in the file.
pub(super) fn sealed(generation: u64, first: u64, states: &[u32]) -> Vec<u8> {
    let words = (first..).zip(states);
    words.flat_map(|(at, states)| seal(generation, at, *states).to_le_bytes()).collect()
}

/// The states of the words as they are in the file; checks every one.
pub(super) fn take(header: &Header, words: &[u8]) -> Result<Vec<u32>, MapError> {
    let regions = header.key.regions();
    let (mut count, mut first, mut last) = (0, 0, 0);
    let mut all = Vec::with_capacity(words.len() / WORD as usize);
    for (index, bytes) in (0..).zip(words.as_chunks::<{ WORD as usize }>().0) {
        let word = u64::from_le_bytes(*bytes);
        // The lower half: the truncation is meant.
        let states = word as u32;
        let whole = word == seal(header.generation, index, states);
        if !whole || states & !lowest(regions - index * PER_WORD) != 0 {
            first = if count == 0 { index } else { first };
            last = index;
            count += 1;
        }
        all.push(states);
    }
    match count {
        0 => Ok(all),
        count => {
            let key = header.key;
            let part = PER_WORD * u64::from(key.region);
            let (from, to) = (first * part, ((last + 1) * part).min(key.size));
            Err(MapError::Words { count, from: Bytes(from), to: Bytes(to) })
        }
    }
}

impl RegionMap for MapFile {
    fn regions(&self) -> u64 {
        self.header.key.regions()
    }

    fn get(&self, region: u64) -> Stored {
        assert!(region < self.regions(), "region {region} is behind the disk's end");
        let states = self.states(region / PER_WORD);
        Stored::from_bits((states >> (2 * (region % PER_WORD))) as u8)
    }

    fn set(&mut self, region: u64, stored: Stored) {
        assert!(region < self.regions(), "region {region} is behind the disk's end");
        let (index, shift) = (region / PER_WORD, 2 * (region % PER_WORD));
        let states = self.states(index) & !(3 << shift) | (stored as u32) << shift;
        self.states[index as usize] = states;
        if stored == Stored::Synced {
            self.keep_soon(index);
        } else {
            self.keep(index);
        }
    }

    fn set_run(&mut self, regions: Range<u64>, stored: Stored) {
        assert!(regions.end <= self.regions(), "regions behind the disk's end");
        if regions.is_empty() {
            return;
        }
        let run = regions.start / PER_WORD..regions.end.div_ceil(PER_WORD);
        for index in run.clone() {
            let first = index * PER_WORD;
            let before = lowest(regions.start.saturating_sub(first));
            let meant = lowest(regions.end - first) & !before;
            let all = LOWER_BITS * stored as u32;
            self.states[index as usize] = self.states(index) & !meant | all & meant;
        }
        match stored {
            Stored::Synced if run.end - run.start == 1 => self.keep_soon(run.start),
            _ => self.keep_run(run),
        }
    }

    fn distrust(&mut self) {
        for index in 0..self.header.key.words() {
            // Absent (00) and late (01) become late, synced (10) and suspect
            // (11) become suspect: the lower bit is set.
            let states = self.states(index) | LOWER_BITS & self.used_bits(index);
            self.states[index as usize] = states;
        }
        self.store_all();
    }

    fn replace_synced(&mut self, stored: Stored) {
        for states in &mut self.states {
            // The lower bit of each region that is synced (10).
            let synced = *states >> 1 & !*states & LOWER_BITS;
            let others = *states & !(synced << 1);
            *states = others | (synced * stored as u32);
        }
        self.store_all();
    }

    fn is_kept(&self) -> bool {
        self.lost.is_none()
    }

    fn keep_again(&mut self) {
        self.keep_all_again();
    }

    fn count_not_synced(&self, regions: Range<u64>) -> u64 {
        let mut count = 0;
        for index in regions.start / PER_WORD..regions.end.div_ceil(PER_WORD) {
            let first = index * PER_WORD;
            let before = lowest(regions.start.saturating_sub(first));
            let differing = self.states(index) ^ ALL_SYNCED;
            // A region differs if one of its bits does.
            let differing = (differing | differing >> 1) & LOWER_BITS;
            let asked_for = lowest(regions.end - first) & !before;
            count += u64::from((differing & asked_for).count_ones());
        }
        count
    }

    fn next_not_synced(&self, regions: Range<u64>) -> Option<u64> {
        // Regions of its word that are before the first do not count.
        let mut ignored = lowest(regions.start % PER_WORD);
        for index in regions.start / PER_WORD..regions.end.div_ceil(PER_WORD) {
            let differing = (self.states(index) ^ ALL_SYNCED) & !ignored;
            if differing != 0 {
                let region = index * PER_WORD + u64::from(differing.trailing_zeros() / 2);
                return (region < regions.end).then_some(region);
            }
            ignored = 0;
        }
        None
    }
}

/// The bits of the first `regions` of a word; all bits if there are more of them.
fn lowest(regions: u64) -> u32 {
    match regions {
        0..PER_WORD => (1 << (2 * regions)) - 1,
        _ => u32::MAX,
    }
}

/// A word: the states with what proves them whole and in their place.
pub(super) fn seal(generation: u64, index: u64, states: u32) -> u64 {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&generation.to_le_bytes());
    bytes[8..16].copy_from_slice(&index.to_le_bytes());
    bytes[16..].copy_from_slice(&states.to_le_bytes());
    u64::from(crc32c::crc32c(&bytes)) << 32 | u64::from(states)
}
