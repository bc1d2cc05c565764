//! A copy mode with its marginal cost, its rate in a trial, and its duty cycle.
//!
//! ```text
//! rate(t+1)  = rate(t) * clamp(hurt / (cost * rate(t)), 1/2, 3)
//! duty cycle = budget / (cost * rate)
//! ```
//!
//! The form is PARDA's (Gulati, Ahmad, Waldspurger, FAST 2009: the window times
//! allowed over measured), with the filter of the marginal cost in the place of its
//! smoothing. The bounds of a step keep a wrong marginal cost from doing much.
//!
//! # Special cases
//!
//! - If the guest hardly feels the fastest copy, trials get more of the time, in the end
//!   nearly all of it. If one trial every two seconds is too much, trials become slower.
//! - A guest whose requests come at their own pace (open loop) keeps its IO/s until the
//!   device is full, and then loses all at once. Its latency tells before: in a trial,
//!   response times are no more than [`GROWTH_MAX`] times as long.
//! - Behind the knee of a device's curve all is lost at once, and no marginal cost tells
//!   where the knee is. So a mode that begins with an experience goes beyond the rate
//!   that was good only slowly.
//! - A copier that does not use its rate says nothing about a higher one; the rate stays
//!   within a step of what the copier uses.

use super::experience::TrialExperience;
use super::iops_loop::DUTY_FIRST;
use super::marginal_cost::MarginalCost;
use super::trials::{Comparison, Trials};
use super::{MOST, START};
use crate::mirror::CopyMode;

/// The slowest trial: a short chunk or two in a sample.
const SLOWEST: f64 = (1 << 20) as f64;

/// The part of the budget that is aimed at: what remains is for what comes between
/// two comparisons, and for what shows in none of them, as the processors' time.
pub(super) const AIM: f64 = 0.85;

/// What is aimed at is less by so many errors of the marginal cost: an error makes a rate
/// that is too high more often than it makes one too low by as much.
const CAUTION: f64 = 0.75;

/// The part of its IO/s that the guest loses in a trial, in times of what a comparison
/// varies by itself: so a trial tells the marginal cost within an eighth.
const HURT: f64 = 8.0;

/// At least: below it trials only become longer.
const HURT_MIN: f64 = 0.1;

/// At most: what a cache or a neighbour does to a guest now and then.
const HURT_MAX: f64 = 0.4;

/// A step goes no further up than this factor: six of them lead from the first trial to
/// all that a disk can do, and a marginal cost that was far too low does harm for a tenth
/// of a second.
pub(super) const UP: f64 = 3.0;

/// A step goes no further down.
const DOWN: f64 = 0.5;

/// A copier that uses less than this part of its rate does what it can.
const SATED: f64 = 0.9;

/// The rate of such a copier, in times of what it uses: should it come to do more, that
/// shows.
const PROBE: f64 = 1.2;

/// Response times in a trial, in times of those without the copy. At twice the time, a
/// device is halfway to the knee of its curve: 1 / (1 - load).
pub(super) const GROWTH_MAX: f64 = 2.0;

/// The part of a new trial in the pace of many.
const PACE: f64 = 0.2;

/// A mode like one that is known begins with this part of its rate.
const BEGIN: f64 = 0.5;

/// Each comparison lets it go beyond that rate by so much: to ten times of it in half a
/// minute, should it have been far too low.
const BEYOND: f64 = 1.1;

/// The duty cycle at most: what is left is for the baseline to compare with.
pub(super) const DUTY_MAX: f64 = 0.9;

/// A copy mode, its marginal cost and its rate.
#[derive(Debug)]
pub(super) struct TunedMode {
    pub(super) mode: CopyMode,
    /// The rate in a trial, bytes per second.
    pub(super) rate: f64,
    /// What a byte per second costs in IO/s.
    pub(super) cost: MarginalCost,
    /// What it costs in response time: 1 where that is twice as long.
    slowing: MarginalCost,
    /// The last trial's bytes per second.
    used: f64,
    /// The same of many trials.
    pace: f64,
    /// Whether that was less than it was allowed: the copier does what it can.
    sated: bool,
    /// It goes no faster for now.
    most: f64,
    /// How much longer a window of the last trial was than one of the baseline.
    stretch: f64,
}

