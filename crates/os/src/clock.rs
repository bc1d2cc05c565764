//! The time of day, as records keep it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub fn now() -> u64 {
    since_1970().as_secs()
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    since_1970().as_millis() as u64
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
