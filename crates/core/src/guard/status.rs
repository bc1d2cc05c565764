//! A guard's status, in words.

use std::fmt;

use crate::Bytes;

/// Whether a guard keeps its promise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GuardStatus {
    /// Not enough was seen yet.
    Learning,
    /// It is held.
    Holding,
    /// It is on the way.
    Converging,
    /// It cannot be had; what can be is done instead.
    Unreachable(Unreachable),
}

/// Why a target cannot be had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unreachable {
    /// Even this little copying costs the guest too much. It is copied only while the
    /// guest is idle, and tried again after a while.
    CopyCosts {
        /// Bytes per second.
        rate: u64,
        /// The part of its IO/s, 0 to 1, that this would cost.
        loss: f64,
    },
    /// Mirrored writes cost the guest too much, whatever is copied. They end the sooner
    /// the sooner the copy does, so it may cost as much as they do.
    MirrorCosts {
        /// The part of its IO/s, 0 to 1.
        loss: f64,
    },
    /// More of the guest's requests take longer than a bound leaves, with hardly a copy
    /// beside them. It is copied while they do not, or while the guest is idle.
    OwnLatency {
        /// The part of them, 0 to 1.
        slow: f64,
    },
    /// They do, and its writes wait for the destination. It is copied little beside the
    /// guest, but always something, so that they end.
    MirrorLatency {
        /// The part of them, 0 to 1.
        slow: f64,
    },
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreachable::CopyCosts { rate, loss } => write!(
                f,
                "even a copy at {}/s costs the application {:.1} % of its IO/s",
                Bytes(*rate),
                loss * 100.0
            ),
            Unreachable::MirrorCosts { loss } => {
                write!(
                    f,
                    "writing to both images costs the application {:.1} % of its IO/s",
                    loss * 100.0
                )
            }
            Unreachable::OwnLatency { slow } => write!(
                f,
                "{:.1} % of the application's requests take longer, even beside hardly \
                 any copying",
                slow * 100.0
            ),
            Unreachable::MirrorLatency { slow } => write!(
                f,
                "{:.1} % of the application's requests take longer while writes go to \
                 both images",
                slow * 100.0
            ),
        }
    }
}

impl fmt::Display for GuardStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuardStatus::Learning => f.pad("learning"),
            GuardStatus::Holding => f.pad("holding"),
            GuardStatus::Converging => f.pad("converging"),
            GuardStatus::Unreachable(why) => write!(f, "unreachable: {why}"),
        }
    }
}