impl TunedMode {
    pub(super) fn new(mode: CopyMode) -> Self {
        TunedMode {
            mode,
            rate: START,
            cost: MarginalCost::new(0.5 / START),
            slowing: MarginalCost::new(0.5 / START),
            used: START,
            pace: START,
            sated: false,
            most: MOST,
            stretch: 1.0,
        }
    }

    /// The same mode beside a guest like one beside which it was so.
    pub(super) fn like(known: &TrialExperience) -> Self {
        let new = TunedMode::new(known.mode);
        let rate = (BEGIN * known.rate).min(new.top()).max(SLOWEST);
        let guessed = |value, scale| MarginalCost::guessed(value, known.noise, scale);
        TunedMode {
            rate,
            cost: guessed(known.marginal_cost, HURT_MIN / rate),
            slowing: guessed(known.slowing, 1.0 / rate),
            used: rate,
            most: known.rate,
            pace: known.rate,
            ..new
        }
    }

    /// What trials have shown, of a guest with so many IO/s.
    pub(super) fn experience(&self, iops: f64) -> TrialExperience {
        TrialExperience {
            mode: self.mode,
            rate: self.pace,
            marginal_cost: self.cost.value(),
            slowing: self.slowing.value(),
            noise: self.cost.noise(),
            iops,
        }
    }

    /// No trial is faster, bytes per second.
    fn top(&self) -> f64 {
        match self.mode {
            CopyMode::Burst => {
                CopyMode::BURST_MAX as f64 / CopyMode::SAMPLE.as_secs_f64()
            }
            CopyMode::Even | CopyMode::ShortChunks => MOST,
        }
    }

    /// The lowest marginal cost that is of use where the guest may lose so much: below
    /// it, the copy is no faster.
    pub(super) fn least_cost(&self, budget: f64) -> f64 {
        let most = if self.sated { self.used } else { self.top() };
        budget / (most.max(1.0) * DUTY_MAX)
    }

    /// The load or the device is another.
    pub(super) fn distrust(&mut self) {
        self.cost.distrust();
        self.slowing.distrust();
    }

    /// A trial cost more than can wait for the comparison to be complete.
    pub(super) fn slow_down(&mut self) {
        self.rate = (self.rate * DOWN).max(SLOWEST);
    }

    pub(super) fn learn(&mut self, compared: &Comparison) {
        self.cost.learn(compared.rate, compared.loss, HURT_MIN / self.rate);
        let slower = (compared.growth - 1.0) / (GROWTH_MAX - 1.0);
        self.slowing.learn(compared.rate, slower, 1.0 / self.rate);
        self.used = compared.rate;
        self.pace += PACE * (compared.rate - self.pace);
        self.most = (self.most * BEYOND).min(MOST);
        self.sated = compared.rate < SATED * self.rate;
        self.stretch = compared.stretch;
    }

    /// Sets the duty cycle so that trials at the present rate cost no more than `aim`, if
    /// the marginal cost is as high as it may be.
    pub(super) fn begin(&self, aim: f64, trials: &mut Trials) {
        let cost = self.cost.value() + self.cost.error();
        trials.set_duty_cycle((aim / (cost * self.rate)).min(DUTY_FIRST));
    }

    /// Sets the rate and the duty cycle of the next trials, so that the guest loses `aim`
    /// of its IO/s.
    pub(super) fn tune(&mut self, aim: f64, trials: &mut Trials) {
        let cost = self.cost.value() + CAUTION * self.cost.error();
        let cost = cost.max(f64::MIN_POSITIVE);
        let hurt = (HURT * self.cost.noise()).clamp(HURT_MIN, HURT_MAX).max(aim);
        let slowed = AIM / self.slowing.value().max(f64::MIN_POSITIVE);
        // Trials of a copier that does what it can hurt no more for a higher rate.
        let used = if self.sated { PROBE } else { UP } * self.used;
        let up = (self.rate * UP).min(used.max(START));
        let most = slowed.min(up).max(self.rate * DOWN).min(self.top()).min(self.most);
        let wanted = (hurt / cost).min(most).max(SLOWEST);
        trials.set_duty_cycle((aim / (cost * wanted)).min(DUTY_MAX));
        // Trials are whole windows; the rate makes up for it.
        let exact = aim / (cost * trials.time_share(self.stretch));
        self.rate = exact.min(most).max(SLOWEST);
    }
}
