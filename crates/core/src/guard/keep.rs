//! The loop that keeps the guest's IO/s.
//!
//! The part of its IO/s that the guest may lose is a budget. Copying goes in [`Turns`]:
//! in a turn it is fast enough to be felt, and so the price of a byte per second is
//! known soon and well; and it has so much of the time as the budget buys. How fast a
//! turn is and how often there is one, its [`Gear`](super::gear::Gear) says; which of the
//! [`Gears`] it is, the price does, too.
//!
//! # Special cases
//!
//! - What mirrored writes cost is there whatever is copied, and so it does not show in a
//!   comparison. The mirror knows how long writes waited for the destination alone, and
//!   a log shows how much slower the source is for them; that part of the guest's time is
//!   taken off the budget.
//! - A loss that a pause makes plain is acted on at the end of the pause, before the
//!   comparison is complete.
//!
//! # Failures
//!
//! If even the least rate costs more than the budget, the target is out of reach, and
//! the copy goes on only while the guest is gone. It is tried again after a while. If
//! mirrored writes alone cost more, only the end of the copy helps: it may then cost as
//! much as they do. So the guest loses at most twice of what even the fastest copy would
//! take from it, all in all; going slowly would make the mirrored writes last.

use super::experience::Turned;
use super::gear::AIM;
use super::gears::Gears;
use super::mirrored::Mirrored;
use super::turns::{Pair, Turns};
use super::{LEAST, Observation, Standing, Unreachable};
use crate::mirror::Manner;

/// A smaller part of the guest's IO/s cannot be told from nothing.
const BUDGET_MIN: f64 = 0.001;

/// At least this part of the budget is aimed at, however little is known.
const AIM_MIN: f64 = 0.3;

/// Whatever mirrored writes cost, the guest keeps half of the rest.
const AIM_MAX: f64 = 0.5;

/// The part of the time for the first turns: so often that they teach quickly.
pub(super) const PART_FIRST: f64 = 0.25;

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

/// Samples in a row with something copied after which there are none without: longer
/// than any turn, of a slow guest, too.
const NEVER_WITHOUT: u32 = 200;

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
    turns: Turns,
    gears: Gears,
    pairs: u32,
    /// Busy samples since the last comparison.
    since: u32,
    /// The guest's IO/s without the copy, smoothed.
    iops: f64,
    /// What the copy costs it, smoothed.
    loss: f64,
    mirrored: Mirrored,
    /// Samples since the last in which nothing was copied.
    copied_for: u32,
    /// It began with what an earlier guard had found out.
    experienced: bool,
    /// Comparisons in a row that left no rate.
    hopeless: u32,
    /// Windows until a target that was given up is tried again.
    given_up: Option<u32>,
}

impl Keep {
    /// A loop that lets the guest lose this part of its IO/s, 0 or more and below 1.
    /// Either it says in what manner the copier goes, too, or that has its own.
    pub(super) fn new(budget: f64, manners: bool) -> Self {
        let budget = budget.max(BUDGET_MIN);
        Keep {
            budget,
            turns: Turns::new(PART_FIRST),
            gears: if manners { Gears::new(budget) } else { Gears::one(budget) },
            pairs: 0,
            since: 0,
            iops: 0.0,
            loss: 0.0,
            mirrored: Mirrored::default(),
            copied_for: 0,
            experienced: false,
            hopeless: 0,
            given_up: None,
        }
    }

    /// The same loop, beginning where that of an earlier guard has ended. What has cost too
    /// much there is no beginning.
    pub(super) fn like(mut self, known: &Turned) -> Self {
        let pays = known.price * LEAST <= self.budget;
        if pays && self.gears.begin_like(known) {
            self.iops = known.iops;
            self.experienced = true;
            self.gears.now().begin(AIM * self.budget, &mut self.turns);
        }
        self
    }

    /// Whether it began so.
    pub(super) fn is_experienced(&self) -> bool {
        self.experienced
    }

    /// What it has found out, if that is enough for a later one to begin with.
    pub(super) fn turned(&self) -> Option<Turned> {
        let knows = self.pairs >= LEARNING && self.given_up.is_none();
        knows.then(|| self.gears.now().turned(self.iops))
    }

    /// The same loop before it has seen anything.
    fn anew(&self) -> Self {
        Keep::new(self.budget, self.gears.compares())
    }

