//! Granules of a VM's memory, and sets of them.

/// The unit in which memory goes out and comes back, in bytes. It is what the kernel reads from
/// a swap device in one request if it is asked for it at once, and a set of the granules of
/// 4 GiB takes 8 KiB.
pub const GRANULE: u64 = 64 << 10;

/// A granule of a VM, counted through its memory in the order of the guest's addresses.
pub type Granule = u32;

/// A VM has so many granules at most: 16 TiB of memory.
pub const GRANULES_MAX: u32 = 1 << 28;

/// So many granules have room for these bytes.
pub fn granules_in(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(GRANULE)).unwrap_or(u32::MAX).min(GRANULES_MAX)
}

/// Some granules of a VM: one bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GranuleSet {
    words: Vec<u64>,
    of: u32,
}

impl GranuleSet {
    /// None of so many.
    pub fn none(of: u32) -> GranuleSet {
        GranuleSet { words: vec![0; (of as usize).div_ceil(64)], of }
    }

    /// The set that [`bytes`](Self::bytes) wrote; nothing if these are too many or too few.
    pub fn from_bytes(of: u32, bytes: &[u8]) -> Option<GranuleSet> {
        let (words, rest) = bytes.as_chunks::<8>();
        let set = GranuleSet {
            words: words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
            of,
        };
        let last_fits = match (set.words.last(), of % 64) {
            (Some(last), bits @ 1..) => last >> bits == 0,
            _ => true,
        };
        let fits = set.words.len() == (of as usize).div_ceil(64);
        (fits && last_fits && rest.is_empty()).then_some(set)
    }

    /// Its bits, the first granule lowest, in little-endian words of 64.
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// How many granules there are, in the set or not.
    pub fn of(&self) -> u32 {
        self.of
    }

    /// Whether a granule is in the set. One that the VM does not have is not.
    pub fn has(&self, granule: Granule) -> bool {
        let word = self.words.get(granule as usize / 64);
        word.is_some_and(|word| word >> (granule % 64) & 1 == 1)
    }

    /// Puts a granule into the set. One that the VM does not have is left out.
    pub fn insert(&mut self, granule: Granule) {
        if granule < self.of {
            self.words[granule as usize / 64] |= 1 << (granule % 64);
        }
    }

    /// How many granules are in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether no granule is.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The granules of the set, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Granule> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let first = at as u32 * 64;
            let left = |word: &u64| Some(word & (word - 1)).filter(|word| *word != 0);
            let rest = std::iter::successors(Some(*word).filter(|word| *word != 0), left);
            rest.map(move |word| first + word.trailing_zeros())
        })
    }
}
