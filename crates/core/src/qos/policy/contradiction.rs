//! What cannot be had together, said with the numbers.
//!
//! What holds together changes when a policy opens or closes, and what holds together
//! at any time does so at one policy's opening. So a plan is looked at there, and at
//! one moment for what always holds.

use std::fmt;

use super::{Aim, Cruise, DEPTH_MAX, Plan, PolicyId, Resolution, Stands, resolve};
use crate::Nanos;
use crate::qos::goal::Goal;
use crate::qos::pool::SHARES_MAX;
use crate::qos::terms::Rate;
use crate::schedule::{Moment, Weekday};

/// When a contradiction comes up first in a week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All the time: no schedule has to do with it.
    Always,
    /// At this moment.
    At(Moment),
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::Always => Ok(()),
            When::At(moment) => write!(f, " (on {moment})"),
        }
    }
}

/// Why a plan cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// Shares out of range.
    Shares(u32),
    /// A queue depth out of range.
    Depth(u32),
    /// A floor above its own target.
    Floor {
        /// The floor.
        floor: Rate,
        /// The target.
        target: Goal,
    },
    /// A floor and the class's reservation cannot be compared.
    Metrics {
        /// The class's own.
        reservation: Rate,
        /// The policy's.
        floor: Rate,
        /// The policy.
        by: PolicyId,
    },
    /// A class that may not have what it is promised.
    Reservation {
        /// The limit.
        limit: Rate,
        /// Whose it is.
        by: PolicyId,
        /// What is promised.
        reservation: Rate,
        /// When.
        when: When,
    },
    /// So few requests, each so long, are not as many as are promised.
    Slow {
        /// Requests at once.
        depth: u32,
        /// How long each takes at least.
        response: Nanos,
        /// Requests per second that are wanted.
        wanted: u64,
        /// When.
        when: When,
    },
    /// Two cruise controls at once.
    Cruises {
        /// One.
        first: PolicyId,
        /// The other.
        second: PolicyId,
        /// When.
        when: When,
    },
    /// A target that the class's own limit keeps it from.
    Target {
        /// The cruise control.
        by: PolicyId,
        /// What it wants.
        cruise: Cruise,
        /// The end of its tolerance that is nearest to the limit.
        edge: Goal,
        /// The limit.
        limit: Goal,
        /// Whose it is.
        limit_by: PolicyId,
        /// When.
        when: When,
    },
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contradiction::Shares(shares) => {
                write!(f, "a class has 1 to {SHARES_MAX} shares, and not {shares}")
            }
            Contradiction::Depth(depth) => {
                write!(f, "a queue depth is 1 to {DEPTH_MAX}, and not {depth}")
            }
            Contradiction::Floor { floor, target } => {
                write!(f, "the floor of {floor} is above the target of {target}")
            }
            Contradiction::Metrics { reservation, floor, by } => write!(
                f,
                "the class reserves {reservation} and {by} has a floor of {floor}: a \
                 class has one reservation, so both must be MB/s or both IO/s"
            ),
            Contradiction::Reservation { limit, by, reservation, when } => write!(
                f,
                "the limit of {limit} ({by}) is below the reservation of \
                 {reservation}{when}"
            ),
            Contradiction::Slow { depth, response, wanted, when } => write!(
                f,
                "{depth} requests at once that take {response} each come to {} IO/s, \
                 and {wanted} IO/s are wanted{when}",
                per_second(*depth, *response)
            ),
            Contradiction::Cruises { first, second, when } => {
                let always = if *when == When::Always { ", always" } else { "" };
                write!(
                    f,
                    "a class has one cruise control at a time, and {first} and {second} \
                     hold together{always}{when}"
                )
            }
            Contradiction::Target { by, cruise, edge, limit, limit_by, when } => {
                let Cruise { target, tolerance, .. } = cruise;
                let (sign, is) = match target {
                    Goal::Response(_) => ("+", "shorter than the least response time"),
                    _ => ("-", "above the limit"),
                };
                write!(
                    f,
                    "the target of {target} {sign} {tolerance} ({by}) is {edge}, which \
                     is {is} of {limit} ({limit_by}){when}"
                )
            }
        }
    }
}

impl std::error::Error for Contradiction {}

/// Whether everything in a plan can be had together; if not, the first reason.
pub fn check(plan: &Plan) -> Result<(), Contradiction> {
    if !(1..=SHARES_MAX).contains(&plan.shares) {
        return Err(Contradiction::Shares(plan.shares));
    }
    plan.policies.iter().try_for_each(|policy| match policy.aim {
        Aim::Depth(depth) if !(1..=DEPTH_MAX).contains(&depth) => {
            Err(Contradiction::Depth(depth))
        }
        Aim::Cruise(cruise) => check_floor(plan, policy.id, &cruise),
        _ => Ok(()),
    })?;
    // What always holds, first: then nothing is said to be at a moment only.
    let always = Plan {
        policies: plan
            .policies
            .iter()
            .filter(|it| it.schedule.is_none())
            .cloned()
            .collect(),
        ..*plan
    };
    check_at(&resolve(&always, Moment::new(Weekday::Monday, 0)), When::Always)?;
    let schedules = plan.policies.iter().filter_map(|policy| policy.schedule.as_ref());
    let mut moments: Vec<Moment> =
        schedules.flat_map(|schedule| schedule.openings()).collect();
    // In the order of the week: the first moment is the one to be told.
    moments.sort_unstable();
    moments.dedup();
    moments
        .into_iter()
        .map(|moment| (resolve(plan, moment), When::At(moment)))
        .try_for_each(|(now, when)| check_at(&now, when))
}

