//! Waiting for a condition instead of for time to pass.

use std::time::{Duration, Instant};

/// How often a condition is looked at.
const PERIOD: Duration = Duration::from_millis(20);

/// Looks until `condition` gives something, and gives that. Panics after
/// `limit` and says what was waited for.
#[track_caller]
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {limit:?} for {what}");
        std::thread::sleep(PERIOD);
    }
}

/// So many seconds.
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
