//! Bringing disks and migrations up: at the start, and again for those that
//! could not be.
//!
//! Each disk is brought up on its own, as soon as its own datastore is open: one
//! that hangs keeps its own disks waiting and no others. The order for a disk is fixed: a
//! commit whose record is there is settled; a disk of which another datastore has a newer
//! image is not served; a switch-over that may have sealed the
//! destination is fenced *before* the source is served, and the image is served only if
//! its sidecar says that it is the expected one. What does not fit is reported, never guessed.

use std::slice;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use sterna_api::{Error, Result};
use sterna_moves::Job;
use sterna_os::lock;
use sterna_runtime::threads;
use sterna_state::{DiskRecord, MigrationRecord, Step};
use sterna_storage::disks::{claim_of, identity};
use sterna_storage::handle::DatastoreHandle;

use crate::daemon::Daemon;

/// How long the start waits for disks that do not come up. Clients of the others
/// are waiting; a client that finds its own disk missing (QEMU's reconnect) tries
/// again, and until then nothing is lost.
const STRAGGLERS: Duration = Duration::from_secs(2);

impl Daemon {
    /// Opens what the store knows of. Returns when all is up, or when those that
    /// are not have had their time; they come up later, behind the caller's back.
    pub(crate) fn bring_all_up(self: &Arc<Self>) -> Result<()> {
        self.storage.tell_of_missing_disks()?;
        if let Err(error) = self.storage.store.forget_old_fingerprints() {
            // Places are compared with more than need be.
            tracing::warn!(%error, "what disks were known by elsewhere is not forgotten");
        }
        for record in self.storage.store.datastores()? {
            let handle = self.storage.new_handle(record);
            lock(&self.storage.handles).insert(handle.name().to_owned(), handle.clone());
        }
        for migration in self.storage.store.open_migrations()? {
            // Where the disk is served, it is tried once more, and then tells.
            let migration = self.moves.settle(&migration).unwrap_or_else(|error| {
                tracing::error!(migration = migration.id, %error, "not settled");
                migration
            });
            self.moves.job_of(&migration);
        }
        let deadline = Instant::now() + STRAGGLERS;
        let (done, up) = mpsc::channel::<()>();
        let mut disks = self.storage.store.disks()?;
        for handle in self.storage.all_handles() {
            let on_it = disks.extract_if(.., |disk| disk.datastore == handle.name());
            let (on_it, done) = (on_it.collect(), done.clone());
            threads::aside(self, move |daemon| {
                daemon.bring_handle_up(&handle, on_it, &done);
            });
        }
        wait(done, &up, deadline);
        Ok(())
    }

    /// Opens a datastore, then brings its disks up. Each holds `done` until it is
    /// up, or cannot be.
    fn bring_handle_up(
        self: &Arc<Self>,
        handle: &DatastoreHandle,
        disks: Vec<DiskRecord>,
        done: &mpsc::Sender<()>,
    ) {
        if let Err(error) = handle.open() {
            tracing::warn!(datastore = handle.name(), %error, "datastore offline");
        }
        for disk in disks {
            let done = done.clone();
            threads::aside(self, move |daemon| {
                daemon.bring_up(&disk);
                drop(done);
            });
        }
    }

    /// Tries again what could not be brought up, and sees whether datastores are still
    /// what they were.
    pub(crate) fn retry(self: &Arc<Self>) -> Result<()> {
        for handle in self.storage.all_handles() {
            // Each by itself: one that hangs keeps nobody from seeing to the others.
            if handle.begin_look() {
                let looked_at = handle.clone();
                if !threads::aside(self, move |daemon| daemon.see_to(&looked_at)) {
                    handle.end_look();
                }
            }
        }
        for disk in self.storage.store.disks()? {
            if self.storage.problem_of(disk.id).is_some() {
                threads::aside(self, move |daemon| daemon.bring_up(&disk));
            }
        }
        self.storage.attach_missing()
    }

    /// Lets go on what waited for a datastore that is back, and looks what it has.
    fn see_to(self: &Arc<Self>, handle: &Arc<DatastoreHandle>) {
        // All disks and moves are read for that, so not for directories, which have no size.
        if !handle.is_shared() {
            handle.follow_size(|| self.works_on(handle));
        }
        // What waits for one that hangs goes on when it answers.
        if handle.is_back() && handle.must_answer().is_ok() {
            match self.moves.datastore_is_back(handle.name()) {
                Ok(true) => handle.seen_to(),
                Ok(false) => {}
                Err(error) => {
                    let datastore = handle.name();
                    tracing::warn!(datastore, %error, "cannot look for migrations that \
                                                       wait for a datastore");
                }
            }
        }
        // Afterwards: nothing that waits for the datastore waits for this, too.
        if let Err(error) = self.storage.look_for_rivals(handle) {
            let datastore = handle.name();
            tracing::warn!(datastore, %error, "cannot look for newer images of disks");
        }
        handle.end_look();
    }

