//! What wakes a thread that sleeps until there is something to do.
//!
//! A ring that comes while the thread is at work is heard when it is done: none is lost.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::daemon::lock;

/// A thread sleeps until it is rung.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    fn ring(&self) {
        *lock(&self.rung) = true;
        self.heard.notify_all();
    }

    /// Sleeps until it is rung, or for so long.
    pub(crate) fn wait(&self, longest: Duration) {
        let rung =
            self.heard.wait_timeout_while(lock(&self.rung), longest, |rung| !*rung);
        let (mut rung, _) = rung.unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }
}

/// The daemon's hand on a bell. It is rung for the last time when the daemon goes.
#[derive(Debug, Default)]
pub(crate) struct Ringer(Arc<Bell>);

impl Ringer {
    /// Something has changed.
    pub(crate) fn ring(&self) {
        self.0.ring();
    }

    /// The bell, for the thread that sleeps.
    pub(crate) fn bell(&self) -> Arc<Bell> {
        self.0.clone()
    }
}

impl Drop for Ringer {
    fn drop(&mut self) {
        self.0.ring();
    }
}
