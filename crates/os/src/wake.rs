//! Waking a thread that sleeps until there is something to do.
//!
//! If the thread is at work when it is woken, it does not sleep the next time: no wake-up
//! is lost.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::lock;

/// Where a thread sleeps.
#[derive(Debug, Default)]
pub struct Sleeper {
    woken: Mutex<bool>,
    wakes: Condvar,
}

impl Sleeper {
    /// Wakes whoever sleeps here, or will.
    pub fn wake(&self) {
        *lock(&self.woken) = true;
        self.wakes.notify_all();
    }

    /// Sleeps until somebody wakes it, at most for `longest`.
    pub fn sleep(&self, longest: Duration) {
        let woken =
            self.wakes.wait_timeout_while(lock(&self.woken), longest, |woken| !*woken);
        let (mut woken, _) = woken.unwrap_or_else(PoisonError::into_inner);
        *woken = false;
    }
}

/// Wakes a thread. The thread is woken for the last time when this is dropped.
#[derive(Debug, Default)]
pub struct Waker(Arc<Sleeper>);

impl Waker {
    /// Something has changed.
    pub fn wake(&self) {
        self.0.wake();
    }

    /// Where the thread sleeps.
    pub fn sleeper(&self) -> Arc<Sleeper> {
        self.0.clone()
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.0.wake();
    }
}
