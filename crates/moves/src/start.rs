//! Starting a migration: everything that can be refused is refused here, and
//! then nothing has changed.

use std::sync::Arc;
use std::time::Instant;

use sterna_api::{
    Application, Error, Guard, Migration, Provision, Result, StartMigration,
};
use sterna_core::mirror::Control;
use sterna_engine::datastore::{Datastore, DatastoreError};
use sterna_engine::mirror::Start;
use sterna_engine::sidecar::{Identity, Role};
use sterna_os::{clock, lock};
use sterna_state::{
    Counted, DiskRecord, Ending, FoundInImages, MigrationRecord, Pause, Place, Step,
    StoreError,
};
use sterna_storage::datastores::claim_of as datastore_claim;
use sterna_storage::disks::{claim_of, provision};
use sterna_storage::handle::DatastoreHandle;
use sterna_telemetry::figures::summarized;

use super::Job;
use super::control::check_rate;
use super::guard::wanted;
use super::obstacle::Obstacle;
use super::own_images::is_copy;
use crate::Moves;

/// A destination image that is there.
struct Destination {
    file: String,
    reads_zero: bool,
    start: Start,
    /// What it said of itself before, if it was there.
    was: Option<Identity>,
}

/// Why a migration did not start.
#[derive(Debug)]
pub struct NotStarted {
    /// What happened.
    pub error: Error,
    /// It could not be recorded: the state directory takes nothing new. Neither datastore is
    /// to blame.
    pub is_unrecorded: bool,
}

impl From<Error> for NotStarted {
    fn from(error: Error) -> NotStarted {
        NotStarted { error, is_unrecorded: false }
    }
}

impl From<StoreError> for NotStarted {
    fn from(error: StoreError) -> NotStarted {
        let is_unrecorded = error.may_be_storage();
        NotStarted { error: error.into(), is_unrecorded }
    }
}

impl From<Obstacle> for NotStarted {
    fn from(obstacle: Obstacle) -> NotStarted {
        let is_unrecorded = obstacle.is_unrecorded;
        NotStarted { error: obstacle.error.hint(obstacle.remedy), is_unrecorded }
    }
}

impl Moves {
    /// Starts a migration; answers when the copy has begun.
    pub fn start_migration(
        self: &Arc<Self>,
        request: &StartMigration,
    ) -> Result<Migration> {
        self.start_if(request, |_| Ok(())).map_err(|refused| refused.error)
    }

    /// The same, if the disk is what whoever asks takes it for: a name may be another
    /// disk's by now.
    pub fn start_if(
        self: &Arc<Self>,
        request: &StartMigration,
        check: impl FnOnce(&DiskRecord) -> Result<()>,
    ) -> Result<Migration, NotStarted> {
        let began = Instant::now();
        check_rate(request.rate)?;
        let guard = wanted(&request.guard)?;
        let _disk = self.storage.claims.alone(claim_of(&request.disk))?;
        let _datastore = self.storage.claims.shared(datastore_claim(&request.to))?;
        let disk = self.storage.disk_record(&request.disk)?;
        check(&disk)?;
        self.storage.descriptors.check_move("a move")?;
        let to = self.storage.handle(&request.to)?;
        self.check_may_move(&disk, request)?;
        self.put_away_overdue_at(&request.to)?;
        let placing = self.storage.placing(&to);
        let store = self.check_takes(&disk, &to, request.provision)?;
        self.storage.check_is_nowhere_else(&to, &store, placing.as_ref())?;
        let lately = self.lately(&disk)?;
        let (forecast, experience) = self.forecast(&disk, request, &guard, &lately);
        let before = summarized(&lately);
        let mut record = new_record(&disk, request, guard, before);
        record.forecast = Some(forecast);
        record.id = self.storage.store.add_migration(record.clone())?;
        drop(placing);
        let job = self.job_with(&record, experience);
        let _turn = lock(&job.turn);
        lock(&job.state).began = Some(began);
        self.begin_copy(&job, &mut record, &to, &store).map_err(|refused| {
            let what = format!("disk {} cannot be moved", record.name);
            NotStarted { error: refused.error.about(&what), ..refused }
        })?;
        tracing::info!(
            migration = record.id,
            disk = record.name,
            from = record.from.datastore,
            to = record.to.datastore,
            "migration started"
        );
        Ok(self.show_migration(record.id)?)
    }

