//! Datastores, as the API's requests see them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sterna_api::{
    AddDatastore, Datastore, DatastoreKind, Error, NAME_RULE, Result, is_name, noun,
};
use sterna_core::Shape;
use sterna_engine::datastore::Location;
use sterna_os::{clock, descriptors, lock};

use crate::Storage;
use crate::handle::{DatastoreHandle, SpaceAnswer};
use crate::marks::DatastoreRecord;

/// Refuses what is no name.
pub fn check_name(what: &str, name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    let message = format!("`{name}` cannot be the name of a {}", noun(what));
    Err(Error::invalid(message).hint(NAME_RULE))
}

/// The claim on a datastore.
pub fn claim_of(name: &str) -> String {
    format!("datastore {name}")
}

/// Makes a directory of the state directory, if it is not there.
pub fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| {
        let message = format!("cannot make {}: {error}", path.display());
        Error::unavailable(message)
            .hint("check that the daemon can write to the state directory")
    })
}

/// Where it is, for people: the directory, or the location itself.
fn place(location: &Location) -> String {
    match location.directory() {
        Some(directory) => directory.display().to_string(),
        None => location.to_string(),
    }
}

/// This place is a datastore already.
fn taken(location: &Location, datastore: &str) -> Error {
    let message = format!("{} is datastore {datastore} already", place(location));
    let hint = "a place can be one datastore only";
    Error::in_use(message).hint(hint)
}

/// Refuses a device, or an export, that is there and leads to nothing. One that is known may be
/// without its medium for a while.
fn check_has_bytes(handle: &DatastoreHandle) -> Result<()> {
    match handle.get()?.size_at_opening() {
        Some(0) => Err(no_bytes(&handle.record().location)),
        _ => Ok(()),
    }
}

fn no_bytes(location: &Location) -> Error {
    let message = format!(
        "{location} has 0 bytes: nothing is attached to it, or its medium is missing"
    );
    Error::unavailable(message).hint(
        "attach what it is to lead to (`lsblk` shows the sizes of devices), and add the \
         datastore again",
    )
}

impl Storage {
    /// All datastores, by name.
    pub fn list_datastores(&self) -> Result<Vec<Datastore>> {
        let all = self.look_at_handles();
        all.iter().map(|(handle, found)| self.view_datastore(handle, found)).collect()
    }

    /// One datastore.
    pub fn show_datastore(&self, name: &str) -> Result<Datastore> {
        let handle = self.handle(name)?;
        self.view_datastore(&handle, &handle.look())
    }

    /// Adds a datastore that exists and can be written to.
    pub fn add_datastore(&self, request: &AddDatastore) -> Result<Datastore> {
        let name = &request.name;
        check_name("datastore", name)?;
        self.check_new_files(&claim_of(name), descriptors::DATASTORE)?;
        let location: Location = request.location.parse().map_err(Error::invalid)?;
        let shape = request.shape.as_deref().map(str::parse::<Shape>).transpose();
        let shape = shape.map_err(Error::invalid)?;
        let _claim = self.claims.alone(claim_of(name))?;
        let (location, own) = self.placed(name, location);
        self.check_new(name, &location)?;
        own.as_deref().map_or(Ok(()), make_directory)?;
        let record = DatastoreRecord {
            name: name.clone(),
            location,
            shape,
            added: clock::now(),
            maintenance: None,
            mark: None,
        };
        let handle = self.new_handle(record.clone());
        // First what tells so before it is opened: a device of a disk cannot be opened.
        self.check_address(&handle)?;
        self.check_is_not_state(&handle)?;
        handle.open().map_err(|error| {
            error.hint("Sterna added nothing: repair this, and add the datastore again")
        })?;
        check_has_bytes(&handle)?;
        self.check_is_no_disk(&handle)?;
        // A link, a mount or a file system in user space leads to it by another path.
        let same = |other: &Arc<DatastoreHandle>| handle.is_same_directory(other);
        if let Some(known) = self.all_handles().into_iter().find(same) {
            return Err(taken(&handle.record().location, known.name()));
        }
        self.store.add_datastore(DatastoreRecord { mark: handle.mark(), ..record })?;
        lock(&self.handles).insert(name.clone(), handle.clone());
        if let Ok(opened) = handle.get() {
            handle.note_size(&opened);
        }
        let location = &handle.record().location;
        tracing::info!(datastore = name, %location, "datastore added");
        self.view_datastore(&handle, &handle.look())
    }

