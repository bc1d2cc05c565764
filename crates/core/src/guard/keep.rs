//! The loop that keeps the guest's IO/s.
//!
//! The part of its IO/s that the guest may lose is a budget. Copying goes in [`Turns`]:
//! in a turn it is fast enough to be felt, and so the [`Price`] of a byte per second is
//! known soon and well; and it has so much of the time as the budget buys.
//!
//! ```text
//! rate(t+1) = rate(t) * clamp(hurt / (price * rate(t)), 1/2, 3)
//! part of the time = budget / (price * rate)
//! ```
//!
//! The form is PARDA's (Gulati, Ahmad, Waldspurger, FAST 2009: the window times
//! allowed over measured), with the filter of the price in the place of its smoothing;
//! the bounds of a step are what makes a wrong price cost little.
//!
//! How long the chunks are is found by the price, too ([`Chunks`]).
//!
//! # Special cases
//!
//! - Where copying as fast as it can is hardly felt, it has more of the time,
//!   in the end nearly all of it; where a turn every two seconds is too much, the
//!   turns become slower.
//! - A guest whose requests come when they come (open loop) keeps its IO/s until the
//!   device is full, and then loses all at once. What tells before is its latency: in
//!   a turn, response times are no more than [`GROWTH_MAX`] times as long.
//! - What mirrored writes cost is there whatever is copied, and so it does not show in a
//!   comparison. The mirror knows how long writes waited for the destination alone; that
//!   part of the response times is taken off the budget.
//! - A copier that does not use its rate says nothing about a higher one; the rate
//!   stays within a step of what is used.
//! - A loss that a pause makes plain is acted on at the end of the pause, before the
//!   comparison is complete.
//!
//! # Failures
//!
//! If even the least rate costs more than the budget, the target is out of reach, and
//! the copy goes on only while the guest is gone. It is tried again after a while. If
//! mirrored writes alone cost more, the copy goes on slowly: only its end helps.

use super::chunks::Chunks;
use super::price::Price;
use super::turns::{Pair, Turns};
use super::{LEAST, MOST, Observation, START, Standing, Unreachable};

/// The slowest turn: a chunk and a half.
const SLOWEST: f64 = (1 << 20) as f64;

/// A smaller part of the guest's IO/s cannot be told from nothing.
const BUDGET_MIN: f64 = 0.001;

/// The part of the budget that is aimed at: what remains is for what comes between
/// two comparisons.
const AIM: f64 = 0.92;

/// What is aimed at is less by so many errors of the price: an error makes a rate that
/// is too high more often than it makes one too low by as much.
const CAUTION: f64 = 0.75;

/// At least this part of the budget is aimed at, however little is known.
const AIM_MIN: f64 = 0.3;

/// The part of its IO/s that the guest loses in a turn, in times of what a comparison
/// varies by itself: so a turn tells the price within an eighth.
const HURT: f64 = 8.0;

/// At least: below it turns only become longer.
const HURT_MIN: f64 = 0.1;

/// At most: what a cache or a neighbour does to a guest now and then.
const HURT_MAX: f64 = 0.4;

/// A step goes no further up than this factor: six of them lead from the first turn to
/// all that a disk can do, and a price that was far too low costs a tenth of a second.
const UP: f64 = 3.0;

/// A step goes no further down.
const DOWN: f64 = 0.5;

/// A copier that uses less than this part of its rate does what it can.
const SATED: f64 = 0.9;

/// The rate of such a copier, in times of what it uses: should it come to do more, that
/// shows.
const PROBE: f64 = 1.2;

/// Response times in a turn, in times of those without the copy. At twice the time, a
/// device is halfway to the knee of its curve: 1 / (1 - load).
const GROWTH_MAX: f64 = 2.0;

/// The part of the time for the first turns: so often that they teach quickly.
const PART_FIRST: f64 = 0.25;

/// The part of the time at most: what is left is for pauses to compare with.
const PART_MAX: f64 = 0.9;

/// Comparisons before anything is said.
const LEARNING: u32 = 5;

/// Comparisons in which the least rate costs too much before the target is given up.
const PATIENCE: u32 = 5;

/// Windows until it is tried again: 30 s.
const AGAIN: u32 = 300;

/// Samples without a comparison after which nothing is known any more: two minutes at
/// the guest's own work.
const STALE: u32 = 1200;