    /// Whether a disk is served from a datastore, or a move copies to it, or may do so again
    /// without opening it anew. If nobody can know, yes.
    fn works_on(&self, handle: &DatastoreHandle) -> bool {
        let name = handle.name();
        let serves = |disk: &DiskRecord| {
            disk.datastore == name && self.storage.problem_of(disk.id).is_none()
        };
        let Ok(disks) = self.storage.store.disks() else { return true };
        let Ok(moves) = self.storage.store.open_migrations() else { return true };
        let holds = |it: &MigrationRecord| {
            it.to.datastore == name && self.moves.holds_copy(it.id)
        };
        disks.iter().any(serves) || moves.iter().any(holds)
    }

    /// Serves a disk, and lets its migration go on.
    fn bring_up(self: &Arc<Self>, disk: &DiskRecord) {
        // Whoever holds it is at it already.
        let Ok(_claim) = self.storage.claims.alone(claim_of(&disk.name)) else { return };
        // Another thread may have brought it up since somebody wanted this: its migration is
        // under way then, and is not to be fenced.
        if self.storage.problem_of(disk.id).is_none() {
            return;
        }
        // The record may have changed since the list was made.
        let Ok(Some(disk)) = self.storage.store.disk(&disk.name) else { return };
        let migration = match self.moves.migration_of(disk.id) {
            Ok(migration) => migration,
            Err(error) => return self.not_served(&disk, &error),
        };
        match self.try_to_serve(&disk, migration) {
            Ok(migration) => {
                tracing::info!(
                    disk = disk.name,
                    datastore = disk.datastore,
                    "disk served"
                );
                if let Some(record) = migration {
                    self.continue_migration(&record);
                }
            }
            Err(error) => self.not_served(&disk, &error),
        }
    }

    fn try_to_serve(
        self: &Arc<Self>,
        disk: &DiskRecord,
        migration: Option<MigrationRecord>,
    ) -> Result<Option<MigrationRecord>> {
        let migration = migration.map(|record| self.moves.settle(&record)).transpose()?;
        // That may have moved it.
        let disk = self.storage.disk_record(&disk.name)?;
        let handle = self.storage.handle(&disk.datastore)?;
        handle.open()?;
        self.moves.check_is_newest(&disk, &handle, migration.as_ref())?;
        self.storage.check_is_its_file(&disk, &handle)?;
        let is_proven = self.storage.check_is_its_place(&disk, &handle)?;
        let fence = |record| self.moves.fence(&record, is_proven);
        let migration = migration.map(fence).transpose()?;
        // Fencing raises it.
        let disk = self.storage.disk_record(&disk.name)?;
        let role = self.machines.role_of(&disk, &handle)?;
        let expected = identity(&disk, disk.generation, role);
        handle.follow_growth(&disk.image, slice::from_ref(&expected), is_proven)?;
        let image = handle.expect(&disk.image, &expected).map_err(|error| {
            self.machines.part_of_a_copy(&disk).map_or(error, Error::unavailable)
        })?;
        if let Some(record) = migration.as_ref().filter(|it| it.step == Step::Copying) {
            self.storage.gate.serve_bare(record, &self.moves.map_path(record.id))?;
        }
        self.storage.serve_disk(&disk, &image, &handle)?;
        Ok(migration)
    }

    fn continue_migration(self: &Arc<Self>, record: &MigrationRecord) {
        let job: Arc<Job> = self.moves.job_of(record);
        if let Err(error) = self.moves.go_on(&job) {
            tracing::error!(migration = record.id, %error, "the migration cannot continue");
        }
    }

    fn not_served(&self, disk: &DiskRecord, error: &Error) {
        let known = lock(&self.storage.served).insert(disk.id, Err(error.clone()));
        if known.is_none_or(|known| known.as_ref() != Err(error)) {
            tracing::warn!(disk = disk.name, problem = error.message, "disk not served");
        }
    }
}

/// Waits until all other holders of `done` have dropped it, or for the deadline.
fn wait(done: mpsc::Sender<()>, up: &mpsc::Receiver<()>, deadline: Instant) {
    drop(done);
    let left = deadline.saturating_duration_since(Instant::now());
    if up.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Timeout) {
        tracing::warn!("some disks are not up yet; going on without them");
    }
}
