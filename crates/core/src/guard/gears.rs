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

use super::experience::Turned;
use super::gear::Gear;
use super::turns::Pair;
use crate::mirror::Manner;

/// What comes at once costs no more than this part of the price of short chunks: less of
/// a difference is not worth that the guest waits behind it.
const WORTH: f64 = 0.95;

/// A difference of so many errors is no chance.
const CERTAIN: f64 = 3.0;

/// Comparisons of each before there is an answer: what chance does is not known earlier.
const LEAST: u32 = 5;

/// Comparisons of each after which what seems so is taken to be so for a while.
const ENOUGH: u32 = 8;

/// Comparisons until both are tried again, where that is known: a minute or two.
const REST: u32 = 100;

/// And where it only seems so.
const NAP: u32 = 24;

/// The part that is remembered of a comparison without an answer.
const REMEMBERED: f64 = 0.5;

/// The gear of short chunks, or the only one.
const FIRST: usize = 0;

/// That of what comes at once.
const SECOND: usize = 1;

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

    /// Keeps this part of what it knows.
    fn forget(&mut self, left: f64) {
        self.sum *= left;
        self.weight *= left;
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
    /// Whether they are compared at all: else it is always the first.
    compares: bool,
    /// That of the present turn, or of the last.
    at: usize,
    /// That of the next turn.
    next: usize,
    /// What each costs, while they are compared.
    slopes: [Slope; 2],
    /// Comparisons of both since they are tried.
    tried: u32,
    /// Comparisons until then, afterwards.
    rest: u32,
}

impl Gears {
    /// For a copier that can be told in what manner to go.
    pub(super) fn new(budget: f64) -> Self {
        Gears {
            budget,
            gears: [Gear::new(Manner::Short), Gear::new(Manner::AtOnce)],
            compares: true,
            at: SECOND,
            next: SECOND,
            slopes: Default::default(),
            tried: 0,
            rest: 0,
        }
    }

    /// For a copier that goes in a manner of its own.
    pub(super) fn one(budget: f64) -> Self {
        let gears = [Gear::new(Manner::Even), Gear::new(Manner::AtOnce)];
        Gears { gears, compares: false, at: FIRST, next: FIRST, ..Gears::new(budget) }
    }

    /// Begins in the gear of an earlier guard, and tries the other after a while; true if
    /// there is that gear.
    pub(super) fn begin_like(&mut self, known: &Turned) -> bool {
        let all = if self.compares { &self.gears[..] } else { &self.gears[..SECOND] };
        let Some(at) = all.iter().position(|gear| gear.manner == known.manner) else {
            return false;
        };
        self.gears[at] = Gear::like(known);
        (self.at, self.next, self.rest) = (at, at, NAP);
        true
    }

    /// Whether the copier is told in what manner to go.
    pub(super) fn compares(&self) -> bool {
        self.compares
    }

    /// Which is in force, for comparisons that must not mix them.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// That of the present turn, or of the last.
    pub(super) fn now(&self) -> &Gear {
        &self.gears[self.at]
    }

    pub(super) fn now_mut(&mut self) -> &mut Gear {
        &mut self.gears[self.at]
    }

    /// That of the next turn.
    pub(super) fn next_mut(&mut self) -> &mut Gear {
        &mut self.gears[self.next]
    }

    /// A turn begins.
    pub(super) fn shift(&mut self) {
        self.at = self.next;
    }

    /// The load or the device is another.
    pub(super) fn doubt(&mut self) {
        self.gears.iter_mut().for_each(Gear::doubt);
        self.slopes = Default::default();
        self.tried = 0;
        self.rest = self.rest.min(NAP);
    }

    /// Looks at a comparison of the last turn, and says whose the next one is.
    pub(super) fn learn(&mut self, pair: &Pair) {
        self.now_mut().learn(pair);
        if !self.compares {
            return;
        }
        if self.rest > 0 {
            self.rest -= 1;
            if self.rest == 0 {
                // What the other cost a while ago, it may not cost now.
                self.gears[1 - self.at].doubt();
            }
            return;
        }
        self.slopes[self.at].learn(pair);
        self.tried += 1;
        self.next = 1 - self.at;
        let (gain, error) = self.gain();
        let known = self.tried >= 2 * LEAST && gain.abs() > CERTAIN * error;
        if known || self.tried >= 2 * ENOUGH {
            self.next = if gain > 0.0 { SECOND } else { FIRST };
            self.tried = 0;
            self.rest = if known { REST } else { NAP };
            // What is not known yet is remembered, and less of it each time.
            let left = if known { 0.0 } else { REMEMBERED };
            self.slopes.iter_mut().for_each(|slope| slope.forget(left));
        }
    }

    /// By how much what comes at once is cheaper than it has to be, and the error of
    /// that.
    fn gain(&self) -> (f64, f64) {
        // Early on, the quieter of the two was quiet by chance.
        let noise = self.gears.iter().map(|gear| gear.price.noise()).fold(0.0, f64::max);
        let [first, second] = self.slopes.map(|slope| slope.error(noise));
        let error = first.hypot(second);
        let cost = |of: usize| {
            self.slopes[of].value().max(self.gears[of].least_price(self.budget))
        };
        (WORTH * cost(FIRST) - cost(SECOND), error)
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
            gears.shift();
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
            gears.shift();
            gears.doubt();
        }
        assert_eq!(gears.rest, 0, "it still compares");
    }

    #[test]
    fn after_a_load_that_jumps_both_are_tried_again_soon() {
        let mut gears = Gears::new(0.03);
        assert_eq!(turns(&mut gears, 50, [0.2, 0.2]), Manner::Short);
        gears.doubt();
        assert_eq!(turns(&mut gears, NAP + 2 * ENOUGH, [0.3, 0.05]), Manner::AtOnce);
    }

    #[test]
    fn a_copier_with_a_manner_of_its_own_keeps_it() {
        assert_eq!(turns(&mut Gears::one(0.03), REST, [0.3, 0.05]), Manner::Even);
    }

    #[test]
    fn a_device_that_has_changed_is_found_out() {
        let mut gears = Gears::new(0.03);
        assert_eq!(turns(&mut gears, 50, [0.1, 0.1]), Manner::Short);
        assert_eq!(turns(&mut gears, 2 * REST, [0.3, 0.05]), Manner::AtOnce);
    }
}
