//! What the stream of live figures says besides what other requests answer with.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The first event of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hello {
    /// The daemon's clock (milliseconds since 1970).
    pub now_ms: u64,
    /// Another one after each start of the daemon: whatever was shown is to be read anew.
    pub daemon: String,
    /// The daemon's version.
    pub version: String,
    /// How often figures come, in milliseconds.
    pub interval_ms: u64,
}

/// The last event of each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tick {
    /// The daemon's clock (milliseconds since 1970): figures are as old as this says.
    pub now_ms: u64,
}
