//! Goals that nobody can mean: a limit of 20 bytes or of one request a second, where
//! 20 MiB or 1 MiB were meant, freezes every guest of the class, and a queue in front of
//! a guest that is an hour long is as good as none.

use std::fmt;

use super::{Aim, Cruise, Fallback};
use crate::qos::goal::Goal;
use crate::{Bytes, Nanos};

/// The shortest response time that is promised: no storage answers sooner.
pub const RESPONSE_MIN: Nanos = Nanos::from_micros(10);

/// What guests ask for at once: Linux cuts what programs read and write into requests of
/// no more.
const REQUEST: u64 = 1 << 20;

/// The longest that such a request may take by a limit alone: guests have a few of them
/// under way, each waits for those before it, and a disk that answers nothing for 30
/// seconds is a dead one.
const REQUEST_TAKES_MAX: u64 = 5;

/// The least in bytes per second: it lets a guest's largest request through in time. (The
/// next number that people write.)
pub const BYTES_MIN: u64 = REQUEST.div_ceil(REQUEST_TAKES_MAX).next_power_of_two();

/// The longest response time: guests take a disk for dead after 30 seconds, and the
/// mean of what is held for 10 has some that are.
pub const RESPONSE_MAX: Nanos = Nanos::from_secs(10);

/// The requests that a guest commonly has outstanding at most: a SATA disk's queue, and
/// what databases and copying tools ask for.
const QUEUE: u64 = 32;

/// The least in requests per second: the last one of such a queue waits for all the
/// others, and is not to wait longer than may be asked for.
pub const REQUESTS_MIN: u64 = QUEUE.div_ceil(RESPONSE_MAX.0 / 1_000_000_000);

/// A goal that nobody can mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbearable {
    /// Fewer bytes per second than a guest can live on.
    Few(u64),
    /// Fewer requests per second than a guest's queue can wait for.
    Rare(u64),
    /// A response time that guests take for a dead disk.
    Long(Nanos),
}

impl fmt::Display for Unbearable {
    /// With what was probably meant: the same number in another unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Unbearable::Few(rate) => {
                let least = Bytes(BYTES_MIN);
                let few = Bytes(rate).beside(least);
                let takes = Nanos(Nanos::from_secs(REQUEST).0 / rate.max(1));
                write!(
                    f,
                    "{few}/s would stop a guest: one request of {} takes {takes}; the \
                     minimum is {least}/s",
                    Bytes(REQUEST)
                )?;
                match Bytes(rate).meant_mib() {
                    None => Ok(()),
                    Some(it @ ..REQUESTS_MIN) => {
                        write!(f, " (did you mean {it}M or {it}ms?)")
                    }
                    Some(it) => write!(f, " (did you mean {it}M, {it}iops or {it}ms?)"),
                }
            }
            Unbearable::Rare(rate) => write!(
                f,
                "{rate} IO/s would stop a guest: the last of {QUEUE} requests at once \
                 takes {QUEUE} / {rate} = {}, and the maximum is {RESPONSE_MAX}; the \
                 minimum is {REQUESTS_MIN} IO/s (did you mean {rate}M?)",
                Nanos(Nanos::from_secs(QUEUE).0 / rate.max(1))
            ),
            Unbearable::Long(span) => {
                let long = span.beside(RESPONSE_MAX);
                write!(f, "{long} would stop a guest: the maximum is {RESPONSE_MAX}")?;
                match (span.0 / 1_000_000_000, span.0 % 1_000_000_000) {
                    (seconds @ ..10_000, 0) => write!(f, " (did you mean {seconds}ms?)"),
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
        Goal::Requests(rate) if rate < REQUESTS_MIN => Err(Unbearable::Rare(rate)),
        Goal::Bytes(_) | Goal::Requests(_) | Goal::Response(_) => Ok(()),
    }
}
