//! Imports: a raw image that exists becomes a disk, in place.
//!
//! Its bytes are taken as they are. What its sidecar says decides whether it may
//! be taken at all: an image that calls itself active is, or was, the truth of
//! some Sterna, and two of them must not write to it.

use std::fs::{self, File};
use std::path::Path;

use sterna_api::{Disk, ErrorCode, ImportDisk, Provision};
use sterna_core::Bytes;
use sterna_engine::ImageSpec;
use sterna_engine::datastore::{Datastore, DatastoreError, Location, SidecarPlace};
use sterna_engine::sidecar::{Identity, Role, SidecarError};

use crate::daemon::Daemon;
use crate::datastores::check_name;
use crate::disks::{SECTOR, identity, new_record};
use crate::error::{DaemonError, Result};
use crate::shelf::Shelf;
use crate::store::DiskRecord;

impl Daemon {
    /// Makes a raw image that exists a disk, in place, and serves it.
    pub(crate) fn import_disk(&self, request: &ImportDisk) -> Result<Disk> {
        let ImportDisk { name, datastore, file: asked } = request;
        check_name("disk", name)?;
        let _claims = self.claim_new(name, datastore)?;
        let shelf = self.shelf(datastore)?;
        let (file, size) = find_image(&shelf, asked)?;
        self.check_unused(datastore, &file, asked)?;
        let store = shelf.open()?;
        let image = shelf.image(&file)?;
        let mut record = new_record(name, size, datastore, Provision::Thin)?;
        self.take_identity(&mut record, &store, &image, &shelf)?;
        let active = identity(&record, record.generation, Role::Active);
        store.adopt(&file, &active).map_err(|error| shelf.refused(&error))?;
        record.image = file;
        record.imported = true;
        if let Err(error) = self.begin(&record, &image, &shelf) {
            // Its bytes are as they were; its sidecar says that nobody has it.
            let retired = Identity { role: Role::Retired, ..active };
            let _ = store.write_sidecar(&image, &retired);
            return Err(error);
        }
        tracing::info!(disk = name, id = %record.id, size, datastore, "disk imported");
        self.view_disk(record)
    }

    /// Refuses an image that a disk or a migration of this daemon has.
    fn check_unused(&self, datastore: &str, file: &str, asked: &str) -> Result<()> {
        let mut disks = self.store.disks()?.into_iter();
        if let Some(owner) =
            disks.find(|disk| disk.datastore == datastore && disk.image == file)
        {
            let message = format!("{asked} is the image of disk {}", owner.name);
            let hint = format!("see `sterna disk show {}`", owner.name);
            return Err(DaemonError::in_use(message).hint(hint));
        }
        let mut migrations = self.store.migrations()?.into_iter();
        let into = migrations.find(|one| {
            let places = [&one.to, &one.from];
            let here = |place: &&crate::store::Place| {
                place.datastore == datastore && place.image == file
            };
            !one.step.ended() && places.iter().any(here)
        });
        match into {
            Some(one) => {
                let message = format!("{asked} is used by migration {}", one.id);
                Err(DaemonError::in_use(message).hint("wait for it, or cancel it"))
            }
            None => Ok(()),
        }
    }

