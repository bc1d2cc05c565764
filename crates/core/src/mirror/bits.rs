//! A bit for each of so many things.

/// Bits by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// So many, none of them set.
    pub(super) fn none(count: u64) -> Bits {
        Bits(vec![0; count.div_ceil(64) as usize])
    }

    /// So many, all of them set.
    pub(super) fn all(count: u64) -> Bits {
        let mut bits = Bits(vec![u64::MAX; count.div_ceil(64) as usize]);
        if let Some(last) = bits.0.last_mut()
            && !count.is_multiple_of(64)
        {
            *last = (1 << (count % 64)) - 1;
        }
        bits
    }

    pub(super) fn has(&self, at: u64) -> bool {
        self.0[(at / 64) as usize] >> (at % 64) & 1 == 1
    }

    pub(super) fn set(&mut self, at: u64) {
        self.0[(at / 64) as usize] |= 1 << (at % 64);
    }

    pub(super) fn clear(&mut self, at: u64) {
        self.0[(at / 64) as usize] &= !(1 << (at % 64));
    }

    /// The bits, 64 in a word, the first one lowest.
    pub(super) fn words(&self) -> &[u64] {
        &self.0
    }
}
