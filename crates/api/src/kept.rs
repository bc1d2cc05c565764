//! How promises to a class were kept, hour by hour.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How one promise was kept in one hour. The seconds are those in which the promise was in
/// force and the daemon ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeptHour {
    /// The policy whose target was promised; absent if it was the class's reservation.
    pub policy: Option<u64>,
    /// When the hour began (seconds since 1970).
    pub at: u64,
    /// Seconds in which the class had what was promised.
    pub kept_s: f64,
    /// Seconds in which it had less.
    pub missed_s: f64,
    /// Seconds that count neither way: the class asked for nothing, or a limit of its own left
    /// it less than is reserved.
    pub quiet_s: f64,
}

/// How the promises to a class were kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeptClass {
    /// The class.
    pub class: String,
    /// The hours in which something was promised, the oldest first.
    pub hours: Vec<KeptHour>,
}
