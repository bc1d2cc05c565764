//! What to do about disks and datastores, seen from what was measured of them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The pattern of a disk's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// It asks for too little to tell.
    Idle,
    /// Requests go anywhere.
    Random,
    /// Short writes, each where the one before ended.
    Log,
    /// Requests in order.
    Stream,
    /// Some of this, and some of that.
    Mixed,
}

/// A disk and its measured load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeenDisk {
    /// Its name.
    pub disk: String,
    /// The datastore that holds its image.
    pub datastore: String,
    /// The pattern of its requests.
    pub nature: Nature,
    /// Reads and writes per second.
    pub iops: f64,
    /// Bytes of a request, on average; absent if there was none.
    pub length: Option<f64>,
    /// The part of its requests that went on where one before ended, from 0 to 1; absent
    /// if there was none.
    pub in_order: Option<f64>,
    /// The part of the time in which it asked for something now and again, from 0 to 1.
    pub there: f64,
}

/// The finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdviceKind {
    /// A datastore is nearly full.
    Full,
    /// A datastore's device is at its limits.
    NearPeak,
    /// The limits of a datastore's device are unknown.
    Unmeasured,
    /// A disk's requests wait for their turn most of the time.
    Queued,
    /// A disk has as many requests under way as QEMU's NBD client lets through.
    Narrow,
    /// Order that an array could use is broken by another disk.
    Broken,
    /// A stream takes most of what a datastore can do, and has no limit.
    Ungoverned,
    /// Best moved when it is quiet.
    MoveWhenQuiet,
    /// Best moved with a bound on response times.
    MoveWithBound,
    /// Can be moved at any time.
    MoveAnyTime,
    /// A disk of a VM that QEMU itself serves.
    Unserved,
    /// A VM that cannot be asked which disks it has.
    Unasked,
}

/// Something that is advised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Advice {
    /// What it is about: `disk web1`, `datastore fast`, `VM web`, `disk vda of web`.
    pub about: String,
    /// The finding.
    pub kind: AdviceKind,
    /// The finding, with its figures.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// Measured loads, and advice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Advised {
    /// Rates are those of the last so many seconds.
    pub window_s: f64,
    /// The disks that were looked at.
    pub disks: Vec<SeenDisk>,
    /// First problems of datastores, then of disks, then how to move disks.
    pub advice: Vec<Advice>,
}
