//! Why a migration stands still.
//!
//! The store has it, since it must hold over a restart. But a state directory that
//! is full can be the very reason: then the job has it, what the job has comes
//! first for everybody who asks, and the keeper records it as soon as that can be
//! done. What the operator asks for is never only in the job: it is refused if it
//! cannot be recorded.

use super::Job;
use crate::daemon::{Daemon, lock};
use crate::store::{MigrationRecord, Pause, StoreError};

impl Daemon {
    /// A job stands still for this reason, whether or not that can be recorded.
    pub(super) fn stand_still(&self, job: &Job, pause: Pause) -> Result<(), StoreError> {
        *lock(&job.unrecorded) = Some(pause);
        self.record_standstill(job)
    }

    /// Records why a job stands still, if that could not be recorded before.
    pub(crate) fn record_standstill(&self, job: &Job) -> Result<(), StoreError> {
        let mut unrecorded = lock(&job.unrecorded);
        if let Some(pause) = &*unrecorded {
            self.store.set_pause(job.id, Some(pause))?;
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
        self.store.set_pause(job.id, pause)?;
        *unrecorded = None;
        Ok(())
    }

    /// A record, with what its job knows better.
    pub(crate) fn up_to_date(&self, mut record: MigrationRecord) -> MigrationRecord {
        let job = self.job(record.id);
        if let Some(pause) = job.and_then(|job| lock(&job.unrecorded).clone()) {
            record.pause = Some(pause);
        }
        record
    }
}