    /// Makes the destination image and the mirror. What fails is undone.
    fn begin_copy(
        self: &Arc<Self>,
        job: &Arc<Job>,
        record: &mut MigrationRecord,
        to: &DatastoreHandle,
        store: &Datastore,
    ) -> Result<(), NotStarted> {
        let mut was = None;
        let made = make_destination(record, to, store).map_err(NotStarted::from);
        let begun = made.and_then(|made| {
            was = made.was;
            record.to.image.clone_from(&made.file);
            record.reads_zero = made.reads_zero;
            self.storage.store.migration_begins(
                record.id,
                &made.file,
                made.reads_zero,
            )?;
            record.step = Step::Copying;
            // It stands still until the destination is known to be usable.
            let pause = Pause { reason: "starting".into(), ..Pause::default() };
            let standing = MigrationRecord { pause: Some(pause), ..record.clone() };
            Ok(self.launch(job, &standing, made.start)?)
        });
        if let Err(refused) = begun {
            self.forget_unstarted(record, to, was.as_ref(), &refused.error);
            return Err(refused);
        }
        if let Err(error) = check_second_client(record, to, store) {
            // The mirror ends, and its end puts away what there is.
            self.storage.store.set_cancel(record.id)?;
            self.tell(job, Control::Cancel)?;
            return Err(error.into());
        }
        Ok(self.tell(job, Control::Resume)?)
    }

    fn check_may_move(&self, disk: &DiskRecord, request: &StartMigration) -> Result<()> {
        let name = &disk.name;
        check_elsewhere(disk, &request.to)?;
        self.storage.check_settled(disk)?;
        if let Some(other) = self.migration_of(disk.id)? {
            let id = other.id;
            let message = format!("disk {name} is being moved by migration {id}");
            let hint = format!(
                "`sterna migration watch {id}` shows its progress, `sterna migration \
                 cancel {id}` cancels it"
            );
            return Err(Error::in_use(message).hint(hint));
        }
        if let Some(problem) = self.storage.problem_of(disk.id) {
            let message = format!("disk {name} is not served: {problem}");
            return Err(Error::unavailable(message)
                .hint("repair this; Sterna tries again every few seconds"));
        }
        self.storage.handle(&disk.datastore)?.must_not_hang()
    }

    /// A migration that did not get as far as copying leaves nothing, and what was there as
    /// it `was`. If its image cannot be removed, the migration is listed as cancelled, so
    /// that somebody can find out whose image that is.
    fn forget_unstarted(
        &self,
        record: &MigrationRecord,
        to: &DatastoreHandle,
        was: Option<&Identity>,
        error: &Error,
    ) {
        lock(&self.jobs).remove(&record.id);
        let forgotten = self
            .put_back(record, to, was)
            .and_then(|()| Ok(self.storage.store.migration_never_began(record.id)?));
        let Err(left) = forgotten else { return };
        tracing::warn!(migration = record.id, error = %left,
                       "what a refused migration has made, or its record, was left behind");
        let ending = Ending {
            at: clock::now(),
            note: Some(format!("could not be started: {error}")),
            application: Application::default(),
            report: None,
        };
        let ended =
            self.storage.store.migration_ends(record.id, Step::Cancelled, &ending);
        if let Err(error) = ended {
            tracing::error!(migration = record.id, %error, "cannot record the \
                                                            migration's end");
        }
    }

    /// Removes the image that a migration has made, or has it say again what it said before.
    fn put_back(
        &self,
        record: &MigrationRecord,
        to: &DatastoreHandle,
        was: Option<&Identity>,
    ) -> Result<()> {
        if record.to.image.is_empty() && record.step != Step::Copying {
            return Ok(());
        }
        let (file, size) = (&record.to.image, record.size);
        let ours = |found: &Identity| is_copy(found, record);
        match was {
            _ if !to.has(file, size, ours)? => Ok(()),
            Some(was) => to.identify(file, was),
            None => to.remove(file, size, None)?.wholly(),
        }
    }
}

/// Refuses the datastore that a disk is on.
pub(crate) fn check_elsewhere(disk: &DiskRecord, to: &str) -> Result<()> {
    if disk.datastore != to {
        return Ok(());
    }
    let message = format!("disk {} is on datastore {to} already", disk.name);
    Err(Error::invalid(message).hint("choose another datastore"))
}

