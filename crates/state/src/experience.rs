//! What guards have found out, as the state keeps it: where the guard of the next move
//! beside an application like that one begins.

use serde::{Deserialize, Serialize};
use sterna_core::Nanos;
use sterna_core::guard::{Experience, Turned, Within};
use sterna_core::mirror::Manner;

/// An [`Experience`] in the state database's form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<LearnedTurns>,
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<LearnedWithin>,
}

/// A [`Turned`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct LearnedTurns {
    manner: LearnedManner,
    rate: f64,
    price: f64,
    slowing: f64,
    noise: f64,
    iops: f64,
}

/// A [`Within`].
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

impl From<Manner> for LearnedManner {
    fn from(manner: Manner) -> Self {
        match manner {
            Manner::Even => LearnedManner::Even,
            Manner::Short => LearnedManner::Short,
            Manner::AtOnce => LearnedManner::AtOnce,
        }
    }
}

impl From<LearnedManner> for Manner {
    fn from(manner: LearnedManner) -> Self {
        match manner {
            LearnedManner::Even => Manner::Even,
            LearnedManner::Short => Manner::Short,
            LearnedManner::AtOnce => Manner::AtOnce,
        }
    }
}

impl From<Experience> for Learned {
    fn from(experience: Experience) -> Self {
        let turns = experience.turns.map(|it| {
            let Turned { manner, rate, price, slowing, noise, iops } = it;
            LearnedTurns { manner: manner.into(), rate, price, slowing, noise, iops }
        });
        let within = experience
            .within
            .map(|it| LearnedWithin { rate: it.rate, bound_ns: it.bound.0 });
        Learned { turns, within }
    }
}

impl From<Learned> for Experience {
    fn from(learned: Learned) -> Self {
        let turns = learned.turns.map(|it| {
            let LearnedTurns { manner, rate, price, slowing, noise, iops } = it;
            Turned { manner: manner.into(), rate, price, slowing, noise, iops }
        });
        let within =
            learned.within.map(|it| Within { rate: it.rate, bound: Nanos(it.bound_ns) });
        Experience { turns, within }
    }
}
