//! Beginning a plan's moves: each on a thread of its own, as it may hang with its
//! datastore.
//!
//! Whether a move has begun, the state says, and not the answer: where that is an error, a
//! migration may go on all the same, and is looked up as after a kill.

use std::sync::Arc;
use std::thread;

use sterna_api::{AskGuard, Error, ErrorCode, Result, StartMigration};
use sterna_core::{Bytes, DiskId};
use sterna_moves::{NotStarted, old_copy};
use sterna_os::lock;
use sterna_placement::waves::{Event, Fault, Refusal};
use sterna_state::{DiskRecord, MigrationRecord, Step};
use sterna_storage::Space;

use super::drive::LOOK_AGAIN;
use super::{Heard, Live, State};
use crate::Planner;

/// A move that is to begin.
struct Begin {
    at: usize,
    disk: DiskId,
    from: String,
    /// What was planned that it needs, and how full its destination may be.
    needs: u64,
    space: f64,
    /// The last migration there was before: its own has a higher number.
    seen: u64,
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
            needs: one.design.needs,
            space: design.space,
            seen: one.course.seen,
            request: StartMigration {
                disk: one.design.name.clone(),
                to: design.ends[to].name.clone(),
                provision: None,
                rate: design.rate,
                verify: design.verify,
                keep_source: false,
                skip_bad_sectors: false,
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

impl Planner {
    /// Begins a move; what becomes of that is heard later.
    pub(super) fn begin_move(self: &Arc<Self>, live: &Arc<Live>, at: usize, to: usize) {
        let begin = lock(&live.state).begin(at, to);
        let (planner, known) = (self.clone(), live.clone());
        let run = move || {
            let heard = planner.try_to_begin(&begin);
            lock(&known.inbox).push(heard);
            planner.plans.waker.wake();
        };
        let spawned = thread::Builder::new().name("sterna-plan-move".into()).spawn(run);
        if let Err(error) = spawned {
            let problem = Some(format!("cannot start a thread for a migration: {error}"));
            let refused = Heard::of(Event::Refused(at, Fault::Passing));
            lock(&live.inbox).push(Heard { problem, ..refused });
        }
    }

    fn try_to_begin(self: &Arc<Self>, begin: &Begin) -> Heard {
        let at = begin.at;
        let began = |id| Heard { migration: Some(id), ..Heard::of(Event::Began(at)) };
        // One that hangs would hold the move for ever, and its place at the source.
        let there = self.storage.handle(&begin.request.to).ok();
        if let Some(why) = there.and_then(|there| there.look().err()) {
            let problem = Some(format!("datastore {}: {why}", begin.request.to));
            return Heard { problem, ..Heard::of(Event::Refused(at, Fault::Away)) };
        }
        let may = |disk: &DiskRecord| {
            begin.check(disk)?;
            self.check_fits_still(begin, disk)
        };
        let NotStarted { error, is_unrecorded } =
            match self.moves.start_if(&begin.request, may) {
                Ok(one) => return began(one.id),
                Err(refused) => refused,
            };
        if let Some(id) = self.begun_after_all(begin) {
            tracing::warn!(migration = id, %error, "a move has begun despite an error");
            return began(id);
        }
        let refusal = match is_unrecorded {
            true => Refusal::Unrecorded,
            false => self.refusal_of(begin, &error),
        };
        let disk = &begin.request.disk;
        tracing::warn!(disk, ?refusal, %error, "a move did not begin");
        let problem = Some(match refusal.is_final() && !error.hint.is_empty() {
            // Nobody tries it again who would be told then.
            true => format!("{error}; {}", error.hint),
            false => error.to_string(),
        });
        Heard { problem, ..Heard::of(Event::Refused(at, refusal.fault())) }
    }

    /// Refuses a disk that has grown since it was planned for, and would now fill its
    /// destination more than it may.
    fn check_fits_still(&self, begin: &Begin, disk: &DiskRecord) -> Result<()> {
        let there = self.storage.handle(&begin.request.to)?;
        let needs = self.moves.needs_at(disk, disk.provision, &there)?;
        let Some(needs) = needs.filter(|needs| *needs > begin.needs) else {
            return Ok(());
        };
        let Some(space) = there.space() else { return Ok(()) };
        let Space { capacity, free, .. } = space;
        let most = (capacity as f64 * begin.space) as u64;
        let filled = capacity.saturating_sub(free).saturating_add(needs);
        // Whether there is an old copy takes long to find out: not unless it matters.
        if filled <= most
            || !there.is_shared()
            || filled.saturating_sub(old_copy(disk, &there)?) <= most
        {
            return Ok(());
        }
        let (name, to) = (&begin.request.disk, &begin.request.to);
        let message = format!(
            "disk {name} has grown to {} since the plan was made, and {to} may be \
             filled only to {}",
            Bytes(needs),
            Bytes(most)
        );
        Err(Error::new(ErrorCode::NoSpace, message))
    }

    /// The migration of a move that is under way though an error was the answer. Asked
    /// until the state answers: nobody could begin the move anew before.
    fn begun_after_all(&self, begin: &Begin) -> Option<u64> {
        loop {
            match self.storage.store.migration_after(begin.disk, begin.seen) {
                Ok(found) => {
                    return found.filter(|it| begin.is_begun(it)).map(|it| it.id);
                }
                Err(error) => {
                    tracing::warn!(disk = begin.request.disk, %error, "has it begun?");
                    thread::sleep(LOOK_AGAIN);
                }
            }
        }
    }

    /// Why a move did not begin.
    fn refusal_of(&self, begin: &Begin, error: &Error) -> Refusal {
        let Ok(there) = self.storage.handle(&begin.request.to) else {
            return Refusal::Closed;
        };
        if matches!(error.code, ErrorCode::NotFound | ErrorCode::Invalid) {
            return Refusal::Senseless;
        }
        if there.is_in_maintenance() {
            return Refusal::Closed;
        }
        let is_served = self.storage.problem_of(begin.disk).is_none();
        match error.code {
            ErrorCode::NoSpace => Refusal::Full,
            ErrorCode::Unavailable if self.hangs(&begin.from) => Refusal::SourceAway,
            ErrorCode::Unavailable if is_served && there.look().is_ok() => {
                Refusal::Unusable
            }
            ErrorCode::Unavailable if is_served => Refusal::DestinationAway,
            ErrorCode::Unavailable if self.is_offline(&begin.from) => Refusal::SourceAway,
            ErrorCode::Unavailable | ErrorCode::InUse | ErrorCode::Internal => {
                Refusal::Busy
            }
            _ => Refusal::Senseless,
        }
    }

    /// Whether a datastore does not answer, though disks on it may be served.
    fn hangs(&self, datastore: &str) -> bool {
        self.storage.handle(datastore).is_ok_and(|handle| handle.must_not_hang().is_err())
    }

    fn is_offline(&self, datastore: &str) -> bool {
        self.storage.handle(datastore).is_ok_and(|handle| handle.problem().is_some())
    }
}

impl Begin {
    /// Refuses a disk that is not what was planned for.
    fn check(&self, disk: &DiskRecord) -> Result<()> {
        let name = &self.request.disk;
        if disk.id != self.disk {
            let message = format!(
                "disk {name} is not the planned disk: another disk has this name"
            );
            return Err(Error::invalid(message));
        }
        if disk.datastore != self.from {
            let (from, now) = (&self.from, &disk.datastore);
            let message = format!("disk {name} is not on {from} any more, but on {now}");
            return Err(Error::invalid(message));
        }
        Ok(())
    }

    /// Whether a later migration of the disk is this move's, and goes on or is done.
    fn is_begun(&self, found: &MigrationRecord) -> bool {
        let is_no_copy = matches!(found.step, Step::Created | Step::Cancelled);
        let goes_on = !is_no_copy && !found.cancel;
        goes_on && found.to.datastore == self.request.to
    }
}

#[cfg(test)]
mod tests {
    use sterna_state::examples::{disk as a_disk, migration as a_migration};

    use super::*;

    #[test]
    fn a_move_that_goes_on_though_an_error_was_the_answer_is_found() {
        let disk = a_disk("db", "here");
        let begin = Begin {
            at: 0,
            disk: disk.id,
            from: "here".into(),
            needs: 0,
            space: 0.8,
            seen: 0,
            request: StartMigration {
                disk: "db".into(),
                to: "there".into(),
                provision: None,
                rate: None,
                verify: false,
                keep_source: false,
                skip_bad_sectors: false,
                guard: AskGuard::default(),
            },
        };
        let there = || a_migration(&disk, "there");
        for step in [Step::Copying, Step::Switching, Step::Committed, Step::Completed] {
            assert!(begin.is_begun(&MigrationRecord { step, ..there() }), "{step}");
        }
        for step in [Step::Created, Step::Cancelled] {
            assert!(!begin.is_begun(&MigrationRecord { step, ..there() }), "{step}");
        }
        let ends = MigrationRecord { cancel: true, step: Step::Copying, ..there() };
        assert!(!begin.is_begun(&ends), "it is being undone");
        assert!(!begin.is_begun(&a_migration(&disk, "elsewhere")), "somebody else's");
    }
}
