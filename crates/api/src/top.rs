//! Who does what now: disks, classes and datastores beside each other.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The row of the disks that are in no class, which no class can be called.
pub const NO_CLASS: &str = "(no class)";

/// What the rows are.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TopBy {
    /// Disks: what their clients asked for.
    #[default]
    Disk,
    /// Classes: all their disks; the copies of all migrations are one, too, and the
    /// disks that are in none are `(no class)`.
    Class,
    /// Datastores: the disks that have their image there, and what is copied from and
    /// to it.
    Datastore,
}

impl TopBy {
    /// As it is written in a query.
    pub fn as_str(self) -> &'static str {
        match self {
            TopBy::Disk => "disk",
            TopBy::Class => "class",
            TopBy::Datastore => "datastore",
        }
    }
}

/// Reads, or writes, in a window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SideLoad {
    /// So many per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// The mean response time in microseconds; absent if there was none.
    pub response_us: Option<f64>,
}

/// The load in a window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Load {
    /// How long the window was, in seconds.
    pub window_s: f64,
    /// Reads.
    pub read: SideLoad,
    /// Writes.
    pub write: SideLoad,
    /// Flushes per second. They wait for no turn, and count under no limit.
    #[serde(default)]
    pub flushes: f64,
    /// The mean time for which a request waited for its turn, in microseconds.
    pub queue_us: Option<f64>,
    /// The mean time from its turn to its answer, in microseconds.
    pub service_us: Option<f64>,
    /// Half of the requests were answered within so many microseconds.
    pub p50_us: Option<f64>,
    /// 95 of 100 were answered within so many microseconds.
    pub p95_us: Option<f64>,
    /// 99 of 100 were answered within so many microseconds.
    pub p99_us: Option<f64>,
    /// The longest response time in microseconds.
    pub max_us: Option<f64>,
    /// Requests under way, on average.
    pub outstanding: f64,
    /// Requests under way at the window's end.
    pub in_flight: u64,
}

impl Load {
    /// Reads and writes per second.
    pub fn iops(&self) -> f64 {
        self.read.iops + self.write.iops
    }

    /// Bytes read and written per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.read.bytes_per_second + self.write.bytes_per_second
    }
}

/// What is known of a device from its traffic of the last hour: with so many requests
/// outstanding one takes `unloaded_us + slope_us * outstanding`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "known", rename_all = "snake_case")]
pub enum Device {
    /// Its line.
    Line {
        /// The service time of a request that is alone, in microseconds.
        unloaded_us: f64,
        /// What each outstanding request adds, in microseconds.
        slope_us: f64,
        /// How far off that may be, in microseconds.
        slope_error_us: f64,
        /// Requests per second that no load exceeds: `1 / slope`.
        peak_iops: f64,
        /// How many points the line was fitted to.
        points: u64,
        /// The least outstanding requests that were seen.
        seen_from: f64,
        /// The most outstanding requests that were seen.
        seen_to: f64,
    },
    /// Not enough was seen.
    TooFew {
        /// How many points there are.
        points: u64,
    },
    /// The load was nearly always the same, or hardly ever two requests at a time, or
    /// varied no more than by noise.
    NoVariation {
        /// The least outstanding requests that were seen.
        seen_from: f64,
        /// The most outstanding requests that were seen.
        seen_to: f64,
    },
    /// Service times did not grow with the load: its limits were not reached.
    Flat {
        /// The service time, in microseconds.
        service_us: f64,
        /// The least outstanding requests that were seen.
        seen_from: f64,
        /// The most outstanding requests that were seen.
        seen_to: f64,
    },
}

/// A disk, a class or a datastore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopRow {
    /// Its name.
    pub name: String,
    /// The load.
    pub load: Load,
    /// The known limits of the device; only for datastores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
}

/// The load of all disks, classes or datastores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Top {
    /// What the rows are.
    pub by: TopBy,
    /// When this was (milliseconds since 1970).
    pub at_ms: u64,
    /// Disks that are served.
    pub disks: u64,
    /// Migrations that have not ended.
    pub migrations: u64,
    /// All disks together, without copies.
    pub total: Load,
    /// All of them, by name; the idle ones, too. In the stream of live figures: those that
    /// were asked for, in the order that was asked for.
    pub rows: Vec<TopRow>,
    /// In the stream of live figures: how many rows the filter lets through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<u64>,
}
