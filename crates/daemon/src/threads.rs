//! Threads for work that begins while the daemon runs.
//!
//! The system may refuse one: of processes and threads a user or a service may have so many
//! only. Who asks for one must be able to do without.

use std::thread;

use sterna_api::{Error, Result};

/// Has work done by a thread of its own.
pub(crate) fn start(name: String, work: impl FnOnce() + Send + 'static) -> Result<()> {
    #[cfg(test)]
    tests::refuse(&name)?;
    let started = thread::Builder::new().name(name).spawn(work);
    started
        .map(drop)
        .map_err(|error| Error::internal(format!("cannot start a thread: {error}")))
}

#[cfg(test)]
pub(crate) mod tests;
