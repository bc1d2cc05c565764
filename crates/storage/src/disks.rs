//! Disks, as the API's requests see them.
//!
//! A disk comes to be in this order: image and sidecar (durable), record,
//! served. A crash in between leaves at most an image that no disk has, which
//! its sidecar names; of one that takes long to be made, one that calls itself partial
//! (`unfinished`). It goes in the opposite order
//! (`removals`), for the same reason.

use sterna_api::{Disk, DiskActivity, Error, ErrorCode, Provision, Result};
use sterna_core::{Bytes, DiskId};
use sterna_engine::datastore::{self, Datastore, Location};
use sterna_engine::sidecar::{FIRST, Identity, Role};
use sterna_engine::{AccountSpec, DiskSpec, ImageSpec};
use sterna_os::{clock, descriptors, lock, random};
use sterna_state::DiskRecord;
use sterna_telemetry::figures::{RECENT, summarized};

use crate::Storage;
use crate::claims::Claim;
use crate::datastores::claim_of as datastore_claim;
use crate::handle::DatastoreHandle;

/// Disks are made of sectors.
pub(crate) const SECTOR: u64 = 512;

/// Whether clients can use a disk; if not, why, and what to do.
pub(crate) type Served = Result<()>;

/// The claim on a disk.
pub fn claim_of(name: &str) -> String {
    format!("disk {name}")
}

/// What a disk's image says of itself.
pub fn identity(disk: &DiskRecord, generation: u64, role: Role) -> Identity {
    let (id, name, size) = (disk.id, disk.name.clone(), disk.size);
    Identity { id, name, size, generation, role }
}

/// A provisioning as the engine knows it.
pub fn provision(provision: Provision) -> datastore::Provision {
    match provision {
        Provision::Thin => datastore::Provision::Thin,
        Provision::Thick => datastore::Provision::Thick,
        Provision::ThickZeroed => datastore::Provision::ThickZeroed,
    }
}

impl Storage {
    /// All disks, by name.
    pub fn list_disks(&self) -> Result<Vec<Disk>> {
        let disks = self.store.disks()?;
        disks.into_iter().map(|record| self.view_disk(record)).collect()
    }

    /// One disk.
    pub fn show_disk(&self, name: &str) -> Result<Disk> {
        let record = self.disk_record(name)?;
        let troubles = self.troubles_of(std::slice::from_ref(&record)).into_iter();
        let trouble = troubles.map(|it| it.message);
        let mut disk = self.view_disk(record)?;
        disk.problem =
            disk.problem.or_else(|| trouble.reduce(|one, other| one + "; " + &other));
        Ok(disk)
    }

    /// The record of a disk that exists.
    pub fn disk_record(&self, name: &str) -> Result<DiskRecord> {
        match self.store.disk(name)? {
            Some(record) => Ok(record),
            None => Err(self.no_such_disk(name)?),
        }
    }

    /// There is no such disk; if there is such a VM, how a disk of that is named.
    fn no_such_disk(&self, name: &str) -> Result<Error> {
        if self.placements.all().iter().any(|it| it.name == name) {
            return Ok(Error::in_use(format!("disk {name} is being created"))
                .hint("try again when `sterna disk list` shows it"));
        }
        let missing = Error::not_found("disk", name);
        let is_vm = self.store.vms()?.iter().any(|vm| vm.name == name);
        Ok(match is_vm {
            true => missing.hint(format!(
                "{name} is a VM: `sterna vm show {name}` lists its disks, and `sterna vm \
                 move {name} DEVICE --to DATASTORE` moves one"
            )),
            false => missing,
        })
    }

    /// Creates an empty disk and serves it.
    pub fn create_disk(
        &self,
        name: &str,
        size: u64,
        datastore: &str,
        wanted: Provision,
    ) -> Result<Disk> {
        let _claims = self.claim_new(name, datastore)?;
        let record = new_record(name, size, datastore, wanted)?;
        self.make_disk(record, Role::Active)
    }