    /// Gives the record the identity that the image has, if it is free to be
    /// taken up again; refuses an image that is somebody's truth.
    fn take_identity(
        &self,
        record: &mut DiskRecord,
        store: &Datastore,
        image: &ImageSpec,
        shelf: &Shelf,
    ) -> Result<()> {
        let found = match store.read_sidecar(image, record.size) {
            Ok(found) => found,
            Err(DatastoreError::Sidecar {
                source: SidecarError::Missing | SidecarError::Damaged(_),
                ..
            }) => return Ok(()),
            Err(error) => return Err(shelf.refused(&error)),
        };
        if found.role != Role::Retired {
            let (what, or_else) = match found.role {
                Role::Partial => ("is an unfinished copy of", ""),
                _ => ("belongs to", "take that disk in with `sterna disk recover`, or "),
            };
            let name = &found.name;
            let message = format!("this image {what} disk {name} of some Sterna");
            let sidecar = match store.sidecar_place(image, record.size) {
                Ok(SidecarPlace::File(path)) => path.display().to_string(),
                _ => "its sidecar".into(),
            };
            return Err(DaemonError::in_use(message).hint(format!(
                "if that Sterna is gone for good, {or_else}remove {sidecar} and import \
                 again"
            )));
        }
        let known = self.store.disks()?.iter().any(|disk| disk.id == found.id);
        if !known && found.size == record.size {
            record.id = found.id;
            record.generation = found.generation + 1;
            return Ok(());
        }
        // An old copy of a disk that lives elsewhere: a disk of its own from now on.
        match store.sidecar_place(image, found.size) {
            Ok(SidecarPlace::File(path)) => sterna_engine::sidecar::file::remove(&path)
                .map_err(|error| {
                    DaemonError::unavailable(format!(
                        "cannot take the image over: {error}"
                    ))
                }),
            // On a device or an export, this removes the sidecar alone.
            _ => store.remove_image(image, found.size).map_err(|it| shelf.refused(&it)),
        }
    }
}

/// The file's name in its datastore, and the size of a disk made of it.
fn find_image(shelf: &Shelf, file: &str) -> Result<(String, u64)> {
    let location = &shelf.record().location;
    let Location::Directory(directory) = location else {
        if file != location.to_string() {
            let message = format!("datastore {} holds {location} alone", shelf.name());
            return Err(DaemonError::invalid(message).hint(format!("import {location}")));
        }
        shelf.open()?;
        let space = shelf.space().map(|space| space.capacity);
        let size = space.ok_or_else(|| {
            DaemonError::unavailable(format!("{location} does not say how large it is"))
        })?;
        return whole_sectors(file, size).map(|size| (String::new(), size));
    };
    let path = Path::new(file);
    let name = name_in(directory, path);
    let Some(name) = name.filter(|name| !name.contains('/')) else {
        let message = format!("{file} is not in datastore {} ({location})", shelf.name());
        return Err(DaemonError::invalid(message).hint(
            "an image is imported where it is: choose or add the datastore it is in",
        ));
    };
    let path = directory.join(&name);
    let unreadable = |error| {
        let message = format!("cannot read {}: {error}", path.display());
        DaemonError::new(ErrorCode::NotFound, message)
            .hint("give a raw file in the datastore's directory")
    };
    let metadata = path.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        let message = format!("{} is not a regular file", path.display());
        return Err(DaemonError::invalid(message).hint("give a raw file"));
    }
    let opened = File::open(&path).map_err(unreadable)?;
    if sterna_engine::is_used(&opened).map_err(|errno| unreadable(errno.into()))? {
        let message = format!("{} is in use by another process", path.display());
        return Err(DaemonError::in_use(message)
            .hint("it is locked, probably by a running VM: stop that first"));
    }
    whole_sectors(file, metadata.len()).map(|size| (name, size))
}

/// The path inside the directory, also if either was reached by a link.
fn name_in(directory: &Path, path: &Path) -> Option<String> {
    let resolved = || {
        let parent = fs::canonicalize(path.parent()?).ok()?;
        let same = fs::canonicalize(directory).ok()? == parent;
        same.then(|| path.file_name().map(Path::new)).flatten()
    };
    let inside = match path.strip_prefix(directory) {
        Ok(inside) => Some(inside),
        Err(_) if path.is_absolute() => resolved(),
        Err(_) => Some(path),
    };
    Some(inside?.to_str()?.to_owned())
}

fn whole_sectors(file: &str, size: u64) -> Result<u64> {
    if size > 0 && size.is_multiple_of(SECTOR) {
        return Ok(size);
    }
    let next = Bytes(size.next_multiple_of(SECTOR).max(SECTOR)).0;
    let message = format!("{file} has {size} bytes: no disk has that size");
    Err(DaemonError::invalid(message)
        .hint(format!("make it a multiple of {SECTOR}: truncate -s {next} {file}")))
}
