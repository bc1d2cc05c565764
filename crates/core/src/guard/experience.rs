//! What a guard has found out, for the guard of a later move beside an application like
//! that one.
//!
//! **Rule.** An experience is a guess: it says where the next guard begins, and never
//! what is so. That guard takes the marginal cost of copying for as uncertain as it is
//! high, so that its first comparisons outweigh it; it begins at half of the pace, for as
//! much of the time as the promise leaves at a marginal cost that is so uncertain; and it
//! says that it is learning until it has compared for itself. What was held under one
//! bound on response times is no beginning under a lower one. A guard that has given up,
//! or has seen too little, has no experience.
//!
//! What was at once too much is found out as without it: in the first trials, of a tenth
//! of a second each. So a wrong experience costs little, and a right one saves the
//! search.

use super::{LEAST, MOST};
use crate::Nanos;
use crate::mirror::CopyMode;

/// A guest whose IO/s have changed by this factor is another.
const NEAR: f64 = 1.5;

/// What a guard has found out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Experience {
    /// Where a part of the guest's IO/s was kept.
    pub trials: Option<TrialExperience>,
    /// Where its response times had a bound.
    pub latency: Option<LatencyExperience>,
}

/// What trials beside a guest have shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialExperience {
    /// The copy mode.
    pub mode: CopyMode,
    /// Bytes per second in a trial.
    pub rate: f64,
    /// The part of the guest's IO/s that a byte per second of copying cost.
    pub marginal_cost: f64,
    /// What that cost in response time: 1 where it was twice as long.
    pub slowing: f64,
    /// What a comparison varied by itself, as a part of the guest's IO/s.
    pub noise: f64,
    /// The guest's IO/s without the copy.
    pub iops: f64,
}

/// Beside which copy response times stayed within a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyExperience {
    /// Bytes per second.
    pub rate: f64,
    /// The bound on the 99th percentile.
    pub bound: Nanos,
}

impl Experience {
    /// Whether there is nothing in it.
    pub fn is_none(&self) -> bool {
        self.trials.is_none() && self.latency.is_none()
    }

    /// Without what cannot be: it may come from a database that somebody has edited.
    pub fn sound(self) -> Experience {
        let is_rate = |rate: f64| (LEAST..=MOST).contains(&rate);
        Experience {
            trials: self.trials.filter(|it| is_rate(it.rate) && it.is_sound()),
            latency: self.latency.filter(|it| is_rate(it.rate) && it.bound > Nanos(0)),
        }
    }

    /// Without what is of a guest that did so many requests a second, where that is far
    /// from what its guard had seen: the one who comes next is known by these.
    pub fn beside(self, iops: f64) -> Experience {
        let is_near = |it: &TrialExperience| {
            let (low, high) = (it.iops.min(iops), it.iops.max(iops));
            high <= low * NEAR
        };
        if self.trials.as_ref().is_none_or(is_near) {
            self
        } else {
            Experience::default()
        }
    }
}

impl TrialExperience {
    fn is_sound(&self) -> bool {
        let TrialExperience { mode: _, rate: _, marginal_cost, slowing, noise, iops } =
            *self;
        let is_part = |value: f64| (0.0..=1.0).contains(&value);
        [marginal_cost, slowing].into_iter().all(|it| is_part(it * LEAST))
            && is_part(noise)
            && iops.is_finite()
            && iops >= 0.0
    }
}
