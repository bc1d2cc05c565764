//! In what manner the copier goes beside a guest whose IO/s are kept.
//!
//! # Rule
//!
//! Where a head has to move for each chunk, or a spindle's queue has to be waited for,
//! much at once costs the guest hardly more than little; where each byte costs the same,
//! it only holds the guest up longer. No latency tells which it is: a stripe answers a
//! long chunk as late as the slowest of its spindles. The price does, which is what the
//! copy costs the guest per byte. So both are tried, in turns one after the other, each
//! [`Gear`] at a rate of its own, and what a turn brings comes in short chunks unless
//! that it comes at once is cheaper by more than [`WORTH`] and chance together.
//!
//! # Special cases
//!
//! - When the load or the device jumps, the prices are in doubt, and what was compared
//!   is forgotten.
//! - Devices change: after [`REST`] comparisons both are tried again.

use super::gear::Gear;
use super::turns::Pair;
use crate::mirror::Manner;

/// What comes at once costs no more than this part of the price of short chunks: less of
/// a difference is not worth that the guest waits behind it.
const WORTH: f64 = 0.95;

/// A difference of so many errors is no chance.
const CERTAIN: f64 = 2.0;

/// Comparisons of each before there is an answer, so that one hiccup is none.
const LEAST: u32 = 4;

/// Comparisons of each after which what seems so is taken to be so for a while.
const ENOUGH: u32 = 8;

/// Comparisons until both are tried again, where that is known: some minutes, so
/// that trying costs a hundredth of the time.
const REST: u32 = 200;

/// And where it only seems so.
const NAP: u32 = 24;

/// Short chunks.
const SHORT: usize = 0;

/// All at once.
const AT_ONCE: usize = 1;

/// A price over a comparison: the slope of a line through zero. The filter's own price
/// forgets, and so it is never as sure.
#[derive(Clone, Copy, Debug, Default)]
struct Slope {
    /// Of rate times loss.
    sum: f64,
    /// Of rate times rate.
    weight: f64,
}

impl Slope {
    fn learn(&mut self, pair: &Pair) {
        self.sum += pair.rate * pair.loss;
        self.weight += pair.rate * pair.rate;
    }

    /// Per byte per second.
    fn value(&self) -> f64 {
        self.sum / self.weight.max(1.0)
    }

    /// The error of the value, if a comparison varies by so much.
    fn error(&self, noise: f64) -> f64 {
        noise / self.weight.max(1.0).sqrt()
    }
}

/// Both manners, and which of them it is.
#[derive(Debug)]
pub(super) struct Gears {
    /// The part of its IO/s that the guest may lose.
    budget: f64,
    gears: [Gear; 2],
    /// That of the present turn.
    at: usize,
    /// What each costs, while they are compared.
    slopes: [Slope; 2],
    /// Comparisons of both since they are tried.
    tried: u32,
    /// Comparisons until then, afterwards.
    rest: u32,
}

impl Gears {
    pub(super) fn new(budget: f64) -> Self {
        Gears {
            budget,
            gears: [Gear::new(Manner::Short), Gear::new(Manner::AtOnce)],
            at: AT_ONCE,
            slopes: Default::default(),
            tried: 0,
            rest: 0,
        }
    }

    /// That of the present turn.
    pub(super) fn now(&self) -> &Gear {
        &self.gears[self.at]
    }

    pub(super) fn now_mut(&mut self) -> &mut Gear {
        &mut self.gears[self.at]
    }

    /// The load or the device is another.
    pub(super) fn doubt(&mut self) {
        self.gears.iter_mut().for_each(Gear::doubt);
        self.slopes = Default::default();
        self.tried = 0;
    }

    /// Looks at a comparison of the present turn, and says whose the next turn is.
    pub(super) fn learn(&mut self, pair: &Pair) {
        self.now_mut().learn(pair);
        self.slopes[self.at].learn(pair);
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        self.tried += 1;
        self.at = 1 - self.at;
        let (gain, error) = self.gain();
        let known = self.tried >= 2 * LEAST && gain.abs() > CERTAIN * error;
        if known || self.tried >= 2 * ENOUGH {
            self.at = if gain > 0.0 { AT_ONCE } else { SHORT };
            self.tried = 0;
            self.rest = if known { REST } else { NAP };
        }
        if known {
            self.slopes = Default::default();
        }
    }

    /// By how much what comes at once is cheaper than it has to be, and the error of
    /// that.
    fn gain(&self) -> (f64, f64) {
        let error = |of: usize| self.slopes[of].error(self.gears[of].price.noise());
        let error = error(SHORT).hypot(error(AT_ONCE));
        let cost = |of: usize| {
            self.slopes[of].value().max(self.gears[of].least_price(self.budget))
        };
        (WORTH * cost(SHORT) - cost(AT_ONCE), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = 10e6;

    /// What a turn costs in each manner.
    fn pair(gears: &Gears, [short, at_once]: [f64; 2]) -> Pair {
        let loss = if gears.now().manner == Manner::Short { short } else { at_once };
        Pair { rate: RATE, loss, growth: 1.0, iops: 100.0, stretch: 1.0 }
    }

    fn turns(gears: &mut Gears, turns: u32, costs: [f64; 2]) -> Manner {
        for _ in 0..turns {
            gears.learn(&pair(gears, costs));
        }
        gears.now().manner
    }

    #[test]
    fn where_each_chunk_costs_the_same_it_comes_at_once() {
        assert_eq!(turns(&mut Gears::new(0.03), REST, [0.3, 0.05]), Manner::AtOnce);
    }

    #[test]
    fn where_each_byte_costs_the_same_chunks_are_short() {
        assert_eq!(turns(&mut Gears::new(0.03), REST, [0.2, 0.2]), Manner::Short);
    }

    #[test]
    fn where_nothing_costs_anything_chunks_are_short() {
        assert_eq!(turns(&mut Gears::new(0.03), REST, [0.0, 0.0]), Manner::Short);
    }

    #[test]
    fn a_load_that_jumps_ends_no_comparison_with_what_was_before() {
        let mut gears = Gears::new(0.03);
        for _ in 0..REST {
            gears.learn(&pair(&gears, [0.3, 0.0]));
            gears.doubt();
        }
        assert_eq!(gears.rest, 0, "it still compares");
    }

    #[test]
    fn a_device_that_has_changed_is_found_out() {
        let mut gears = Gears::new(0.03);
        assert_eq!(turns(&mut gears, 50, [0.1, 0.1]), Manner::Short);
        assert_eq!(turns(&mut gears, 2 * REST, [0.3, 0.05]), Manner::AtOnce);
    }
}
