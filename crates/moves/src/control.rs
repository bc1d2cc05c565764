//! What the operator may ask of a migration: pause, resume, cancel, a rate.
//!
//! Each wish is made durable first and then told to the mirror, so that it
//! holds over a restart between the two. A number may be that of a move which QEMU
//! carries out: `sterna_machines` takes those.

use std::sync::{Arc, mpsc};

use sterna_api::{AskGuard, Error, Guard, Migration, Result, ResumeMigration};
use sterna_core::mirror::Control;
use sterna_core::{Bytes, Nanos, Percent};
use sterna_os::lock;
use sterna_runtime::threads;
use sterna_state::{MigrationRecord, Pause, Step};

use super::guard::wanted;
use super::{Job, TURN};
use crate::Moves;

/// The least that a migration may be held to, in bytes per second: a region a second.
const RATE_MIN: u64 = 64 << 10;

impl Moves {
    /// Makes a migration stand still.
    pub fn pause_migration(&self, id: u64) -> Result<Migration> {
        if let Some(moved) = self.by_mover(|mover| mover.pause(id, true))? {
            return Ok(moved);
        }
        let job = self.live_job(id)?;
        let _turn = job.take_turn()?;
        let record = self.changeable(&job)?;
        if let Some(pause) = record.pause.clone().filter(|pause| pause.unreachable) {
            // It does not go on by itself any more.
            self.set_pause(&job, Some(&Pause { unreachable: false, ..pause }))?;
            tracing::info!(migration = id, "kept paused by the operator");
        } else if record.pause.is_none() {
            let reason = "asked for".to_owned();
            let pause = Pause { reason, ..Pause::default() };
            self.set_pause(&job, Some(&pause))?;
            if job.running() {
                self.tell(&job, Control::Pause)?;
            }
            tracing::info!(migration = id, "paused by the operator");
        }
        self.show_migration(id)
    }

    /// Makes a paused migration go on.
    pub fn resume_migration(
        self: &Arc<Self>,
        id: u64,
        how: ResumeMigration,
    ) -> Result<Migration> {
        if how.skip_bad_sectors && self.by_mover(|mover| mover.show(id))?.is_some() {
            let message =
                format!("QEMU carries out migration {id}, and QEMU skips no bad sectors");
            return Err(Error::invalid(message).hint(
                "adopt the disk (`sterna vm adopt`); the move of a Sterna disk can skip \
                 them",
            ));
        }
        if let Some(moved) = self.by_mover(|mover| mover.pause(id, false))? {
            return Ok(moved);
        }
        let job = self.live_job(id)?;
        if job.running() {
            self.check_answers(&job)?;
        }
        let _turn = job.take_turn()?;
        let record = self.changeable(&job)?;
        if record.cancel {
            let message = format!("migration {id} is being cancelled");
            let hint = format!("try again: `sterna migration cancel {id}`");
            return Err(Error::in_use(message).hint(hint));
        }
        if how.skip_bad_sectors {
            self.storage.store.set_skip_bad(id)?;
            tracing::info!(migration = id, "the operator has chosen to skip bad sectors");
            if job.running() {
                self.tell(&job, Control::SkipBad)?;
            }
        }
        let record = MigrationRecord {
            skip_bad: record.skip_bad || how.skip_bad_sectors,
            ..record
        };
        if job.running() {
            self.mend_copy(&job, &record)?;
            self.go_on_again(&job, &record)?;
            tracing::info!(migration = id, "resumed by the operator");
        } else {
            if let Some(problem) = self.storage.problem_of(record.disk) {
                let message = format!("disk {} is not served: {problem}", record.name);
                let hint = super::view::then_resume("repair this", id);
                return Err(Error::unavailable(message).hint(hint));
            }
            tracing::info!(migration = id, "resumed by the operator");
            self.relaunch(&job, &record)?;
        }
        self.show_migration(id)
    }

    /// Refuses to have a mirror go on whose destination hangs: whoever touches that would
    /// keep the job's turn for as long, and it could not be given up any more. (One without
    /// a mirror is asked by `check_destination`, which notes down what it hears.)
    fn check_answers(&self, job: &Job) -> Result<()> {
        let to = self.migration_record(job.id)?.to.datastore;
        self.storage.handle(&to)?.must_answer().map_err(|error| {
            let first = format!("check datastore {to}");
            error.hint(super::view::then_resume(&first, job.id))
        })
    }

