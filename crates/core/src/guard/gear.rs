//! One manner of copying beside a guest: what it costs, and how fast a turn of it is.
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
//! # Special cases
//!
//! - Where copying as fast as it can is hardly felt, it has more of the time,
//!   in the end nearly all of it; where a turn every two seconds is too much, the
//!   turns become slower.
//! - A guest whose requests come when they come (open loop) keeps its IO/s until the
//!   device is full, and then loses all at once. What tells before is its latency: in
//!   a turn, response times are no more than [`GROWTH_MAX`] times as long.
//! - Behind the knee of a device's curve all is lost at once, and no price tells where that
//!   is. So a gear that begins with an experience goes beyond the rate that was found good
//!   only slowly.
//! - A copier that does not use its rate says nothing about a higher one; the rate
//!   stays within a step of what is used.

use super::experience::Turned;
use super::keep::PART_FIRST;
use super::price::Price;
use super::turns::{Pair, Turns};
use super::{MOST, START};
use crate::mirror::Manner;

/// The slowest turn: a short chunk or two in a sample.
const SLOWEST: f64 = (1 << 20) as f64;

/// The part of the budget that is aimed at: what remains is for what comes between
/// two comparisons, and for what shows in none of them, as the processors' time.
pub(super) const AIM: f64 = 0.85;

/// What is aimed at is less by so many errors of the price: an error makes a rate that
/// is too high more often than it makes one too low by as much.
const CAUTION: f64 = 0.75;

/// The part of its IO/s that the guest loses in a turn, in times of what a comparison
/// varies by itself: so a turn tells the price within an eighth.
const HURT: f64 = 8.0;

/// At least: below it turns only become longer.
const HURT_MIN: f64 = 0.1;

/// At most: what a cache or a neighbour does to a guest now and then.
const HURT_MAX: f64 = 0.4;

/// A step goes no further up than this factor: six of them lead from the first turn to
/// all that a disk can do, and a price that was far too low costs a tenth of a second.
pub(super) const UP: f64 = 3.0;

/// A step goes no further down.
const DOWN: f64 = 0.5;

/// A copier that uses less than this part of its rate does what it can.
const SATED: f64 = 0.9;

/// The rate of such a copier, in times of what it uses: should it come to do more, that
/// shows.
const PROBE: f64 = 1.2;

/// Response times in a turn, in times of those without the copy. At twice the time, a
/// device is halfway to the knee of its curve: 1 / (1 - load).
pub(super) const GROWTH_MAX: f64 = 2.0;

/// The part of a new turn in the pace of many.
const PACE: f64 = 0.2;

/// A gear like one that is known begins with this part of its rate.
const BEGIN: f64 = 0.5;

/// Each comparison lets it go beyond that rate by so much: to ten times of it in half a
/// minute, should it have been far too low.
const BEYOND: f64 = 1.1;

/// The part of the time at most: what is left is for pauses to compare with.
pub(super) const PART_MAX: f64 = 0.9;

/// A manner, its price and its rate.
#[derive(Debug)]
pub(super) struct Gear {
    pub(super) manner: Manner,
    /// The rate in a turn, bytes per second.
    pub(super) rate: f64,
    /// What a byte per second costs in IO/s.
    pub(super) price: Price,
    /// What it costs in response time: 1 where that is twice as long.
    slowing: Price,
    /// The last turn's bytes per second.
    used: f64,
    /// The same of many turns.
    pace: f64,
    /// Whether that was less than it was allowed: the copier does what it can.
    sated: bool,
    /// It goes no faster for now.
    most: f64,
    /// How much longer a window of the last turn was than one of a pause.
    stretch: f64,
}

impl Gear {
    pub(super) fn new(manner: Manner) -> Self {
        Gear {
            manner,
            rate: START,
            price: Price::new(0.5 / START),
            slowing: Price::new(0.5 / START),
            used: START,
            pace: START,
            sated: false,
            most: MOST,
            stretch: 1.0,
        }
    }

