//! Policies: what is asked for a class, and when.
//!
//! A class has shares and perhaps a reservation of its own. Policies come on top:
//! limits, cruise control, a queue depth, each with a schedule or for always. What
//! they come to in a second of the week, and what of it binds, is decided in
//! `resolve`; what cannot be had together is found in `contradiction`, and what nobody
//! can mean in `bearable`, before anything is put in force; whether a datastore can keep
//! all that is reserved on it is a question for `admission`.
//!
//! **Rules.**
//!
//! - All limits that are open hold at once: of each metric the tightest binds, which
//!   is the smallest rate or the longest response time. A limit in milliseconds holds
//!   the mean response time at that *at least*: requests are held back.
//! - One cruise control at a time for a class. Its floor is a reservation for as long
//!   as it is open.
//! - Of queue depths the smallest binds.

mod admission;
mod bearable;
mod contradiction;
mod resolve;

use std::fmt;
use std::str::FromStr;

pub use admission::{Basis, Capacity, Claims, Oversold, Unproven, admit};
pub use bearable::{BYTES_MIN, REQUESTS_MIN, RESPONSE_MAX, RESPONSE_MIN, Unbearable};
pub use contradiction::{Contradiction, When, check};
pub use resolve::{Resolution, Standing, Stands, resolve};

use super::goal::Goal;
use super::terms::Rate;
use crate::schedule::Schedule;

/// The deepest queue that can be asked for: what one queue of an NVMe device holds.
pub const DEPTH_MAX: u32 = 65_535;

/// The policies of a class at most. Each may begin and end on its own, and people
/// have to see through what they come to together.
pub const POLICIES_MAX: usize = 32;

/// Names a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId(pub u64);

impl PolicyId {
    /// One that has no number yet.
    pub const NEW: PolicyId = PolicyId(0);
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PolicyId::NEW => f.write_str("the new policy"),
            PolicyId(id) => write!(f, "policy {id}"),
        }
    }
}

/// What is asked for a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it gets before anybody gets more than theirs.
    pub reservation: Option<Rate>,
    /// Its part of what is left, 1 to `SHARES_MAX`.
    pub shares: u32,
    /// Its policies, [`POLICIES_MAX`] at most.
    pub policies: Vec<Policy>,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its number.
    pub id: PolicyId,
    /// What it wants.
    pub aim: Aim,
    /// When it holds; always without one.
    pub schedule: Option<Schedule>,
}

impl Policy {
    /// Whether it reserves something.
    pub fn has_floor(&self) -> bool {
        matches!(self.aim, Aim::Cruise(Cruise { floor: Some(_), .. }))
    }
}

impl Plan {
    /// Whether anything is ever reserved for the class.
    pub fn reserves(&self) -> bool {
        self.reservation.is_some() || self.policies.iter().any(Policy::has_floor)
    }
}

/// What a policy wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// No more than this (or no faster, for a response time).
    Limit(Goal),
    /// This, within a tolerance.
    Cruise(Cruise),
    /// So many requests at the device at most, 1 to [`DEPTH_MAX`].
    Depth(u32),
}

/// A goal that is held by slowing others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cruise {
    /// What the class shall have.
    pub target: Goal,
    /// How far from it is still well.
    pub tolerance: Tolerance,
    /// What the class has in any case while the policy holds: a reservation.
    pub floor: Option<Rate>,
    /// What becomes of the others if the target cannot be reached.
    pub fallback: Fallback,
}

/// What becomes of the other classes once a target turns out to be out of reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// They stay as slow as they are: the class gets what there is.
    #[default]
    None,
    /// Each is held to this limit.
    Limit(Goal),
    /// They are let go.
    Release,
}

/// How far from a target is still well, in percent of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tolerance {
    /// [`Tolerance::MIN`] to [`Tolerance::MAX`].
    percent: u8,
}

/// The text is no tolerance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseToleranceError {
    text: String,
}

impl Tolerance {
    /// Tighter than that is less than what a second of traffic varies by itself.
    pub const MIN: u8 = 1;
    /// Wider than that is no goal.
    pub const MAX: u8 = 50;

    /// So many percent, if that can be a tolerance.
    pub fn new(percent: u8) -> Option<Tolerance> {
        (Tolerance::MIN..=Tolerance::MAX)
            .contains(&percent)
            .then_some(Tolerance { percent })
    }

    /// In percent.
    pub fn percent(self) -> u8 {
        self.percent
    }

    /// So much of a number.
    fn of(self, number: u64) -> u64 {
        // At most half of the number.
        (u128::from(number) * u128::from(self.percent) / 100) as u64
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", self.percent))
    }
}

impl FromStr for Tolerance {
    type Err = ParseToleranceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().strip_suffix('%').unwrap_or(text).trim();
        let tolerance = number.parse().ok().and_then(Tolerance::new);
        tolerance.ok_or_else(|| ParseToleranceError { text: text.into() })
    }
}

impl fmt::Display for ParseToleranceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, min, max) = (&self.text, Tolerance::MIN, Tolerance::MAX);
        write!(f, "`{text}` is not a tolerance: write {min}% to {max}%")
    }
}

impl std::error::Error for ParseToleranceError {}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fallback::None => f.pad("none"),
            Fallback::Limit(goal) => f.pad(&format!("limit={goal}")),
            Fallback::Release => f.pad("release"),
        }
    }
}

/// The text is no fallback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFallbackError {
    text: String,
}

impl fmt::Display for ParseFallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        write!(
            f,
            "`{text}` is not a fallback: write none, release, or limit= and a goal, like \
             limit=2M"
        )
    }
}

impl std::error::Error for ParseFallbackError {}

impl FromStr for Fallback {
    type Err = ParseFallbackError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseFallbackError { text: text.into() };
        match text {
            "none" => Ok(Fallback::None),
            "release" => Ok(Fallback::Release),
            _ => {
                let goal = text.strip_prefix("limit=").ok_or_else(wrong)?;
                goal.parse().map(Fallback::Limit).map_err(|_| wrong())
            }
        }
    }
}
