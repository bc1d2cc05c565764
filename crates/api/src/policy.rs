//! Policies: what is asked for a class, and when.

use std::fmt;

use serde::{Deserialize, Serialize};
use sterna_core::qos::policy::{self, Tolerance};
use utoipa::ToSchema;

use crate::{Goal, NotAboveZero, Rate};

/// The aim of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Aim {
    /// No more than the goal; of a response time: on average no less.
    Limit {
        /// The limit.
        goal: Goal,
    },
    /// The goal, within a tolerance, held by slowing the other classes.
    Cruise {
        /// The target.
        goal: Goal,
        /// How far from it is still well, in percent of it, 1 to 50.
        tolerance_percent: u8,
        /// What the class has in any case: a reservation while the policy holds.
        #[serde(default)]
        floor: Option<Rate>,
        /// What happens to the other classes if the target cannot be reached.
        #[serde(default)]
        fallback: Fallback,
    },
    /// So many requests at the device at most.
    QueueDepth {
        /// The depth, 1 to 65535.
        depth: u32,
    },
}

/// What happens to the other classes if a target cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// They stay as slow as they are.
    #[default]
    None,
    /// Each is held to this limit.
    Limit(Goal),
    /// Sterna releases them.
    Release,
}

/// Why an aim cannot be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAim {
    /// A goal is zero.
    #[error(transparent)]
    Zero(#[from] NotAboveZero),
    /// The tolerance is out of range.
    #[error(
        "a tolerance of {0} % is none: it is {min} to {max} %",
        min = Tolerance::MIN,
        max = Tolerance::MAX
    )]
    Tolerance(u8),
}

impl From<policy::Aim> for Aim {
    fn from(aim: policy::Aim) -> Aim {
        match aim {
            policy::Aim::Limit(goal) => Aim::Limit { goal: goal.into() },
            policy::Aim::Cruise(cruise) => Aim::Cruise {
                goal: cruise.target.into(),
                tolerance_percent: cruise.tolerance.percent(),
                floor: cruise.floor.map(Rate::from),
                fallback: cruise.fallback.into(),
            },
            policy::Aim::Depth(depth) => Aim::QueueDepth { depth },
        }
    }
}

impl From<policy::Fallback> for Fallback {
    fn from(fallback: policy::Fallback) -> Fallback {
        match fallback {
            policy::Fallback::None => Fallback::None,
            policy::Fallback::Limit(goal) => Fallback::Limit(goal.into()),
            policy::Fallback::Release => Fallback::Release,
        }
    }
}

impl TryFrom<Aim> for policy::Aim {
    type Error = BadAim;

    fn try_from(aim: Aim) -> Result<policy::Aim, BadAim> {
        Ok(match aim {
            Aim::Limit { goal } => policy::Aim::Limit(goal.try_into()?),
            Aim::Cruise { goal, tolerance_percent: percent, floor, fallback } => {
                let tolerance = Tolerance::new(percent);
                policy::Aim::Cruise(policy::Cruise {
                    target: goal.try_into()?,
                    tolerance: tolerance.ok_or(BadAim::Tolerance(percent))?,
                    floor: floor.map(TryInto::try_into).transpose()?,
                    fallback: match fallback {
                        Fallback::None => policy::Fallback::None,
                        Fallback::Limit(goal) => {
                            policy::Fallback::Limit(goal.try_into()?)
                        }
                        Fallback::Release => policy::Fallback::Release,
                    },
                })
            }
            Aim::QueueDepth { depth } => policy::Aim::Depth(depth),
        })
    }
}

/// Whether a policy counts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The policy is in force.
    Binds,
    /// The policy holds, but a tighter policy is in force.
    Looser,
    /// Its schedule is closed.
    Closed,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Standing::Binds => "binds",
            Standing::Looser => "looser",
            Standing::Closed => "closed",
        })
    }
}

/// The state of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CruisePhase {
    /// Not checked yet, or the policy's schedule is closed.
    NotStarted,
    /// It is on the way.
    Converging,
    /// It is held.
    Holding,
    /// The target is out of reach.
    Unreachable,
}

impl fmt::Display for CruisePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CruisePhase::NotStarted => "not started",
            CruisePhase::Converging => "converging",
            CruisePhase::Holding => "holding",
            CruisePhase::Unreachable => "unreachable",
        })
    }
}

/// The state of a target, since when and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CruiseState {
    /// What.
    pub phase: CruisePhase,
    /// Since when (seconds since 1970); absent before it started.
    pub since: Option<u64>,
    /// Why the target is out of reach.
    pub reason: Option<String>,
    /// The limits of the other classes because of that.
    pub fallback: Option<Fallback>,
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Policy {
    /// Its number.
    pub id: u64,
    /// Its class.
    pub class: String,
    /// Its aim.
    pub aim: Aim,
    /// When it holds, in the daemon's local time (`Mon-Fri 22:00-06:00`); always
    /// without one.
    pub schedule: Option<String>,
    /// The migration with which it ends.
    pub until_job: Option<u64>,
    /// When it was made (seconds since 1970).
    pub created: u64,
    /// Whether it counts now.
    pub standing: Standing,
    /// The tighter policy, if there is one.
    pub looser_than: Option<u64>,
    /// Since when its schedule is open or closed (seconds since 1970).
    pub since: u64,
    /// When its schedule opens or closes next (seconds since 1970).
    pub until: Option<u64>,
    /// The state of its target, if it has one.
    pub cruise: Option<CruiseState>,
}

/// Asks for a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePolicy {
    /// Its class.
    pub class: String,
    /// Its aim.
    pub aim: Aim,
    /// When it holds, in the daemon's local time (`Mon-Fri 22:00-06:00`); always
    /// without one.
    #[serde(default)]
    pub schedule: Option<String>,
    /// Remove it when this migration has ended.
    #[serde(default)]
    pub until_job: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aims_are_told_apart_by_their_kind() {
        let wire = r#"{"kind":"cruise","goal":{"iops":1000},"tolerance_percent":10}"#;
        let aim: Aim = serde_json::from_str(wire).unwrap();
        let expected = Aim::Cruise {
            goal: Goal::Iops(1000),
            tolerance_percent: 10,
            floor: None,
            fallback: Fallback::None,
        };
        assert_eq!(aim, expected);
        let wire = r#"{"kind":"limit","goal":{"iops":1000},"tolerance_percent":10}"#;
        assert!(serde_json::from_str::<Aim>(wire).is_err());
    }
}
