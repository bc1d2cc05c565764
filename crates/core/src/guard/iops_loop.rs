//! The loop that keeps a part of the guest's IO/s.
//!
//! # Rule
//!
//! The part of its IO/s that the guest may lose is a budget. The copy runs in [`Trials`]:
//! a trial is fast enough for the guest to feel it, so the marginal cost is known soon
//! and well, and trials have as much of the time as the budget buys. The [`ModeChoice`]
//! says which copy mode is cheaper; its [`TunedMode`](super::tuned_mode::TunedMode) says
//! how fast a trial is and how often there is one.
//!
//! # Special cases
//!
//! - Mirrored writes cost the guest the same in trials and in the baseline, so no
//!   comparison shows it. [`MirroringCost`] measures that part of the guest's time, and
//!   the loop takes it off the budget.
//! - If the end of a long trial makes a large loss plain, the loop halves the rate at
//!   once, before the comparison is complete.
//!
//! # Failures
//!
//! - If even the least rate costs more than the budget, the promise is out of reach: the
//!   copier works only while the guest is idle, and the loop tries again after a while.
//! - If mirrored writes alone cost more than the budget, only the end of the copy helps:
//!   the copy may then cost as much as they do. So the guest loses at most twice of what
//!   even the fastest copy would take from it; a slow copy would make the mirrored writes
//!   last.

use super::experience::TrialExperience;
use super::mirroring_cost::MirroringCost;
use super::mode_choice::ModeChoice;
use super::trials::{Comparison, Trials};
use super::tuned_mode::AIM;
use super::{GuardStatus, LEAST, Observation, Unreachable};
use crate::mirror::CopyMode;

/// A smaller part of the guest's IO/s cannot be told from nothing.
const BUDGET_MIN: f64 = 0.001;

/// At least this part of the budget is aimed at, however little is known.
const AIM_MIN: f64 = 0.3;

/// Whatever mirrored writes cost, the guest keeps half of the rest.
const AIM_MAX: f64 = 0.5;

/// The part of the time for the first trials: so often that they teach quickly.
pub(super) const DUTY_FIRST: f64 = 0.25;

/// Comparisons before anything is said.
const LEARNING: u32 = 5;

/// Comparisons in which the least rate costs too much before the target is given up.
const TOO_COSTLY: u32 = 5;

/// Windows until it is tried again: 30 s.
const AGAIN: u32 = 300;

/// Samples without a comparison after which nothing is known any more: two minutes at
/// the guest's own work.
const STALE: u32 = 1200;

/// The part of a new sample in what mirrored writes cost: half a minute counts.
const MIRRORED: f64 = 1.0 / 300.0;

/// Samples in a row with something copied after which there are none without: longer
/// than any trial, of a slow guest, too.
const NEVER_WITHOUT: u32 = 200;

/// The part of a new comparison in what was lost so far: a minute counts.
const SMOOTHING: f64 = 1.0 / 60.0;

/// The part of a new comparison in the guest's IO/s.
const RECENT: f64 = 0.3;

/// IO/s that have changed by this part since are another load.
const JUMP: f64 = 0.25;

/// A loop that keeps a part of the guest's IO/s.
#[derive(Debug)]
pub(super) struct IopsLoop {
    /// The part of its IO/s that the guest may lose.
    budget: f64,
    trials: Trials,
    modes: ModeChoice,
    comparisons: u32,
    /// Busy samples since the last comparison.
    since: u32,
    /// The guest's IO/s without the copy, smoothed.
    iops: f64,
    /// What the copy costs it, smoothed.
    loss: f64,
    mirroring: MirroringCost,
    /// Samples since the last in which nothing was copied.
    copied_for: u32,
    /// It began with what an earlier guard had found out.
    experienced: bool,
    /// Comparisons in a row that left no rate.
    hopeless: u32,
    /// Windows until a target that was given up is tried again.
    given_up: Option<u32>,
}

impl IopsLoop {
    /// A loop that lets the guest lose this part of its IO/s, 0 or more and below 1.
    /// Either the loop chooses the copier's mode, too, or the copier has its own.
    pub(super) fn new(budget: f64, chooses_mode: bool) -> Self {
        let budget = budget.max(BUDGET_MIN);
        IopsLoop {
            budget,
            trials: Trials::new(DUTY_FIRST),
            modes: if chooses_mode {
                ModeChoice::new(budget)
            } else {
                ModeChoice::one(budget)
            },
            comparisons: 0,
            since: 0,
            iops: 0.0,
            loss: 0.0,
            mirroring: MirroringCost::default(),
            copied_for: 0,
            experienced: false,
            hopeless: 0,
            given_up: None,
        }
    }

    /// The same loop, beginning where that of an earlier guard has ended. What has cost
    /// too much there is no beginning.
    pub(super) fn like(mut self, known: &TrialExperience) -> Self {
        let pays = known.marginal_cost * LEAST <= self.budget;
        if pays && self.modes.begin_like(known) {
            self.iops = known.iops;
            self.experienced = true;
            self.modes.now().begin(AIM * self.budget, &mut self.trials);
        }
        self
    }

    /// Whether it began so.
    pub(super) fn is_experienced(&self) -> bool {
        self.experienced
    }