/// The part of a new sample in what mirrored writes cost: half a minute counts.
const MIRRORED: f64 = 1.0 / 300.0;

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
    /// The rate in a turn, bytes per second.
    rate: f64,
    /// What a byte per second costs in IO/s.
    price: Price,
    /// What it costs in response time: 1 where that is twice as long.
    slowing: Price,
    turns: Turns,
    chunks: Chunks,
    pairs: u32,
    /// Busy samples since the last comparison.
    since: u32,
    /// The guest's IO/s without the copy, smoothed.
    iops: f64,
    /// What the copy costs it, smoothed.
    loss: f64,
    /// How long writes waited for the destination alone in a sample, and how long all
    /// requests took, in nanoseconds and smoothed.
    mirrored: (f64, f64),
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
            turns: Turns::new(PART_FIRST),
            chunks: Chunks::new(),
            pairs: 0,
            since: 0,
            iops: 0.0,
            loss: 0.0,
            mirrored: (0.0, 0.0),
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
        self.look_at_mirror(seen);
        let pair = self.turns.look(seen);
        self.since += u32::from(seen.is_busy());
        if self.since > STALE {
            *self = Keep::new(self.budget);
        }
        if let Some(loss) = self.turns.glimpse() {
            // So much more than the noise that it cannot wait.
            let plain = (3.0 * self.budget).max(4.0 * self.price.noise());
            if loss > plain {
                self.rate = (self.rate * DOWN).max(SLOWEST);
            }
        }
        if let Some(pair) = pair {
            self.learn(&pair);
        }
        if self.turns.pauses() { 0 } else { self.rate as u64 }
    }

    /// The guest hangs: what was seen of it says nothing of what comes.
    pub(super) fn interrupt(&mut self) {
        self.turns.interrupt();
    }

    /// The busy rate over turns and pauses, bytes per second.
    pub(super) fn rate(&self) -> u64 {
        if self.given_up.is_some() { 0 } else { (self.rate * self.part()) as u64 }
    }

    /// The part of the time that belongs to turns.
    pub(super) fn part(&self) -> f64 {
        self.turns.part()
    }

    /// Bytes in a chunk beside the guest.
    pub(super) fn chunk(&self) -> u64 {
        self.chunks.length()
    }

    /// How it stands.
    pub(super) fn standing(&self) -> Standing {
        if self.given_up.is_some() {
            return Standing::Unreachable(Unreachable::CopyCosts {
                rate: LEAST as u64,
                loss: self.price.value() * LEAST,
            });
        }
        let mirrored = self.mirrored();
        match self.pairs {
            0..LEARNING => Standing::Learning,
            _ if mirrored > self.budget => {
                Standing::Unreachable(Unreachable::MirrorCosts { loss: mirrored })
            }
            _ if self.loss + mirrored <= self.budget => Standing::Holding,
            _ => Standing::Converging,
        }
    }

    /// The guest's IO/s without the copy, and the part of it that it has, if known.
    pub(super) fn kept(&self) -> Option<(f64, f64)> {
        let kept = 1.0 - self.loss - self.mirrored();
        (self.pairs > 0).then(|| (self.iops, kept.clamp(0.0, 1.0)))
    }

    /// The part of the guest's IO/s that copying at a rate would leave, if known.
    pub(super) fn would_keep(&self, rate: f64) -> Option<f64> {
        let known = self.pairs >= LEARNING;
        known.then(|| (1.0 - self.price.value() * rate).clamp(0.0, 1.0))
    }

    fn look_at_mirror(&mut self, seen: &Observation<'_>) {
        let (waited, took) = &mut self.mirrored;
        *waited += MIRRORED * (seen.mirrored.0 as f64 - *waited);
        *took += MIRRORED * (seen.guest.total().response.0 as f64 - *took);
    }

    /// The part of the guest's time that goes into waiting for the destination.
    fn mirrored(&self) -> f64 {
        let (waited, took) = self.mirrored;
        (waited / took.max(1.0)).min(1.0)
    }

    fn learn(&mut self, pair: &Pair) {
        self.pairs = self.pairs.saturating_add(1);
        self.since = 0;
        let part = SMOOTHING.max(1.0 / f64::from(self.pairs));
        let copying = self.time(pair);
        let jump = (pair.iops / self.iops.max(1.0) - 1.0).abs();
        if self.pairs > 1 && jump > JUMP.max(4.0 * self.price.noise()) {
            // Another load, or another device: the prices may be others, too.
            self.price.doubt();
            self.slowing.doubt();
            self.chunks.doubt();
            self.iops = pair.iops;
        }
        self.iops += part.max(RECENT) * (pair.iops - self.iops);
        self.loss += part * (pair.loss * copying - self.loss);
        self.price.learn(pair.rate, pair.loss, HURT_MIN / self.rate);
        self.chunks.learn(pair.rate, pair.loss, self.price.noise());
        let slower = (pair.growth - 1.0) / (GROWTH_MAX - 1.0);
        self.slowing.learn(pair.rate, slower, 1.0 / self.rate);
        let overspent = (self.loss - AIM * self.budget).max(0.0);
        let aim =
            (AIM * self.budget - overspent - self.mirrored()).max(AIM_MIN * self.budget);
        self.turn(pair, aim);
        let hopeless = aim < self.price.value() * LEAST;
        self.hopeless = if hopeless { self.hopeless + 1 } else { 0 };
        if self.hopeless > PATIENCE {
            self.given_up = Some(AGAIN);
        }
    }

    /// The part of the time that turns like this one have.
    fn time(&self, pair: &Pair) -> f64 {
        let on = self.part() * pair.stretch;
        on / (on + 1.0 - self.part())
    }

    /// How fast the next turns are, and how much of the time they have, to lose so much
    /// of the guest's IO/s.
    fn turn(&mut self, pair: &Pair, aim: f64) {
        let price = self.price.value() + CAUTION * self.price.error();
        let price = price.max(f64::MIN_POSITIVE);
        let hurt = (HURT * self.price.noise()).clamp(HURT_MIN, HURT_MAX).max(aim);
        let slowed = AIM / self.slowing.value().max(f64::MIN_POSITIVE);
        // Turns of a copier that does what it can hurt no more for a higher rate.
        let sated = pair.rate < SATED * self.rate;
        let used = if sated { PROBE } else { UP } * pair.rate;
        let up = (self.rate * UP).min(used.max(START));
        let most = slowed.min(up).max(self.rate * DOWN);
        let wanted = (hurt / price).min(most).max(SLOWEST);
        self.turns.set_part((aim / (price * wanted)).min(PART_MAX));
        // Turns are whole windows; the rate makes up for it.
        let exact = aim / (price * self.time(pair));
        self.rate = exact.min(most).clamp(SLOWEST, MOST);
    }
}
