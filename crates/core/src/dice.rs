//! Dice for whatever is to look like chance and be the same each time: SplitMix64 (Steele,
//! Lea, Flood 2014), from a given seed.

/// A sequence of numbers that belongs to a seed.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A number of 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// A number from `low` to below `high`, all equally likely.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        // A double holds 53 bits.
        let part = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        low + part * (high - low)
    }

    /// True so many times out of a hundred.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        percent > 0 && self.between(0.0, 100.0) < f64::from(percent)
    }
}
