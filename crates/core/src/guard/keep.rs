//! The loop that keeps the guest's IO/s.
//!
//! The part of its IO/s that the guest may lose is a budget, the [`Price`] says what
//! each byte per second costs, and the rate is what the budget buys. The price comes
//! from pauses of the copy ([`Probe`]), so it follows the guest and the device.
//!
//! ```text
//! rate(t+1) = rate(t) * clamp(budget / (price * rate(t)), 1/2, 3/2)
//! ```
//!
//! The form is PARDA's (Gulati, Ahmad, Waldspurger, FAST 2009: the window times
//! allowed over measured), with the filter of the price in the place of its smoothing;
//! the bounds of a step are what makes a wrong price cost little.
//!
//! # Special cases
//!
//! - A guest whose requests come when they come (open loop) keeps its IO/s until the
//!   device is full, and then loses all at once. What tells before is its latency: a
//!   response time that is [`GROWTH_MAX`] times as long counts as the whole budget.
//! - A copier that does not use its rate says nothing about a higher one; the rate
//!   stays within twice of what is used.
//! - A loss that a pause makes plain is acted on at the end of the pause, before the
//!   comparison is complete.
//!
//! # Failures
//!
//! If even the least rate costs more than the budget, the target is out of reach, and
//! the copy goes on only while the guest is gone. It is tried again after a while.

use super::price::Price;
use super::probe::{OFF, Pair, Probe};
use super::{Observation, Standing, Unreachable};

/// The rate to begin with, bytes per second: next to nothing on any device, and the
/// rate doubles in two comparisons.
const START: f64 = (2 << 20) as f64;

/// Below this, copying is not worth what it costs: four small chunks per second.
const LEAST: f64 = (256 << 10) as f64;

/// More than any device reads.
const MOST: f64 = (16_u64 << 30) as f64;

/// A smaller part of the guest's IO/s cannot be told from nothing.
const BUDGET_MIN: f64 = 0.001;

/// The part of the budget that is aimed at: what remains is for what comes between
/// two comparisons.
const AIM: f64 = 0.88;

/// What is aimed at is less by so many errors of the price: an error makes a rate that
/// is too high more often than it makes one too low by as much.
const CAUTION: f64 = 0.6;

/// At least this part of the budget is aimed at, however little is known.
const AIM_MIN: f64 = 0.3;

/// A step goes no further up than this factor: a wrong price costs one such step.
const UP: f64 = 1.5;

/// A step goes no further down.
const DOWN: f64 = 0.5;

/// Response times so many times as long use up the whole budget. At twice the time
/// without the copy, a device is halfway to the knee of its curve: 1 / (1 - load).
const GROWTH_MAX: f64 = 2.0;

/// Windows between two pauses while the price is poorly known: half the time goes to
/// finding it out.
const APART_LEARNING: usize = 2;

/// Windows between two pauses otherwise: 0.8 s, so that there is a comparison each
/// second. A fifth of the busy rate is lost to that.
const APART: usize = 8;

/// The price is poorly known if its error alone is worth this part of the budget.
const POOR: f64 = 0.6;

/// Comparisons before anything is said.
const LEARNING: u32 = 5;

/// Comparisons in which the least rate costs too much before the target is given up.
const PATIENCE: u32 = 5;

/// Windows until it is tried again: 30 s.
const AGAIN: u32 = 300;

/// The part of a new comparison in what was lost so far: a minute counts.
const SMOOTHING: f64 = 1.0 / 60.0;

/// The part of a new comparison in the guest's IO/s.
const RECENT: f64 = 0.3;

/// IO/s that have changed by this part since are another load.
const JUMP: f64 = 0.25;

/// A loop that keeps a part of the guest's IO/s.
#[derive(Debug)]
pub(super) struct Keep {
    /// The part of its IO/s that the guest may lose.
    budget: f64,
    rate: f64,
    /// What a byte per second costs in IO/s.
    price: Price,
    /// What it costs in response time: 1 where that is twice as long.
    slowing: Price,
    probe: Probe,
    pairs: u32,
    /// The guest's IO/s without the copy, smoothed.
    iops: f64,
    /// What the copy costs it, smoothed.
    loss: f64,
    /// Comparisons in a row that left no rate.
    hopeless: u32,
    /// Windows until a target that was given up is tried again.
    given_up: Option<u32>,
}

