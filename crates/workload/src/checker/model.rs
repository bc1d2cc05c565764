//! What every block may hold.
//!
//! One word a block for what was promised last, and a small list for the few
//! blocks that are in doubt. A block is *busy* while a request on it is under
//! way; the generator stays clear of busy blocks, so a request's answer can
//! always be judged by itself.

use std::collections::HashMap;
use std::ops::Range;

use super::content::{self, Found, Version};

/// A block that does not hold what it must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Which block.
    pub block: u64,
    /// The versions that it may hold (the last one is what was promised).
    pub expected: Vec<Version>,
    /// What it holds.
    pub found: Found,
}

/// A block of which more than one version may be read.
#[derive(Clone, Debug)]
struct Doubt {
    allowed: Vec<Version>,
    /// Whether one look settles it. (Not so for trimmed blocks.)
    settles: bool,
}

/// The checker's knowledge of the disk.
pub struct Model {
    seed: u64,
    block: u64,
    blank: bool,
    promised: Vec<Version>,
    doubts: HashMap<u64, Doubt>,
    busy: Vec<u64>,
}

impl Model {
    /// A disk of `size` bytes of which nothing is known, or, if `blank`, that
    /// reads as zeroes.
    pub fn new(seed: u64, size: u64, block: u32, blank: bool) -> Model {
        let blocks = (size / u64::from(block)) as usize;
        Model {
            seed,
            block: u64::from(block),
            blank,
            promised: vec![Version::NONE; blocks],
            doubts: HashMap::new(),
            busy: vec![0; blocks.div_ceil(64)],
        }
    }

    /// How many blocks the disk has.
    pub fn blocks(&self) -> u64 {
        self.promised.len() as u64
    }

    /// Bytes in a block.
    pub const fn block_size(&self) -> u64 {
        self.block
    }

    /// How many blocks are in doubt.
    pub fn doubts(&self) -> usize {
        self.doubts.len()
    }

    /// How many blocks were written at least once.
    pub fn written(&self) -> u64 {
        self.promised.iter().filter(|&&v| v != Version::NONE).count() as u64
    }

    /// Takes the blocks for a request, unless one of them is busy.
    pub fn reserve(&mut self, blocks: Range<u64>) -> bool {
        let free = blocks
            .clone()
            .all(|block| self.busy[(block / 64) as usize] >> (block % 64) & 1 == 0);
        if free {
            for block in blocks {
                self.busy[(block / 64) as usize] |= 1 << (block % 64);
            }
        }
        free
    }

    /// Gives the blocks back.
    pub fn release(&mut self, blocks: Range<u64>) {
        for block in blocks {
            self.busy[(block / 64) as usize] &= !(1 << (block % 64));
        }
    }

    /// The bytes that the blocks hold after write `version`.
    pub fn fill(&self, first: u64, version: Version, bytes: &mut [u8]) {
        for (block, chunk) in (first..).zip(bytes.chunks_exact_mut(self.block as usize)) {
            content::fill(chunk, self.seed, block, version);
        }
    }

    /// Write `version` was acknowledged: from now on it must be there.
    pub fn acknowledge(&mut self, blocks: Range<u64>, version: Version) {
        for block in blocks {
            self.promised[block as usize] = version;
            self.doubts.remove(&block);
        }
    }

    /// The blocks were trimmed (or may have been): they hold zeroes or what
    /// they held.
    pub fn trim(&mut self, blocks: Range<u64>, version: Version) {
        for block in blocks {
            self.allow(block, version).settles = false;
        }
    }

    /// Write `version` may or may not have happened.
    pub fn doubt(&mut self, blocks: Range<u64>, version: Version) {
        for block in blocks {
            self.allow(block, version);
        }
    }

    fn allow(&mut self, block: u64, version: Version) -> &mut Doubt {
        let promised = self.promised[block as usize];
        let doubt = self
            .doubts
            .entry(block)
            .or_insert_with(|| Doubt { allowed: vec![promised], settles: true });
        if !doubt.allowed.contains(&version) {
            doubt.allowed.push(version);
        }
        doubt
    }

