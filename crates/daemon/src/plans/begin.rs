//! Beginning a plan's moves, and giving them up: each on a thread of its own, as it may
//! hang with its datastore.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use sterna_api::{AskGuard, ErrorCode, StartMigration};
use sterna_core::place::waves::{Event, Fault, Stage};
use sterna_engine::DiskId;

use super::{Heard, Live, State};
use crate::daemon::{Daemon, lock};
use crate::error::DaemonError;

/// A move that is to begin.
struct Begin {
    at: usize,
    disk: DiskId,
    from: String,
    request: StartMigration,
}

impl State {
    /// What is asked for to begin a move.
    fn begin(&self, at: usize, to: usize) -> Begin {
        let (design, one) = (&self.record.design, &self.record.moves[at]);
        let guard = &design.guard;
        Begin {
            at,
            disk: one.disk,
            from: design.ends[one.design.from].name.clone(),
            request: StartMigration {
                disk: one.design.name.clone(),
                to: design.ends[to].name.clone(),
                provision: None,
                rate: design.rate,
                verify: design.verify,
                keep_source: false,
                guard: AskGuard {
                    keep: guard.keep,
                    p99_us: guard.p99_us,
                    finish_by: None,
                    idle_only: guard.idle_only,
                    window: guard.window.clone(),
                },
            },
        }
    }
}

impl Daemon {
    /// Begins a move; what becomes of that is heard later.
    pub(super) fn begin_move(self: &Arc<Self>, live: &Arc<Live>, at: usize, to: usize) {
        let begin = lock(&live.state).begin(at, to);
        let (daemon, known) = (self.clone(), live.clone());
        let run = move || {
            let heard = daemon.try_to_begin(&begin);
            lock(&known.inbox).push(heard);
            daemon.plans.bell.ring();
        };
        let spawned = thread::Builder::new().name("sterna-plan-move".into()).spawn(run);
        if let Err(error) = spawned {
            let problem = Some(format!("no thread for a migration: {error}"));
            let refused = Heard::of(Event::Refused(at, Fault::Passing));
            lock(&live.inbox).push(Heard { problem, ..refused });
        }
    }

    fn try_to_begin(self: &Arc<Self>, begin: &Begin) -> Heard {
        let Begin { at, request, .. } = begin;
        let started = self
            .check_planned(begin)
            .map_err(|error| match error.code() {
                ErrorCode::NotFound | ErrorCode::Invalid => (Fault::Lasting, error),
                _ => (Fault::Passing, error),
            })
            .and_then(|()| {
                let started = self.start_migration(request);
                started.map_err(|error| (self.fault_of(begin, &error), error))
            });
        match started {
            Ok(one) => Heard { migration: Some(one.id), ..Heard::of(Event::Began(*at)) },
            Err((fault, error)) => {
                tracing::warn!(disk = request.disk, ?fault, %error, "a move did not begin");
                let problem = Some(error.to_string());
                Heard { problem, ..Heard::of(Event::Refused(*at, fault)) }
            }
        }
    }

    /// Refuses a disk that is not what was planned for.
    fn check_planned(&self, begin: &Begin) -> Result<(), DaemonError> {
        let name = &begin.request.disk;
        let disk = self.disk_record(name)?;
        if disk.id != begin.disk {
            let message = format!("disk {name} is not the one that was planned for");
            return Err(DaemonError::invalid(message));
        }
        if disk.datastore != begin.from {
            let (from, now) = (&begin.from, disk.datastore);
            let message = format!("disk {name} is not on {from} any more, but on {now}");
            return Err(DaemonError::invalid(message));
        }
        Ok(())
    }

    /// Whose fault it is that a move did not begin.
    fn fault_of(&self, begin: &Begin, error: &DaemonError) -> Fault {
        let there = self.shelf(&begin.request.to);
        if !there.is_ok_and(|it| !it.is_in_maintenance()) {
            return Fault::Destination;
        }
        match error.code() {
            ErrorCode::NoSpace => Fault::Full,
            ErrorCode::Unavailable if self.problem_of(begin.disk).is_none() => {
                Fault::Destination
            }
            ErrorCode::Unavailable | ErrorCode::InUse | ErrorCode::Internal => {
                Fault::Passing
            }
            _ => Fault::Lasting,
        }
    }

    /// Gives a move up.
    pub(super) fn leave_move(self: &Arc<Self>, live: &Arc<Live>, at: usize) {
        let migration = {
            let mut state = lock(&live.state);
            state.told_to_leave.insert(at, Instant::now());
            state.record.moves[at].course.migration
        };
        let Some(id) = migration else { return };
        let daemon = self.clone();
        let run = move || {
            // One that is just ending is heard of as ended.
            if let Err(error) = daemon.cancel_migration(id) {
                tracing::info!(migration = id, %error, "it is not cancelled by its plan");
            }
            daemon.plans.bell.ring();
        };
        let spawned = thread::Builder::new().name("sterna-plan-end".into()).spawn(run);
        if let Err(error) = spawned {
            tracing::warn!(migration = id, %error, "no thread to cancel it; tried again");
        }
    }

    /// Lets the migrations of a plan go on that it had stand still.
    pub(super) fn wake_moves(self: &Arc<Self>, state: &State) {
        let moves = state.record.moves.iter().zip(state.run.tasks());
        let running = moves.filter(|(_, task)| task.stage == Stage::Running);
        for id in running.filter_map(|(one, _)| one.course.migration) {
            if let Err(error) = self.resume_migration(id) {
                tracing::warn!(migration = id, %error, "it does not go on with its plan");
            }
        }
    }
}