    /// Forgets a datastore that nothing uses.
    pub fn remove_datastore(&self, name: &str) -> Result<Datastore> {
        let handle = self.handle(name)?;
        let _claim = self.claims.alone(claim_of(name))?;
        let on_it = |one: &sterna_state::DiskRecord| one.datastore == name;
        if let Some(disk) = self.store.disks()?.into_iter().find(on_it) {
            let message = format!("datastore {name} holds disk {}", disk.name);
            let hint = "move its disks away (`sterna migrate`) or remove them first";
            return Err(Error::in_use(message).hint(hint));
        }
        for migration in self.store.open_migrations()? {
            if migration.is_on(name) {
                let id = migration.id;
                let message = format!("datastore {name} is used by migration {id}");
                let hint =
                    format!("wait for the migration, or `sterna migration cancel {id}`");
                return Err(Error::in_use(message).hint(hint));
            }
        }
        let moves = self.store.open_vm_moves()?;
        // What is left of one where nobody can see it stays there.
        let mut untidy = self.store.untidy_vm_moves()?;
        untidy.retain(|_| handle.problem().is_none());
        if let Some(one) = moves.iter().chain(&untidy).find(|one| one.to == name) {
            let (id, vm) = (one.id, &one.vm);
            let message =
                format!("datastore {name} is used by migration {id}, of a disk of {vm}");
            let hint =
                format!("wait for the migration, or `sterna migration cancel {id}`");
            return Err(Error::in_use(message).hint(hint));
        }
        self.users.ask(|user| user.check_datastore_unused(name))?;
        let gone = self.view_datastore(&handle, &handle.look())?;
        self.store.remove_datastore(name)?;
        lock(&self.handles).remove(name);
        self.samples.forget(name);
        tracing::info!(datastore = name, "datastore removed");
        Ok(gone)
    }

    /// Puts a datastore in maintenance, or ends that.
    pub fn set_maintenance(&self, name: &str, maintenance: bool) -> Result<Datastore> {
        let handle = self.handle(name)?;
        // Whoever puts something there now shares it; what comes later is refused.
        let _claim = self.claims.shared(claim_of(name))?;
        if handle.is_in_maintenance() != maintenance {
            self.store.set_maintenance(name, maintenance.then(clock::now))?;
            handle.set_maintenance(maintenance);
            tracing::info!(datastore = name, maintenance, "maintenance changed");
        }
        self.view_datastore(&handle, &handle.look())
    }

    /// The location, with a directory in the state directory for an emulated array
    /// that has none; that is to be made then.
    fn placed(&self, name: &str, location: Location) -> (Location, Option<PathBuf>) {
        match location {
            Location::Array(mut array) if array.path.is_none() => {
                let path = self.places.state.join("arrays").join(name);
                array.path = Some(path.clone());
                (Location::Array(array), Some(path))
            }
            location => (location, None),
        }
    }

    fn check_new(&self, name: &str, location: &Location) -> Result<()> {
        if self.exports(location) {
            let message = format!("{location} is an export of this daemon itself");
            let hint = "give a place that can hold images, not a disk; `sterna datastore \
                        list` lists the datastores";
            return Err(Error::invalid(message).hint(hint));
        }
        let all: Vec<DatastoreRecord> = self.store.datastores()?;
        for known in all {
            if known.name == name {
                return Err(Error::exists("datastore", name));
            }
            if known.location.is_same_place(location) {
                return Err(taken(location, &known.name));
            }
        }
        Ok(())
    }

    fn view_datastore(
        &self,
        handle: &DatastoreHandle,
        found: &SpaceAnswer,
    ) -> Result<Datastore> {
        let record = handle.record();
        let all = self.store.disks()?;
        let disks = all.iter().filter(|disk| disk.datastore == record.name).count();
        // It answers whoever asks for its size, and its disks wait all the same.
        let lack = matches!(record.location, Location::Nbd(_))
            .then(|| self.lack_of(&record.name, &all))
            .flatten();
        let space = found.as_ref().ok();
        let mut view = Datastore {
            name: record.name.clone(),
            kind: match record.location {
                Location::Directory(_) => DatastoreKind::Directory,
                Location::Device(_) => DatastoreKind::Device,
                Location::Nbd(_) => DatastoreKind::Nbd,
                Location::Array(_) => DatastoreKind::Array,
            },
            location: record.location.to_string(),
            shape: record.shape.as_ref().map(ToString::to_string),
            backing: handle.backing(),
            capacity: space.map(|space| space.capacity),
            free: space.map(|space| space.free),
            disks: disks as u64,
            vm_disks: Vec::new(),
            problem: found.as_ref().err().cloned().or(lack),
            maintenance: handle.is_in_maintenance(),
        };
        self.users.ask_present(|user| user.complete_datastore(&mut view))?;
        Ok(view)
    }
}
