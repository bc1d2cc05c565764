//! What policies come to in one second of the week.

use super::{Aim, Cruise, Plan, Policy, PolicyId};
use crate::qos::goal::Goal;
use crate::qos::terms::{Rate, Terms};
use crate::schedule::Moment;

/// What holds at a moment, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution<'a> {
    /// The class's terms. A cruise control is in them with its floor alone.
    pub terms: Terms,
    /// The cruise control that is open.
    pub cruise: Option<(PolicyId, Cruise)>,
    /// Each policy of the plan, in its order.
    pub standings: Vec<Standing<'a>>,
}

/// How a policy stands at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// Whether it counts.
    pub stands: Stands,
}

/// Whether a policy counts at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// It does.
    Binds,
    /// It holds as well, but another one is tighter.
    Looser(PolicyId),
    /// Its schedule is closed.
    Closed,
}

/// What a plan comes to at a moment. The plan may be one that [`check`](super::check)
/// refuses; then the tightest of everything is taken, and the first cruise control.
pub fn resolve(plan: &Plan, now: Moment) -> Resolution<'_> {
    let open: Vec<&Policy> =
        plan.policies.iter().filter(|policy| policy.is_open(now)).collect();
    let mut terms =
        Terms { reservation: plan.reservation, shares: plan.shares, ..Terms::default() };
    let mut cruise = None;
    for policy in &open {
        match policy.aim {
            Aim::Limit(goal) => terms.limit(goal),
            Aim::Depth(depth) => {
                terms.depth = Some(terms.depth.map_or(depth, |other| other.min(depth)));
            }
            Aim::Cruise(one) => {
                terms.reservation = higher(terms.reservation, one.floor);
                cruise.get_or_insert((policy.id, one));
            }
        }
    }
    let stands = |policy: &Policy| {
        if !open.iter().any(|other| other.id == policy.id) {
            return Stands::Closed;
        }
        let tightest = open.iter().filter(|other| other.outdoes(policy)).min_by(rank);
        tightest.map_or(Stands::Binds, |other| Stands::Looser(other.id))
    };
    let standings = plan
        .policies
        .iter()
        .map(|policy| Standing { policy, stands: stands(policy) })
        .collect();
    Resolution { terms, cruise, standings }
}

impl Plan {
    /// In how many seconds a schedule opens or closes; never without one.
    pub fn until_change(&self, now: Moment) -> Option<u32> {
        let schedules = self.policies.iter().filter_map(|it| it.schedule.as_ref());
        schedules.filter_map(|schedule| schedule.until_change(now)).min()
    }
}

impl Terms {
    /// Adds a limit: the tightest of each metric holds.
    fn limit(&mut self, goal: Goal) {
        let limit = &mut self.limit;
        match goal {
            Goal::Bytes(rate) => {
                limit.bytes = Some(limit.bytes.map_or(rate, |other| other.min(rate)));
            }
            Goal::Requests(rate) => {
                let least = limit.requests.map_or(rate, |other| other.min(rate));
                limit.requests = Some(least);
            }
            Goal::Response(span) => limit.response = limit.response.max(Some(span)),
        }
    }
}

/// The tighter of two that want the same kind of thing comes first.
fn rank(one: &&&Policy, other: &&&Policy) -> std::cmp::Ordering {
    match one.outdoes(other) {
        true => std::cmp::Ordering::Less,
        false => std::cmp::Ordering::Greater,
    }
}

/// The higher of two rates of one metric. Two metrics cannot be compared: the class's
/// own counts, and `check` has refused the other.
fn higher(own: Option<Rate>, floor: Option<Rate>) -> Option<Rate> {
    match (own, floor) {
        (Some(Rate::Bytes(own)), Some(Rate::Bytes(floor))) => {
            Some(Rate::Bytes(own.max(floor)))
        }
        (Some(Rate::Requests(own)), Some(Rate::Requests(floor))) => {
            Some(Rate::Requests(own.max(floor)))
        }
        (own, floor) => own.or(floor),
    }
}

impl Policy {
    /// Whether it holds at a moment.
    pub fn is_open(&self, now: Moment) -> bool {
        self.schedule.as_ref().is_none_or(|schedule| schedule.is_open(now))
    }

    /// Whether `other` does not count beside this one. Of two that want the same, the
    /// older counts.
    fn outdoes(&self, other: &Policy) -> bool {
        if self.id == other.id {
            return false;
        }
        let order = match (self.aim, other.aim) {
            (Aim::Limit(Goal::Bytes(one)), Aim::Limit(Goal::Bytes(other)))
            | (Aim::Limit(Goal::Requests(one)), Aim::Limit(Goal::Requests(other))) => {
                one.cmp(&other)
            }
            (Aim::Limit(Goal::Response(one)), Aim::Limit(Goal::Response(other))) => {
                other.cmp(&one)
            }
            (Aim::Depth(one), Aim::Depth(other)) => one.cmp(&other),
            _ => return false,
        };
        order.then(self.id.cmp(&other.id)).is_lt()
    }
}
