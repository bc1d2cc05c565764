//! What a disk's requests are like, since the disk was attached.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Load;

/// How long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Times {
    /// On average, in microseconds.
    pub mean_us: f64,
    /// Half took no longer, in microseconds.
    pub p50_us: f64,
    /// 95 of 100 took no longer, in microseconds.
    pub p95_us: f64,
    /// 99 of 100 took no longer, in microseconds.
    pub p99_us: f64,
    /// 999 of 1000 took no longer, in microseconds.
    pub p999_us: f64,
    /// The longest, in microseconds.
    pub max_us: f64,
}

/// How many values were in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bucket {
    /// Up to this one, from the bucket before on; absent: whatever is more.
    pub to: Option<i64>,
    /// How many.
    pub count: u64,
}

/// What requests of one kind look like, with the buckets of vscsiStats. Counted as they
/// come, the response times as they are answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pattern {
    /// Bytes.
    pub length: Vec<Bucket>,
    /// Sectors of 512 bytes from the end of the request of this kind before; negative
    /// backwards, 0 in order.
    pub distance: Vec<Bucket>,
    /// The same, from the nearest end of the last 16 requests of this kind.
    pub nearest: Vec<Bucket>,
    /// The disk's requests under way when one came, with itself.
    pub outstanding: Vec<Bucket>,
    /// Microseconds since the request of this kind before came.
    pub interval: Vec<Bucket>,
    /// Microseconds from its coming to its answer.
    pub response: Vec<Bucket>,
}

/// Requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RequestStats {
    /// How many were answered well.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From their coming to their answer; absent if there was none.
    pub response: Option<Times>,
    /// What they waited for their turn; absent if none ever had to.
    pub queue: Option<Times>,
    /// From their turn to their answer; absent if there was none.
    pub service: Option<Times>,
    /// What they look like; absent if there was none.
    pub pattern: Option<Pattern>,
}

/// A disk's requests since the disk was attached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiskStats {
    /// The disk's name.
    pub name: String,
    /// The datastore that holds its image.
    pub datastore: String,
    /// Clients connected to it.
    pub connections: u64,
    /// Requests being carried out.
    pub in_flight: u64,
    /// The last ten seconds.
    pub recent: Load,
    /// Reads.
    pub read: RequestStats,
    /// Writes.
    pub write: RequestStats,
    /// Flushes.
    pub flushes: u64,
    /// Discards and write-zeroes.
    pub zeroes: u64,
    /// Requests answered with an error.
    pub errors: u64,
}
