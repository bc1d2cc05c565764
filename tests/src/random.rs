//! Numbers that look random (xorshift) and can be had again from their seed.

use crate::checker::now_ms;

/// The seed of this test run, if one was asked for.
pub fn seed() -> Option<u64> {
    std::env::var("STERNA_TEST_SEED").ok()?.parse().ok()
}

/// The numbers that follow from a seed.
pub struct Random(u64);

impl Random {
    /// From a seed; zero is taken for one, because nothing follows from it.
    pub fn new(seed: u64) -> Random {
        Random(seed.max(1))
    }

    /// From the seed of this test run, which is printed: the test runner shows it
    /// when the test fails.
    pub fn of_this_run() -> Random {
        let seed = seed().unwrap_or_else(now_ms);
        println!("seed {seed} (STERNA_TEST_SEED)");
        Random::new(seed)
    }

    /// The next one.
    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next one, below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }
}
