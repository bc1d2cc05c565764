//! How the daemon stops.
//!
//! First the daemon's own threads end, and what they know is recorded; then the engine ends:
//! connections are closed, and what clients have flushed is where it belongs. Both have a bound,
//! as storage may hang: of a datastore, or of the state directory. What could not be recorded is
//! then as after a kill, which the next daemon is made for; the guests' requests are
//! not, so the engine ends in good order whatever the state directory does.
//!
//! Threads that are still waiting are left behind, and end with the process. (The kernel keeps
//! the process while a thread waits for a file system that is frozen.)

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use sterna_engine::STOPS_WITHIN;
use sterna_memory::{Memory, RELEASES_WITHIN};
use sterna_runtime::threads::within;
use sterna_storage::Storage;

use crate::serve::Running;

/// How long the daemon's own threads may take to end.
const LAST_THREADS: Duration = Duration::from_secs(3);

/// How long they may take at least once all is recorded: slow records used up their time, and they
/// end on their own.
const LAST_SHARES: Duration = Duration::from_millis(500);

/// How long the last records may take after that: half a dozen durable writes, each of which may
/// take a second on a busy disk.
const LAST_RECORDS: Duration = Duration::from_secs(3);

/// How long the engine may take to end. It also notes in the state directory how each disk was
/// left.
const LAST_DISKS: Duration = STOPS_WITHIN.saturating_add(Duration::from_secs(1));

/// How long the state database may take to finish what it is at, and those beside it.
const LAST_CHANGE: Duration = Duration::from_millis(500);

impl Running {
    /// Stops the daemon's threads and the engine, and gives up sockets and lock. Blocks.
    pub(crate) fn stop(self) {
        let Running { daemon, gone, api, bound, lock } = self;
        drop(api);
        daemon.machines.leave_vm_moves();
        daemon.machines.leave_vm_migrations();
        let deadline = Instant::now() + LAST_THREADS;
        let hanging = daemon.tasks.stop(LAST_THREADS);
        if !hanging.is_empty() {
            tracing::warn!(tasks = hanging.join(", "), "tasks hang, and are left behind");
        }
        // Nobody would give it back to a guest that runs short.
        if !release_balloons(daemon.memory.clone()) {
            tracing::warn!("balloons were not released in time: the next daemon does it");
        }
        let (engine, store) =
            (daemon.storage.engine.clone(), daemon.storage.store.clone());
        let (activity, history) =
            (daemon.server.activity.clone(), daemon.planner.history());
        let recorded = within(LAST_RECORDS, move || {
            daemon.record_all();
            // Minutes of what was kept, at most.
            let _ = daemon.levels.record_kept();
            let _ = daemon.planner.keep_usual();
            note_fingerprints(&daemon.storage);
            // Other threads that hold the daemon end on their own within moments, unless they
            // wait for storage that hangs; the engine stops either way, and before the lock
            // is given up.
            daemon.moves.close_files();
        });
        if recorded.is_none() {
            tracing::warn!(
                "storage does not answer: stopped without the last records, as after a kill"
            );
        }
        let left = deadline.saturating_duration_since(Instant::now()).max(LAST_SHARES);
        let has_gone = gone.recv_timeout(left) == Err(RecvTimeoutError::Disconnected);
        let ended = within(LAST_DISKS, move || {
            let may_release = engine.stop();
            // The next daemon binds its own once it has the lock.
            drop(bound);
            may_release
        });
        // Threads that were left behind must not record anything under another daemon.
        let may_release = ended == Some(true)
            && recorded.is_some()
            && within(LAST_CHANGE, move || store.close()).is_some();
        // The kernel keeps this process while one of its threads waits for a device.
        within(LAST_CHANGE, move || {
            activity.close();
            if let Some(history) = history {
                history.close();
            }
        });
        if may_release {
            lock.release();
        }
        match has_gone && ended.is_some() {
            true => tracing::info!("stopped"),
            false => tracing::warn!(
                threads_ended = has_gone,
                engine_ended = ended.is_some(),
                "some storage has not answered in time: stopped without waiting for it"
            ),
        }
    }
}

/// Whether all balloons were told to give back what they have. Keeps no share of the service.
fn release_balloons(memory: Arc<Memory>) -> bool {
    !memory.has_balloons()
        || within(RELEASES_WITHIN, move || memory.release_balloons()).is_some()
}

fn note_fingerprints(storage: &Storage) {
    if let Err(error) = storage.complete_fingerprints() {
        // The disks count as those of a daemon that was killed.
        tracing::debug!(%error, "how old the fingerprints are was not recorded");
    }
}
