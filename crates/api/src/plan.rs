//! Plans: moving one disk or thousands, in waves.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Guard, Predicted};

/// Asks for a plan to empty a datastore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanEvacuation {
    /// The datastore to empty.
    pub datastore: String,
    /// The destinations; if left out, all other datastores that can hold more than one
    /// disk.
    #[serde(default)]
    pub to: Vec<String>,
    /// The part of a destination's space that may be used at the end, above 0 and at most
    /// 1; 0.8 if left out.
    #[serde(default = "usual_space")]
    pub space: f64,
    /// When all shall have moved: a time of day (`06:00`), with or without a day of the
    /// week (`Sun 06:00`), a date and a time (`2027-01-31 06:00`), or a span from now
    /// (`8h`), in the daemon's time zone.
    #[serde(default)]
    pub by: Option<String>,
    /// The part of its IO/s that each application keeps at least, above 0 and at most 1.
    #[serde(default)]
    pub keep: Option<f64>,
    /// The 99th percentile of the response time that it stays below, in microseconds.
    #[serde(default)]
    pub p99_us: Option<u64>,
    /// Copy a disk only while its application asks for nothing.
    #[serde(default)]
    pub idle_only: bool,
    /// Begin moves, and copy, only while this schedule is open (`22:00-06:00`).
    #[serde(default)]
    pub window: Option<String>,
    /// The limit of each copy in bytes per second.
    #[serde(default)]
    pub rate: Option<u64>,
    /// Compare both sides of each move before the switch-over: yes, if left out.
    #[serde(default = "crate::yes")]
    pub verify: bool,
    /// No more than so many moves at once.
    #[serde(default)]
    pub at_once: Option<u64>,
    /// Sets of disks that move one after another. Disks in none of them come last.
    #[serde(default)]
    pub tiles: Vec<Tile>,
    /// Only show the plan, and do not keep it.
    #[serde(default)]
    pub dry_run: bool,
}

fn usual_space() -> f64 {
    0.8
}

/// A set of disks that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Tile {
    /// Its name.
    pub name: String,
    /// Its disks.
    pub disks: Vec<String>,
    /// The tiles whose disks must have moved before; if left out, the tile before it.
    #[serde(default)]
    pub after: Option<Vec<String>>,
    /// Whether all of its disks are to go to one datastore.
    #[serde(default)]
    pub together: bool,
    /// The hook that stops the application on its disks before the first disk moves: the
    /// absolute path of a program, and its arguments.
    #[serde(default)]
    pub stop: Option<Vec<String>>,
    /// The hook that starts the application again when the last move has ended, also
    /// after a failure.
    #[serde(default)]
    pub start: Option<Vec<String>>,
}

/// The state of the application on a tile's disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadState {
    /// The plan has not stopped it.
    Untouched,
    /// Its hook stops it.
    Stopping,
    /// The application has stopped, or its stop hook failed, and the plan has not started
    /// it yet.
    Stopped,
    /// Its hook starts it.
    Starting,
    /// It has started again.
    Started,
    /// The application has not started, after several tries.
    NotStarted,
}

impl fmt::Display for WorkloadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            WorkloadState::Untouched => "untouched",
            WorkloadState::Stopping => "stopping",
            WorkloadState::Stopped => "stopped",
            WorkloadState::Starting => "starting",
            WorkloadState::Started => "started",
            WorkloadState::NotStarted => "not started",
        })
    }
}

/// The application on a tile's disks, which is stopped while they move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedWorkload {
    /// The tile.
    pub tile: String,
    /// Where it is.
    pub state: WorkloadState,
    /// When it was told to stop (seconds since 1970).
    pub stopped: Option<u64>,
    /// When it had started again (seconds since 1970).
    pub started: Option<u64>,
    /// How often it did not start.
    #[serde(default)]
    pub tries: u32,
    /// The last failure of its hooks.
    pub problem: Option<String>,
}

