//! What must hold for the application while its disk moves.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What must hold while a disk moves. What is not said need not hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Guard {
    /// The part of its IO/s that the application keeps at least, above 0 and at most 1.
    pub keep: Option<f64>,
    /// The 99th percentile of the response time that it stays below, in microseconds.
    pub p99_us: Option<u64>,
    /// When the disk shall have moved (seconds since 1970).
    pub finish_by: Option<u64>,
    /// Copy only while the application asks for nothing.
    pub idle_only: bool,
    /// Copy only while this schedule is open (`22:00-06:00`).
    pub window: Option<String>,
}

impl Guard {
    /// Whether nothing is asked for.
    pub fn is_none(&self) -> bool {
        *self == Guard::default()
    }
}

/// Asks for a guard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskGuard {
    /// The part of its IO/s that the application keeps at least, above 0 and at most 1.
    #[serde(default)]
    pub keep: Option<f64>,
    /// The 99th percentile of the response time that it stays below, in microseconds.
    #[serde(default)]
    pub p99_us: Option<u64>,
    /// When the disk shall have moved: a time of day (`06:00`), a date and a time
    /// (`2027-01-31 06:00`), or a span from now (`8h`), in the daemon's time zone.
    #[serde(default)]
    pub finish_by: Option<String>,
    /// Copy only while the application asks for nothing.
    #[serde(default)]
    pub idle_only: bool,
    /// Copy only while this schedule is open (`22:00-06:00`).
    #[serde(default)]
    pub window: Option<String>,
}

/// How a guard fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardState {
    /// What the application does by itself is being measured.
    Learning,
    /// What must hold holds.
    Holding,
    /// What must hold for the application does, but the move will end too late.
    Late,
    /// It does not hold yet, and the copy gives way.
    Converging,
    /// It cannot hold, with a reason; the copy goes on while the disk is idle, and beside
    /// the application with little, or with what the reason allows.
    Unreachable,
    /// Its schedule is closed: nothing is copied.
    Closed,
}

impl fmt::Display for GuardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            GuardState::Learning => "learning",
            GuardState::Holding => "holding",
            GuardState::Late => "late",
            GuardState::Converging => "converging",
            GuardState::Unreachable => "unreachable",
            GuardState::Closed => "closed",
        })
    }
}

/// A guard at work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Guarding {
    /// What must hold.
    pub asked: Guard,
    /// How it fares; absent while the migration stands still, and when it has ended.
    pub state: Option<GuardState>,
    /// Why it cannot hold, or what else there is to say.
    pub reason: Option<String>,
    /// What the application does by itself, in IO/s, as far as is known; when the
    /// migration has ended, what it did before.
    pub baseline_iops: Option<f64>,
    /// The part of it that it keeps now; when the migration has ended, that it kept on
    /// the whole.
    pub kept: Option<f64>,
    /// The 99th percentile of its response times in the last second, or in the whole of a
    /// migration that has ended, in microseconds;
    /// known where that shall stay below something.
    #[serde(default)]
    pub p99_us: Option<u64>,
    /// What the copier may take while the application is busy, bytes per second;
    /// absent if nothing holds it back.
    pub allowance: Option<u64>,
    /// By how many seconds the move will be late at the rate that the guard allows.
    pub late_s: Option<f64>,
}
