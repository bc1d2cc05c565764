//! What is done again and again: recording figures, and trying again.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use sterna_api::Connections;

use crate::daemon::Daemon;
use crate::jobs::Job;
use crate::store::Figured;

/// How often what is offline is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// How often what a migration's application noticed, and what was copied, is
/// recorded, for the case that the daemon is killed. So much of the figures may
/// be lost; a write to the state costs next to nothing.
const RECORD: Duration = Duration::from_secs(3);

/// Starts the keeper. It ends with the daemon.
pub(crate) fn start(daemon: &Arc<Daemon>) -> std::io::Result<()> {
    let recorded = Arc::downgrade(daemon);
    let recorder = thread::Builder::new().name("sterna-record".into());
    recorder.spawn(move || record_for_ever(&recorded))?;
    let retried = Arc::downgrade(daemon);
    let retrier = thread::Builder::new().name("sterna-retry".into());
    retrier.spawn(move || retry_for_ever(&retried))?;
    Ok(())
}

fn record_for_ever(daemon: &Weak<Daemon>) {
    loop {
        thread::sleep(RECORD);
        let Some(daemon) = daemon.upgrade() else { return };
        daemon.record_all();
    }
}

fn retry_for_ever(daemon: &Weak<Daemon>) {
    let mut told = Connections::default();
    loop {
        thread::sleep(RETRY);
        let Some(daemon) = daemon.upgrade() else { return };
        told = daemon.tell_refused(&told);
        if let Err(error) = daemon.retry() {
            tracing::warn!(%error, "cannot look for offline datastores");
        }
        daemon.end_all_again();
        let resumed = daemon.resume_stranded_moves();
        if let Err(error) = resumed.and_then(|()| daemon.resume_stranded_transfers()) {
            tracing::warn!(%error, "cannot look for moves without a thread");
        }
    }
}

impl Daemon {
    /// Says in the log how many clients were not let in since the last time; one line for
    /// all of them, however many they are.
    fn tell_refused(&self, told: &Connections) -> Connections {
        let now = self.connections();
        let guests = now.guests_refused.saturating_sub(told.guests_refused);
        if guests > 0 {
            tracing::warn!(
                clients = guests,
                there = now.guests,
                "NBD clients turned away"
            );
        }
        let api = now.api_closed.saturating_sub(told.api_closed);
        if api > 0 {
            tracing::warn!(connections = api, there = now.api, "API connections closed");
        }
        now
    }

    /// Ends the migrations whose end the state did not take at first. Until then
    /// their disks count as being moved.
    fn end_all_again(self: &Arc<Self>) {
        for job in self.all_jobs().into_iter().filter(|job| !job.running()) {
            // Each by itself: their storage may hang.
            self.aside(move |daemon| {
                if let Err(error) = daemon.end_again(&job) {
                    tracing::warn!(migration = job.id(), %error, "cannot end the migration");
                }
            });
        }
    }

    /// Records what applications have noticed of migrations so far, what was copied,
    /// and why they stand still where that could not be recorded.
    pub(crate) fn record_all(&self) {
        let figured = |job: &Arc<Job>| {
            self.look_at(job);
            let (application, tallied) = (job.application(), job.tallied());
            Figured { id: job.id(), application, tallied }
        };
        let jobs = self.all_jobs();
        for job in &jobs {
            // Its failure was in the log when the migration paused.
            let _ = self.record_standstill(job);
        }
        let all: Vec<_> = jobs.iter().map(figured).collect();
        if !all.is_empty() {
            // What is lost here is a figure; the store says so elsewhere.
            let _ = self.store.set_figures(all);
        }
    }
}
