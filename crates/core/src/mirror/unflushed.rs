//! Regions that are equal on both sides and that no flush of the destination covers yet.
//!
//! They are known in memory alone: the map goes on to say of such a region what a crash
//! would need, which is that it has to be copied (or compared) again. A flush that
//! succeeds makes the map say `Synced` for what was here when the flush began; what came
//! after that waits for the next one.
//!
//! Two bits in memory for each region, and nothing is searched for: a word of the upper
//! level says which words of the lower one have any.

use std::ops::Range;

/// Regions in a word of either level.
const WORD: u64 = 64;

/// A set of regions that is filled one by one and emptied as a whole.
#[derive(Debug)]
struct Set {
    words: Vec<u64>,
    /// Which words are not zero.
    filled: Vec<u64>,
    count: u64,
}

/// Regions that are equal, and not known to be durable on the destination.
#[derive(Debug)]
pub(super) struct Unflushed {
    /// Equal since the last flush began.
    newer: Set,
    /// Equal when the flush began that is under way.
    older: Set,
}

impl Unflushed {
    /// None of so many regions.
    pub(super) fn none(regions: u64) -> Unflushed {
        Unflushed { newer: Set::none(regions), older: Set::none(regions) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.newer.count == 0 && self.older.count == 0
    }

    pub(super) fn has(&self, region: u64) -> bool {
        self.newer.has(region) || self.older.has(region)
    }

    pub(super) fn insert(&mut self, region: u64) {
        self.newer.insert(region);
    }

    /// The region is written again: no flush that has begun covers that.
    pub(super) fn remove(&mut self, region: u64) {
        self.newer.remove(region);
        self.older.remove(region);
    }

    /// A flush begins. It covers what is here now.
    pub(super) fn flush_begins(&mut self) {
        let Unflushed { newer, older } = self;
        newer.drain(|regions| regions.for_each(|region| older.insert(region)));
    }

    /// The flush has succeeded: names what it has covered, and forgets it.
    pub(super) fn flush_ends(&mut self, covered: impl FnMut(Range<u64>)) {
        self.older.drain(covered);
    }

    /// Names all, in no order, and forgets them.
    pub(super) fn drain(&mut self, mut each: impl FnMut(Range<u64>)) {
        self.older.drain(&mut each);
        self.newer.drain(&mut each);
    }
}

impl Set {
    fn none(regions: u64) -> Set {
        let words = regions.div_ceil(WORD);
        Set {
            words: vec![0; words as usize],
            filled: vec![0; words.div_ceil(WORD) as usize],
            count: 0,
        }
    }

    fn has(&self, region: u64) -> bool {
        self.words[(region / WORD) as usize] & bit(region) != 0
    }

    fn insert(&mut self, region: u64) {
        let at = region / WORD;
        let word = &mut self.words[at as usize];
        self.count += u64::from(*word & bit(region) == 0);
        *word |= bit(region);
        self.filled[(at / WORD) as usize] |= bit(at);
    }

    fn remove(&mut self, region: u64) {
        let word = &mut self.words[(region / WORD) as usize];
        self.count -= u64::from(*word & bit(region) != 0);
        *word &= !bit(region);
    }

    /// Names all as runs, in order, and forgets them.
    fn drain(&mut self, mut each: impl FnMut(Range<u64>)) {
        if self.count == 0 {
            return; // A word of the upper level may still say otherwise: harmless.
        }
        self.count = 0;
        let mut run = 0..0;
        for (above, filled) in (0..).zip(&mut self.filled) {
            for at in ones(std::mem::take(filled), above * WORD) {
                let word = std::mem::take(&mut self.words[at as usize]);
                for region in ones(word, at * WORD) {
                    if region != run.end {
                        let before = std::mem::replace(&mut run, region..region);
                        if !before.is_empty() {
                            each(before);
                        }
                    }
                    run.end = region + 1;
                }
            }
        }
        if !run.is_empty() {
            each(run);
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
        let mut runs = Vec::new();
        unflushed.flush_ends(|run| runs.push(run));
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
}
