//! Storage DRS: which disks should be elsewhere, and why others stay.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Predicted;

/// Asks what should move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AskStorageDrs {
    /// Loads and response times are those of the last so many seconds, 10 to 3600.
    pub window_s: f64,
    /// The part of a datastore's room that may be taken, above 0 and at most 1.
    pub space: f64,
    /// The 95th percentile of its response times may be so long, in microseconds.
    pub latency_us: u64,
    /// The most moves that are recommended, 1 to 100.
    pub moves: u64,
}

impl Default for AskStorageDrs {
    /// The last hour, 80 %, 15 ms, ten moves.
    fn default() -> AskStorageDrs {
        AskStorageDrs { window_s: 3600.0, space: 0.8, latency_us: 15_000, moves: 10 }
    }
}

/// Which bound a datastore is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverBound {
    /// Too much of its room is taken.
    Space,
    /// Requests take too long.
    Latency,
}

/// A datastore as Storage DRS sees it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DatastoreLoad {
    /// The part of its room that is taken; absent if it cannot be asked.
    pub taken: Option<f64>,
    /// The 95th percentile of its response times, in microseconds; absent if it is not
    /// known.
    pub p95_us: Option<f64>,
}

/// A datastore, and which bounds it is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JudgedDatastore {
    /// Its name.
    pub datastore: String,
    /// What it is like.
    pub load: DatastoreLoad,
    /// Requests under way of the disks on it, on average.
    pub outstanding: f64,
    /// The bounds that it is over.
    pub over: Vec<OverBound>,
    /// Disks come and go, or did within the window: its response times are not judged.
    pub settling: bool,
}

/// A move that is recommended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecommendedMove {
    /// The disk.
    pub disk: String,
    /// The datastore that it should leave.
    pub from: String,
    /// The one that it should go to.
    pub to: String,
    /// What the datastore that it leaves is over.
    pub over: OverBound,
    /// How much it matters: 1 is the most, 5 the least.
    pub priority: u8,
    /// Bytes to copy.
    pub bytes: u64,
    /// What that will take; absent where nobody can know.
    pub predicted: Option<Predicted>,
    /// The datastore that it leaves: with the moves before this one made, and with this
    /// one, too.
    pub source: [DatastoreLoad; 2],
    /// The one that it goes to: the same.
    pub destination: [DatastoreLoad; 2],
}

/// A disk that stays on a datastore that is over a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StayingDisk {
    /// The disk.
    pub disk: String,
    /// Where it is.
    pub datastore: String,
    /// What that is over.
    pub over: OverBound,
    /// The datastore that came nearest to taking it; absent if none did.
    pub to: Option<String>,
    /// Why it stays.
    pub reason: String,
}

/// What should move, and what should not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Recommendations {
    /// What was asked for.
    pub asked: AskStorageDrs,
    /// All datastores.
    pub datastores: Vec<JudgedDatastore>,
    /// Moves, in the order in which they should be made.
    pub moves: Vec<RecommendedMove>,
    /// Disks that stay on datastores that are over a bound even then.
    pub staying: Vec<StayingDisk>,
}
