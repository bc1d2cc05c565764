//! What a disk, a class or a datastore did over time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The points of a chart, as columns of equal length. Where a disk did nothing there is no
/// point: a pause is the time between a point's end and the next one's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Columns {
    /// When each point begins (milliseconds since 1970).
    pub start_ms: Vec<u64>,
    /// When each point ends (milliseconds since 1970).
    pub end_ms: Vec<u64>,
    /// How many windows that were measured each point has.
    pub windows: Vec<u32>,
    /// Reads per second.
    pub read_iops: Vec<f64>,
    /// Writes per second.
    pub write_iops: Vec<f64>,
    /// Bytes read per second.
    pub read_bytes_s: Vec<f64>,
    /// Bytes written per second.
    pub write_bytes_s: Vec<f64>,
    /// Half of the requests were answered within so many microseconds; of several windows
    /// that of the worst one.
    pub p50_us: Vec<Option<f64>>,
    /// 99 of 100 were answered within so many microseconds; of several windows that of the
    /// worst one. Percentiles are never averaged.
    pub p99_us: Vec<Option<f64>>,
    /// The longest response time in microseconds.
    pub max_us: Vec<Option<f64>>,
    /// The mean time for which a request waited for its turn, in microseconds.
    pub queue_us: Vec<Option<f64>>,
    /// The mean time from its turn to its answer, in microseconds.
    pub service_us: Vec<Option<f64>>,
    /// Requests under way, on average.
    pub outstanding: Vec<f64>,
}

/// What one thing did between two moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    /// What: `disk:db`, `class:gold`, `datastore:fast` or `all`.
    pub of: String,
    /// The first moment that was asked for (milliseconds since 1970).
    pub from_ms: u64,
    /// The last moment that was asked for (milliseconds since 1970).
    pub to_ms: u64,
    /// The daemon's clock (milliseconds since 1970).
    pub now_ms: u64,
    /// The points.
    pub columns: Columns,
}