fn check_floor(plan: &Plan, by: PolicyId, cruise: &Cruise) -> Result<(), Contradiction> {
    let Some(floor) = cruise.floor else { return Ok(()) };
    let target = cruise.target;
    let above = match (floor, target) {
        (Rate::Bytes(floor), Goal::Bytes(target))
        | (Rate::Requests(floor), Goal::Requests(target)) => floor > target,
        _ => false,
    };
    if above {
        return Err(Contradiction::Floor { floor, target });
    }
    match (plan.reservation, floor) {
        (Some(reservation @ Rate::Bytes(_)), Rate::Requests(_))
        | (Some(reservation @ Rate::Requests(_)), Rate::Bytes(_)) => {
            Err(Contradiction::Metrics { reservation, floor, by })
        }
        _ => Ok(()),
    }
}

fn check_at(now: &Resolution<'_>, when: When) -> Result<(), Contradiction> {
    let mut cruises = now.standings.iter().filter(|one| {
        one.stands == Stands::Binds && matches!(one.policy.aim, Aim::Cruise(_))
    });
    if let (Some(first), Some(second)) = (cruises.next(), cruises.next()) {
        let (first, second) = (first.policy.id, second.policy.id);
        return Err(Contradiction::Cruises { first, second, when });
    }
    check_reservation(now, when)?;
    check_target(now, when)
}

fn check_reservation(now: &Resolution<'_>, when: When) -> Result<(), Contradiction> {
    let Some(reservation) = now.terms.reservation else { return Ok(()) };
    let limit = match reservation {
        Rate::Bytes(rate) => {
            now.limit_of(|goal| matches!(goal, Goal::Bytes(limit) if limit < rate))
        }
        Rate::Requests(rate) => {
            now.limit_of(|goal| matches!(goal, Goal::Requests(limit) if limit < rate))
        }
    };
    if let Some((by, goal)) = limit
        && let Ok(limit) = Rate::try_from(goal)
    {
        return Err(Contradiction::Reservation { limit, by, reservation, when });
    }
    match reservation {
        Rate::Requests(wanted) => check_slow(now, wanted, when),
        Rate::Bytes(_) => Ok(()),
    }
}

/// By Little's law: requests per second are those at once over the time of each.
fn check_slow(
    now: &Resolution<'_>,
    wanted: u64,
    when: When,
) -> Result<(), Contradiction> {
    let (Some(depth), Some(response)) = (now.terms.depth, now.terms.limit.response)
    else {
        return Ok(());
    };
    match per_second(depth, response) < wanted {
        true => Err(Contradiction::Slow { depth, response, wanted, when }),
        false => Ok(()),
    }
}

fn check_target(now: &Resolution<'_>, when: When) -> Result<(), Contradiction> {
    let Some((by, cruise)) = now.cruise else { return Ok(()) };
    let edge = cruise.edge();
    let beyond = |limit: Goal| match (limit, edge) {
        (Goal::Bytes(limit), Goal::Bytes(edge))
        | (Goal::Requests(limit), Goal::Requests(edge)) => edge > limit,
        (Goal::Response(limit), Goal::Response(edge)) => edge < limit,
        _ => false,
    };
    if let Some((limit_by, limit)) = now.limit_of(beyond) {
        return Err(Contradiction::Target { by, cruise, edge, limit, limit_by, when });
    }
    match edge {
        Goal::Requests(wanted) => check_slow(now, wanted, when),
        _ => Ok(()),
    }
}

impl Resolution<'_> {
    /// The binding limit of this kind.
    fn limit_of(&self, is: impl Fn(Goal) -> bool) -> Option<(PolicyId, Goal)> {
        self.standings.iter().find_map(|one| match one.policy.aim {
            Aim::Limit(goal) if one.stands == Stands::Binds && is(goal) => {
                Some((one.policy.id, goal))
            }
            _ => None,
        })
    }
}

impl Cruise {
    /// The end of the tolerance that is reached first: the lowest rate, the longest
    /// response time.
    fn edge(&self) -> Goal {
        match self.target {
            Goal::Bytes(rate) => Goal::Bytes(rate - self.tolerance.of(rate)),
            Goal::Requests(rate) => Goal::Requests(rate - self.tolerance.of(rate)),
            Goal::Response(Nanos(span)) => {
                Goal::Response(Nanos(span.saturating_add(self.tolerance.of(span))))
            }
        }
    }
}

fn per_second(depth: u32, response: Nanos) -> u64 {
    u64::from(depth) * 1_000_000_000 / response.0.max(1)
}
