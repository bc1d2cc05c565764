//! What must hold for the application while its disk moves.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A guard: what Sterna keeps for the application during a move. Each part is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Guard {
    /// The least part of its IO/s that the application keeps, above 0 and at most 1.
    pub keep: Option<f64>,
    /// The 99th percentile of the response time that it stays below, in microseconds.
    pub p99_us: Option<u64>,
    /// The deadline of the move (seconds since 1970).
    pub finish_by: Option<u64>,
    /// Copy only while the application is idle.
    pub idle_only: bool,
    /// Copy only while this schedule is open (`22:00-06:00`).
    pub window: Option<String>,
}

impl Guard {
    /// Whether the guard has no part.
    pub fn is_none(&self) -> bool {
        *self == Guard::default()
    }
}

/// Asks for a guard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskGuard {
    /// The least part of its IO/s that the application keeps, above 0 and at most 1.
    #[serde(default)]
    pub keep: Option<f64>,
    /// The 99th percentile of the response time that it stays below, in microseconds.
    #[serde(default)]
    pub p99_us: Option<u64>,
    /// The deadline of the move: a time of day (`06:00`), a date and a time (`2027-01-31
    /// 06:00`), or a span from now (`8h`), in the daemon's time zone.
    #[serde(default)]
    pub finish_by: Option<String>,
    /// Copy only while the application is idle.
    #[serde(default)]
    pub idle_only: bool,
    /// Copy only while this schedule is open (`22:00-06:00`).
    #[serde(default)]
    pub window: Option<String>,
}

/// The state of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardState {
    /// The guard measures what the application does without the copy.
    Learning,
    /// The guard keeps its promise.
    Holding,
    /// The guard keeps its promise to the application, but the move will end too late.
    Late,
    /// The guard does not keep its promise yet, and slows the copy.
    Converging,
    /// The guard cannot keep its promise, with a reason; the copy continues while the
    /// disk is idle, and slowly beside the application, or as fast as the reason permits.
    Unreachable,
    /// The schedule is closed: Sterna copies nothing.
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
    /// The guard.
    pub asked: Guard,
    /// Its state; absent while the migration is paused, and when it has ended.
    pub state: Option<GuardState>,
    /// Why the guard cannot keep its promise, or another note.
    pub reason: Option<String>,
    /// The application's IO/s without the copy, if known; when the migration has ended,
    /// the IO/s before it.
    pub baseline_iops: Option<f64>,
    /// The part of these IO/s that the application keeps now; when the migration has
    /// ended, the part that it kept on the whole.
    pub kept: Option<f64>,
    /// The 99th percentile of its response times in the last second, or in the whole of a
    /// migration that has ended, in microseconds;
    /// known where that shall stay below something.
    #[serde(default)]
    pub p99_us: Option<u64>,
    /// The copier's allowance while the application is active, in bytes per second;
    /// absent without a limit.
    pub allowance: Option<u64>,
    /// By how many seconds the move will be late at the rate that the guard allows.
    pub late_s: Option<f64>,
}
