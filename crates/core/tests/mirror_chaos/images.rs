//! The two images, as one number a block; zero is a hole or zeroes.
//!
//! The destination has a second state beside what reads return: what it keeps whatever
//! happens to it. A flush makes it keep what had been answered when the flush began, and
//! perhaps some of what came later. Where it forgets, old blocks come back here and there,
//! because it may have written some of the others by itself.
//!
//! The source's cache may drop what it cannot write: the guest goes on to read it from the
//! cache, the copier reads what was there before, and only the next flush tells.
//!
//! A flush that fails leaves blocks behind that read as they were written, that no later
//! flush writes any more, and that are gone as soon as the cache is (a kernel takes a page
//! that it could not write for clean).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use sterna_core::ByteRange;

use crate::random::Random;
use crate::setup::{BLOCK, Setup};

/// What a destination that does not read as zeroes is full of at first.
const JUNK: u64 = 7_000_000;

/// What a source holds whose space was freed.
const FREED: u64 = 6_999_999;

/// Where a guest's request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    /// The mirror's part of a write.
    Destination,
    /// To the destination alone, after the switch-over.
    Moved,
}

impl Flush {
    /// Blocks of writes that had not been answered when it began.
    pub(crate) fn open(&self) -> &[u64] {
        &self.open
    }
}

/// Source and destination.
pub(crate) struct Images {
    pub(crate) source: Vec<u64>,
    pub(crate) destination: Vec<u64>,
    /// What the destination keeps whatever happens to it.
    durable: Vec<u64>,
    /// The same of the source.
    source_durable: Vec<u64>,
    /// What the source has dropped: what a guest reads there, and what it has kept.
    dropped: BTreeMap<u64, Dropped>,
    /// How often a flush has told of a block that the source has dropped.
    told: Vec<u64>,
    /// Blocks that no flush writes, unless they are written again.
    clean: Vec<bool>,
    /// Blocks of the source that cannot be read, until when.
    bad: BTreeMap<u64, u64>,
    /// Blocks of the source that were bad since a write to them was acknowledged.
    were_bad: BTreeSet<u64>,
}

/// A block of the source that its cache has dropped.
#[derive(Clone, Copy)]
struct Dropped {
    cached: u64,
    kept: u64,
}

/// What a flush of the source that is under way covers.
#[derive(Debug)]
pub(crate) struct SourceFlush {
    /// What the source held when it began, or had dropped by then.
    held: Vec<u64>,
    /// How often each block had been told of by then.
    told: Vec<u64>,
}

/// What a flush of the destination that is under way covers.
#[derive(Debug)]
pub(crate) struct Flush {
    /// What the destination held when it began.
    held: Vec<u64>,
    /// Blocks of writes that had not been answered by then: covered or not.
    open: Vec<u64>,
}

impl Images {
    /// A source of which about half is holes, and its destination before anything
    /// is copied.
    pub(crate) fn new(setup: &Setup) -> Self {
        let source: Vec<u64> = (0..setup.blocks)
            .map(|block| if (block / 9) % 2 == 0 { 0 } else { block + 1 })
            .collect();
        let destination: Vec<u64> = (0..setup.blocks)
            .map(|block| if setup.reads_zero { 0 } else { JUNK + block })
            .collect();
        let clean = vec![false; source.len()];
        let (bad, were_bad) = (BTreeMap::new(), BTreeSet::new());
        Images {
            source_durable: source.clone(),
            source,
            durable: destination.clone(),
            destination,
            dropped: BTreeMap::new(),
            told: vec![0; setup.blocks as usize],
            clean,
            bad,
            were_bad,
        }
    }

    /// A block of the source cannot be read until then, if it has data.
    pub(crate) fn goes_bad(&mut self, block: u64, until: u64) {
        if self.source[block as usize] != 0 {
            self.bad.insert(block, until);
            self.were_bad.insert(block);
        }
    }

    /// Whether a block of the source cannot be read.
    pub(crate) fn is_bad(&self, block: u64, at: u64) -> bool {
        self.bad.get(&block).is_some_and(|until| at < *until)
    }

    /// Bad blocks can be read again, each or one in two.
    pub(crate) fn recover(&mut self, random: &mut Random, all: bool) {
        self.bad.retain(|_, _| !all && random.one_in(2));
    }

    /// A write to a block of the source was acknowledged. (If it is bad, it went bad after
    /// what was written had landed.)
    pub(crate) fn acknowledged(&mut self, block: u64) {
        if !self.bad.contains_key(&block) {
            self.were_bad.remove(&block);
        }
    }

    /// Whether a block of the source was bad since a write to it was acknowledged.
    pub(crate) fn was_bad(&self, block: u64) -> bool {
        self.were_bad.contains(&block)
    }

    /// What a guest finds in a block.
    pub(crate) fn found(&self, side: Side, block: usize) -> u64 {
        match (side, self.dropped.get(&(block as u64))) {
            (Side::Source, Some(dropped)) => dropped.cached,
            (Side::Source, None) => self.source[block],
            (Side::Destination | Side::Moved, _) => self.destination[block],
        }
    }

    /// Writes a block.
    pub(crate) fn write(&mut self, side: Side, block: usize, value: u64) {
        match side {
            Side::Source => {
                self.source[block] = value;
                self.bad.remove(&(block as u64));
                self.dropped.remove(&(block as u64));
            }
            Side::Destination | Side::Moved => {
                self.destination[block] = value;
                self.clean[block] = false;
            }
        }
    }

    /// A flush begins, while writes to `open` are under way.
    pub(crate) fn flush_begins(&self, open: Vec<u64>) -> Flush {
        Flush { held: self.destination.clone(), open }
    }

