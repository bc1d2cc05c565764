//! Why a migration stands still.
//!
//! The store has it, since it must hold over a restart. But a state directory that
//! is full can be the very reason: then the job has it, what the job has comes
//! first for everybody who asks, and the daemon (`retry`) records it as soon as that can be
//! done. What the operator asks for is never only in the job: it is refused if it
//! cannot be recorded.
//!
//! A migration whose disk is not served stands still without a pause: nobody has to
//! resume it. To people it looks the same, with a reason and what to do.

use sterna_os::lock;
use sterna_state::{Blame, MigrationRecord, Pause, Step, StoreError};

use super::{Job, StandsFor};
use crate::Moves;

impl Moves {
    /// A job stands still for this reason, whether or not that can be recorded.
    pub(super) fn stand_still(&self, job: &Job, pause: Pause) -> Result<(), StoreError> {
        lock(&job.state).stands = Some(StandsFor::from(&pause));
        *lock(&job.unrecorded) = Some(pause);
        // A plan may send its disk elsewhere.
        self.tell_changed();
        self.record_standstill(job)
    }

    /// Records why a job stands still, if that could not be recorded before.
    pub fn record_standstill(&self, job: &Job) -> Result<(), StoreError> {
        let mut unrecorded = lock(&job.unrecorded);
        if let Some(pause) = &*unrecorded {
            self.storage.store.set_pause(job.id, Some(pause))?;
            *unrecorded = None;
        }
        Ok(())
    }

    /// A job stands still, or goes on, as it was asked to; if that cannot be
    /// recorded, nothing has changed.
    pub(super) fn set_pause(
        &self,
        job: &Job,
        pause: Option<&Pause>,
    ) -> Result<(), StoreError> {
        let mut unrecorded = lock(&job.unrecorded);
        self.storage.store.set_pause(job.id, pause)?;
        *unrecorded = None;
        lock(&job.state).stands = pause.map(StandsFor::from);
        Ok(())
    }

    /// A record, with what its job knows better.
    pub(super) fn up_to_date(&self, mut record: MigrationRecord) -> MigrationRecord {
        let job = self.job(record.id);
        if let Some(pause) = job.and_then(|job| lock(&job.unrecorded).clone()) {
            record.pause = Some(pause);
        }
        record
    }

    /// All migrations, oldest first, with what their jobs know better.
    pub fn migration_records(&self) -> Result<Vec<MigrationRecord>, StoreError> {
        let all = self.storage.store.migrations()?;
        Ok(all.into_iter().map(|record| self.up_to_date(record)).collect())
    }

    /// Those that have not ended, which are few, however many there were.
    pub fn open_migration_records(&self) -> Result<Vec<MigrationRecord>, StoreError> {
        let open = self.storage.store.open_migrations()?;
        Ok(open.into_iter().map(|record| self.up_to_date(record)).collect())
    }

    /// Why a migration stands still, for people: it was paused, or it cannot be
    /// taken up after a restart.
    pub fn standstill(&self, record: &MigrationRecord) -> Option<Pause> {
        match record.step {
            Step::Copying | Step::Switching => {
                record.pause.clone().or_else(|| self.waits_for_disk(record))
            }
            Step::Created | Step::Committed | Step::Completed | Step::Cancelled => None,
        }
    }

    /// What keeps its disk from being served. One that is just being brought up is
    /// no reason yet.
    fn waits_for_disk(&self, record: &MigrationRecord) -> Option<Pause> {
        let MigrationRecord { id, name, .. } = record;
        if record.cancel || self.job(*id).is_some_and(|job| job.running()) {
            return None;
        }
        let problem = lock(&self.storage.served).get(&record.disk)?.clone().err()?;
        let reason = format!("disk {name} is not served: {problem}");
        let hint = format!(
            "repair this (`sterna disk show {name}`), and the migration continues \
             automatically; or cancel it: `sterna migration cancel {id}`"
        );
        let (hint, blame) = (Some(hint), Blame::Source);
        Some(Pause { reason, hint, blame, ..Pause::default() })
    }
}
