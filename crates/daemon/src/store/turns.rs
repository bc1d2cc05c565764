//! Who of this process writes next.
//!
//! SQLite has one lock for writers, and who waits for it polls: a commit that
//! looks every few milliseconds, while the store's thread writes one thing after
//! the other, may never find it free, and a guest is held meanwhile. So the
//! writers of this process take turns here, where who waits is woken, and a
//! commit goes first: while one waits, nothing queued is begun.
//!
//! It is courtesy, not safety. A commit whose time is over asks SQLite all the
//! same: the store's thread may only be moving the WAL into the database, which
//! is in nobody's way.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Default)]
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    taken: bool,
    commits_waiting: usize,
}

/// A writer's turn; it ends when this is dropped.
pub(super) struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().taken = false;
        self.0.changed.notify_all();
    }
}

impl Turns {
    /// A turn for something queued, when nobody writes and no commit waits.
    pub(super) fn queued(&self) -> Turn<'_> {
        let wait = |state: &mut State| state.taken || state.commits_waiting > 0;
        let state = self.changed.wait_while(self.state(), wait);
        state.unwrap_or_else(PoisonError::into_inner).taken = true;
        Turn(self)
    }

    /// A turn for a commit, if there is one within `limit`.
    pub(super) fn commit(&self, limit: Duration) -> Option<Turn<'_>> {
        let mut state = self.state();
        state.commits_waiting += 1;
        let waited = self.changed.wait_timeout_while(state, limit, |state| state.taken);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.commits_waiting -= 1;
        if state.taken {
            return None;
        }
        state.taken = true;
        Some(Turn(self))
    }

    #[cfg(test)]
    pub(super) fn commit_waits(&self) -> bool {
        self.state().commits_waiting > 0
    }

    /// Two plain values: a panic leaves them as good as they were.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
