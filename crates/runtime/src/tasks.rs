//! The daemon's tasks: what it does again and again, each on a thread of its own.
//!
//! One driver runs them all, so that they are listed (`sterna status --tasks`), woken and
//! ended in one way. A task says how long it sleeps after a run; it can be woken earlier.
//! A task never runs twice at once, and never has a share of the daemon while it sleeps.
//!
//! If a run fails, the driver logs why and runs the task again. If a run hangs (with the
//! storage that it asks, say), the others go on, the list shows since when it runs, and the
//! daemon stops without it.

pub mod feed;
mod task;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use sterna_api::Result;
use sterna_os::lock;

pub use self::feed::{Feed, feed};
use self::task::Progress;
pub use self::task::Task;
use crate::threads;

/// Tasks that run.
#[derive(Debug, Default)]
pub struct Tasks {
    running: Mutex<Vec<Running>>,
    stopping: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Running {
    progress: Arc<Progress>,
    /// Nothing is sent: it is closed when the task has ended.
    ended: mpsc::Receiver<()>,
}

impl Tasks {
    /// Starts a task. Refused if the system has no thread for it.
    pub fn start(&self, mut task: Task) -> Result<()> {
        let (ends, ended) = mpsc::channel::<()>();
        let progress = task.progress();
        let stopping = self.stopping.clone();
        threads::start(format!("sterna-{}", progress.name()), move || {
            task.run(|| stopping.load(SeqCst));
            // All that it has, first.
            drop(task);
            drop(ends);
        })?;
        lock(&self.running).push(Running { progress, ended });
        Ok(())
    }

    /// All tasks, in the order in which they were started.
    pub fn list(&self) -> Vec<sterna_api::Task> {
        lock(&self.running).iter().map(|one| one.progress.view()).collect()
    }

    /// Ends all tasks: each ends its run, and begins no other. Gives the names of those that
    /// are still at it after `limit`; their threads are left behind.
    pub fn stop(&self, limit: Duration) -> Vec<&'static str> {
        self.stopping.store(true, SeqCst);
        let running = std::mem::take(&mut *lock(&self.running));
        running.iter().for_each(|one| one.progress.wake());
        let until = Instant::now() + limit;
        let mut hanging = Vec::new();
        for Running { progress, ended } in running {
            let left = until.saturating_duration_since(Instant::now());
            if ended.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Timeout) {
                hanging.push(progress.name());
            }
        }
        hanging
    }
}
