//! The terms of a class: what it is promised, and what it is held to.

use std::fmt;
use std::str::FromStr;

use super::goal::{Goal, ParseGoalError};
use crate::Nanos;

/// The shares of a class that was given none.
pub const SHARES: u32 = 1000;

/// So much per second, of bytes or of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rate {
    /// Bytes per second, above zero.
    Bytes(u64),
    /// Requests per second, above zero.
    Requests(u64),
}

impl Rate {
    /// The number, whatever it is of.
    pub fn number(self) -> u64 {
        match self {
            Rate::Bytes(number) | Rate::Requests(number) => number,
        }
    }

    /// Another number of the same.
    pub fn with(self, number: u64) -> Rate {
        match self {
            Rate::Bytes(_) => Rate::Bytes(number),
            Rate::Requests(_) => Rate::Requests(number),
        }
    }
}

impl From<Rate> for Goal {
    fn from(rate: Rate) -> Goal {
        match rate {
            Rate::Bytes(rate) => Goal::Bytes(rate),
            Rate::Requests(rate) => Goal::Requests(rate),
        }
    }
}

/// A response time where a rate is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotARate(Nanos);

impl fmt::Display for NotARate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is a response time: write 20M (bytes per second) or 500iops",
            self.0
        )
    }
}

impl std::error::Error for NotARate {}

impl TryFrom<Goal> for Rate {
    type Error = NotARate;

    fn try_from(goal: Goal) -> Result<Rate, NotARate> {
        match goal {
            Goal::Bytes(rate) => Ok(Rate::Bytes(rate)),
            Goal::Requests(rate) => Ok(Rate::Requests(rate)),
            Goal::Response(span) => Err(NotARate(span)),
        }
    }
}

/// The text is no rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseRateError {
    /// It is no goal at all.
    Goal(ParseGoalError),
    /// It is a response time.
    Response(NotARate),
}

impl fmt::Display for ParseRateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseRateError::Goal(error) => write!(
                f,
                "`{}` is not a rate above zero: write 15M (bytes per second) or 1000iops",
                error.text
            ),
            ParseRateError::Response(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ParseRateError {}

impl FromStr for Rate {
    type Err = ParseRateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let goal: Goal = text.parse().map_err(ParseRateError::Goal)?;
        goal.try_into().map_err(ParseRateError::Response)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Goal::from(*self).fmt(f)
    }
}

/// What a class is held to. All that is set holds at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limit {
    /// Bytes per second at most.
    pub bytes: Option<u64>,
    /// Requests per second at most.
    pub requests: Option<u64>,
    /// The mean response time at least: requests are held back for what the device
    /// does not take of it.
    pub response: Option<Nanos>,
}

impl Limit {
    /// Whether nothing is held back.
    pub fn is_none(&self) -> bool {
        *self == Limit::default()
    }
}

/// The terms of a class on one datastore. In the order of precedence:
/// reservation, limit, shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// What it gets before anybody gets more than theirs.
    pub reservation: Option<Rate>,
    /// What it is held to.
    pub limit: Limit,
    /// Its part of what is left, against the shares of the others; above zero.
    pub shares: u32,
    /// Requests at the device at most, above zero.
    pub depth: Option<u32>,
}

impl Default for Terms {
    fn default() -> Self {
        Terms { reservation: None, limit: Limit::default(), shares: SHARES, depth: None }
    }
}
