//! The switch-over's records. The crate's first page has the table of what follows what.

use std::time::Instant;

use sterna_api::{Error, ErrorCode, Result};
use sterna_core::Nanos;
use sterna_core::mirror::Fault;
use sterna_engine::datastore::DatastoreError;
use sterna_engine::sidecar::{Identity, Role, SidecarError};
use sterna_os::lock;
use sterna_state::{Blame, MigrationRecord, Step};

use super::own_images::{is_copy, sources};
use super::start::partial;
use super::view::then_resume;
use super::{Job, Prepared, Unsealed};
use crate::Moves;

impl Moves {
    /// The intention to switch over is durable: whatever happens to the seal,
    /// the source will be raised above it. Gives how long the commit's record took, if
    /// all of that can be recorded.
    pub(super) fn prepare_switch(&self, job: &Job) -> Option<Nanos> {
        lock(&job.state).unsealed = None;
        // A fence that was begun and not finished: the source may say more of itself
        // than the store knows, and the destination must outrank it.
        let fenced = self.mark_copy(job, || {
            let record = self.migration_record(job.id)?;
            self.fence(&record, false).inspect_err(|error| {
                lock(&job.state).unsealed = Some(unfenced(&record, error));
            })
        });
        let prepared = fenced
            .and_then(|_| self.note_findings(job))
            .and_then(|()| Ok(self.storage.store.migration_switches(job.id)?))
            .and_then(|attempt| self.prepare_record(job, attempt));
        match prepared {
            Ok(took) => Some(Nanos(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))),
            Err(error) => {
                tracing::error!(migration = job.id, %error, "the switch-over is off");
                None
            }
        }
    }

    /// The destination says of itself that it is the truth. This goes over a connection of
    /// its own, which may lead to another export than those of the mirror (a server that was
    /// started anew, a fail-over): what does not say that it is the copy is not written to.
    pub(super) fn seal(&self, job: &Job) -> Result<(), Fault> {
        // What kept an earlier one from succeeding is not why a later pause comes.
        lock(&job.state).unsealed = None;
        let lost = |error: &dyn std::fmt::Display| {
            lock(&job.state).unsealed = Some(Unsealed::because(error.to_string()));
            tracing::warn!(migration = job.id, %error, "the destination is not sealed");
            Fault::Lost
        };
        let prepared = lock(&job.prepared);
        let Some(Prepared { migration: record, .. }) = &*prepared else {
            return Err(lost(&"the switch-over was not prepared"));
        };
        let handle =
            self.storage.handle(&record.to.datastore).map_err(|error| lost(&error))?;
        let store = handle.get().map_err(|error| lost(&error))?;
        self.check_files(job, record).map_err(|unsealed| {
            let reason = &unsealed.reason;
            tracing::warn!(migration = job.id, reason, "the destination is not sealed");
            lock(&job.state).unsealed = Some(unsealed);
            Fault::Lost
        })?;
        let active = Identity { role: Role::Active, ..partial(record) };
        let ours = |found: &Identity| *found == active || is_copy(found, record);
        let since = Instant::now();
        let sealed = self.mark_copy(job, || {
            store
                .image(&record.to.image)
                .and_then(|image| store.change_sidecar(&image, &active, &ours))
        });
        let took = since.elapsed();
        tracing::debug!(migration = job.id, ?took, "sealed");
        sealed.map_err(|error| {
            handle.note(&error);
            lost(&error);
            if is_another(&error) {
                let first =
                    format!("put the right image back on datastore {}", handle.name());
                let better = Some((then_resume(&first, record.id), Blame::Destination));
                let unsealed =
                    Unsealed { better, ..Unsealed::because(error.to_string()) };
                lock(&job.state).unsealed = Some(unsealed);
            }
            fault_of(&error)
        })
    }

    /// A seal was undone: the source gets a generation above the destination's.
    pub(super) fn unseal(&self, job: &Job) {
        let fenced = self.mark_copy(job, || {
            self.migration_record(job.id).and_then(|record| self.fence(&record, false))
        });
        let record = match fenced {
            Ok(record) => record,
            // The step stays `switching`: it is done before the next start, and
            // the store says meanwhile which side is the truth.
            Err(error) => {
                tracing::error!(migration = job.id, %error, "the source is not fenced yet");
                return;
            }
        };
        // The source outranks it in any case; but if the source is lost for good,
        // what is from now on only a part of the disk must not look like its truth.
        let unsealed = self.mark_copy(job, || self.is_a_part(&record));
        if let Err(error) = unsealed {
            tracing::warn!(migration = job.id, %error, "the destination stays sealed");
        }
    }

    /// The destination says of itself that it is a part, if what is there is the copy.
    fn is_a_part(&self, record: &MigrationRecord) -> Result<()> {
        let to = self.storage.handle(&record.to.datastore)?;
        let ours = |found: &Identity| is_copy(found, record);
        to.identify_ours(&record.to.image, &partial(record), ours)
    }

    /// Makes the source outrank whatever the destination says of itself, then
    /// leaves the step `switching`. Its record after that. Only an image that is
    /// surely the source is given a generation. One that is served and has lost its name
    /// cannot outrank anything: then the destination is a part before all else. `is_proven`: the
    /// content of the source's place says that it is the disk's.
    pub fn fence(
        &self,
        record: &MigrationRecord,
        is_proven: bool,
    ) -> Result<MigrationRecord> {
        if record.step != Step::Switching {
            return Ok(record.clone());
        }
        self.check_not_committed(record)?;
        let from = self.storage.handle(&record.from.datastore)?;
        let [as_it_was, raised] = sources(record);
        let (source, destination) = (raised.generation, raised.generation + 1);
        if self.has_lost_its_name(record) {
            // After a crash nobody finds it, so what was sealed is a part again before the
            // step is left. Should the file get its name back, its sidecar is what it has
            // to be, unless that is another's by now.
            let part =
                MigrationRecord { destination_generation: destination, ..record.clone() };
            let to = self.storage.handle(&record.to.datastore)?;
            // A place that says nothing passes for nobody's truth.
            if to.says(&record.to.image, record.size)?.is_some() {
                self.is_a_part(&part)?;
            }
            let says = from.says(&record.from.image, record.size);
            if says.is_ok_and(|says| says.is_none_or(|it| sources(record).contains(&it)))
            {
                from.identify(&record.from.image, &raised)?;
            }
            self.storage.store.migration_unsealed(record.id, source, destination)?;
            return self.migration_record(record.id);
        }
        from.follow_growth(&record.from.image, &sources(record), is_proven)?;
        let found = from.expect(&record.from.image, &as_it_was);
        found.or_else(|refusal| {
            // The refusal of what it most likely should be is the one to tell.
            from.expect(&record.from.image, &raised).map_err(|_| refusal)
        })?;
        from.identify(&record.from.image, &raised)?;
        self.storage.store.migration_unsealed(record.id, source, destination)?;
        tracing::info!(migration = record.id, source, "the source is fenced");
        self.migration_record(record.id)
    }
}