    /// Compares what was read from `first` on with what must be there, and
    /// settles doubts by it.
    pub fn judge(&mut self, first: u64, bytes: &[u8], wrong: &mut Vec<Wrong>) {
        for (block, chunk) in (first..).zip(bytes.chunks_exact(self.block as usize)) {
            let promised = self.promised[block as usize];
            let doubt = self.doubts.get(&block);
            if doubt.is_none() && promised == Version::NONE && !self.blank {
                continue;
            }
            let found = content::inspect(chunk, self.seed, block);
            let allowed = match doubt {
                Some(doubt) => &doubt.allowed[..],
                None => std::slice::from_ref(&promised),
            };
            let Some(version) = self.choose(allowed, found) else {
                let expected = allowed.to_vec();
                wrong.push(Wrong { block, expected, found });
                continue;
            };
            if doubt.is_some_and(|doubt| doubt.settles) {
                self.promised[block as usize] = version;
                self.doubts.remove(&block);
            }
        }
    }

    /// The allowed version that `found` is, if it is one. A block of which
    /// nothing is known may hold anything, so that comes last.
    fn choose(&self, allowed: &[Version], found: Found) -> Option<Version> {
        let blank = |version| self.blank && version == Version::NONE;
        let exact = allowed.iter().copied().find(|&version| match found {
            Found::Zeroes => version.is_zeroes() || blank(version),
            Found::Whole(found) => found == version,
            _ => false,
        });
        let unknown = !self.blank && allowed.contains(&Version::NONE);
        exact.or_else(|| unknown.then_some(Version::NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Version = Version::new(1, false);
    const NEW: Version = Version::new(2, false);

    fn model() -> Model {
        Model::new(3, 64 * 512, 512, true)
    }

    fn wrongs(model: &mut Model, block: u64, version: Version) -> usize {
        let mut bytes = vec![0; 512];
        model.fill(block, version, &mut bytes);
        let mut wrong = Vec::new();
        model.judge(block, &bytes, &mut wrong);
        wrong.len()
    }

    #[test]
    fn an_acknowledged_write_must_be_there() {
        let mut model = model();
        model.acknowledge(0..4, OLD);
        model.acknowledge(2..3, NEW);
        assert_eq!(wrongs(&mut model, 1, OLD), 0);
        assert_eq!(wrongs(&mut model, 2, NEW), 0);
        assert_eq!(wrongs(&mut model, 2, OLD), 1);
    }

    #[test]
    fn a_blank_disk_must_read_zeroes_where_nothing_was_written() {
        let mut model = model();
        assert_eq!(wrongs(&mut model, 9, Version::new(0, true)), 0);
        assert_eq!(wrongs(&mut model, 9, OLD), 1);
    }

    #[test]
    fn a_write_in_doubt_may_be_old_or_new_but_not_both_in_turn() {
        let mut model = model();
        model.acknowledge(0..1, OLD);
        model.doubt(0..1, NEW);
        assert_eq!(wrongs(&mut model, 0, NEW), 0);
        assert_eq!(wrongs(&mut model, 0, NEW), 0);
        assert_eq!(wrongs(&mut model, 0, OLD), 1);
    }

    #[test]
    fn a_trimmed_block_may_be_zero_or_old_for_ever() {
        let mut model = model();
        model.acknowledge(0..1, OLD);
        model.trim(0..1, Version::new(2, true));
        for version in [OLD, Version::new(2, true), OLD] {
            assert_eq!(wrongs(&mut model, 0, version), 0);
        }
        assert_eq!(wrongs(&mut model, 0, Version::new(7, false)), 1);
    }

    #[test]
    fn busy_blocks_are_not_given_out_twice() {
        let mut model = model();
        assert!(model.reserve(2..6));
        assert!(!model.reserve(5..7));
        assert!(model.reserve(6..7));
        model.release(2..6);
        assert!(model.reserve(5..6));
    }
}
