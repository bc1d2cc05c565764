//! The end of a migration: the image that lost is put away, and the record gets
//! its figures. Everything here can be done twice: a crash in between is
//! finished after the next start.
//!
//! An image goes only if it says of itself that it is the one that lost (`own_images`).
//! Any other is kept, and the record says so: after an old backup of the state was
//! restored, it may be all that there is of the disk. And it goes only if it is the file
//! that was open, or that its sidecar knows: another one may have got its name.
//!
//! A destination that was there before the migration (an import, or an image kept by
//! `--keep-source`) is not removed by one that comes to nothing: it was not made for it.
//! Its sidecar says so (`Origin`).

use std::sync::Arc;
use std::time::Duration;

use sterna_api::{Application, Error, Report, Result};
use sterna_engine::mirror::MapFile;
use sterna_engine::sidecar::slots::Origin;
use sterna_engine::sidecar::{Identity, Role};
use sterna_os::{clock, lock};
use sterna_state::{Ending, MigrationRecord, Place, Step};
use sterna_storage::commit_record;
use sterna_storage::disks::place_of;
use sterna_storage::handle::{DatastoreHandle, Gone};

use super::Job;
use super::counters::average;
use super::left_behind::not_gone;
use super::own_images::{is_copy, is_old_source, sources};
use super::start::partial;
use crate::KEPT;
use crate::Moves;

/// How long an old image's datastore may take for a write, beside whatever else it has to do,
/// before the image is left there.
const WRITES: Duration = Duration::from_secs(30);

/// What has become of the image that a disk has left.
enum SourceIs {
    Gone(Gone),
    /// Somebody wants it to stay.
    Kept,
    /// Somebody has renamed it, or its directory.
    Renamed,
}

impl Moves {
    /// There is no mirror (any more): puts away what it leaves, whichever side won. If
    /// that cannot be done, people are told, and it is tried again (`end_again`).
    pub(super) fn put_away(self: &Arc<Self>, job: &Job) -> Result<()> {
        let settled = self.migration_record(job.id).and_then(|one| self.settle(&one));
        let ended = settled.and_then(|record| match record.step {
            // The source stays until somebody has seen the destination (`bring_up`).
            Step::Committed if self.storage.problem_of(job.disk).is_some() => Ok(()),
            Step::Committed => self.end_completed(job, &record),
            // Somebody else was there first.
            step if step.ended() => Ok(()),
            _ => self.end_cancelled(job, &record),
        });
        let said = ended.as_ref().err().cloned();
        let before = std::mem::replace(&mut lock(&job.state).unended, said);
        if let Err(error) = &ended {
            let known = before.is_some_and(|it| it.to_string() == error.to_string());
            if !known {
                let migration = job.id;
                tracing::error!(migration, %error, "cannot record the migration's end; \
                                                    Sterna tries again");
            }
        }
        ended
    }

    /// The destination is the truth: the source image is retired, and removed
    /// unless it is to be kept.
    pub(super) fn end_completed(
        &self,
        job: &Job,
        record: &MigrationRecord,
    ) -> Result<()> {
        // The old image is a way back until the state says that it is not needed.
        self.storage.store.must_be_there()?;
        self.storage.lookout.has_left(record.disk, &record.from.datastore);
        let place = self.place(&record.from);
        let note = match self.retire_source(job, record) {
            Ok(SourceIs::Gone(gone)) => not_gone("old image", &place, gone),
            Ok(SourceIs::Kept) => self.removal_of_source(record).map(|command| {
                format!("{KEPT} {place}; {command} removes the old image")
            }),
            Ok(SourceIs::Renamed) => Some(format!(
                "the old image has another name than {place}: Sterna did not touch it, and \
                 its sidecar still names the disk; keep both out of a datastore, or remove \
                 both by hand"
            )),
            Err(error) => {
                let migration = record.id;
                tracing::warn!(migration, %error, place, "source image left behind");
                self.overdue.add(migration);
                Some(self.source_left(&record.from, &error))
            }
        };
        let report = self.report(job, record);
        self.end(record, Step::Completed, note, Some(report))?;
        tracing::info!(
            migration = record.id,
            disk = record.name,
            to = record.to.datastore,
            seconds = report.duration_s,
            switch_over_ms = report.switch_over_ms,
            "migration completed"
        );
        Ok(())
    }

    /// The destination is the truth as far as this state knows, and is not served: the
    /// operator gives the migration up, and both images stay as they are. One of them may be
    /// all that there is of the disk.
    pub(super) fn end_unseen(&self, job: &Job, record: &MigrationRecord) -> Result<()> {
        let (old, disk) = (self.place(&record.from), &record.name);
        let note = format!(
            "ended before disk {disk} was served from the new image: Sterna left both images \
             as they are; check the old image {old} before you remove it by hand"
        );
        let report = self.report(job, record);
        self.end(record, Step::Completed, Some(note), Some(report))?;
        tracing::info!(migration = record.id, disk, "migration ended by the operator");
        Ok(())
    }

