//! What goes wrong, and when.

use sterna_core::Nanos;
use sterna_core::measure::{Traffic, Window};
use sterna_workload::random::Random;

use crate::dice;

/// The longest of the scattered slow-downs: a rebuild's worst minute, not the rebuild.
const SLOW_MAX: Nanos = Nanos::from_secs(60);

/// An array is slow for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowDown {
    /// Which array.
    pub array: usize,
    /// From when on.
    pub from: Nanos,
    /// Until when.
    pub until: Nanos,
    /// How many times longer its spindles take, above zero. Where two overlap, what
    /// began or ended last holds.
    pub times: f64,
}

impl SlowDown {
    /// So many slow-downs of an array, anywhere in the first `span`, up to a minute
    /// long and up to four times as slow. They follow from the seed.
    pub fn scattered(
        seed: u64,
        array: usize,
        count: usize,
        span: Nanos,
    ) -> Vec<SlowDown> {
        let mut random = Random::new(seed);
        let one = |_| {
            let from = Nanos(random.below(span.0.max(1)));
            let until = from.plus(Nanos(random.below(SLOW_MAX.0)));
            SlowDown { array, from, until, times: 1.0 + 3.0 * dice::part(&mut random) }
        };
        (0..count).map(one).collect()
    }
}

/// The window as an imprecise instrument shows it: its times are off by up to this
/// part, either way.
pub(crate) fn blurred(window: &Window, noise: f64, random: &mut Random) -> Window {
    let mut seen = window.clone();
    if noise > 0.0 {
        for traffic in [&mut seen.read, &mut seen.write] {
            let off = 1.0 + noise * (2.0 * dice::part(random) - 1.0);
            let blur = |time: Nanos| Nanos((time.0 as f64 * off) as u64);
            let Traffic { response, queue, service, .. } = *traffic;
            traffic.response = blur(response);
            traffic.queue = blur(queue);
            traffic.service = blur(service);
        }
    }
    seen
}
