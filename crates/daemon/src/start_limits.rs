//! What the system must give a daemon at once, so that it can start.
//!
//! Each of these threads is there for as long as the daemon runs. If the system gives no thread
//! for one of them, the start fails, and libraries panic or wait for ever. What the daemon does
//! later has threads of its own, and is refused without.

use sterna_api::Result;
use sterna_engine::Config;
use sterna_os::limits;

/// The log, the state database, the activities, and the engine's thread that starts others again.
const ALONE: usize = 4;

/// How many workers the daemon's async runtime is to have: the control plane is quiet, and the
/// guests' I/O has threads of its own.
pub const RUNTIME_WORKERS: usize = 2;

/// The runtime's thread for what blocks: the start, and requests.
const RUNTIME_BLOCKING: usize = 1;

/// What the daemon does again and again: a thread each (`tasks_of`).
pub(crate) const TASKS: usize = 23;

/// Refuses to start a daemon that would not get all that it needs. What this gives is a warning:
/// it gets that, and little more.
pub fn check_start() -> Result<Option<String>> {
    limits::check_start(threads(Config::default().reactor_count()))
}

/// How many threads a daemon starts with, beside the main one.
fn threads(reactors: usize) -> usize {
    ALONE + RUNTIME_WORKERS + RUNTIME_BLOCKING + reactors + TASKS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_on_one_processor_fits_in_a_container_of_32_threads() {
        let main = 1;
        assert!(main + threads(1) <= 32);
    }
}