    /// How a source is removed that was to be kept, if it is a file.
    fn removal_of_source(&self, record: &MigrationRecord) -> Option<String> {
        let from = self.storage.handle(&record.from.datastore).ok()?;
        from.removal_command(&record.from.image)
    }

    fn retire_source(&self, job: &Job, record: &MigrationRecord) -> Result<SourceIs> {
        let (handle, file) =
            (self.storage.handle(&record.from.datastore)?, &record.from.image);
        // Where writes hang nobody waits long for the removal: the disk is elsewhere.
        handle.must_answer_within(WRITES)?;
        if job.source_has_another_name() {
            return Ok(SourceIs::Renamed);
        }
        if !handle.has(file, record.size, |found| is_old_source(found, record))? {
            return Ok(SourceIs::Gone(Gone::Wholly)); // A crash came between its removal and the record of it.
        }
        let kept = match record.keep_source {
            true => Ok(SourceIs::Kept),
            false => {
                self.check_won(record)?;
                let held = job.close_source();
                let removed = check_unused(&handle, file)
                    .and_then(|()| handle.remove(file, record.size, held.as_ref()));
                match removed {
                    Ok(gone @ (Gone::Wholly | Gone::ButSidecar(_))) => {
                        return Ok(SourceIs::Gone(gone));
                    }
                    left => left.map(SourceIs::Gone),
                }
            }
        };
        let retired = Identity {
            generation: record.source_generation,
            role: Role::Retired,
            ..partial(record)
        };
        handle.identify(file, &retired)?;
        kept
    }

    /// The source is the truth, as before: the copy is removed, if it is one.
    pub(super) fn end_cancelled(
        self: &Arc<Self>,
        job: &Job,
        record: &MigrationRecord,
    ) -> Result<()> {
        self.storage.store.must_be_there()?;
        let (record, kept) = if let Some(why) = self.is_out_of_date(record)? {
            let (source, destination) =
                (record.source_generation, record.destination_generation);
            self.storage.store.migration_unsealed(record.id, source, destination)?;
            (self.migration_record(record.id)?, Err(Error::unavailable(why)))
        } else {
            let record = self.fence(record, false)?;
            let removed = self.remove_copy(job, &record);
            (record, removed)
        };
        let note = kept.unwrap_or_else(|error| {
            let place = self.place(&record.to);
            tracing::warn!(migration = record.id, %error, place, "destination image kept");
            Some(self.copy_left(&record.to, &error))
        });
        let report = self.report(job, &record);
        self.end(&record, Step::Cancelled, note, Some(report))?;
        tracing::info!(migration = record.id, disk = record.name, "migration cancelled");
        Ok(())
    }

    /// Removes the copy, if this migration has made it; what it leaves is said.
    fn remove_copy(&self, job: &Job, record: &MigrationRecord) -> Result<Option<String>> {
        let (to, file) = (self.storage.handle(&record.to.datastore)?, &record.to.image);
        to.must_answer()?;
        if !to.has(file, record.size, |found| is_copy(found, record))? {
            return Ok(None);
        }
        if to.origin(file)? == Some(Origin::Found) {
            return Ok(Some(format!(
                "the image {} existed before the migration: Sterna keeps it, with a part \
                 of the copy in it",
                self.place(&record.to)
            )));
        }
        let gone = to.remove(file, record.size, job.destination_file().as_ref())?;
        Ok(not_gone("copy", &self.place(&record.to), gone))
    }

