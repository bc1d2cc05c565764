//! Threads for work that begins while the daemon runs.
//!
//! The system may refuse a thread: a user or a service has a limit on threads. The caller must
//! be able to do without.

use std::sync::Arc;
use std::thread;

use sterna_api::{Error, Result};

/// Has work done by a thread of its own.
pub fn start(name: String, work: impl FnOnce() + Send + 'static) -> Result<()> {
    #[cfg(feature = "test-util")]
    refusals::check(&name)?;
    let started = thread::Builder::new().name(name).spawn(work);
    started
        .map(drop)
        .map_err(|error| Error::internal(format!("cannot start a thread: {error}")))
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

#[cfg(feature = "test-util")]
pub mod refusals;
