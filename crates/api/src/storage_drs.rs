//! Storage DRS: which disks should be elsewhere, and why others stay.
//!
//! What it is told to do is in `settings`, what came of its moves in `balanced`.

mod balanced;
mod rule;
mod settings;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::balanced::{
    Balanced, BalancedOutcome, BalancedScene, BalancedScores, Fared,
};
pub use self::rule::{CreateStorageRule, RuleStrength, RuleWish, StorageRule};
pub use self::settings::{Automation, ChangeStorageDrs, StorageDrsSettings};
use crate::{AskGuard, Migration, Predicted};

/// Asks what should move. What is left out is as the settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AskStorageDrs {
    /// Loads and response times are those of the last so many seconds, 10 to 86400.
    pub window_s: Option<f64>,
    /// The bound of the used part of a datastore's space, above 0 and at most 1.
    pub space: Option<f64>,
    /// The bound of the 95th percentile of its response times, in microseconds.
    pub latency_us: Option<u64>,
    /// The most moves that are recommended, 1 to 100.
    pub moves: Option<u64>,
    /// Whether disks that have moved not long ago may move again.
    pub ignore_rest: bool,
}

/// What datastores are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StorageDrsBounds {
    /// Loads and response times are those of the last so many seconds.
    pub window_s: f64,
    /// The part of a datastore's room that may be taken.
    pub space: f64,
    /// The bound of the 95th percentile of its response times, in microseconds.
    pub latency_us: u64,
    /// The most moves that are recommended.
    pub moves: u64,
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

/// How fast a datastore fills up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpaceTrend {
    /// Bytes taken per second; below 0 if the datastore empties.
    pub bytes_per_second: f64,
    /// Over so many seconds.
    pub over_s: f64,
    /// In how many seconds the datastore is full at this rate; absent if it does not fill up,
    /// or not within a year.
    pub full_in_s: Option<f64>,
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
    /// It does not say what it has: it is offline, or hangs.
    #[serde(default)]
    pub away: bool,
    /// Disks come and go, or did within the window: its response times are not judged.
    pub settling: bool,
    /// It is in maintenance: nothing new goes there.
    pub maintenance: bool,
    /// The datastores that have their room from the same file system: what one takes is gone
    /// for all.
    #[serde(default)]
    pub shares_room_with: Vec<String>,
    /// How fast it fills up; absent while that is not known.
    #[serde(default)]
    pub trend: Option<SpaceTrend>,
}

/// A move that is recommended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecommendedMove {
    /// The disk.
    pub disk: String,
    /// The datastore that it should leave.
    pub from: String,
    /// The host that it should go to.
    pub to: String,
    /// What the datastore that it leaves is over; absent if it moves for a rule.
    pub over: Option<OverBound>,
    /// The rule that is broken; absent if it moves for a bound.
    pub rule: Option<String>,
    /// How much it matters: 1 is the most, 5 the least.
    pub priority: u8,
    /// Its step: moves of one step are of disks that must be together.
    pub step: u64,
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

/// A disk that stays on a datastore that is over a bound, or where it breaks a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StayingDisk {
    /// The disk.
    pub disk: String,
    /// Where it is.
    pub datastore: String,
    /// What that is over; absent if it is a rule that is broken.
    pub over: Option<OverBound>,
    /// The rule that is broken; absent if it is a bound that is exceeded.
    pub rule: Option<String>,
    /// The datastore that came nearest to taking it; absent if none did.
    pub to: Option<String>,
    /// Why it stays.
    pub reason: String,
}

/// Recommended moves, and what stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Recommendations {
    /// What datastores were judged by.
    pub asked: StorageDrsBounds,
    /// The guard that the settings give to moves of Storage DRS.
    #[serde(default)]
    pub guard: AskGuard,
    /// All datastores.
    pub datastores: Vec<JudgedDatastore>,
    /// Moves, in the order in which they should be made.
    pub moves: Vec<RecommendedMove>,
    /// Disks that stay on datastores that are over a bound even then, or break rules.
    pub staying: Vec<StayingDisk>,
}

/// What Storage DRS did when it last acted automatically.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StorageDrsRun {
    /// When (seconds since 1970).
    pub at: u64,
    /// The datastores that had been over a bound for long enough.
    pub held: Vec<String>,
    /// How many moves would have done good.
    pub recommended: u64,
    /// The migrations that it has begun.
    pub begun: Vec<u64>,
    /// Moves that could not begin, and why.
    pub failed: Vec<String>,
    /// Disks that stay.
    pub staying: u64,
}

/// Storage DRS in one page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StorageDrs {
    /// What it is told to do.
    pub settings: StorageDrsSettings,
    /// All datastores, against their bounds.
    pub datastores: Vec<JudgedDatastore>,
    /// Rules that must hold and do not.
    pub broken: Vec<String>,
    /// When it acts next, unless something is too full before (seconds since 1970);
    /// absent while it does nothing by itself.
    pub next: Option<u64>,
    /// What it did when it last acted; absent before it has, since the daemon's start.
    pub last: Option<StorageDrsRun>,
    /// Its moves that are under way.
    pub moves: Vec<Migration>,
    /// Its last moves that have ended, the latest first.
    pub ended: Vec<Migration>,
    /// Whether its moves have paid.
    pub scores: BalancedScores,
}