    /// What it has found out, if that is enough for a later one to begin with.
    pub(super) fn learned(&self) -> Option<TrialExperience> {
        let knows = self.comparisons >= LEARNING && self.given_up.is_none();
        knows.then(|| self.modes.now().experience(self.iops))
    }

    /// The same loop before it has seen anything.
    fn anew(&self) -> Self {
        IopsLoop::new(self.budget, self.modes.compares())
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
        self.look_at_mirroring(seen);
        let compared = self.trials.look(seen, self.modes.at());
        self.since += u32::from(seen.is_busy());
        if self.since > STALE {
            *self = self.anew();
        }
        if let Some(loss) = self.trials.early_loss() {
            // So much more than the noise that it cannot wait.
            let meant = self.budget.max(self.aim());
            let plain = (3.0 * meant).max(4.0 * self.modes.now().cost.noise());
            if loss > plain {
                self.modes.now_mut().slow_down();
            }
        }
        if let Some(compared) = compared {
            self.learn(&compared);
        }
        if self.trials.begins_trial() {
            self.modes.switch();
        }
        if self.trials.next_is_baseline() { 0 } else { self.modes.now().rate as u64 }
    }

    /// What was seen says nothing of what comes.
    pub(super) fn interrupt(&mut self) {
        self.trials.interrupt();
        self.mirroring.interrupt();
    }

    /// The busy rate over trials and baselines, bytes per second.
    pub(super) fn rate(&self) -> u64 {
        if self.given_up.is_some() {
            0
        } else {
            (self.modes.now().rate * self.duty_cycle()) as u64
        }
    }

    /// The part of the time that belongs to trials.
    pub(super) fn duty_cycle(&self) -> f64 {
        self.trials.duty_cycle()
    }

    /// The copy mode of a trial.
    pub(super) fn mode(&self) -> CopyMode {
        self.modes.now().mode
    }

    /// Whether the promise is kept.
    pub(super) fn status(&self) -> GuardStatus {
        if self.given_up.is_some() {
            return GuardStatus::Unreachable(Unreachable::CopyCosts {
                rate: LEAST as u64,
                loss: self.modes.now().cost.value() * LEAST,
            });
        }
        let mirrored = self.mirroring.part();
        match self.comparisons {
            0..LEARNING => GuardStatus::Learning,
            _ if mirrored > self.budget => {
                GuardStatus::Unreachable(Unreachable::MirrorCosts { loss: mirrored })
            }
            _ if self.loss + mirrored <= self.budget => GuardStatus::Holding,
            _ => GuardStatus::Converging,
        }
    }

    /// The guest's IO/s without the copy, and the part of it that it has, if known.
    pub(super) fn kept(&self) -> Option<(f64, f64)> {
        let kept = 1.0 - self.loss - self.mirroring.part();
        (self.comparisons > 0).then(|| (self.iops, kept.clamp(0.0, 1.0)))
    }

    /// The part of the guest's IO/s that copying at a rate would leave, if known.
    pub(super) fn would_keep(&self, rate: f64) -> Option<f64> {
        let known = self.comparisons >= LEARNING;
        known.then(|| (1.0 - self.modes.now().cost.value() * rate).clamp(0.0, 1.0))
    }

    /// The marginal cost of the copy already includes the waiting that the copy causes,
    /// so the mirroring cost is sampled only while nothing is copied, as long as there
    /// are such samples.
    fn look_at_mirroring(&mut self, seen: &Observation<'_>) {
        self.copied_for =
            if seen.copied > 0 { self.copied_for.saturating_add(1) } else { 0 };
        if (1..NEVER_WITHOUT).contains(&self.copied_for) {
            return;
        }
        self.mirroring.look(seen, MIRRORED);
        self.mirroring.compare(seen);
    }

    /// The part of its IO/s that the guest may lose to the copy.
    fn aim(&self) -> f64 {
        let mirrored = self.mirroring.part();
        if mirrored > self.budget {
            return mirrored.min(AIM_MAX);
        }
        let overspent = (self.loss - AIM * self.budget).max(0.0);
        (AIM * self.budget - overspent - mirrored).max(AIM_MIN * self.budget)
    }

    fn learn(&mut self, compared: &Comparison) {
        self.comparisons = self.comparisons.saturating_add(1);
        self.since = 0;
        let part = SMOOTHING.max(1.0 / f64::from(self.comparisons));
        let copying = self.trials.time_share(compared.stretch);
        let jump = (compared.iops / self.iops.max(1.0) - 1.0).abs();
        let known = self.comparisons > 1 || self.experienced;
        if known && jump > JUMP.max(4.0 * self.modes.now().cost.noise()) {
            // Another load, or another device: the marginal costs may be others, too.
            self.modes.distrust();
            self.iops = compared.iops;
        }
        self.iops += part.max(RECENT) * (compared.iops - self.iops);
        self.loss += part * (compared.loss * copying - self.loss);
        self.modes.learn(compared);
        let aim = self.aim();
        self.modes.next_mut().tune(aim, &mut self.trials);
        let hopeless = self.budget.max(aim) < self.modes.now().cost.value() * LEAST;
        self.hopeless = if hopeless { self.hopeless + 1 } else { 0 };
        if self.hopeless >= TOO_COSTLY {
            self.given_up = Some(AGAIN);
        }
    }
}
