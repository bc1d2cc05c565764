//! Threads for work that begins while the daemon runs.
//!
//! The system may refuse a thread: a user or a service has a limit on threads. The caller must
//! be able to do without.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_os::limits::THREADS;

/// Has work done by a thread of its own.
pub fn start(name: String, work: impl FnOnce() + Send + 'static) -> Result<()> {
    #[cfg(feature = "test-util")]
    refusals::check(&name)?;
    let started = thread::Builder::new().name(name).spawn(work);
    started.map(drop).map_err(|error| {
        Error::internal(format!("cannot start a thread: {error}")).hint(THREADS)
    })
}

/// Does something that may wait for storage on a thread of its own; false if there is none
/// for it. Then it is for the caller to try again.
pub fn aside<T: Send + Sync + 'static>(
    service: &Arc<T>,
    work: impl FnOnce(&Arc<T>) + Send + 'static,
) -> bool {
    let service = service.clone();
    let started = start("sterna-up".into(), move || work(&service));
    if let Err(error) = &started {
        tracing::warn!(%error, "cannot start a thread that checks storage; Sterna \
                                tries again");
    }
    started.is_ok()
}

/// What some work gives, if it does so in time; else its thread is left behind. If the system
/// gives no thread for it, the work has all the time that it takes.
pub fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, answer) = mpsc::sync_channel(1);
    let (give, given) = mpsc::sync_channel(1);
    let run = move || {
        let work = given.recv().ok();
        // The caller may have gone on.
        let _ = done.send(work.map(|work: Box<dyn FnOnce() -> T + Send>| work()));
    };
    if let Err(error) = thread::Builder::new().name("sterna-within".into()).spawn(run) {
        tracing::warn!(%error, "no thread for work with a bound: it has none");
        return Some(work());
    }
    let _ = give.send(Box::new(work));
    answer.recv_timeout(limit).ok().flatten()
}

#[cfg(feature = "test-util")]
pub mod refusals;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_left_behind() {
        let (go_on, waits) = mpsc::channel::<()>();
        let hangs = within(Duration::from_millis(20), move || waits.recv().is_ok());
        assert_eq!(hangs, None);
        drop(go_on);
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
    }
}
