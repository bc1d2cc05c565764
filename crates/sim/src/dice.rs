//! Random numbers as models need them, from the workload's generator.

use std::f64::consts::TAU;

use sterna_core::Nanos;
use sterna_workload::random::Random;

/// A second in nanoseconds.
const SECOND: f64 = 1e9;

/// A number from 0 to below 1.
pub(crate) fn part(random: &mut Random) -> f64 {
    // A double holds 53 bits.
    (random.bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// The time to the next of events that come independently, so many a second on
/// average (a Poisson process). At least a nanosecond, so that time goes on.
pub(crate) fn interval(random: &mut Random, per_second: f64) -> Nanos {
    let seconds = exponential(random) / per_second;
    Nanos(((seconds * SECOND) as u64).max(1))
}

/// A number above zero with a mean of one, exponentially distributed.
pub(crate) fn exponential(random: &mut Random) -> f64 {
    -(1.0 - part(random)).ln()
}

/// Where a wave of this period is, from -1 to 1.
pub(crate) fn wave(now: Nanos, period: Nanos) -> f64 {
    (now.0 as f64 / period.0.max(1) as f64 * TAU).sin()
}
