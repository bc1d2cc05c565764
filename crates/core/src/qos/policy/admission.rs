//! Whether a datastore can keep all that is reserved on it.
//!
//! Reservations are promises, so their sum must not be more than the datastore does.
//! What it does is an estimate: refused is only what is above it by more than its
//! error. What cannot be told is accepted, and said to be unproven.
//!
//! A class with disks on several datastores may want its reservation on any of them,
//! so it counts whole on each. Bytes and requests are counted apart: how many bytes
//! a request will have is not known.

use std::fmt;

use super::{Plan, resolve};
use crate::qos::terms::Rate;
use crate::schedule::{Moment, Weekday};

/// How many classes a message names: a line of names of common length.
const NAMED: usize = 4;

/// What a datastore does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes per second at most, if known.
    pub bytes: Option<u64>,
    /// Requests per second at most, if known.
    pub requests: Option<u64>,
    /// How that is known.
    pub basis: Basis,
}

/// How the capacity of a datastore is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// It is shaped: it does no more.
    Shape,
    /// From ordinary traffic, right within so many percent.
    Measured {
        /// The error, in percent of the capacity.
        error_percent: u8,
    },
    /// It has done so many, and nothing showed that it could do no more.
    Done {
        /// How many fewer it may do of other requests, in percent.
        error_percent: u8,
    },
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::Shape => f.write_str("by its shape"),
            Basis::Measured { error_percent } => {
                write!(f, "as measured, within {error_percent} %")
            }
            Basis::Done { .. } => {
                f.write_str("at least: its load never reached its limit")
            }
        }
    }
}

/// What classes reserve, all in one metric.
pub type Claims = Vec<(String, Rate)>;

/// More is reserved on a datastore than it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oversold {
    /// What each class reserves, in the same metric.
    pub claims: Claims,
    /// Their sum.
    pub sum: Rate,
    /// What the datastore does.
    pub capacity: Rate,
    /// How that is known.
    pub basis: Basis,
}

impl fmt::Display for Oversold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.claims.iter().take(NAMED);
        let named: Vec<_> =
            named.map(|(class, rate)| format!("{class} {rate}")).collect();
        let more = match self.claims.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" + {more} more"),
        };
        let Oversold { sum, capacity, basis, .. } = self;
        let sum = match self.claims.len() {
            1 => named.concat(),
            _ => format!("{}{more} = {sum}", named.join(" + ")),
        };
        write!(f, "reserved: {sum}; the datastore can do {capacity} ({basis})")
    }
}

impl std::error::Error for Oversold {}

/// A sum of reservations that is neither surely too much nor surely not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unproven {
    /// The sum.
    pub sum: Rate,
    /// What the datastore does, if that is known at all.
    pub capacity: Option<(Rate, Basis)>,
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = self.sum;
        match (self.capacity, sum) {
            (None, Rate::Requests(_)) => {
                write!(f, "{sum} reserved; what the datastore can do is unknown yet")
            }
            // Only requests are learned.
            (None, Rate::Bytes(_)) => {
                write!(
                    f,
                    "{sum} reserved; Sterna knows MB/s only of a datastore with a shape"
                )
            }
            (Some((capacity, basis)), _) => {
                write!(f, "{sum} reserved; the datastore can do {capacity} ({basis})")
            }
        }
    }
}

/// Whether a datastore can keep what these classes reserve, at any time of the week.
/// Gives what cannot be told.
pub fn admit(
    classes: &[(&str, &Plan)],
    capacity: Option<&Capacity>,
) -> Result<Vec<Unproven>, Oversold> {
    let begin = Moment::new(Weekday::Monday, 0);
    let policies = classes.iter().flat_map(|(_, plan)| &plan.policies);
    let floors = policies.filter(|policy| policy.has_floor());
    let schedules = floors.filter_map(|policy| policy.schedule.as_ref());
    let moments = schedules.flat_map(|schedule| schedule.openings());
    // The largest sum of each metric.
    let mut most: [Option<(u64, Claims)>; 2] = [None, None];
    for moment in std::iter::once(begin).chain(moments) {
        let claims = claims(classes, moment);
        for (most, claims) in most.iter_mut().zip(claims) {
            let sum = claims.iter().map(|(_, rate)| rate.number());
            let sum = sum.fold(0, u64::saturating_add);
            if sum > most.as_ref().map_or(0, |(most, _)| *most) {
                *most = Some((sum, claims));
            }
        }
    }
    let mut unproven = Vec::new();
    for (sum, claims) in most.into_iter().flatten() {
        let like = claims[0].1;
        unproven.extend(judge(like.with(sum), claims, capacity)?);
    }
    Ok(unproven)
}

/// What is reserved at a moment: in bytes, and in requests.
fn claims(classes: &[(&str, &Plan)], moment: Moment) -> [Claims; 2] {
    let mut claims = [Vec::new(), Vec::new()];
    for (name, plan) in classes {
        match resolve(plan, moment).terms.reservation {
            Some(rate @ Rate::Bytes(_)) => claims[0].push(((*name).into(), rate)),
            Some(rate @ Rate::Requests(_)) => claims[1].push(((*name).into(), rate)),
            None => {}
        }
    }
    claims
}

fn judge(
    sum: Rate,
    claims: Claims,
    capacity: Option<&Capacity>,
) -> Result<Option<Unproven>, Oversold> {
    let known = capacity.and_then(|it| {
        let does = match sum {
            Rate::Bytes(_) => it.bytes.map(Rate::Bytes),
            Rate::Requests(_) => it.requests.map(Rate::Requests),
        };
        does.map(|does| (does, it.basis))
    });
    let Some((does, basis)) = known else {
        return Ok(Some(Unproven { sum, capacity: None }));
    };
    let error = match basis {
        Basis::Shape => 0,
        Basis::Measured { error_percent } | Basis::Done { error_percent } => {
            u128::from(error_percent)
        }
    };
    // In percent of the capacity.
    let (taken, whole) = (u128::from(sum.number()) * 100, u128::from(does.number()));
    let is_bound = !matches!(basis, Basis::Done { .. });
    if is_bound && taken > whole * (100 + error) {
        return Err(Oversold { claims, sum, capacity: does, basis });
    }
    let sure = taken <= whole * 100_u128.saturating_sub(error);
    Ok((!sure).then_some(Unproven { sum, capacity: Some((does, basis)) }))
}