    /// Gives a migration up.
    pub fn cancel_migration(self: &Arc<Self>, id: u64) -> Result<Migration> {
        if let Some(moved) = self.by_mover(|mover| mover.cancel(id))? {
            return Ok(moved);
        }
        let job = self.live_job(id)?;
        let turn = match job.take_turn() {
            Ok(turn) => turn,
            Err(error) => return self.cancel_soon(&job, error),
        };
        let record = self.migration_record(id)?;
        if record.cancel && is_open(&record) && job.running() {
            // The mirror may not have heard it.
            self.tell(&job, Control::Cancel)?;
            return self.show_migration(id);
        }
        if record.step == Step::Committed && self.storage.problem_of(job.disk).is_some() {
            // Otherwise the record would keep its disk from being removed and recovered.
            self.end_unseen(&job, &record)?;
            return self.show_migration(id);
        }
        self.changeable(&job)?;
        self.storage.store.set_cancel(id)?;
        tracing::info!(migration = id, "cancelled by the operator");
        if job.running() {
            self.tell(&job, Control::Cancel)?;
        } else {
            drop(turn);
            self.end_cancelled_aside(job)?;
        }
        self.show_migration(id)
    }

    /// Gives a migration up whose turn somebody has who waits for storage, as a start does
    /// for a server that hangs: the wish is noted down now, and is seen to in the turn after.
    fn cancel_soon(self: &Arc<Self>, job: &Arc<Job>, busy: Error) -> Result<Migration> {
        let (id, record) = (job.id, self.migration_record(job.id)?);
        if !is_open(&record) {
            return Err(busy);
        }
        if !record.cancel {
            self.storage.store.set_cancel(id)?;
            tracing::info!(
                migration = id,
                "cancelled by the operator; it ends when the storage that it waits for \
                 has answered, or is given up"
            );
            let job = job.clone();
            threads::aside(self, move |moves| {
                let _turn = lock(&job.turn);
                if let Err(error) = moves.heed_cancel(&job) {
                    tracing::warn!(migration = id, %error, "cannot cancel the migration");
                }
            });
        }
        self.show_migration(id)
    }

    /// Sees to a wish that came while somebody else had the turn. A migration without a
    /// mirror that is still there then is ended again and again (`end_again`).
    fn heed_cancel(self: &Arc<Self>, job: &Job) -> Result<()> {
        let record = self.migration_record(job.id)?;
        match is_open(&record) && record.cancel {
            true if job.running() => self.tell(job, Control::Cancel),
            true => self.put_away(job),
            false => Ok(()),
        }
    }

    /// Ends a migration without a mirror that is to be cancelled. Storage that hangs may
    /// keep its image for as long as that; whoever asked has his answer before.
    fn end_cancelled_aside(self: &Arc<Self>, job: Arc<Job>) -> Result<()> {
        let (sender, ended) = mpsc::sync_channel(1);
        threads::aside(self, move |moves| {
            let _turn = lock(&job.turn);
            let ended = moves.migration_record(job.id).and_then(|record| {
                // Somebody may have been quicker.
                let over = record.step.ended() || job.running();
                if over { Ok(()) } else { moves.put_away(&job) }
            });
            // Who asked may have gone on.
            let _ = sender.send(ended);
        });
        ended.recv_timeout(TURN).unwrap_or(Ok(()))
    }

    /// Changes a migration's rate.
    pub fn set_migration_rate(&self, id: u64, rate: Option<u64>) -> Result<Migration> {
        check_rate(rate)?;
        if let Some(moved) = self.by_mover(|mover| mover.set_rate(id, rate))? {
            return Ok(moved);
        }
        let job = self.live_job(id)?;
        let _turn = job.take_turn()?;
        self.changeable(&job)?;
        self.storage.store.set_rate(id, rate)?;
        if job.running() {
            self.tell(&job, Control::SetRate(rate))?;
        }
        tracing::info!(migration = id, rate, "rate changed");
        self.show_migration(id)
    }

