//! How a guard stands, in words.

use std::fmt;

use crate::{Bytes, Nanos};

/// How a target stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// Not enough was seen yet.
    Learning,
    /// It is held.
    Holding,
    /// It is on the way.
    Converging,
    /// It cannot be had; what can be is done instead.
    Unreachable(Unreachable),
}

/// Why a target cannot be had. The copy then goes on only while the guest is gone; but
/// for mirrored writes, which end the sooner the sooner it is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unreachable {
    /// Even this little copying costs the guest too much.
    CopyCosts {
        /// Bytes per second.
        rate: u64,
        /// The part of its IO/s, 0 to 1, that this would cost.
        loss: f64,
    },
    /// Mirrored writes cost the guest too much, whatever is copied.
    MirrorCosts {
        /// The part of its IO/s, 0 to 1.
        loss: f64,
    },
    /// The guest's own requests take longer, with nothing beside them.
    OwnLatency {
        /// Their 99th percentile.
        p99: Nanos,
    },
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreachable::CopyCosts { rate, loss } => write!(
                f,
                "even {}/s of copying cost {:.1} % of its IO/s",
                Bytes(*rate),
                loss * 100.0
            ),
            Unreachable::MirrorCosts { loss } => {
                write!(
                    f,
                    "writing to both images costs {:.1} % of its IO/s",
                    loss * 100.0
                )
            }
            Unreachable::OwnLatency { p99 } => {
                write!(f, "its own p99 is {p99} with no copy beside it")
            }
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Learning => f.pad("learning"),
            Standing::Holding => f.pad("holding"),
            Standing::Converging => f.pad("converging"),
            Standing::Unreachable(why) => write!(f, "unreachable: {why}"),
        }
    }
}