/// The state of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanState {
    /// It is made, and nothing has begun.
    Planned,
    /// Moves are under way, or wait for their turn.
    Running,
    /// The plan and its moves are paused.
    Paused,
    /// The plan is being cancelled, with its moves under way.
    Cancelling,
    /// All of its disks have moved, and all stopped applications have started again.
    Completed,
    /// The plan has ended, and some disks have not moved, or an application has not
    /// started again.
    Incomplete,
    /// It was given up.
    Cancelled,
}

impl PlanState {
    /// Whether this state is final.
    pub fn ended(self) -> bool {
        matches!(
            self,
            PlanState::Completed | PlanState::Incomplete | PlanState::Cancelled
        )
    }
}

impl fmt::Display for PlanState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PlanState::Planned => "planned",
            PlanState::Running => "running",
            PlanState::Paused => "paused",
            PlanState::Cancelling => "cancelling",
            PlanState::Completed => "completed",
            PlanState::Incomplete => "incomplete",
            PlanState::Cancelled => "cancelled",
        })
    }
}

/// The state of a move of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlannedMoveState {
    /// It waits for its turn.
    Waiting,
    /// Its migration is being started.
    Starting,
    /// Its migration is under way.
    Moving,
    /// Its migration is stalled, keeps all that it has copied, and is to continue.
    Standing,
    /// Its migration is being cancelled: it could not continue, or the plan is cancelled.
    Leaving,
    /// The disk has moved.
    Moved,
    /// The disk has not moved, and will not.
    Failed,
    /// The move was not begun, because an earlier tile has not moved.
    Skipped,
    /// The move was cancelled with the plan.
    Cancelled,
}

impl fmt::Display for PlannedMoveState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PlannedMoveState::Waiting => "waiting",
            PlannedMoveState::Starting => "starting",
            PlannedMoveState::Moving => "moving",
            PlannedMoveState::Standing => "standing",
            PlannedMoveState::Leaving => "leaving",
            PlannedMoveState::Moved => "moved",
            PlannedMoveState::Failed => "failed",
            PlannedMoveState::Skipped => "skipped",
            PlannedMoveState::Cancelled => "cancelled",
        })
    }
}

/// A move of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlannedMove {
    /// The disk.
    pub disk: String,
    /// The datastore that it leaves.
    pub from: String,
    /// The destination.
    pub to: String,
    /// Why there.
    pub why: String,
    /// The tile that it belongs to.
    pub tile: Option<String>,
    /// The moves of a wave begin when those of the one before end; from 1.
    pub wave: u32,
    /// Bytes to copy.
    pub bytes: u64,
    /// The predicted time of the move alone; absent if Sterna cannot predict it.
    pub predicted: Option<Predicted>,
    /// When it begins, in seconds from the plan's beginning, by the plan.
    pub begins_s: f64,
    /// When it ends, in seconds from the plan's beginning, by the plan.
    pub ends_s: f64,
    /// Where it is.
    pub state: PlannedMoveState,
    /// Its migration, or the last one of several.
    pub migration: Option<u64>,
    /// How many migrations were begun, or tried to be.
    pub attempts: u32,
    /// The part of it that is done, from 0 to 1, while it is under way.
    pub done: Option<f64>,
    /// Whether all is copied and both sides are being compared.
    pub verifying: bool,
    /// When its last migration began (seconds since 1970).
    pub began: Option<u64>,
    /// When the move was over (seconds since 1970).
    pub ended: Option<u64>,
    /// What its migration took, in seconds, if the disk has moved.
    pub took_s: Option<f64>,
    /// Why it has failed, is stalled or waits, or why it goes elsewhere or is tried
    /// again.
    pub problem: Option<String>,
}

/// A disk that a plan leaves where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedDisk {
    /// The disk.
    pub disk: String,
    /// Why it stays.
    pub reason: String,
}