    /// Makes a new disk's image, which calls itself so, and serves the disk.
    pub fn make_disk(&self, mut record: DiskRecord, role: Role) -> Result<Disk> {
        let DiskRecord { size, provision: wanted, .. } = record;
        self.check_open_files(&record.name)?;
        self.check_state_has_room(&format!("disk {}", record.name))?;
        let handle = self.handle(&record.datastore)?;
        let placing = self.placing(&handle);
        let store = self.open_for_new(&handle)?;
        self.check_is_nowhere_else(&handle, &store, placing.as_ref())?;
        // Until it is recorded, or nothing is left of it.
        let _placement = self.placements.take(&record);
        // Its image says that it is partial until it is filled.
        let is_long = wanted == Provision::ThickZeroed;
        if is_long {
            self.note_unfinished(&record)?;
        }
        let at_first = if is_long { Role::Partial } else { role };
        let created = store
            .create_image(&identity(&record, FIRST, at_first), provision(wanted))
            .map_err(|error| {
                self.forget_unfinished(record.id);
                handle.refused(&error)
            })?;
        handle.note_size(&store);
        let image = &created.image;
        // Filling takes minutes, in which others find places elsewhere.
        let placing = placing.filter(|_| !is_long);
        let filled = match is_long {
            true => self.finish_image(&store, image, &record, &handle, role),
            false => Ok(()),
        };
        let finished = filled.and_then(|()| {
            record.image = file_of(&store, image, &handle)?;
            self.begin(&record, image, &handle)
        });
        drop(placing);
        if let Err(error) = finished {
            // What cannot be removed now, and is noted, is removed later.
            remove_leftover(&store, image, size);
            return Err(error);
        }
        self.forget_unfinished(record.id);
        let (disk, datastore) = (&record.name, &record.datastore);
        tracing::info!(disk, id = %record.id, size, datastore, "disk created");
        self.view_disk(record)
    }

    /// Makes a new disk's image, as `make_disk` does, in the place of one that a daemon has
    /// made and was killed before it recorded the disk: nobody can have used that.
    pub fn make_disk_again(&self, record: DiskRecord, role: Role) -> Result<Disk> {
        match self.make_disk(record.clone(), role) {
            // Only now: what is nowhere in the way need not be looked for.
            Err(error) if matches!(error.code, ErrorCode::Exists | ErrorCode::InUse) => {
                match self.remove_unrecorded(&record, role)? {
                    true => self.make_disk(record, role),
                    false => Err(error),
                }
            }
            made => made,
        }
    }

    /// Removes the image that is in the way of a disk's, if a daemon has made it for the disk: it
    /// says so, with the disk's id, which nothing else has. Says whether it has removed it.
    fn remove_unrecorded(&self, record: &DiskRecord, role: Role) -> Result<bool> {
        let handle = self.handle(&record.datastore)?;
        let _placing = self.placing(&handle);
        handle.must_answer()?;
        // What does not say whose it is may be anybody's.
        let is_ours = self.is_made(record, &handle, role).unwrap_or(false);
        if is_ours {
            self.remove_made(record, &handle)?;
        }
        Ok(is_ours)
    }

    /// Whether the image in a new disk's place says that it was made for the disk.
    pub(crate) fn is_made(
        &self,
        record: &DiskRecord,
        handle: &DatastoreHandle,
        role: Role,
    ) -> Result<bool> {
        let said = handle.says(&place_for(record, handle), record.size)?;
        Ok(said == Some(identity(record, FIRST, role)))
    }

    /// Removes it. Nobody can have used it.
    pub(crate) fn remove_made(
        &self,
        record: &DiskRecord,
        handle: &DatastoreHandle,
    ) -> Result<()> {
        let file = place_for(record, handle);
        handle.remove(&file, record.size, None)?.wholly()?;
        tracing::info!(disk = record.name, file, "removed an image that was not used");
        Ok(())
    }

    /// Refuses a disk for which no more files may be open.
    pub(crate) fn check_open_files(&self, disk: &str) -> Result<()> {
        self.check_new_files(&format!("disk {disk}"), descriptors::DISK)
    }

    /// Refuses what needs so many more open files than there may be.
    pub(crate) fn check_new_files(&self, what: &str, needed: u64) -> Result<()> {
        self.descriptors.check_new(what, needed, self.without_client())
    }

    /// How many disks have no client, if each client has another one.
    pub fn without_client(&self) -> u64 {
        let served = lock(&self.served).values().filter(|it| it.is_ok()).count();
        served.saturating_sub(self.engine.clients()) as u64
    }

    /// Serves a disk's image to clients.
    pub fn serve_disk(
        &self,
        record: &DiskRecord,
        image: &ImageSpec,
        handle: &DatastoreHandle,
    ) -> Result<()> {
        self.check_open_files(&record.name)?;
        let disk = DiskSpec {
            id: record.id,
            name: record.name.clone(),
            size: record.size,
            image: image.clone(),
            budget: handle.budget(),
            unnamed: self.is_hidden(record.id)?,
            keeps_room: record.provision != Provision::Thin,
            account: Some(self.account_of(record.id)),
        };
        let attached = self.engine.attach(disk).map_err(|error| {
            Error::unavailable(format!("disk {} cannot be served: {error}", record.name))
                .hint(format!("see `sterna datastore show {}`", record.datastore))
        });
        self.users.tell(|user| user.served(record.id));
        lock(&self.served).insert(record.id, attached.clone());
        if attached.is_ok() {
            self.attach_again(record);
            self.know_again(record, handle);
        }
        attached
    }

