//! How long the copier's chunks are beside a guest whose IO/s are kept.
//!
//! # Rule
//!
//! Where a head has to move for each chunk, or a spindle's queue has to be waited for, a
//! long chunk costs the guest hardly more than a short one; where each byte costs the
//! same, it only holds the guest up longer. No latency tells which it is: a stripe
//! answers a long chunk as late as the slowest of its spindles. The price does, which
//! is what the copy costs the guest per byte. So it is taken with [`SHORT`] and with
//! [`LONG`] chunks, in turns one after the other, and they are short unless long ones
//! are cheaper by more than [`WORTH`] and chance together.
//!
//! # Special cases
//!
//! - When the load or the device jumps, what was compared is forgotten.
//! - A rate that brings less than a long chunk in a turn makes it shorter (`mirror`).
//!   Then both cost the same.
//! - Devices change: after [`REST`] comparisons both are tried again.

/// Bytes in a short chunk: a region of the map.
const SHORT: u64 = 64 << 10;

/// Bytes in a long one: a stripe of eight disks gives each of them two elements, and a
/// fast disk needs a millisecond or two for it.
const LONG: u64 = 1 << 20;

/// Long chunks cost no more than this part of the price of short ones: less of a
/// difference is not worth that the guest waits behind them.
const WORTH: f64 = 0.9;

/// A difference of so many errors is no chance.
const CERTAIN: f64 = 3.0;

/// Comparisons of each before there is an answer, so that one hiccup is none.
const LEAST: u32 = 4;

/// Comparisons of each after which what seems so is so.
const ENOUGH: u32 = 12;

/// Comparisons until both are tried again: a minute or two.
const REST: u32 = 100;

/// A price: the slope of a line through zero.
#[derive(Clone, Copy, Debug, Default)]
struct Slope {
    pairs: u32,
    /// Of rate times loss.
    sum: f64,
    /// Of rate times rate.
    weight: f64,
}

impl Slope {
    fn learn(&mut self, rate: f64, loss: f64) {
        self.pairs += 1;
        self.sum += rate * loss;
        self.weight += rate * rate;
    }

    /// Per byte per second.
    fn value(&self) -> f64 {
        self.sum / self.weight.max(1.0)
    }

    /// The variance of the value, if a comparison varies by so much.
    fn variance(&self, noise: f64) -> f64 {
        noise * noise / self.weight.max(1.0)
    }
}

/// The length of chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Whether they are long in the present turn.
    long: bool,
    /// The prices of short and of long ones, while they are compared.
    prices: [Slope; 2],
    /// Comparisons until then, afterwards.
    rest: u32,
}

impl Chunks {
    pub(super) fn new() -> Self {
        // Long ones tell their price at a low rate, too.
        Chunks { long: true, prices: Default::default(), rest: 0 }
    }

    /// Bytes in a chunk of the present turn.
    pub(super) fn length(&self) -> u64 {
        if self.long { LONG } else { SHORT }
    }

    /// The load or the device is another.
    pub(super) fn doubt(&mut self) {
        self.prices = Default::default();
    }

    /// A turn at this rate cost so much, give or take `noise`.
    pub(super) fn learn(&mut self, rate: f64, loss: f64, noise: f64) {
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        self.prices[usize::from(self.long)].learn(rate, loss);
        self.long = !self.long;
        if let Some(long) = self.answer(noise) {
            *self = Chunks { long, prices: Default::default(), rest: REST };
        }
    }

    /// Whether they are to be long, if that is known.
    fn answer(&self, noise: f64) -> Option<bool> {
        let [short, long] = &self.prices;
        let pairs = short.pairs.min(long.pairs);
        let gain = WORTH * short.value() - long.value();
        let error = (short.variance(noise) + long.variance(noise)).sqrt();
        let known = pairs >= LEAST && gain.abs() > CERTAIN * error;
        (known || pairs >= ENOUGH).then_some(gain > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = 10e6;

    /// The length that it comes to where chunks cost so much each and per byte.
    fn found(each: f64, per_byte: f64) -> u64 {
        let mut chunks = Chunks::new();
        for _ in 0..REST {
            let length = chunks.length() as f64;
            chunks.learn(RATE, RATE * (each / length + per_byte), 0.03);
        }
        chunks.length()
    }

    #[test]
    fn where_each_chunk_costs_the_same_they_are_long() {
        assert_eq!(found(0.002, 0.0), LONG);
    }

    #[test]
    fn where_each_byte_costs_the_same_they_are_short() {
        assert_eq!(found(0.0, 2e-8), SHORT);
    }

    #[test]
    fn where_nothing_costs_anything_they_are_short() {
        assert_eq!(found(0.0, 0.0), SHORT);
    }

    #[test]
    fn a_load_that_jumps_ends_no_comparison_with_what_was_before() {
        let mut chunks = Chunks::new();
        for _ in 0..REST {
            chunks.learn(RATE, if chunks.long { 0.0 } else { 0.3 }, 0.03);
            chunks.doubt();
        }
        assert_eq!(chunks.rest, 0, "it still compares");
    }

    #[test]
    fn a_device_that_has_changed_is_found_out() {
        let mut chunks = Chunks::new();
        let mut costs = |each: f64, turns: u32| {
            for _ in 0..turns {
                chunks.learn(RATE, RATE * each / chunks.length() as f64, 0.03);
            }
            chunks.length()
        };
        assert_eq!(costs(0.0, 50), SHORT);
        assert_eq!(costs(0.002, 2 * REST), LONG);
    }
}
