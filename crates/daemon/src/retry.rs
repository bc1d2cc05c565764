//! What is done again and again: recording figures, and trying again.

use std::sync::Arc;
use std::time::Duration;

use sterna_api::Connections;
use sterna_moves::Job;
use sterna_runtime::tasks::Task;
use sterna_runtime::threads;
use sterna_state::Figured;

use crate::daemon::Daemon;

/// How often what is offline is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// How often what a migration's application noticed, and what was copied, is
/// recorded, for the case that the daemon is killed. So much of the figures may
/// be lost; a write to the state costs next to nothing.
const RECORD: Duration = Duration::from_secs(3);

/// Records the figures of moves.
pub(crate) fn recording(daemon: &Arc<Daemon>) -> Task {
    let record = |daemon: &Arc<Daemon>| {
        daemon.record_all();
        Ok(())
    };
    Task::every("record", "record the figures of moves", RECORD, daemon, record)
}

/// Tries again what could not be done: datastores that are offline, moves that could not be
/// ended, and those of machines that nobody carries out.
pub(crate) fn retrying(daemon: &Arc<Daemon>) -> Task {
    let mut told = Connections::default();
    let retry = move |daemon: &Arc<Daemon>| {
        told = daemon.tell_refused(&told);
        let retried = daemon.retry();
        daemon.end_all_again();
        let put_away = daemon.moves.put_away_overdue();
        let resumed = daemon
            .machines
            .resume_stranded_moves()
            .and(daemon.machines.resume_stranded_vm_migrations());
        retried.and(put_away).and(resumed)
    };
    Task::every("retry", "try again what is offline or unfinished", RETRY, daemon, retry)
}

impl Daemon {
    /// Says in the log how many clients were not let in since the last time; one line for
    /// all of them, however many they are.
    fn tell_refused(&self, told: &Connections) -> Connections {
        let now = self.server.connections();
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
        for job in self.moves.all_jobs().into_iter().filter(|job| !job.running()) {
            // Each by itself: their storage may hang.
            threads::aside(self, move |daemon| {
                if let Err(error) = daemon.moves.end_again(&job) {
                    tracing::warn!(migration = job.id(), %error, "cannot end the migration");
                }
            });
        }
    }

    /// Records what applications have noticed of migrations so far, what was copied,
    /// and why they stand still where that could not be recorded.
    pub(crate) fn record_all(&self) {
        let figured = |job: &Arc<Job>| {
            self.moves.look_at(job);
            let (application, counted) = (job.application(), job.counted());
            Figured { id: job.id(), application, counted }
        };
        let jobs = self.moves.all_jobs();
        for job in &jobs {
            // Its failure was in the log when the migration paused.
            let _ = self.moves.record_standstill(job);
        }
        let all: Vec<_> = jobs.iter().map(figured).collect();
        if !all.is_empty() {
            // What is lost here is a figure; the store says so elsewhere.
            let _ = self.storage.store.set_figures(all);
        }
    }
}