/// The source cannot be made to outrank the destination: its datastore takes no sidecar, or the
/// state no record.
fn unfenced(record: &MigrationRecord, error: &Error) -> Unsealed {
    let from = &record.from.datastore;
    let (first, blame) = match (error.code, error.hint.as_str()) {
        (ErrorCode::NoSpace, _) => {
            (format!("make room on datastore {from}"), Blame::Source)
        }
        (_, "") => {
            (format!("check datastore {from}, and the state directory"), Blame::Other)
        }
        (_, hint) => (hint.to_owned(), Blame::Other),
    };
    let better = Some((then_resume(&first, record.id), blame));
    Unsealed { better, ..Unsealed::because(error.message.clone()) }
}

/// Whether the place of the destination holds something else.
fn is_another(error: &DatastoreError) -> bool {
    error.says_no_sidecar() || matches!(error, DatastoreError::Mismatch { .. })
}

/// What a failed sidecar says of the destination.
fn fault_of(error: &DatastoreError) -> Fault {
    let io = match error {
        DatastoreError::Io { source, .. }
        | DatastoreError::Sidecar { source: SidecarError::Io { source, .. }, .. } => {
            source
        }
        _ => return Fault::Lost,
    };
    match io.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => Fault::Full,
        Some(errno) => Fault::Error(errno),
        None => Fault::Lost,
    }
}