pub(super) fn new_record(
    disk: &DiskRecord,
    request: &StartMigration,
    guard: Guard,
    before: Option<sterna_api::Figures>,
) -> MigrationRecord {
    MigrationRecord {
        id: 0,
        disk: disk.id,
        name: disk.name.clone(),
        size: disk.size,
        from: Place { datastore: disk.datastore.clone(), image: disk.image.clone() },
        to: Place { datastore: request.to.clone(), image: String::new() },
        provision: request.provision.unwrap_or(disk.provision),
        reads_zero: false,
        rate: request.rate,
        guard,
        verify: request.verify,
        keep_source: request.keep_source,
        skip_bad: request.skip_bad_sectors,
        found: FoundInImages::default(),
        step: Step::Created,
        source_generation: disk.generation,
        destination_generation: disk.generation + 1,
        cancel: false,
        pause: None,
        started: clock::now(),
        ended: None,
        note: None,
        application: Application { before, ..Application::default() },
        counted: Counted::default(),
        forecast: None,
        experience: None,
        report: None,
    }
}

/// What a migration's destination says of itself while it is copied to.
pub(super) fn partial(record: &MigrationRecord) -> Identity {
    Identity {
        id: record.disk,
        name: record.name.clone(),
        size: record.size,
        generation: record.destination_generation,
        role: Role::Partial,
    }
}

/// A server that takes one client has it now, in the mirror, and could never be
/// sealed: better to know that before the copy than after it.
fn check_second_client(
    record: &MigrationRecord,
    to: &DatastoreHandle,
    store: &Datastore,
) -> Result<()> {
    if store.holds_many() {
        return Ok(());
    }
    let read = to.image(&record.to.image).and_then(|image| {
        store.read_sidecar(&image, record.size).map_err(|error| to.refused(&error))
    });
    read.map(drop)
}

/// Makes the destination image; or takes an old image of the same disk, of
/// which only what differs need be copied.
fn make_destination(
    record: &MigrationRecord,
    to: &DatastoreHandle,
    store: &Datastore,
) -> Result<Destination> {
    let identity = partial(record);
    match store.create_image(&identity, provision(record.provision)) {
        Ok(created) => {
            to.note_size(store);
            let file =
                store.file_of(&created.image).map_err(|error| to.refused(&error))?;
            let reads_zero = created.reads_zero;
            Ok(Destination { file, reads_zero, start: Start::Fresh, was: None })
        }
        Err(DatastoreError::Exists(path)) => {
            let file =
                path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            reuse(record, to, store, file).map_err(|reason| {
                to.refused(&DatastoreError::Exists(path.clone())).hint(reason)
            })
        }
        Err(error) => Err(to.refused(&error)),
    }
}

/// An image that this disk once had here, kept by `--keep-source`.
fn reuse(
    record: &MigrationRecord,
    to: &DatastoreHandle,
    store: &Datastore,
    file: &str,
) -> Result<Destination, String> {
    let other = |reason: &str| {
        format!(
            "{reason}; check the image, then remove it, or make it a disk with `sterna disk \
             import`"
        )
    };
    let unusable = |_| other("it is not an old copy of this disk");
    let image = store.image(file).map_err(unusable)?;
    let old = store.read_sidecar(&image, record.size).map_err(unusable)?;
    let ours =
        old.id == record.disk && old.size == record.size && old.role != Role::Active;
    if !ours && old.id == record.disk && old.generation < record.source_generation {
        return Err(other(&format!(
            "it says that it is disk {} with generation {}, and the disk has {} by now: an old \
             image, of which Sterna does not know how it came there",
            record.name, old.generation, record.source_generation
        )));
    }
    if !ours && old.id == record.disk {
        return Err(format!(
            "it says that it is disk {} itself, in use: do not remove it. Datastore {} may be \
             the place of the disk under another name; choose another datastore",
            record.name,
            to.name()
        ));
    }
    let whose = format!("it is the image of disk {} ({})", old.name, old.role);
    if !ours && old.role == Role::Active {
        return Err(format!(
            "{whose}, which is in use, perhaps by another Sterna; choose another datastore"
        ));
    }
    if !ours {
        return Err(other(&whose));
    }
    to.check_is_surely(file).map_err(|error| other(&error.to_string()))?;
    if record.provision != Provision::Thin {
        let allocated = store.allocate(&image, record.size);
        allocated.map_err(|error| other(&to.refused(&error).to_string()))?;
    }
    to.take_over(file, &partial(record)).map_err(|error| other(&error.to_string()))?;
    tracing::info!(
        migration = record.id,
        file,
        "the destination has an old copy: Sterna compares it"
    );
    let (file, was) = (file.into(), Some(old));
    Ok(Destination { file, reads_zero: false, start: Start::Suspect, was })
}