    /// Why a disk is not served, if so.
    pub fn problem_of(&self, disk: DiskId) -> Option<String> {
        Some(self.not_served(disk)?.message)
    }

    /// The same with what to do about it.
    pub fn not_served(&self, disk: DiskId) -> Option<Error> {
        match lock(&self.served).get(&disk) {
            Some(served) => served.as_ref().err().cloned(),
            None => Some(Error::unavailable("the daemon is bringing it up")),
        }
    }

    /// What makes a new image a disk: the record, and clients.
    pub(crate) fn begin(
        &self,
        record: &DiskRecord,
        image: &ImageSpec,
        handle: &DatastoreHandle,
    ) -> Result<()> {
        self.store.add_disk(record.clone())?;
        let served = self.serve_disk(record, image, handle);
        if served.is_err() {
            lock(&self.served).remove(&record.id);
            self.store.remove_disk(record.id)?;
            self.forget_account(record);
        }
        served
    }

    /// Where it is kept what a disk's clients are owed.
    fn account_of(&self, disk: DiskId) -> AccountSpec {
        let path = self.places.state.join("accounts").join(disk.to_string());
        AccountSpec { path, boot: self.boot }
    }

    /// The account of a disk goes with it.
    pub(crate) fn forget_account(&self, record: &DiskRecord) {
        if let Err(error) = self.account_of(record.id).remove() {
            // No other disk gets its number.
            tracing::warn!(disk = record.name, %error, "the disk's account was left behind");
        }
    }

    /// The claims that a new disk needs; refused if the name is taken.
    pub fn claim_new(&self, name: &str, datastore: &str) -> Result<[Claim; 2]> {
        let claims = [
            self.claims.alone_as(claim_of(name), "is being created")?,
            self.claims.shared_as(datastore_claim(datastore), "gets a new disk")?,
        ];
        let handle = self.handle(datastore)?;
        handle.check_takes_new()?;
        self.check_is_no_disk(&handle)?;
        match self.store.disk(name)? {
            Some(_) => Err(Error::exists("disk", name)),
            None => Ok(claims),
        }
    }

    /// Whether clients do not find a disk by its name.
    fn is_hidden(&self, disk: DiskId) -> Result<bool> {
        // Who hides one is there for as long as it does.
        let mut hidden = false;
        self.users.ask_present(|user| {
            hidden |= user.hides(disk)?;
            Ok(())
        })?;
        Ok(hidden)
    }

    /// A disk as the API shows it, with what its users add to it.
    pub fn view_disk(&self, record: DiskRecord) -> Result<Disk> {
        let (problem, hint) = match self.not_served(record.id) {
            Some(Error { message, hint, .. }) => (Some(message), Some(hint)),
            None => (None, None),
        };
        let handle = self.handle(&record.datastore)?;
        let stats = match problem {
            None => self.engine.stats(record.id).ok(),
            Some(_) => None,
        };
        let recent = || summarized(&self.samples.of_disk(record.id, RECENT));
        let activity = stats.map(|stats| DiskActivity {
            connections: u64::from(stats.connections),
            in_flight: u64::from(stats.in_flight),
            reads: stats.read.operations,
            writes: stats.write.operations + stats.zeroes,
            read_bytes: stats.read.bytes,
            written_bytes: stats.write.bytes,
            recent: recent(),
        });
        let named = problem.is_none() && !self.is_hidden(record.id)?;
        let places = self.places.nbd.iter().filter(|_| named);
        let astray = self.astray(&record);
        let id = record.id;
        let mut view = Disk {
            vhost_user: record.vhost_user,
            uris: places.map(|place| place.uri(&record.name)).collect(),
            id: record.id.to_string(),
            size: record.size,
            image: place_of(&handle.record().location, &record.image),
            allocated: handle.allocated(&record.image, record.size),
            provision: record.provision,
            imported: record.imported,
            generation: record.generation,
            served: problem.is_none(),
            problem: problem.or(astray),
            hint: hint.filter(|hint| !hint.is_empty()),
            migration: None,
            class: None,
            held: None,
            binds: None,
            activity,
            name: record.name,
            datastore: record.datastore,
        };
        self.users.ask_present(|user| user.complete(id, &mut view))?;
        Ok(view)
    }
}

/// The most bytes of a disk, 1 PiB: sums of sizes are made, and those of 16,000 disks fit.
const SIZE_MAX: u64 = 1 << 50;