    /// Changes what must hold for the application while a disk moves.
    pub fn set_migration_guard(&self, id: u64, asked: &AskGuard) -> Result<Migration> {
        if let Some(moved) = self.by_mover(|mover| mover.set_guard(id, asked))? {
            return Ok(moved);
        }
        let guard = wanted(asked)?;
        let job = self.live_job(id)?;
        let _turn = job.take_turn()?;
        self.changeable(&job)?;
        self.storage.store.set_guard(id, &guard)?;
        self.set_guard(&job, guard.clone());
        let guard = words(&guard);
        tracing::info!(migration = id, guard, "guard changed");
        self.show_migration(id)
    }

    fn live_job(&self, id: u64) -> Result<Arc<Job>> {
        match self.job(id) {
            Some(job) => Ok(job),
            None => Err(over(&self.migration_record(id)?)),
        }
    }

    /// The record of a migration that can still be changed.
    fn changeable(&self, job: &Job) -> Result<MigrationRecord> {
        let id = job.id;
        let record = self.migration_record(id)?;
        match record.step {
            Step::Copying | Step::Switching if record.cancel && job.running() => {
                let message = format!("migration {id} is being cancelled");
                Err(Error::in_use(message))
            }
            Step::Copying | Step::Switching => Ok(record),
            Step::Created => {
                let message = format!("migration {id} is starting");
                Err(Error::in_use(message).hint("try again in a moment"))
            }
            _ => Err(over(&record)),
        }
    }

    pub(super) fn tell(&self, job: &Job, control: Control) -> Result<()> {
        self.storage.engine.control(job.engine_id(), control).map_err(|error| {
            let message = format!("migration {} cannot be changed: {error}", job.id);
            Error::internal(message)
                .hint(format!("see `sterna migration show {}`", job.id))
        })
    }
}

/// Whether a migration has not switched over, and may be given up. It may stand still.
fn is_open(record: &MigrationRecord) -> bool {
    matches!(record.step, Step::Copying | Step::Switching)
}

/// What was asked of a guard, for the log and the events: `keep 97%, p99 below 5.0 ms`.
fn words(guard: &Guard) -> String {
    let Guard { keep, p99_us, finish_by, idle_only, window } = guard;
    let parts = [
        keep.map(|part| format!("keep {}", Percent(part))),
        p99_us.map(|micros| format!("p99 below {}", Nanos::from_micros(micros))),
        idle_only.then(|| "only while the application is idle".into()),
        window.as_ref().map(|window| format!("only {window}")),
        finish_by.map(|_| "with a deadline".into()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "nothing is asked".into() } else { parts.join(", ") }
}

/// A rate that makes sense: fewer bytes than a guest can live on are a unit that was
/// left out.
pub fn check_rate(rate: Option<u64>) -> Result<()> {
    match rate {
        Some(0) => Err(Error::invalid("with a rate of 0 a migration never ends")
            .hint("`sterna migration pause` pauses a migration")),
        Some(rate) if rate < RATE_MIN => {
            let message = format!(
                "the rate {}/s is too low; the minimum is {}/s",
                Bytes(rate).beside(Bytes(RATE_MIN)),
                Bytes(RATE_MIN)
            );
            let hint = match Bytes(rate).meant_mib() {
                Some(number) => format!("did you mean {number}M?"),
                None => "give a higher rate (20M)".into(),
            };
            Err(Error::invalid(message).hint(hint))
        }
        _ => Ok(()),
    }
}

fn over(record: &MigrationRecord) -> Error {
    let (id, name) = (record.id, &record.name);
    let (what, place) = match record.step {
        Step::Cancelled => ("was cancelled", &record.from.datastore),
        _ => ("is done", &record.to.datastore),
    };
    Error::invalid(format!("migration {id} of disk {name} {what}"))
        .hint(format!("the disk is on datastore {place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_told_in_words() {
        let guard = Guard { keep: Some(0.97), p99_us: Some(5_000), ..Guard::default() };
        assert_eq!(words(&guard), "keep 97%, p99 below 5.0 ms");
        assert_eq!(words(&Guard::default()), "nothing is asked");
        let idle = Guard { idle_only: true, window: Some("22:00-06:00".into()), ..guard };
        let said = "keep 97%, p99 below 5.0 ms, only while the application is idle, only \
                    22:00-06:00";
        assert_eq!(words(&idle), said);
    }
}
