//! Regions that are equal on both sides and that no flush of the destination covers yet.
//!
//! They are known in memory alone: the map goes on to say of such a region what a crash
//! would need, which is that it has to be copied (or compared) again. A flush that
//! succeeds *covers* what was here when the flush began; what came after that waits for the
//! next one.
//!
//! What is covered the map may call `Synced`. It does so [`STORED_AT_ONCE`] by
//! [`STORED_AT_ONCE`]: between two flushes terabytes of holes can become equal, and guests
//! wait while their map is stored. Until then a kill costs a second copy.
//!
//! Three bits in memory for each region, and nothing is searched for: a word of the upper
//! level says which words of the lower one have any.

use std::ops::Range;

/// Regions in a word of either level.
const WORD: u64 = 64;

/// How many words of regions are named at once to be stored: the regions of 64 GiB, which
/// takes a millisecond.
const STORED_AT_ONCE: usize = 16_384;

/// A set of regions that is filled one by one and emptied from its beginning.
#[derive(Debug)]
struct Set {
    words: Vec<u64>,
    /// Which words are not zero.
    filled: Vec<u64>,
    /// No word of that level before this one has any.
    first: usize,
    count: u64,
}

/// Regions that are equal, and not known to be durable on the destination.
#[derive(Debug)]
pub(super) struct Unflushed {
    /// Equal since the last flush began.
    newer: Set,
    /// Equal when the flush began that is under way.
    older: Set,
    /// Durable, and the map does not say so yet.
    covered: Set,
}

impl Unflushed {
    /// None of so many regions.
    pub(super) fn none(regions: u64) -> Unflushed {
        let [newer, older, covered] = [0; 3].map(|_| Set::none(regions));
        Unflushed { newer, older, covered }
    }

    /// Whether no flush is needed.
    pub(super) fn is_empty(&self) -> bool {
        self.newer.count == 0 && self.older.count == 0
    }

    /// Whether the map says less than what is durable.
    pub(super) fn is_any_covered(&self) -> bool {
        self.covered.count > 0
    }

    pub(super) fn has(&self, region: u64) -> bool {
        self.newer.has(region) || self.older.has(region) || self.covered.has(region)
    }

    pub(super) fn insert(&mut self, region: u64) {
        self.newer.insert(region);
    }

    /// The region is written again: no flush that has begun covers that.
    pub(super) fn remove(&mut self, region: u64) {
        self.newer.remove(region);
        self.older.remove(region);
        self.covered.remove(region);
    }

    /// A flush begins. It covers what is here now.
    pub(super) fn flush_begins(&mut self) {
        self.older.take_all(&mut self.newer);
    }

    /// The flush that is under way will cover this region, which is forgotten if so.
    pub(super) fn take_from_flush(&mut self, region: u64) -> bool {
        let is = self.older.has(region);
        self.older.remove(region);
        is
    }

    /// The flush has succeeded.
    pub(super) fn flush_ends(&mut self) {
        self.covered.take_all(&mut self.older);
    }

    /// Names some of what is covered, and forgets it: the map says so now.
    pub(super) fn store_some(&mut self, each: impl FnMut(Range<u64>)) {
        self.covered.drain(STORED_AT_ONCE, each);
    }

    /// Names all that no flush has covered, in no order, and forgets it.
    pub(super) fn drain(&mut self, mut each: impl FnMut(Range<u64>)) {
        self.older.drain(usize::MAX, &mut each);
        self.newer.drain(usize::MAX, &mut each);
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.drain(|_| ());
        self.covered.drain(usize::MAX, |_| ());
    }
}

impl Set {
    fn none(regions: u64) -> Set {
        let words = regions.div_ceil(WORD);
        Set {
            words: vec![0; words as usize],
            filled: vec![0; words.div_ceil(WORD) as usize],
            first: 0,
            count: 0,
        }
    }

    fn has(&self, region: u64) -> bool {
        self.words[(region / WORD) as usize] & bit(region) != 0
    }

    fn insert(&mut self, region: u64) {
        self.insert_word(region / WORD, bit(region));
    }

    fn insert_word(&mut self, at: u64, bits: u64) {
        let word = &mut self.words[at as usize];
        self.count += u64::from((bits & !*word).count_ones());
        *word |= bits;
        let above = (at / WORD) as usize;
        self.filled[above] |= bit(at);
        self.first = self.first.min(above);
    }

    /// Takes what another one has, which is empty then.
    fn take_all(&mut self, other: &mut Set) {
        if self.count == 0 {
            std::mem::swap(self, other);
        } else {
            other.drain_words(usize::MAX, |at, word| self.insert_word(at, word));
        }
    }

    fn remove(&mut self, region: u64) {
        let word = &mut self.words[(region / WORD) as usize];
        self.count -= u64::from(*word & bit(region) != 0);
        *word &= !bit(region);
    }

