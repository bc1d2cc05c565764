//! Which copy mode is cheaper beside a guest whose IO/s are kept.
//!
//! # Rule
//!
//! Where a head has to move for each chunk, or a spindle's queue has to be waited for, a
//! burst costs the guest hardly more than one chunk. Where each byte costs the same, a
//! burst only holds the guest up longer. No latency tells which it is: a stripe answers a
//! long chunk as late as the slowest of its spindles. The marginal cost does. So trials
//! alternate between both modes, each a [`TunedMode`] at a rate of its own. The copy
//! comes in short chunks unless bursts are cheaper by more than [`WORTH`] and chance
//! together.
//!
//! # Special cases
//!
//! - If the load or the device jumps, the marginal costs are in doubt, and the comparison
//!   of the modes begins anew.
//! - Devices change: after [`REST`] comparisons both modes are tried again.

use super::experience::TrialExperience;
use super::trials::Comparison;
use super::tuned_mode::TunedMode;
use crate::mirror::CopyMode;

/// Bursts must cost no more than this part of the marginal cost of short chunks: a
/// smaller difference is not worth that the guest waits behind a burst.
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

/// Short chunks, or the only mode.
const SHORT: usize = 0;

/// Bursts.
const BURST: usize = 1;

/// The marginal cost over all trials of a mode: the slope of a line through zero. The
/// filter of [`TunedMode`] forgets, and so it is never as sure.
#[derive(Clone, Copy, Debug, Default)]
struct Slope {
    /// Of rate times loss.
    sum: f64,
    /// Of rate times rate.
    weight: f64,
}

