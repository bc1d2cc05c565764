//! Numbers that look random, and windows made of them.

use sterna_core::Nanos;
use sterna_core::measure::Window;

pub(crate) const TICK: Nanos = Nanos::from_millis(100);

/// SplitMix64: the same numbers for the same seed.
pub(crate) struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1.
    pub(crate) fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Mean 0 and deviation 1, nearly normal: the sum of twelve.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.part()).sum::<f64>() - 6.0
    }
}

/// A window of reads of 4 KiB that took so long each.
pub(crate) fn reads(span: Nanos, took: &[Nanos]) -> Window {
    let mut window = Window { span, ..Window::default() };
    for took in took {
        window.read.record(4096, *took, Nanos(0), *took);
        window.response.record(*took);
    }
    window
}