/// Refuses a size (bytes) that no disk can have.
pub fn check_size(size: u64) -> Result<()> {
    let message = match size {
        size if size > SIZE_MAX => {
            let message = format!("a disk cannot have {size} bytes");
            return Err(
                Error::invalid(message).hint(format!("at most it has {SIZE_MAX} bytes"))
            );
        }
        0 => "a disk cannot have the size 0".to_owned(),
        size if !size.is_multiple_of(SECTOR) => {
            format!(
                "a disk cannot have {size} bytes: the size must be a multiple of \
                 {SECTOR}"
            )
        }
        _ => return Ok(()),
    };
    let next = size.next_multiple_of(SECTOR).max(SECTOR);
    let hint = match Bytes(size).meant_mib() {
        // A number that small is one without its unit.
        Some(number) => format!("did you mean {number}G?"),
        None => format!("the next size is {next} bytes"),
    };
    Err(Error::invalid(message).hint(hint))
}

/// The record of a disk that is to be made; it has no image yet.
pub fn new_record(
    name: &str,
    size: u64,
    datastore: &str,
    provision: Provision,
) -> Result<DiskRecord> {
    Ok(DiskRecord {
        id: DiskId(random::number()?),
        name: name.into(),
        size,
        datastore: datastore.into(),
        image: String::new(),
        provision,
        imported: false,
        generation: 1,
        created: clock::now(),
        vhost_user: None,
    })
}

/// What a datastore calls the image that it makes for a disk.
fn place_for(record: &DiskRecord, handle: &DatastoreHandle) -> String {
    match handle.is_shared() {
        true => format!("{}.raw", record.name),
        false => String::new(),
    }
}

fn file_of(
    store: &Datastore,
    image: &ImageSpec,
    handle: &DatastoreHandle,
) -> Result<String> {
    store.file_of(image).map_err(|error| handle.refused(&error))
}

/// Removes an image that did not become a disk.
fn remove_leftover(store: &Datastore, image: &ImageSpec, size: u64) {
    if let Err(error) = store.remove_image(image, size, None) {
        tracing::warn!(datastore = store.name(), %error, "an image was left behind");
    }
}

/// Where an image is, for people.
pub fn place_of(location: &Location, file: &str) -> String {
    match location.directory() {
        Some(path) => path.join(file).display().to_string(),
        None => location.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::stage::Stage;

    use super::*;

    fn adopted(name: &str) -> DiskRecord {
        let new = new_record(name, 1 << 20, "here", Provision::Thin).unwrap();
        DiskRecord { id: DiskId(9), ..new }
    }

    /// An image that says whose it is; its disk was not recorded.
    fn is_left(stage: &Stage, disk: &DiskRecord) {
        let store = stage.handle("here").get().unwrap();
        let says = identity(disk, 1, Role::Partial);
        store.create_image(&says, datastore::Provision::Thin).unwrap();
    }

    #[test]
    fn an_image_that_a_daemon_has_made_and_not_recorded_is_made_again() {
        let stage = Stage::with(&["here"]);
        let disk = adopted("x");
        is_left(&stage, &disk);
        stage.storage.make_disk_again(disk.clone(), Role::Partial).unwrap();
        let recorded = stage.storage.disk_record("x").unwrap();
        assert_eq!((recorded.id, recorded.image), (disk.id, "x.raw".to_owned()));
    }

    #[test]
    fn an_image_that_is_another_disks_stays_where_it_is() {
        let stage = Stage::with(&["here"]);
        is_left(&stage, &DiskRecord { id: DiskId(8), ..adopted("x") });
        let refused = stage.storage.make_disk_again(adopted("x"), Role::Partial);
        assert_eq!(refused.unwrap_err().code, ErrorCode::Exists);
        assert!(stage.directory("here").join("x.raw").exists());
    }

    #[test]
    fn a_disk_is_not_made_again_where_writes_hang_and_nobody_waits_for_that() {
        let stage = Stage::with(&["here"]);
        is_left(&stage, &adopted("x"));
        let _thaws = stage.handle("here").freezes();
        let asked = Instant::now();
        let refused = stage.storage.make_disk_again(adopted("x"), Role::Partial);
        assert_eq!(refused.unwrap_err().code, ErrorCode::Unavailable);
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
        assert!(stage.directory("here").join("x.raw").exists());
    }

    #[test]
    fn a_size_without_a_unit_is_asked_back() {
        assert_eq!(check_size(100).unwrap_err().hint, "did you mean 100G?");
        let odd = check_size(1_000_001).unwrap_err();
        assert_eq!(odd.hint, "the next size is 1000448 bytes");
    }

    #[test]
    fn no_size_is_too_large_to_be_refused() {
        for size in [u64::MAX, u64::MAX - 511, i64::MAX as u64, SIZE_MAX + 512] {
            let refused = check_size(size).unwrap_err();
            assert_eq!(refused.message, format!("a disk cannot have {size} bytes"));
        }
        check_size(SIZE_MAX).unwrap();
    }
}