/// A datastore, as a plan sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlannedDatastore {
    /// Its name.
    pub datastore: String,
    /// The bytes that the plan may fill there; absent for the datastore to empty.
    pub room: Option<u64>,
    /// The speed of all copies to it together, in bytes per second; absent if Sterna cannot
    /// predict it, and for the datastore to empty.
    pub speed: Option<f64>,
    /// How many disks of the plan leave it, or go to it.
    pub moves: u64,
    /// How many bytes that are.
    pub bytes: u64,
    /// The size to which the thin disks that go there may grow, in bytes, if that is more
    /// than the plan may fill there. Sterna keeps no room for this growth.
    #[serde(default)]
    pub may_grow_to: Option<u64>,
    /// Why the plan leaves it alone, if it does.
    pub problem: Option<String>,
}

/// The predicted time of a whole plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanEstimate {
    /// Bytes to copy.
    pub bytes: u64,
    /// The number of moves without a prediction. If there are any, the other values are
    /// absent, except a bound from the copies' limit, if there is one.
    pub unknown: u64,
    /// How many of those are unknown because each copy that was seen had a limit.
    #[serde(default)]
    pub limited: u64,
    /// The highest of those limits, bytes per second.
    #[serde(default)]
    pub limited_to: Option<u64>,
    /// Seconds from the first beginning to the last end, most likely.
    pub likely_s: Option<f64>,
    /// The same if each move takes as little as one of twenty.
    pub least_s: Option<f64>,
    /// The same if each move takes as much as one of twenty.
    pub most_s: Option<f64>,
    /// A lower bound for any order of the moves, in seconds.
    pub bound_s: Option<f64>,
    /// The part by which the plan takes longer than that.
    pub gap: Option<f64>,
}

/// Whether a plan ends in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeadlineState {
    /// It ends in time though all takes long.
    Met,
    /// Most likely it ends in time.
    Likely,
    /// It ends in time only if all goes quickly.
    Unlikely,
    /// It does not end in time.
    Missed,
    /// Sterna cannot predict it.
    Unknown,
}

/// The deadline of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deadline {
    /// The moment (seconds since 1970).
    pub by: u64,
    /// Whether it ends by then.
    pub state: DeadlineState,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Its number; 0 if it was not kept.
    pub id: u64,
    /// Where it is.
    pub state: PlanState,
    /// The datastore that it empties.
    pub datastore: String,
    /// The part of a destination's room that may be taken in the end.
    pub space: f64,
    /// The guard of each move, and when copies may run.
    pub guard: Guard,
    /// The limit of each copy in bytes per second.
    pub rate: Option<u64>,
    /// Whether both sides of each move are compared.
    pub verify: bool,
    /// No more than so many moves at once.
    pub at_once: Option<u64>,
    /// The tiles, in their order.
    pub tiles: Vec<Tile>,
    /// What the plan stops and starts, by its tiles' hooks.
    pub workloads: Vec<PlannedWorkload>,
    /// When it was made (seconds since 1970).
    pub created: u64,
    /// When it was applied (seconds since 1970).
    pub started: Option<u64>,
    /// When it was over (seconds since 1970).
    pub ended: Option<u64>,
    /// What it takes, as predicted when it was made.
    pub estimate: PlanEstimate,
    /// When the window opens in which moves begin and copy (seconds since 1970); absent
    /// while it is open, if there is none, and when the plan is over.
    pub opens: Option<u64>,
    /// The predicted end (seconds since 1970); of a plan that is not applied yet, the end
    /// if it were applied now. Absent while the plan is paused or being cancelled, while
    /// one of its moves is stalled or waits for a datastore that is away, and if Sterna
    /// cannot predict it.
    pub ends: Option<u64>,
    /// Whether that is in time, if it matters.
    pub deadline: Option<Deadline>,
    /// The datastores.
    pub datastores: Vec<PlannedDatastore>,
    /// The moves, in the order in which they are looked at.
    pub moves: Vec<PlannedMove>,
    /// The disks that stay.
    pub refused: Vec<RefusedDisk>,
}