    /// Names the regions of the first `most` words as runs, in order, and forgets them.
    fn drain(&mut self, most: usize, mut each: impl FnMut(Range<u64>)) {
        let mut run = 0..0;
        let mut add = |regions: Range<u64>| {
            if regions.start != run.end {
                let before = std::mem::replace(&mut run, regions.start..regions.start);
                if !before.is_empty() {
                    each(before);
                }
            }
            run.end = regions.end;
        };
        self.drain_words(most, |at, word| match word {
            u64::MAX => add(at * WORD..(at + 1) * WORD),
            _ => ones(word, at * WORD).for_each(|region| add(region..region + 1)),
        });
        if !run.is_empty() {
            each(run);
        }
    }

    fn drain_words(&mut self, most: usize, mut each: impl FnMut(u64, u64)) {
        let mut left = most;
        while self.count > 0 && left > 0 {
            let Some(filled) = self.filled.get_mut(self.first) else { return };
            if *filled == 0 {
                self.first += 1;
                continue;
            }
            let at = self.first as u64 * WORD + u64::from(filled.trailing_zeros());
            *filled &= *filled - 1;
            // A word that was emptied one by one is still called filled.
            let word = std::mem::take(&mut self.words[at as usize]);
            if word != 0 {
                self.count -= u64::from(word.count_ones());
                left -= 1;
                each(at, word);
            }
        }
    }
}

fn bit(of: u64) -> u64 {
    1 << (of % WORD)
}

/// The numbers of the bits that are set, counted from `first`.
fn ones(mut word: u64, first: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let at = u64::from(word.trailing_zeros());
        (word != 0).then(|| {
            word &= word - 1;
            first + at
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(unflushed: &mut Unflushed) -> Vec<Range<u64>> {
        unflushed.flush_ends();
        let mut runs = Vec::new();
        unflushed.store_some(|run| runs.push(run));
        runs
    }

    #[test]
    fn a_flush_covers_what_was_there_when_it_began_and_was_not_written_since() {
        let mut unflushed = Unflushed::none(10_000);
        for region in [3, 4, 5, 63, 64, 5000, 9999] {
            unflushed.insert(region);
        }
        unflushed.flush_begins();
        unflushed.remove(4);
        unflushed.insert(4); // Written again, and landed.
        unflushed.insert(7);
        assert!(unflushed.has(4) && unflushed.has(3));
        assert_eq!(
            covered(&mut unflushed),
            [3..4, 5..6, 63..65, 5000..5001, 9999..10_000]
        );
        assert!(unflushed.has(4) && unflushed.has(7) && !unflushed.has(3));
        assert_eq!(covered(&mut unflushed), []);
        unflushed.flush_begins();
        assert_eq!(covered(&mut unflushed), [4..5, 7..8]);
        assert!(unflushed.is_empty());
    }

    #[test]
    fn what_is_withdrawn_during_a_flush_is_not_covered_by_it() {
        let mut unflushed = Unflushed::none(100);
        unflushed.insert(1);
        unflushed.flush_begins();
        unflushed.insert(2);
        let mut lost = Vec::new();
        unflushed.drain(|run| lost.push(run));
        assert_eq!(lost, [1..2, 2..3]);
        assert_eq!(covered(&mut unflushed), []);
    }

    #[test]
    fn of_terabytes_a_part_is_stored_at_a_time() {
        const REGIONS: u64 = 5 * (STORED_AT_ONCE as u64) * WORD / 2;
        let mut unflushed = Unflushed::none(REGIONS);
        (0..REGIONS).for_each(|region| unflushed.insert(region));
        unflushed.flush_begins();
        let mut parts = vec![covered(&mut unflushed)];
        unflushed.remove(REGIONS - 1);
        unflushed.insert(REGIONS - 1); // Written, and landed: a flush has to cover it.
        assert!(unflushed.is_any_covered() && !unflushed.is_empty());
        while unflushed.is_any_covered() {
            let mut runs = Vec::new();
            unflushed.store_some(|run| runs.push(run));
            parts.push(runs);
        }
        let one = STORED_AT_ONCE as u64 * WORD;
        let runs = [0..one, one..2 * one, 2 * one..REGIONS - 1];
        assert_eq!(parts, runs.map(|run| vec![run]));
        unflushed.flush_begins();
        assert_eq!(covered(&mut unflushed), vec![REGIONS - 1..REGIONS]);
    }

    #[test]
    fn what_two_flushes_have_covered_is_stored_once() {
        let mut unflushed = Unflushed::none(1000);
        unflushed.insert(1);
        unflushed.flush_begins();
        unflushed.flush_ends();
        unflushed.insert(1);
        unflushed.insert(700);
        unflushed.flush_begins();
        assert_eq!(covered(&mut unflushed), [1..2, 700..701]);
        assert!(unflushed.is_empty() && !unflushed.has(1));
    }
}
