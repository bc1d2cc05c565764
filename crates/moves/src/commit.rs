//! Carrying a commit out: `core::commit` says what, this does it.
//!
//! A guest's writes are held until it is answered, and for nothing after that. The state
//! database is told for as long as it takes, on the job's own thread, so that nothing
//! that comes after the switch-over (the source's removal above all) is begun before.
//! A start settles what a crash has left before it serves anything: `settle`.

use std::thread;
use std::time::{Duration, Instant};

use sterna_api::{Error, Result};
use sterna_core::commit::{Commitment, Do, Found, Stated, Written};
use sterna_core::mirror::Commit;
use sterna_os::lock;
use sterna_state::{DiskRecord, MigrationRecord, Step, StoreError};
use sterna_storage::commit_record::{self, CommitRecord, Key, Says};
use sterna_storage::handle::DatastoreHandle;
use sterna_storage::newer::Copy;

use super::{Job, Prepared};
use crate::Moves;

/// How long to wait before a state directory that does not take a record is asked again.
/// A guest may be held meanwhile: nobody knows which side is the truth.
const AGAIN: Duration = Duration::from_millis(100);

impl Moves {
    /// Makes the record for a switch-over that was begun; gives how long a write of it
    /// took.
    pub(super) fn prepare_record(&self, job: &Job, attempt: u64) -> Result<Duration> {
        let migration = self.migration_record(job.id)?;
        let path = commit_record::path(&self.storage.places.state, job.id);
        let prepared = CommitRecord::prepare(&path, key(&migration, attempt));
        let (record, took) = prepared.map_err(|error| {
            let path = path.display();
            Error::unavailable(format!("cannot write {path}: {error}"))
                .hint("check that the state directory works and has free space")
        })?;
        *lock(&job.prepared) = Some(Prepared { record, migration });
        Ok(took)
    }

    /// The commit that the mirror asks for: answers it, and tells the state.
    pub(super) fn commit(&self, job: &Job) {
        let since = Instant::now();
        let mut commit = Commitment::asked();
        let record = lock(&job.prepared).take().map(|prepared| prepared.record);
        let mut quiet = false;
        loop {
            match (commit.next(), &record) {
                // Nobody has prepared it: it was not there, and is not.
                (Do::Write, None) => commit.written(Written::Absent),
                (Do::Write, Some(record)) => {
                    let (written, put) = record.write(Says::Committed);
                    if let Err(error) = put {
                        tracing::error!(migration = job.id, %error, ?written, "no commit");
                    }
                    commit.written(written);
                }
                (Do::Erase, record) => {
                    let erased = record.as_ref().map(|one| one.write(Says::Prepared).0);
                    match erased {
                        Some(Written::Absent | Written::Unclear) => thread::sleep(AGAIN),
                        Some(Written::Durable) | None => commit.erased(),
                    }
                }
                (Do::Answer(answer), _) => {
                    if answer == Commit::Durable {
                        let took = since.elapsed();
                        tracing::debug!(migration = job.id, ?took, "committed");
                    }
                    super::events::answered(
                        job,
                        self.storage.engine.committed(job.engine_id(), answer),
                    );
                    commit.answered();
                }
                (Do::Tell, _) => match self.storage.store.commit_migration(job.id) {
                    Ok(()) => commit.told(),
                    Err(error @ (StoreError::Step { .. } | StoreError::Closed)) => {
                        let error = error.with_cause();
                        tracing::error!(migration = job.id, error, "not recorded");
                        return;
                    }
                    Err(error) => {
                        if !std::mem::replace(&mut quiet, true) {
                            let error = error.with_cause();
                            tracing::error!(
                                migration = job.id,
                                error,
                                "the disk is on the destination, but Sterna cannot \
                                 record this in the state database; Sterna tries again"
                            );
                        }
                        thread::sleep(AGAIN);
                    }
                },
                // The mirror says when nothing is in flight at the source any more.
                (Do::Free | Do::Drop | Do::End, _) => return,
            }
        }
    }

    /// Makes clear what became of a commit that a crash cut off: if its record is there,
    /// it is made durable, and the state is told. The migration after that.
    pub fn settle(&self, migration: &MigrationRecord) -> Result<MigrationRecord> {
        if migration.step != Step::Switching {
            return Ok(migration.clone());
        }
        let Some((record, found)) = self.find_record(migration)? else {
            return Ok(migration.clone());
        };
        let Some(mut commit) = Commitment::found(found, Stated::Switching) else {
            return Ok(migration.clone());
        };
        if commit.next() == Do::Write {
            let (written, put) = record.write(Says::Committed);
            put.map_err(|error| {
                let message = format!(
                    "the switch-over of migration {} was committed, and its record \
                     cannot be made durable: {error}",
                    migration.id
                );
                Error::unavailable(message)
                    .hint("check that the state directory works and has free space")
            })?;
            commit.written(written);
        }
        if commit.next() == Do::Tell {
            self.storage.store.commit_migration(migration.id)?;
            commit.told();
            tracing::info!(migration = migration.id, "a commit was found and settled");
        }
        self.migration_record(migration.id)
    }

    /// Refuses to serve a disk that a newer state has elsewhere, as far as its images tell.
    pub fn check_is_newest(
        &self,
        disk: &DiskRecord,
        on: &DatastoreHandle,
        migration: Option<&MigrationRecord>,
    ) -> Result<()> {
        // After the commit, the copy is the disk itself.
        let copying =
            migration.filter(|it| matches!(it.step, Step::Copying | Step::Switching));
        let sealed = copying.map(|record| self.may_be_sealed(record)).transpose()?;
        let copy = copying.map(|record| Copy {
            migration: record.id,
            place: &record.to,
            sealed: sealed.flatten(),
        });
        self.storage.check_is_newest(disk, on, copy.as_ref())
    }

    /// With which generation the destination may call itself the truth by this migration's
    /// own doing. That is never written before there is a record, which a loss of power may
    /// have torn since; so without a record it is the doing of a newer state.
    pub(super) fn may_be_sealed(
        &self,
        migration: &MigrationRecord,
    ) -> Result<Option<u64>> {
        if migration.step != Step::Switching {
            return Ok(None);
        }
        let begun = self.find_record(migration)?.is_some();
        Ok(begun.then_some(migration.destination_generation))
    }

    /// Refuses to take the source for the truth where the record says otherwise.
    pub(super) fn check_not_committed(&self, migration: &MigrationRecord) -> Result<()> {
        match self.find_record(migration)? {
            Some((_, Found::Committed)) => Err(Error::unavailable(format!(
                "the switch-over of migration {} was committed, and the state database \
                 does not have it yet",
                migration.id
            ))),
            _ => Ok(()),
        }
    }

    fn find_record(
        &self,
        migration: &MigrationRecord,
    ) -> Result<Option<(CommitRecord, Found)>> {
        let path = commit_record::path(&self.storage.places.state, migration.id);
        let attempt = self.storage.store.switch_overs(migration.id)?;
        let found = CommitRecord::open(&path, key(migration, attempt))
            .and_then(|record| record.found().map(|found| (record, found)));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let path = path.display();
                let message = format!(
                    "cannot tell whether the switch-over was committed: cannot read \
                     {path}: {error}"
                );
                Err(Error::unavailable(message).hint("check the state directory"))
            }
        }
    }
}

fn key(migration: &MigrationRecord, attempt: u64) -> Key {
    Key {
        migration: migration.id,
        disk: migration.disk.0,
        started: migration.started,
        source_generation: migration.source_generation,
        destination_generation: migration.destination_generation,
        attempt,
    }
}
