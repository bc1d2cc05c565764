//! The two images, as one number a block; zero is a hole or zeroes.
//!
//! The destination has a second state beside what reads return: what would
//! survive a power loss. A flush brings the two together. A flush that fails, and
//! a power loss, bring back old blocks here and there, because a storage server
//! may have written some of them by itself.

use std::ops::Range;

use sterna_core::ByteRange;

use crate::random::Random;
use crate::setup::{BLOCK, Setup};

/// What a destination that does not read as zeroes is full of at first.
const JUNK: u64 = 7_000_000;

/// Where a guest's request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    /// The mirror's part of a write.
    Destination,
    /// To the destination alone, after the switch-over.
    Moved,
}

/// Source and destination.
pub(crate) struct Images {
    pub(crate) source: Vec<u64>,
    pub(crate) destination: Vec<u64>,
    /// What of the destination would survive a power loss.
    durable: Vec<u64>,
}

impl Images {
    /// A source of which about half is holes, and its destination before anything
    /// is copied.
    pub(crate) fn new(setup: &Setup) -> Self {
        let source = (0..setup.blocks)
            .map(|block| if (block / 9) % 2 == 0 { 0 } else { block + 1 })
            .collect();
        let destination: Vec<u64> = (0..setup.blocks)
            .map(|block| if setup.reads_zero { 0 } else { JUNK + block })
            .collect();
        Images { source, durable: destination.clone(), destination }
    }

    /// The image that a guest's request goes to.
    pub(crate) fn on(&mut self, side: Side) -> &mut [u64] {
        match side {
            Side::Source => &mut self.source,
            Side::Destination | Side::Moved => &mut self.destination,
        }
    }

    /// What the destination holds is durable now.
    pub(crate) fn flush(&mut self) {
        self.durable.clone_from(&self.destination);
    }

    /// What could not be made durable is gone, once in `n` blocks.
    pub(crate) fn lose(&mut self, random: &mut Random, n: u64) {
        for (block, kept) in self.destination.iter_mut().zip(&self.durable) {
            if random.one_in(n) {
                *block = *kept;
            }
        }
    }

    /// Whether a power loss now would take nothing.
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
