//! What guards have found out, as the state keeps it: where the guard of the next move
//! beside an application like that one begins.

use serde::{Deserialize, Serialize};
use sterna_core::Nanos;
use sterna_core::guard::{Experience, LatencyExperience, TrialExperience};
use sterna_core::mirror::CopyMode;

/// An [`Experience`] in the state database's form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<LearnedTurns>,
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<LearnedWithin>,
}

/// A [`TrialExperience`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct LearnedTurns {
    manner: LearnedManner,
    rate: f64,
    price: f64,
    slowing: f64,
    noise: f64,
    iops: f64,
}

/// A [`LatencyExperience`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct LearnedWithin {
    rate: f64,
    bound_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LearnedManner {
    Even,
    Short,
    AtOnce,
}

impl From<CopyMode> for LearnedManner {
    fn from(mode: CopyMode) -> Self {
        match mode {
            CopyMode::Even => LearnedManner::Even,
            CopyMode::ShortChunks => LearnedManner::Short,
            CopyMode::Burst => LearnedManner::AtOnce,
        }
    }
}

impl From<LearnedManner> for CopyMode {
    fn from(manner: LearnedManner) -> Self {
        match manner {
            LearnedManner::Even => CopyMode::Even,
            LearnedManner::Short => CopyMode::ShortChunks,
            LearnedManner::AtOnce => CopyMode::Burst,
        }
    }
}

impl From<Experience> for Learned {
    fn from(experience: Experience) -> Self {
        let turns = experience.trials.map(|it| {
            let TrialExperience { mode, rate, marginal_cost, slowing, noise, iops } = it;
            let (manner, price) = (mode.into(), marginal_cost);
            LearnedTurns { manner, rate, price, slowing, noise, iops }
        });
        let within = experience
            .latency
            .map(|it| LearnedWithin { rate: it.rate, bound_ns: it.bound.0 });
        Learned { turns, within }
    }
}

impl From<Learned> for Experience {
    fn from(learned: Learned) -> Self {
        let trials = learned.turns.map(|it| {
            let LearnedTurns { manner, rate, price, slowing, noise, iops } = it;
            let (mode, marginal_cost) = (manner.into(), price);
            TrialExperience { mode, rate, marginal_cost, slowing, noise, iops }
        });
        let latency = learned
            .within
            .map(|it| LatencyExperience { rate: it.rate, bound: Nanos(it.bound_ns) });
        Experience { trials, latency }
    }
}
