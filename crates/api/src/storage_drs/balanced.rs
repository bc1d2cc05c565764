//! What came of a move that Storage DRS has made by itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DatastoreLoad, OverBound};

/// The load and response times of a disk or a datastore over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Fared {
    /// Requests per second.
    pub iops: f64,
    /// The mean response time, in microseconds; absent without requests.
    pub mean_us: Option<f64>,
    /// The 95th percentile, in microseconds; absent if there was none.
    pub p95_us: Option<f64>,
}

/// A disk and the two datastores of its move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BalancedScene {
    /// The disk.
    pub disk: Fared,
    /// The datastore that it leaves.
    pub source: Fared,
    /// The destination.
    pub destination: Fared,
    /// The part of the source's room that is taken; absent if the source did not say so.
    pub source_taken: Option<f64>,
    /// The same of the destination.
    pub destination_taken: Option<f64>,
}

/// Whether a move has paid for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BalancedOutcome {
    /// It is not known yet: a window must pass first.
    Waiting,
    /// It has.
    Paid,
    /// It has not.
    NotPaid,
    /// It cannot be known; the note says why.
    Unknown,
}

/// The prediction of a move, and the measured result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Balanced {
    /// The bound that its source exceeded; absent if it moved for a rule.
    pub over: Option<OverBound>,
    /// The rule that was broken; absent if it moved for a bound.
    pub rule: Option<String>,
    /// The bound of the used part of a datastore's space.
    pub space: f64,
    /// The bound of the 95th percentile, in microseconds.
    pub latency_us: u64,
    /// Both measurements are over so many seconds.
    pub window_s: f64,
    /// Source and destination, as they were predicted to become.
    pub predicted: [DatastoreLoad; 2],
    /// What was measured before it.
    pub before: BalancedScene,
    /// What was measured when the disk had been at its destination for a window.
    pub after: Option<BalancedScene>,
    /// Whether it has paid.
    pub outcome: BalancedOutcome,
    /// Why that cannot be known.
    pub note: Option<String>,
}

/// How many moves have paid.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
pub struct BalancedScores {
    /// Moves that have paid.
    pub paid: u64,
    /// Moves with a known result.
    pub known: u64,
    /// Moves without a result yet.
    pub waiting: u64,
}