    /// Looks at a window; gives the busy rate for the next, bytes per second.
    pub(super) fn step(&mut self, seen: &Observation<'_>) -> u64 {
        if let Some(left) = self.given_up {
            if left > 0 {
                self.given_up = Some(left - u32::from(seen.is_busy()));
                return 0;
            }
            *self = self.anew();
        }
        self.look_at_mirror(seen);
        let pair = self.turns.look(seen, self.gears.at());
        self.since += u32::from(seen.is_busy());
        if self.since > STALE {
            *self = self.anew();
        }
        if let Some(loss) = self.turns.glimpse() {
            // So much more than the noise that it cannot wait.
            let meant = self.budget.max(self.aim());
            let plain = (3.0 * meant).max(4.0 * self.gears.now().price.noise());
            if loss > plain {
                self.gears.now_mut().slow_down();
            }
        }
        if let Some(pair) = pair {
            self.learn(&pair);
        }
        if self.turns.begins() {
            self.gears.shift();
        }
        if self.turns.pauses() { 0 } else { self.gears.now().rate as u64 }
    }

    /// What was seen says nothing of what comes.
    pub(super) fn interrupt(&mut self) {
        self.turns.interrupt();
        self.mirrored.interrupt();
    }

    /// The busy rate over turns and pauses, bytes per second.
    pub(super) fn rate(&self) -> u64 {
        if self.given_up.is_some() {
            0
        } else {
            (self.gears.now().rate * self.part()) as u64
        }
    }

    /// The part of the time that belongs to turns.
    pub(super) fn part(&self) -> f64 {
        self.turns.part()
    }

    /// How the copier goes in a turn.
    pub(super) fn manner(&self) -> Manner {
        self.gears.now().manner
    }

    /// How it stands.
    pub(super) fn standing(&self) -> Standing {
        if self.given_up.is_some() {
            return Standing::Unreachable(Unreachable::CopyCosts {
                rate: LEAST as u64,
                loss: self.gears.now().price.value() * LEAST,
            });
        }
        let mirrored = self.mirrored.part();
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
        let kept = 1.0 - self.loss - self.mirrored.part();
        (self.pairs > 0).then(|| (self.iops, kept.clamp(0.0, 1.0)))
    }

    /// The part of the guest's IO/s that copying at a rate would leave, if known.
    pub(super) fn would_keep(&self, rate: f64) -> Option<f64> {
        let known = self.pairs >= LEARNING;
        known.then(|| (1.0 - self.gears.now().price.value() * rate).clamp(0.0, 1.0))
    }

    /// What the copy makes mirrored writes wait is in the price of the copy, so it is
    /// looked at them without it, as long as there are such samples.
    fn look_at_mirror(&mut self, seen: &Observation<'_>) {
        self.copied_for =
            if seen.copied > 0 { self.copied_for.saturating_add(1) } else { 0 };
        if (1..NEVER_WITHOUT).contains(&self.copied_for) {
            return;
        }
        self.mirrored.look(seen, MIRRORED);
        self.mirrored.compare(seen);
    }

    /// The part of its IO/s that the guest may lose to the copy.
    fn aim(&self) -> f64 {
        let mirrored = self.mirrored.part();
        if mirrored > self.budget {
            return mirrored.min(AIM_MAX);
        }
        let overspent = (self.loss - AIM * self.budget).max(0.0);
        (AIM * self.budget - overspent - mirrored).max(AIM_MIN * self.budget)
    }

    fn learn(&mut self, pair: &Pair) {
        self.pairs = self.pairs.saturating_add(1);
        self.since = 0;
        let part = SMOOTHING.max(1.0 / f64::from(self.pairs));
        let copying = self.turns.time(pair.stretch);
        let jump = (pair.iops / self.iops.max(1.0) - 1.0).abs();
        let known = self.pairs > 1 || self.experienced;
        if known && jump > JUMP.max(4.0 * self.gears.now().price.noise()) {
            // Another load, or another device: the prices may be others, too.
            self.gears.doubt();
            self.iops = pair.iops;
        }
        self.iops += part.max(RECENT) * (pair.iops - self.iops);
        self.loss += part * (pair.loss * copying - self.loss);
        self.gears.learn(pair);
        let aim = self.aim();
        self.gears.next_mut().turn(aim, &mut self.turns);
        let hopeless = self.budget.max(aim) < self.gears.now().price.value() * LEAST;
        self.hopeless = if hopeless { self.hopeless + 1 } else { 0 };
        if self.hopeless >= PATIENCE {
            self.given_up = Some(AGAIN);
        }
    }
}
