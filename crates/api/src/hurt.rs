//! Disks whose requests take longer than usual, or than is promised.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// By what a disk is hurt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HurtBy {
    /// Nothing is answered: its datastore hangs.
    Hangs,
    /// Its requests wait for their turn before the device.
    Queued,
    /// Its own application sends more than usual.
    Itself,
    /// Another disk does most of the work of its datastore.
    Neighbour,
    /// Copies of moves do most of it.
    Copies,
    /// Nothing of the kind: the datastore itself is slower.
    Device,
}

/// What would help a disk that is hurt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HurtHelp {
    /// What to do, and what it is predicted to bring; or why nothing is known.
    pub text: String,
    /// The command that does it; absent if nothing is known.
    pub command: Option<String>,
}

/// A disk that is hurt: its requests take longer than usual, or than is promised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HurtDisk {
    /// The disk.
    pub disk: String,
    /// Where it is.
    pub datastore: String,
    /// Since when (seconds since 1970).
    pub since: u64,
    /// What its requests took on average in the last 5 s with any, in microseconds; absent if
    /// they hang.
    pub response_us: Option<f64>,
    /// What the same requests usually take, in microseconds; absent if that is not known.
    pub usual_us: Option<f64>,
    /// What is promised at most, in microseconds; absent if nothing is, or it is kept.
    pub promised_us: Option<f64>,
    /// By what.
    pub by: HurtBy,
    /// The disk that this is, if it is a neighbour.
    pub neighbour: Option<String>,
    /// Whether its requests take what they should again: the disk is hurt until that has
    /// lasted for half a minute.
    #[serde(default)]
    pub recovers: bool,
    /// The same in a sentence.
    pub why: String,
    /// What would help.
    pub help: HurtHelp,
    /// What was done lately that may help the disk, and what came of it so far, in a
    /// sentence; absent if nothing was.
    #[serde(default)]
    pub tried: Option<String>,
}

/// What requests of one kind usually take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsualTime {
    /// Whether they are writes.
    pub writes: bool,
    /// The longest of them, in bytes; absent if these are all longer ones.
    pub longest: Option<u64>,
    /// What they take, in microseconds; absent while it is not known.
    pub response_us: Option<f64>,
    /// How much load of this kind was seen, in seconds, of which old load fades.
    pub learned_s: f64,
}

/// What is usual for a disk: what its requests are compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsualDisk {
    /// The disk.
    pub disk: String,
    /// Since when it is learned (seconds since 1970); absent if the disk was asked for nothing
    /// yet.
    pub since: Option<u64>,
    /// Seconds of load after which a time is known.
    pub needed_s: f64,
    /// By kind of requests.
    pub times: Vec<UsualTime>,
    /// Requests per second while the disk is asked for anything; absent while it is not known.
    pub iops: Option<f64>,
}
