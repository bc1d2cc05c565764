//! Requests that change something, and may wait for storage.
//!
//! **Rule.** They hold at most [`PART`] of the API's connections; one more is refused. So
//! commands that wait for a datastore that hangs keep nobody from asking what is the matter, or
//! from stopping the daemon's moves elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sterna_api::Error;

/// Three of four: the others are for those who only ask.
const PART: (usize, usize) = (3, 4);

/// Those that are being carried out.
#[derive(Debug)]
pub(super) struct Changes {
    most: usize,
    now: AtomicUsize,
}

/// One that is. Over when it is dropped.
#[derive(Debug)]
pub(super) struct Change(Arc<Changes>);

impl Changes {
    /// Of an API with so many connections.
    pub(super) fn of(connections: usize) -> Arc<Changes> {
        let most = (connections * PART.0 / PART.1).max(1);
        Arc::new(Changes { most, now: AtomicUsize::new(0) })
    }

    /// One begins, if there are not too many.
    pub(super) fn begin(self: &Arc<Self>) -> Result<Change, Error> {
        let most = self.most;
        let one_more = |now: usize| (now < most).then_some(now + 1);
        match self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Change(Arc::clone(self))),
            Err(_) => Err(Error::unavailable(format!(
                "{most} commands wait for their end already"
            ))
            .hint(
                "try again in a moment; if a datastore hangs (`sterna datastore list`), \
                 repair it",
            )),
        }
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_connections_is_left_for_those_who_ask() {
        let changes = Changes::of(8);
        let mut under_way: Vec<Change> =
            (0..6).map(|_| changes.begin().unwrap()).collect();
        assert!(changes.begin().is_err());
        under_way.pop();
        assert!(changes.begin().is_ok());
    }

    #[test]
    fn one_is_always_let_in() {
        assert!(Changes::of(1).begin().is_ok());
    }
}
