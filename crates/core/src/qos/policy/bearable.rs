//! Goals that nobody can mean: a limit of 20 bytes a second, where 20 MiB were meant,
//! freezes every guest of the class, and a queue in front of a guest that is an hour
//! long is as good as none.

use std::fmt;

use super::{Aim, Cruise, Fallback};
use crate::qos::goal::Goal;
use crate::{Bytes, Nanos};

/// The least in bytes per second: a guest that may have less does not come to its
/// login within minutes.
pub const BYTES_MIN: u64 = 64 << 10;

/// The longest response time: guests take a disk for dead after 30 seconds, and the
/// mean of what is held for 10 has some that are.
pub const RESPONSE_MAX: Nanos = Nanos::from_secs(10);

/// A goal that nobody can mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbearable {
    /// Fewer bytes per second than a guest can live on.
    Few(u64),
    /// A response time that guests take for a dead disk.
    Long(Nanos),
}

impl fmt::Display for Unbearable {
    /// With what was probably meant: the same number in another unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Unbearable::Few(rate) => {
                let number = if rate < 1 << 10 { rate } else { rate >> 10 };
                write!(
                    f,
                    "{}/s stop a guest: {}/s are the least (was {number}M meant, or \
                     {number}iops?)",
                    Bytes(rate),
                    Bytes(BYTES_MIN)
                )
            }
            Unbearable::Long(span) => {
                write!(f, "{span} stop a guest: {RESPONSE_MAX} are the longest")?;
                match span.0 / 1_000_000_000 {
                    seconds @ ..10_000 => write!(f, " (was {seconds}ms meant?)"),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for Unbearable {}

impl Aim {
    /// Refuses what nobody can mean.
    pub fn check(&self) -> Result<(), Unbearable> {
        match *self {
            Aim::Limit(goal) => check(goal),
            Aim::Cruise(Cruise { target, fallback, .. }) => {
                check(target)?;
                match fallback {
                    Fallback::Limit(goal) => check(goal),
                    Fallback::None | Fallback::Release => Ok(()),
                }
            }
            Aim::Depth(_) => Ok(()),
        }
    }
}

fn check(goal: Goal) -> Result<(), Unbearable> {
    match goal {
        Goal::Bytes(rate) if rate < BYTES_MIN => Err(Unbearable::Few(rate)),
        Goal::Response(span) if span > RESPONSE_MAX => Err(Unbearable::Long(span)),
        // One request a second is the least that can be said.
        Goal::Bytes(_) | Goal::Requests(_) | Goal::Response(_) => Ok(()),
    }
}
