//! What a mirror says, and who answers it.

use std::sync::Arc;

use sterna_core::mirror::{Fault, MirrorEnd, Notice, PauseReason};
use sterna_engine::MigrateError;
use sterna_engine::datastore::Location;
use sterna_engine::mirror::MigrationEvent;
use sterna_os::lock;
use sterna_state::{Blame, Pause, Step};
use sterna_storage::handle::DatastoreHandle;

use super::Job;
use super::view::{hint, then_resume};
use crate::Moves;

impl Moves {
    /// One event of a migration's mirror, in the order in which they came.
    pub(super) fn on_event(self: &Arc<Self>, job: &Arc<Job>, event: MigrationEvent) {
        match event {
            MigrationEvent::Prepare(id) => {
                if let Ok(record) = self.migration_record(job.id) {
                    self.look_at_source(&record);
                }
                let record = self.prepare_switch(job);
                answered(job, self.storage.engine.prepared(id, record));
            }
            MigrationEvent::Seal(id) => {
                let result = self.seal(job);
                answered(job, self.storage.engine.sealed(id, result));
                // Only now: a doubt undoes the switch-over, and that its seal has failed
                // would be no reason to pause any more.
                let spoilt =
                    lock(&job.state).unsealed.as_ref().is_some_and(|it| it.spoils);
                if spoilt {
                    // It is compared before the next seal.
                    let _ = self.distrust(job);
                }
            }
            MigrationEvent::Unseal(_) => self.unseal(job),
            MigrationEvent::Commit(_) => self.commit(job),
            MigrationEvent::Notice(_, notice) => self.on_notice(job, &notice),
            MigrationEvent::Ended(_, end, last) => {
                let (progress, findings) = *last;
                if let Err(error) = self.record_findings(job.id, &findings) {
                    tracing::error!(migration = job.id, %error, "cannot record what the \
                                                                 mirror found");
                }
                job.hear_progress(progress);
                lock(&job.state).counters.stop();
                if let (MirrorEnd::Completed, Some(held)) = (end, progress.held) {
                    self.totals.held(held);
                }
                let word = match end {
                    MirrorEnd::Completed => "switched over",
                    MirrorEnd::Cancelled => "copying has ended",
                };
                let held = progress.held.map(|held| held.to_string());
                tracing::info!(migration = job.id, held, "{word}");
            }
            MigrationEvent::Released(_) => {
                // The keeper ends what does not run, so the turn comes first.
                let _turn = lock(&job.turn);
                lock(&job.state).running = false;
                // What keeps it from that is noted down, and it is tried again.
                let _ = self.put_away(job);
                // What was open showed which files these were; it holds room that is free.
                self.let_files_go(job);
            }
        }
    }

    fn on_notice(self: &Arc<Self>, job: &Arc<Job>, notice: &Notice) {
        // Why a destination was not sealed is in the log already, in better words.
        let lost = PauseReason::Destination(Fault::Lost);
        let said = *notice == Notice::Paused(lost) && lock(&job.state).unsealed.is_some();
        if !said {
            self.log_notice(job.id, notice);
        }
        lock(&job.state).counters.hear(notice);
        if let Notice::Paused(reason) = notice
            && reason.is_destinations()
        {
            self.leave_destination(job);
        }
        let recorded = match notice {
            Notice::Paused(reason) => self.on_pause(job, *reason),
            Notice::Resumed => self.on_resume(job),
            _ => Ok(()),
        };
        if let Err(error) = recorded {
            let error = error.with_cause();
            tracing::error!(
                migration = job.id,
                error,
                "cannot record a pause; Sterna tries again"
            );
        }
    }

    /// The mirror goes on. A pause that the operator has asked for since then
    /// holds: it is recorded when it is asked for, which is before this is heard.
    fn on_resume(&self, job: &Job) -> Result<(), sterna_state::StoreError> {
        let record = self.storage.store.migration(job.id)?;
        match record.and_then(|record| self.up_to_date(record).pause) {
            Some(pause) if pause.hint.is_some() => self.set_pause(job, None),
            _ => Ok(()),
        }
    }