impl Slope {
    fn learn(&mut self, compared: &Comparison) {
        self.sum += compared.rate * compared.loss;
        self.weight += compared.rate * compared.rate;
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

/// Both modes, and which of them is in force.
#[derive(Debug)]
pub(super) struct ModeChoice {
    /// The part of its IO/s that the guest may lose.
    budget: f64,
    modes: [TunedMode; 2],
    /// Whether they are compared at all: else it is always the first.
    compares: bool,
    /// The mode of the present trial, or of the last.
    at: usize,
    /// The mode of the next trial.
    next: usize,
    /// What each costs, while they are compared.
    slopes: [Slope; 2],
    /// Comparisons of both since they are tried.
    tried: u32,
    /// Comparisons until then, afterwards.
    rest: u32,
}

impl ModeChoice {
    /// For a copier whose mode the guard chooses.
    pub(super) fn new(budget: f64) -> Self {
        ModeChoice {
            budget,
            modes: [
                TunedMode::new(CopyMode::ShortChunks),
                TunedMode::new(CopyMode::Burst),
            ],
            compares: true,
            at: BURST,
            next: BURST,
            slopes: Default::default(),
            tried: 0,
            rest: 0,
        }
    }

    /// For a copier with a mode of its own.
    pub(super) fn one(budget: f64) -> Self {
        let modes = [TunedMode::new(CopyMode::Even), TunedMode::new(CopyMode::Burst)];
        ModeChoice {
            modes,
            compares: false,
            at: SHORT,
            next: SHORT,
            ..ModeChoice::new(budget)
        }
    }

    /// Begins in the mode of an earlier guard, and tries the other after a while; true if
    /// this copier has that mode.
    pub(super) fn begin_like(&mut self, known: &TrialExperience) -> bool {
        let all = if self.compares { &self.modes[..] } else { &self.modes[..BURST] };
        let Some(at) = all.iter().position(|it| it.mode == known.mode) else {
            return false;
        };
        self.modes[at] = TunedMode::like(known);
        (self.at, self.next, self.rest) = (at, at, NAP);
        true
    }

    /// Whether the guard chooses the copier's mode.
    pub(super) fn compares(&self) -> bool {
        self.compares
    }

    /// The mode in force, for comparisons that must not mix modes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The mode of the present trial, or of the last.
    pub(super) fn now(&self) -> &TunedMode {
        &self.modes[self.at]
    }

    pub(super) fn now_mut(&mut self) -> &mut TunedMode {
        &mut self.modes[self.at]
    }

    /// The mode of the next trial.
    pub(super) fn next_mut(&mut self) -> &mut TunedMode {
        &mut self.modes[self.next]
    }

    /// A trial begins.
    pub(super) fn switch(&mut self) {
        self.at = self.next;
    }

    /// The load or the device is another.
    pub(super) fn distrust(&mut self) {
        self.modes.iter_mut().for_each(TunedMode::distrust);
        self.slopes = Default::default();
        self.tried = 0;
        self.rest = self.rest.min(NAP);
    }

    /// Learns from a comparison of the last trial, and chooses the mode of the next one.
    pub(super) fn learn(&mut self, compared: &Comparison) {
        self.now_mut().learn(compared);
        if !self.compares {
            return;
        }
        if self.rest > 0 {
            self.rest -= 1;
            if self.rest == 0 {
                // What the other cost a while ago, it may not cost now.
                self.modes[1 - self.at].distrust();
            }
            return;
        }
        self.slopes[self.at].learn(compared);
        self.tried += 1;
        self.next = 1 - self.at;
        let (gain, error) = self.gain();
        let known = self.tried >= 2 * LEAST && gain.abs() > CERTAIN * error;
        if known || self.tried >= 2 * ENOUGH {
            self.next = if gain > 0.0 { BURST } else { SHORT };
            self.tried = 0;
            self.rest = if known { REST } else { NAP };
            // What is not known yet is remembered, and less of it each time.
            let left = if known { 0.0 } else { REMEMBERED };
            self.slopes.iter_mut().for_each(|slope| slope.forget(left));
        }
    }

    /// By how much bursts are cheaper than they have to be, and the error of that.
    fn gain(&self) -> (f64, f64) {
        // Early on, the quieter of the two was quiet by chance.
        let noise = self.modes.iter().map(|mode| mode.cost.noise()).fold(0.0, f64::max);
        let [first, second] = self.slopes.map(|slope| slope.error(noise));
        let error = first.hypot(second);
        let cost = |of: usize| {
            self.slopes[of].value().max(self.modes[of].least_cost(self.budget))
        };
        (WORTH * cost(SHORT) - cost(BURST), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = 10e6;

    /// What a trial costs in each mode.
    fn compared(modes: &ModeChoice, [short, burst]: [f64; 2]) -> Comparison {
        let loss = if modes.now().mode == CopyMode::ShortChunks { short } else { burst };
        Comparison { rate: RATE, loss, growth: 1.0, iops: 100.0, stretch: 1.0 }
    }

    fn after_trials(modes: &mut ModeChoice, trials: u32, costs: [f64; 2]) -> CopyMode {
        for _ in 0..trials {
            modes.learn(&compared(modes, costs));
            modes.switch();
        }
        modes.now().mode
    }

    #[test]
    fn where_each_chunk_costs_the_same_the_copy_comes_in_bursts() {
        assert_eq!(
            after_trials(&mut ModeChoice::new(0.03), REST, [0.3, 0.05]),
            CopyMode::Burst
        );
    }

    #[test]
    fn where_each_byte_costs_the_same_chunks_are_short() {
        assert_eq!(
            after_trials(&mut ModeChoice::new(0.03), REST, [0.2, 0.2]),
            CopyMode::ShortChunks
        );
    }

    #[test]
    fn where_nothing_costs_anything_chunks_are_short() {
        assert_eq!(
            after_trials(&mut ModeChoice::new(0.03), REST, [0.0, 0.0]),
            CopyMode::ShortChunks
        );
    }

    #[test]
    fn a_load_that_jumps_ends_no_comparison_with_what_was_before() {
        let mut modes = ModeChoice::new(0.03);
        for _ in 0..REST {
            modes.learn(&compared(&modes, [0.3, 0.0]));
            modes.switch();
            modes.distrust();
        }
        assert_eq!(modes.rest, 0, "it still compares");
    }

    #[test]
    fn after_a_load_that_jumps_both_are_tried_again_soon() {
        let mut modes = ModeChoice::new(0.03);
        assert_eq!(after_trials(&mut modes, 50, [0.2, 0.2]), CopyMode::ShortChunks);
        modes.distrust();
        assert_eq!(
            after_trials(&mut modes, NAP + 2 * ENOUGH, [0.3, 0.05]),
            CopyMode::Burst
        );
    }

    #[test]
    fn a_copier_with_a_mode_of_its_own_keeps_it() {
        assert_eq!(
            after_trials(&mut ModeChoice::one(0.03), REST, [0.3, 0.05]),
            CopyMode::Even
        );
    }

    #[test]
    fn a_device_that_has_changed_is_found_out() {
        let mut modes = ModeChoice::new(0.03);
        assert_eq!(after_trials(&mut modes, 50, [0.1, 0.1]), CopyMode::ShortChunks);
        assert_eq!(after_trials(&mut modes, 2 * REST, [0.3, 0.05]), CopyMode::Burst);
    }
}