    /// It ends well.
    pub(crate) fn flush_ends(&mut self, flush: &Flush, random: &mut Random) {
        for block in 0..self.durable.len() {
            let (held, holds) = (flush.held[block], self.destination[block]);
            if self.clean[block] || held == self.durable[block] && held == holds {
                continue;
            }
            let open = flush.open.contains(&(block as u64));
            // What came later is written too, or is not.
            self.durable[block] = match random.below(3) {
                0 if open => self.durable[block],
                1 => held,
                _ => holds,
            };
            if held == holds && !open {
                self.durable[block] = holds;
            }
        }
    }

    /// It fails: some of what it should have written it never will.
    pub(crate) fn flush_fails(&mut self, random: &mut Random) {
        for block in 0..self.durable.len() {
            if self.destination[block] != self.durable[block] && random.one_in(2) {
                self.clean[block] = true;
            }
        }
        let all: Vec<u64> = (0..self.durable.len() as u64).collect();
        self.forget(&all, random, 3);
    }

    /// What the destination was not made to keep of these blocks is gone, once in `n`.
    pub(crate) fn forget(&mut self, blocks: &[u64], random: &mut Random, n: u64) {
        for &block in blocks {
            let block = block as usize;
            if random.one_in(n) {
                self.destination[block] = self.durable[block];
                self.clean[block] = false;
            }
        }
    }

    /// The machine that it is on has begun anew.
    pub(crate) fn settle(&mut self) {
        for block in 0..self.durable.len() {
            if self.clean[block] {
                self.destination[block] = self.durable[block];
            }
        }
        self.clean.fill(false);
        self.durable.clone_from(&self.destination);
        self.source_durable.clone_from(&self.source);
    }

    /// A flush of the source begins.
    pub(crate) fn source_flush_begins(&self) -> SourceFlush {
        let blocks = 0..self.source.len();
        SourceFlush {
            held: blocks.map(|block| self.found(Side::Source, block)).collect(),
            told: self.told.clone(),
        }
    }

    /// It ends: what the source held is kept, or it tells that it was dropped. What was
    /// written, or dropped, since it began is kept and told of, or is not. Gives the blocks
    /// that were dropped, and what they hold.
    pub(crate) fn source_flush_ends(
        &mut self,
        flush: &SourceFlush,
        random: &mut Random,
    ) -> Vec<(u64, u64)> {
        let mut told = Vec::new();
        for (block, held) in flush.held.iter().enumerate() {
            match self.dropped.get(&(block as u64)).copied() {
                Some(Dropped { cached, kept }) if cached == *held || random.one_in(2) => {
                    self.dropped.remove(&(block as u64));
                    self.told[block] += 1;
                    told.push((block as u64, kept));
                }
                Some(_) => {}
                // Of what it held another flush may have told meanwhile that it is gone.
                None if flush.told[block] == self.told[block] && random.one_in(2) => {
                    self.source_durable[block] = *held;
                }
                None => self.source_durable[block] = self.source[block],
            }
        }
        told
    }

    /// The source's cache drops what it cannot write, one in two blocks.
    pub(crate) fn source_drops(&mut self, random: &mut Random) {
        for (block, kept) in self.source_durable.iter().copied().enumerate() {
            let cached = self.source[block];
            if cached != kept && random.one_in(2) {
                self.source[block] = kept;
                self.dropped.insert(block as u64, Dropped { cached, kept });
            }
        }
    }

    /// Whether the source has dropped a block, and nobody was told.
    pub(crate) fn is_dropped(&self, block: u64) -> bool {
        self.dropped.contains_key(&block)
    }

    /// What the source was not made to keep is gone, once in `n` blocks. Gives those that
    /// are another now, and what they hold.
    pub(crate) fn source_forgets(
        &mut self,
        random: &mut Random,
        n: u64,
    ) -> Vec<(u64, u64)> {
        let mut gone = Vec::new();
        for (block, kept) in self.source_durable.iter().enumerate() {
            if self.source[block] != *kept && random.one_in(n) {
                self.source[block] = *kept;
                gone.push((block as u64, *kept));
            }
        }
        gone
    }

    /// Somebody else writes to the destination, durably.
    pub(crate) fn overwrite_destination(&mut self, block: usize, value: u64) {
        self.destination[block] = value;
        self.durable[block] = value;
        self.clean[block] = false;
    }

    /// The source's space is given to somebody else.
    pub(crate) fn free_source(&mut self) {
        self.source.fill(FREED);
    }

    /// Whether that has happened.
    pub(crate) fn is_freed(&self) -> bool {
        self.source.iter().all(|value| *value == FREED)
    }

    /// Whether the destination would keep all that it holds.
    pub(crate) fn is_flushed(&self) -> bool {
        self.destination == self.durable
    }
}

/// Where these blocks are on the disk.
pub(crate) fn range_of(blocks: &Range<u64>) -> ByteRange {
    ByteRange::new(blocks.start * BLOCK, (blocks.end - blocks.start) * BLOCK)
}

/// Which blocks are there.
pub(crate) fn blocks_of(range: ByteRange) -> Range<u64> {
    range.offset / BLOCK..range.end() / BLOCK
}

/// The ranges of single blocks, which come in any order, with neighbours joined.
pub(crate) fn ranges(blocks: impl IntoIterator<Item = u64>) -> Vec<ByteRange> {
    let mut sorted: Vec<u64> = blocks.into_iter().collect();
    sorted.sort_unstable();
    let mut ranges: Vec<ByteRange> = Vec::new();
    for block in sorted {
        match ranges.last_mut() {
            Some(last) if last.end() == block * BLOCK => last.len += BLOCK,
            _ => ranges.push(range_of(&(block..block + 1))),
        }
    }
    ranges
}
