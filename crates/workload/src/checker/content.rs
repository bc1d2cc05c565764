//! What a block holds: a header that names its write, and a body that follows
//! from it.
//!
//! ```text
//! 0        8       16       20       24                      block size
//! | MAGIC^ | block | version| ~ver-  | body: 64-bit words from |
//! |  seed  | index |        |  sion  | (seed, block, version)  |
//! ```
//!
//! A write of zeroes has no header; its blocks are all zero, and its version
//! says so in the lowest bit.

use std::fmt;

use crate::random::scatter;

const MAGIC: u64 = u64::from_le_bytes(*b"tern-blk");
const HEADER: usize = 24;

/// The number of a write, ascending from 1; 0 is "never written". The lowest
/// bit says whether the write's blocks hold zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Version {
    /// What a block has before anything was written to it.
    pub const NONE: Version = Version(0);

    /// The version of write number `number`.
    pub const fn new(number: u32, zeroes: bool) -> Version {
        Version(number << 1 | zeroes as u32)
    }

    /// Which write it is.
    pub const fn number(self) -> u32 {
        self.0 >> 1
    }

    /// Whether its blocks are all zero.
    pub const fn is_zeroes(self) -> bool {
        self.0 & 1 == 1
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.number(), self.is_zeroes()) {
            (0, _) => write!(f, "never written"),
            (number, false) => write!(f, "write {number}"),
            (number, true) => write!(f, "zeroes of write {number}"),
        }
    }
}

/// What a block on the disk turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// All bytes are zero.
    Zeroes,
    /// The whole block of a write.
    Whole(Version),
    /// The header of a write, but not its body.
    Torn(Version),
    /// A block of this run that belongs elsewhere.
    Misplaced {
        /// The block it was written to.
        block: u64,
        /// By which write.
        version: Version,
    },
    /// Nothing that a run with this seed wrote.
    Foreign,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Zeroes => write!(f, "zeroes"),
            Found::Whole(version) => write!(f, "{version}"),
            Found::Torn(version) => write!(f, "{version}, torn"),
            Found::Misplaced { block, version } => {
                write!(f, "block {block} of {version}, misplaced")
            }
            Found::Foreign => write!(f, "bytes that the checker never wrote"),
        }
    }
}

/// The words of a block's body.
fn body(seed: u64, block: u64, version: Version) -> impl Iterator<Item = u64> {
    let mut word = scatter(seed ^ scatter(block ^ u64::from(version.0) << 40));
    std::iter::repeat_with(move || {
        // Xorshift: three shifts a word, so that making and checking contents
        // costs less than moving them.
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word
    })
}

/// Writes into `bytes` what `block` holds after write `version`.
pub(crate) fn fill(bytes: &mut [u8], seed: u64, block: u64, version: Version) {
    if version.is_zeroes() {
        bytes.fill(0);
        return;
    }
    bytes[..8].copy_from_slice(&(MAGIC ^ seed).to_le_bytes());
    bytes[8..16].copy_from_slice(&block.to_le_bytes());
    bytes[16..20].copy_from_slice(&version.0.to_le_bytes());
    bytes[20..24].copy_from_slice(&(!version.0).to_le_bytes());
    for (chunk, word) in
        bytes[HEADER..].chunks_exact_mut(8).zip(body(seed, block, version))
    {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
}

/// Says what `bytes`, read from `block`, are.
pub(crate) fn inspect(bytes: &[u8], seed: u64, block: u64) -> Found {
    let word = |at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    };
    let magic = word(0);
    if magic != MAGIC ^ seed {
        let zeroes = magic == 0 && bytes.iter().all(|&byte| byte == 0);
        return if zeroes { Found::Zeroes } else { Found::Foreign };
    }
    let found = word(8);
    let tail = word(16);
    let version = Version(tail as u32);
    if (tail >> 32) as u32 != !version.0 {
        return Found::Foreign;
    }
    if found != block {
        return Found::Misplaced { block: found, version };
    }
    let whole = bytes[HEADER..]
        .chunks_exact(8)
        .zip(body(seed, block, version))
        .all(|(chunk, word)| chunk == word.to_le_bytes());
    if whole { Found::Whole(version) } else { Found::Torn(version) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 99;

    fn block(version: Version) -> Vec<u8> {
        let mut bytes = vec![0xee; 512];
        fill(&mut bytes, SEED, 5, version);
        bytes
    }

    #[test]
    fn a_block_names_the_write_it_came_from() {
        let version = Version::new(12, false);
        assert_eq!(inspect(&block(version), SEED, 5), Found::Whole(version));
    }

    #[test]
    fn a_block_of_a_zero_write_is_zero() {
        assert_eq!(inspect(&block(Version::new(12, true)), SEED, 5), Found::Zeroes);
    }

    #[test]
    fn one_wrong_byte_is_a_torn_block() {
        let version = Version::new(12, false);
        let mut bytes = block(version);
        bytes[500] ^= 1;
        assert_eq!(inspect(&bytes, SEED, 5), Found::Torn(version));
    }

    #[test]
    fn a_block_in_the_wrong_place_is_recognised() {
        let version = Version::new(12, false);
        assert_eq!(
            inspect(&block(version), SEED, 6),
            Found::Misplaced { block: 5, version }
        );
    }

    #[test]
    fn a_block_of_another_run_is_foreign() {
        let bytes = block(Version::new(12, false));
        assert_eq!(inspect(&bytes, SEED + 1, 5), Found::Foreign);
    }
}
