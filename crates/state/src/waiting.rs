//! Whether a thread waits for the state database, for whoever waits for that thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static WATCHED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Whether somebody's thread waits for the state database now.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Arc<AtomicBool>);

impl Waiting {
    /// Does work on this thread, and knows whenever that waits for the state database.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        WATCHED.set(Some(Arc::clone(&self.0)));
        let done = work();
        WATCHED.set(None);
        done
    }

    /// Whether it waits.
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Waits for the state database.
pub(super) fn wait<T>(answer: impl FnOnce() -> T) -> T {
    let watched = WATCHED.with_borrow(Clone::clone);
    let tell = |is: bool| {
        if let Some(watched) = &watched {
            watched.store(is, Ordering::Relaxed);
        }
    };
    tell(true);
    let answer = answer();
    tell(false);
    answer
}