impl Keep {
    /// A loop that lets the guest lose this part of its IO/s, 0 or more and below 1.
    pub(super) fn new(budget: f64) -> Self {
        Keep {
            budget: budget.max(BUDGET_MIN),
            rate: START,
            price: Price::new(0.5 / START),
            slowing: Price::new(0.5 / START),
            probe: Probe::new(APART_LEARNING),
            pairs: 0,
            iops: 0.0,
            loss: 0.0,
            hopeless: 0,
            given_up: None,
        }
    }

    /// Looks at a window; gives the busy rate for the next, bytes per second.
    pub(super) fn step(&mut self, seen: &Observation<'_>) -> u64 {
        if let Some(left) = self.given_up {
            if left > 0 {
                self.given_up = Some(left - u32::from(seen.is_busy()));
                return 0;
            }
            *self = Keep::new(self.budget);
        }
        let pair = self.probe.look(seen);
        if let Some(loss) = self.probe.glimpse() {
            // So much more than the noise that it cannot wait.
            let plain = (3.0 * self.budget).max(4.0 * self.price.noise());
            if loss > plain {
                self.rate = (self.rate * DOWN).max(LEAST);
            }
        }
        if let Some(pair) = pair {
            self.learn(&pair);
        }
        if self.probe.pauses() { 0 } else { self.rate() }
    }

    /// The busy rate but for the pauses, bytes per second.
    pub(super) fn rate(&self) -> u64 {
        if self.given_up.is_some() { 0 } else { self.rate as u64 }
    }

    /// How it stands.
    pub(super) fn standing(&self) -> Standing {
        if self.given_up.is_some() {
            return Standing::Unreachable(Unreachable::CopyCosts {
                rate: LEAST as u64,
                loss: self.price.value() * LEAST,
            });
        }
        match self.pairs {
            0..LEARNING => Standing::Learning,
            _ if self.loss <= self.budget => Standing::Holding,
            _ => Standing::Converging,
        }
    }

    /// The guest's IO/s without the copy, and the part of it that it has, if known.
    pub(super) fn kept(&self) -> Option<(f64, f64)> {
        (self.pairs > 0).then(|| (self.iops, (1.0 - self.loss).clamp(0.0, 1.0)))
    }

    /// The part of the guest's IO/s that copying at a rate would leave, if known.
    pub(super) fn would_keep(&self, rate: f64) -> Option<f64> {
        let known = self.pairs >= LEARNING;
        known.then(|| (1.0 - self.price.value() * rate).clamp(0.0, 1.0))
    }

    fn learn(&mut self, pair: &Pair) {
        self.pairs = self.pairs.saturating_add(1);
        let part = SMOOTHING.max(1.0 / f64::from(self.pairs));
        let copying = self.probe.part();
        let jump = (pair.iops / self.iops.max(1.0) - 1.0).abs();
        if self.pairs > 1 && jump > JUMP.max(4.0 * self.price.noise()) {
            // Another load, or another device: the prices may be others, too.
            self.price.doubt();
            self.slowing.doubt();
            self.iops = pair.iops;
        }
        self.iops += part.max(RECENT) * (pair.iops - self.iops);
        self.loss += part * (pair.loss * copying - self.loss);
        self.price.learn(pair.rate, pair.loss, self.budget / self.rate);
        let slower = (pair.growth - 1.0) / (GROWTH_MAX - 1.0);
        self.slowing.learn(pair.rate, slower, 1.0 / self.rate);
        let error = self.price.error() * self.rate;
        let poor = error > POOR * self.budget;
        self.probe.set_apart(if poor { APART_LEARNING } else { APART });
        let overspent = (self.loss - AIM * self.budget).max(0.0);
        let aim = AIM * self.budget - CAUTION * error - overspent;
        let aim = aim.max(AIM_MIN * self.budget);
        // What is lost in the windows with the copy is lost only there.
        let buys = aim / copying / self.price.value().max(f64::MIN_POSITIVE);
        let wanted = buys.min(AIM / self.slowing.value().max(f64::MIN_POSITIVE));
        let used = (2.0 * pair.rate).max(START);
        let up = (self.rate * UP).min(used.max(self.rate));
        self.rate = wanted.clamp(self.rate * DOWN, up).clamp(LEAST, MOST);
        let hopeless = wanted < LEAST;
        self.hopeless = if hopeless { self.hopeless + 1 } else { 0 };
        if self.hopeless > PATIENCE {
            self.given_up = Some(AGAIN);
        }
    }
}

/// A pause must come about once a second, and a comparison needs what is around it.
const _: () = assert!(OFF < APART);
