//! One thread for the process that tries again to start those that could not be started.
//!
//! It is there before the first disk is served, so it needs nothing that could be missing
//! later. Whoever has work and no thread at all says so ([`needs`]), and is asked every
//! [`AGAIN`] whether there is one now. As long as somebody is, `status` says so.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::Duration;

/// How often it tries: a guest's request waits for so long at most once there is room for
/// a thread again.
pub(super) const AGAIN: Duration = Duration::from_millis(100);

/// Tries to start what somebody needs; says whether it is there.
type Try = Box<dyn FnMut() -> bool + Send>;

struct Starter {
    /// Who needs a thread.
    needs: Mutex<Vec<Try>>,
    more: Condvar,
}

static STARTER: Starter = Starter { needs: Mutex::new(Vec::new()), more: Condvar::new() };

/// Starts the thread, unless it runs.
pub(super) fn begin() -> io::Result<()> {
    static RUNS: OnceLock<()> = OnceLock::new();
    if RUNS.get().is_none() {
        thread::Builder::new().name("sterna-starter".into()).spawn(|| STARTER.run())?;
        // Two that begin at the same time are one too many, and share the work.
        let _ = RUNS.set(());
    }
    Ok(())
}

/// Somebody needs a thread and has none.
pub(super) fn needs(is_served: impl FnMut() -> bool + Send + 'static) {
    let mut needs = STARTER.lock();
    if needs.is_empty() {
        tracing::error!(
            "the system has no thread for a datastore's requests, so they wait; find the \
             datastores that hang, and check the limit of threads (TasksMax of the \
             service)"
        );
    }
    needs.push(Box::new(is_served));
    drop(needs);
    STARTER.more.notify_one();
}

/// How many have work and no thread.
pub(crate) fn waiting() -> usize {
    STARTER.lock().len()
}

impl Starter {
    fn lock(&self) -> MutexGuard<'_, Vec<Try>> {
        self.needs.lock().expect("nothing panics with the lock")
    }

    fn run(&self) {
        loop {
            let mut needs = self.lock();
            while needs.is_empty() {
                needs = self.more.wait(needs).expect("nothing panics with the lock");
            }
            needs.retain_mut(|is_served| !is_served());
            drop(needs);
            thread::sleep(AGAIN);
        }
    }
}