    /// Says and records why the mirror stands still. "Asked for" is known already, and
    /// must not hide a better reason from before a restart.
    fn on_pause(
        self: &Arc<Self>,
        job: &Arc<Job>,
        reason: PauseReason,
    ) -> Result<(), sterna_state::StoreError> {
        let record = match self.storage.store.migration(job.id) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(()),
            // That it stands still is known all the same, and is recorded later.
            Err(error) => {
                if reason != PauseReason::Asked {
                    let pause = unread(job.id, reason.to_string(), blame(reason));
                    let _ = self.stand_still(job, pause);
                }
                return Err(error);
            }
        };
        let ended = record.step.ended() || record.step == Step::Committed;
        if ended || reason == PauseReason::Asked {
            return Ok(());
        }
        let to = self.storage.handle(&record.to.datastore);
        let is_shared = to.as_ref().is_ok_and(|to| to.is_shared());
        let server = to.as_ref().is_ok_and(|to| is_server(to));
        let offline = to.as_ref().is_ok_and(|to| to.problem().is_some());
        let hint = hint(&record, reason, server, is_shared);
        let blame = blame(reason);
        // A destination that cannot be sealed looks slow or lost to the mirror.
        let unsealed = lock(&job.state).unsealed.take();
        if unsealed.as_ref().is_some_and(|it| it.comes_back)
            && reason == PauseReason::Destination(Fault::Lost)
            && job.may_come_back()
            && self.comes_back(job)
        {
            return Ok(());
        }
        // What waits for its datastore goes on when that is back.
        let unreachable = offline && unsealed.is_some();
        let is_astray = reason == PauseReason::DestinationAstray;
        let (reason, better) = match (reason, unsealed) {
            (
                PauseReason::SwitchOverTooLong { .. }
                | PauseReason::StateStore
                | PauseReason::SourceAstray
                | PauseReason::Destination(Fault::Lost),
                Some(why),
            ) => (why.reason, why.better),
            (reason, _) => (words(reason, to.as_deref().ok()), None),
        };
        let (hint, blame) = match better {
            Some((hint, blame)) => (Some(hint), blame),
            None => (hint, blame),
        };
        let mut pause = Pause { reason, hint, blame, unreachable, ..Pause::default() };
        let wrong = lock(&job.state).astray.take();
        if let Some(wrong) = wrong.filter(|_| is_astray) {
            pause = self.pause_for(&record, &wrong);
            tracing::warn!(
                migration = job.id,
                reason = pause.reason,
                "the migration is paused"
            );
        }
        if let Err(error) = self.note_findings(job) {
            tracing::error!(migration = job.id, %error, "cannot record what the mirror \
                                                         found; Sterna tries again");
        }
        self.stand_still(job, pause)?;
        self.storage.store.set_application(job.id, &job.application())
    }
}

fn is_server(to: &DatastoreHandle) -> bool {
    matches!(to.record().location, Location::Nbd(_))
}

/// Why a migration stands still, with the address of its destination's server where that is
/// what is wrong.
fn words(reason: PauseReason, to: Option<&DatastoreHandle>) -> String {
    let location = to.map(|to| to.record().location.to_string());
    let at = location.unwrap_or_else(|| "the destination's address".into());
    match reason {
        PauseReason::Destination(Fault::Another) => {
            format!("another export answers at {at}")
        }
        PauseReason::Destination(Fault::Lacks(lack)) => {
            format!("the export at {at} {lack}")
        }
        PauseReason::Destination(Fault::Full) if to.is_some_and(|to| !to.is_shared()) => {
            format!("{at} has no room for the whole disk (ENOSPC)")
        }
        reason => reason.to_string(),
    }
}

/// A pause of a migration whose record cannot be read.
pub(super) fn unread(id: u64, reason: String, blame: Blame) -> Pause {
    let hint = Some(then_resume("check the state directory", id));
    Pause { reason, hint, blame, ..Pause::default() }
}

/// Whose fault a pause is.
fn blame(reason: PauseReason) -> Blame {
    match reason {
        PauseReason::Destination(Fault::Full) => Blame::Full,
        PauseReason::Destination(Fault::Error(_) | Fault::Another | Fault::Lacks(_))
        | PauseReason::DestinationAstray => Blame::Destination,
        PauseReason::Destination(Fault::Lost) | PauseReason::DestinationTimedOut(_) => {
            Blame::Away
        }
        PauseReason::Differing(_) => Blame::Untrue,
        PauseReason::Source(_)
        | PauseReason::SourceAstray
        | PauseReason::SourceRefusesWrites
        | PauseReason::SourceTimedOut(_)
        | PauseReason::BadSectors(_) => Blame::Source,
        PauseReason::Asked
        | PauseReason::NotConverging { .. }
        | PauseReason::SwitchOverTooLong { .. }
        | PauseReason::StateStore
        | PauseReason::RegionMap => Blame::Other,
    }
}

/// An answer that nobody waits for any more is of no account: the mirror has
/// ended meanwhile, and `Released` will say so.
pub(super) fn answered(job: &Job, answer: Result<(), MigrateError>) {
    if let Err(error) = answer {
        tracing::debug!(migration = job.id, %error, "the mirror ended before an answer \
                                                     came");
    }
}