    /// The same manner beside a guest like one beside which it was so.
    pub(super) fn like(known: &Turned) -> Self {
        let new = Gear::new(known.manner);
        let rate = (BEGIN * known.rate).min(new.top()).max(SLOWEST);
        let guessed = |value, scale| Price::guessed(value, known.noise, scale);
        Gear {
            rate,
            price: guessed(known.price, HURT_MIN / rate),
            slowing: guessed(known.slowing, 1.0 / rate),
            used: rate,
            most: known.rate,
            pace: known.rate,
            ..new
        }
    }

    /// What turns have shown, of a guest with so many IO/s.
    pub(super) fn turned(&self, iops: f64) -> Turned {
        Turned {
            manner: self.manner,
            rate: self.pace,
            price: self.price.value(),
            slowing: self.slowing.value(),
            noise: self.price.noise(),
            iops,
        }
    }

    /// No turn is faster, bytes per second.
    fn top(&self) -> f64 {
        match self.manner {
            Manner::AtOnce => Manner::AT_ONCE_MAX as f64 / Manner::SAMPLE.as_secs_f64(),
            Manner::Even | Manner::Short => MOST,
        }
    }

    /// The lowest price that is of use where the guest may lose so much: with one below
    /// it, the copy is not faster.
    pub(super) fn least_price(&self, budget: f64) -> f64 {
        let most = if self.sated { self.used } else { self.top() };
        budget / (most.max(1.0) * PART_MAX)
    }

    /// The load or the device is another.
    pub(super) fn doubt(&mut self) {
        self.price.doubt();
        self.slowing.doubt();
    }

    /// A turn cost more than can wait for the comparison to be complete.
    pub(super) fn slow_down(&mut self) {
        self.rate = (self.rate * DOWN).max(SLOWEST);
    }

    pub(super) fn learn(&mut self, pair: &Pair) {
        self.price.learn(pair.rate, pair.loss, HURT_MIN / self.rate);
        let slower = (pair.growth - 1.0) / (GROWTH_MAX - 1.0);
        self.slowing.learn(pair.rate, slower, 1.0 / self.rate);
        self.used = pair.rate;
        self.pace += PACE * (pair.rate - self.pace);
        self.most = (self.most * BEYOND).min(MOST);
        self.sated = pair.rate < SATED * self.rate;
        self.stretch = pair.stretch;
    }

    /// Gives turns at the present rate as much of the time as that is not to cost more, if
    /// the price is as high as it may be.
    pub(super) fn begin(&self, aim: f64, turns: &mut Turns) {
        let price = self.price.value() + self.price.error();
        turns.set_part((aim / (price * self.rate)).min(PART_FIRST));
    }

    /// Sets how fast the next turns are, and how much of the time they have, to lose so
    /// much of the guest's IO/s.
    pub(super) fn turn(&mut self, aim: f64, turns: &mut Turns) {
        let price = self.price.value() + CAUTION * self.price.error();
        let price = price.max(f64::MIN_POSITIVE);
        let hurt = (HURT * self.price.noise()).clamp(HURT_MIN, HURT_MAX).max(aim);
        let slowed = AIM / self.slowing.value().max(f64::MIN_POSITIVE);
        // Turns of a copier that does what it can hurt no more for a higher rate.
        let used = if self.sated { PROBE } else { UP } * self.used;
        let up = (self.rate * UP).min(used.max(START));
        let most = slowed.min(up).max(self.rate * DOWN).min(self.top()).min(self.most);
        let wanted = (hurt / price).min(most).max(SLOWEST);
        turns.set_part((aim / (price * wanted)).min(PART_MAX));
        // Turns are whole windows; the rate makes up for it.
        let exact = aim / (price * turns.time(self.stretch));
        self.rate = exact.min(most).max(SLOWEST);
    }
}
