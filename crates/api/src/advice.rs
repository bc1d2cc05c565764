//! What to do about disks and datastores, seen from what was measured of them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a disk's requests are like.
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

/// A disk, and what it was seen to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeenDisk {
    /// Its name.
    pub disk: String,
    /// The datastore that holds its image.
    pub datastore: String,
    /// What its requests are like.
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

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdviceKind {
    /// A datastore is nearly full.
    Full,
    /// A datastore's device is at its limits.
    NearPeak,
    /// What a datastore's device can do has not been seen.
    Unmeasured,
    /// A disk's requests wait for their turn most of the time.
    Queued,
    /// A disk has as many requests under way as QEMU's NBD client lets through.
    Narrow,
    /// Order that an array could use is broken by another disk.
    Broken,
    /// A stream takes most of what a datastore does, and nothing holds it.
    Ungoverned,
    /// Best moved when it is quiet.
    MoveWhenQuiet,
    /// Best moved with a bound on response times.
    MoveWithBound,
    /// Can be moved at any time.
    MoveAnyTime,
    /// A disk of a virtual machine that QEMU itself serves.
    Unserved,
    /// A virtual machine that cannot be asked which disks it has.
    Unasked,
}

/// Something that is advised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Advice {
    /// What it is about: `disk web1`, `datastore fast`, `VM web`, `disk vda of web`.
    pub about: String,
    /// What was found.
    pub kind: AdviceKind,
    /// What was found, with the figures that it was seen by.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// What was seen, and what is advised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Advised {
    /// Rates are those of the last so many seconds.
    pub window_s: f64,
    /// The disks that were looked at.
    pub disks: Vec<SeenDisk>,
    /// First what is wrong with datastores, then with disks, then how to move those.
    pub advice: Vec<Advice>,
}
