//! What the daemon does again and again.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether a task is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// The task sleeps until its next run.
    Waiting,
    /// The task is at work. If it is for long, some storage or program may hang.
    Running,
}

/// A task of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// What it does: completes "to …".
    pub does: String,
    /// Whether it is at work.
    pub state: TaskState,
    /// How often it ran since the daemon started.
    pub runs: u64,
    /// When the last run began, in seconds since 1970.
    pub began: Option<u64>,
    /// How long the present run takes so far, in milliseconds.
    pub running_ms: Option<u64>,
    /// How long the last run took that ended, in milliseconds.
    pub took_ms: Option<u64>,
    /// When the next run begins, in milliseconds from now, unless the task is woken earlier.
    pub next_ms: Option<u64>,
    /// Why the last run failed, if it did.
    pub failed: Option<String>,
}