    /// Why this state is out of date, and nothing here knows which image of a switch-over that
    /// was begun is the truth: the source is not there any more, for certain, or the
    /// destination is newer than this switch-over can have made it. An image that clients
    /// have is there, whatever its sidecar says.
    fn is_out_of_date(&self, record: &MigrationRecord) -> Result<Option<&'static str>> {
        if record.step != Step::Switching
            || self.storage.problem_of(record.disk).is_none()
        {
            return Ok(None);
        }
        let from = self.storage.handle(&record.from.datastore)?;
        from.open()?;
        let says = from.says(&record.from.image, record.size)?;
        if !says.is_some_and(|says| sources(record).contains(&says)) {
            return Ok(Some("the source image does not exist any more"));
        }
        let sealed = self.may_be_sealed(record)?;
        let to = self.storage.handle(&record.to.datastore)?;
        let says = to.open().and_then(|_| to.says(&record.to.image, record.size));
        let is_newer = match says {
            Ok(Some(says)) => {
                says.id == record.disk
                    && says.role == Role::Active
                    && says.generation > record.source_generation
                    && sealed != Some(says.generation)
            }
            Ok(None) => false,
            // It may be. If nothing of this switch-over was sealed, the source need not be
            // raised above it.
            Err(_) => sealed.is_none(),
        };
        Ok(is_newer.then_some("it is, or may be, newer than this state"))
    }

    /// A migration whose destination image was never finished (the daemon was
    /// killed while it made it).
    pub(super) fn end_unstarted(&self, record: &MigrationRecord) -> Result<()> {
        let left = self.storage.handle(&record.to.datastore).and_then(|to| {
            let store = to.open()?;
            let images = store.images().map_err(|error| to.refused(&error))?;
            for found in images {
                if found.identity.is_ok_and(|identity| identity == partial(record)) {
                    self.remove_unstarted(record, &to, &found.file)?;
                }
            }
            Ok(())
        });
        if let Err(error) = left {
            tracing::warn!(migration = record.id, %error, "a partial image may remain");
        }
        let note = "the daemon stopped before the copy began; start the migration again"
            .to_owned();
        self.end(record, Step::Cancelled, Some(note), None)
    }

    /// Removes a copy that was never begun. One that was there before says again what it
    /// said then; where nobody knows that any more it stays a part, which nobody takes for
    /// a truth and the next move can use. It never gets a generation that it did not have.
    fn remove_unstarted(
        &self,
        record: &MigrationRecord,
        to: &DatastoreHandle,
        file: &str,
    ) -> Result<()> {
        if to.origin(file)? != Some(Origin::Found) {
            return to.remove(file, record.size, None)?.wholly();
        }
        if !to.give_back(file, &partial(record))? {
            tracing::info!(
                migration = record.id,
                file,
                "Sterna keeps an old image, marked as partial"
            );
        }
        Ok(())
    }

    fn end(
        &self,
        record: &MigrationRecord,
        step: Step,
        note: Option<String>,
        report: Option<Report>,
    ) -> Result<()> {
        // The map is of no use any more; if it stays, nobody will look at it.
        let _ = MapFile::remove(&self.map_path(record.id));
        let application = match self.job(record.id) {
            Some(job) => {
                self.keep_experience(&job);
                job.application()
            }
            None => record.application,
        };
        let application = Application { now: None, ..application };
        let ending = Ending { at: clock::now(), note, application, report };
        self.storage.store.migration_ends(record.id, step, &ending)?;
        commit_record::remove(&self.storage.places.state, record.id);
        lock(&self.jobs).remove(&record.id);
        // Policies may end with it, and moves of a plan begin.
        self.tell_changed();
        Ok(())
    }

    /// Writes down what the guard has found out, for that of a later move. If that fails,
    /// the later one learns it anew.
    fn keep_experience(&self, job: &Job) {
        let experience = lock(&job.state).experience;
        if experience.is_none() {
            return;
        }
        if let Err(error) = self.storage.store.set_experience(job.id, &experience.into())
        {
            tracing::warn!(migration = job.id, %error, "cannot record what the guard \
                                                        learned");
        }
    }

    fn report(&self, job: &Job, record: &MigrationRecord) -> Report {
        let duration_s = match lock(&job.state).began {
            Some(began) => began.elapsed().as_secs_f64(),
            None => clock::now().saturating_sub(record.started).max(1) as f64,
        };
        let (progress, counted) = {
            let counters = &lock(&job.state).counters;
            (counters.progress(), counters.now())
        };
        let to = self.storage.handle(&record.to.datastore).ok();
        let allocated = to.and_then(|to| to.allocated(&record.to.image, record.size));
        let compared = counted.compares && record.step == Step::Committed;
        Report {
            duration_s,
            average_rate: average(counted),
            compared: compared.then_some(record.size),
            allocated,
            copied: counted.copied,
            switch_over_ms: progress
                .and_then(|progress| progress.held)
                .map(|held| held.as_millis_f64()),
            undone: progress.map_or(0, |progress| progress.undone),
            verified: progress
                .and_then(|progress| progress.verified)
                .map(|verified| verified.0),
        }
    }

    pub(super) fn place(&self, at: &Place) -> String {
        match self.storage.handle(&at.datastore) {
            Ok(handle) => place_of(&handle.record().location, &at.image),
            Err(_) => at.image.clone(),
        }
    }
}

/// Refuses to remove an old image that another program can still write to: it may be what
/// the new image has its bytes in, through a server that serves the old one.
fn check_unused(handle: &DatastoreHandle, file: &str) -> Result<()> {
    let image = handle.image(file)?;
    match handle.open()?.written_by_others(&image) {
        Some(_) => Err(Error::in_use(
            "another program has the old image open for writing, and may keep the new \
             image in it",
        )),
        None => Ok(()),
    }
}
