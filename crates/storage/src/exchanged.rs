//! Files that have exchanged their names while no daemon ran.
//!
//! A sidecar says which file its image is (`Beside`). If a disk's name leads to another file,
//! that may be a backup that was restored, so the disk is served, with a warning. But if the
//! sidecar of another disk, or of a copy that a move makes, names exactly that file, then the
//! file is *that* image: two files were exchanged by name, or one is a link to the other. What
//! clients write would land in another disk's only image. So the disk is not served, and no
//! sidecar is changed, until its own file is back.
//!
//! **What is not found**: a file system that does not say when its files were made; a sidecar
//! of an old format, which does not name its file; a copy of another disk's file (a new file,
//! whose bytes alone are the other disk's); an image on another datastore that does not
//! answer; and a file whose own disk has got a new file since, which is that disk's then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_engine::sidecar::Beside;
use sterna_state::{DiskRecord, Place};

use crate::Storage;
use crate::asker::{Asked, Asker};
use crate::handle::DatastoreHandle;

/// How long a datastore may take to say what its sidecars say.
const TELLING: Duration = Duration::from_secs(3);

/// An image that somebody has, and what that is.
type Owned = (String, String);

impl Storage {
    /// Refuses a disk whose name leads to the file of another disk or of a copy.
    pub fn check_is_its_file(
        &self,
        disk: &DiskRecord,
        on: &DatastoreHandle,
    ) -> Result<()> {
        let store = on.get()?;
        let image = store.image(&disk.image).map_err(|error| on.refused(&error))?;
        // What cannot be read now is told by the opening of the image.
        let Some(is) = store.another_file(&image).ok().flatten() else { return Ok(()) };
        match self.owner_of_file(disk, is)? {
            Some(owner) => Err(is_exchanged(disk, on, &owner)),
            None => Ok(()),
        }
    }

    /// Whose sidecar names this file, if it is not the disk's own.
    fn owner_of_file(&self, disk: &DiskRecord, is: Beside) -> Result<Option<String>> {
        let asked: Vec<_> = self
            .others_images(disk)?
            .into_iter()
            .filter_map(|(datastore, images)| {
                let handle = self.handle(&datastore).ok().filter(|it| it.is_shared())?;
                let is_own = datastore == disk.datastore;
                Some((is_own, ask(handle, images, is)))
            })
            .collect();
        let mut owner = None;
        for (is_own, one) in asked {
            match one.answer() {
                Some(found) => owner = owner.or(found),
                // If the disk is served, its sidecar is changed, and says nothing any more.
                None if is_own => return Err(is_silent(disk)),
                None => {}
            }
        }
        Ok(owner)
    }

    /// The images of other disks and of all copies, by their datastores.
    fn others_images(&self, disk: &DiskRecord) -> Result<BTreeMap<String, Vec<Owned>>> {
        let mut images: BTreeMap<String, Vec<Owned>> = BTreeMap::new();
        for other in self.store.disks()?.into_iter().filter(|it| it.id != disk.id) {
            let owner = format!("disk {}", other.name);
            images.entry(other.datastore).or_default().push((other.image, owner));
        }
        // After the commit, the disk's own copy is the disk.
        let is_disk =
            |to: &Place| (&to.datastore, &to.image) == (&disk.datastore, &disk.image);
        for copy in
            self.store.open_migrations()?.into_iter().filter(|it| !is_disk(&it.to))
        {
            let owner = format!("the copy of disk {}", copy.name);
            images.entry(copy.to.datastore).or_default().push((copy.to.image, owner));
        }
        Ok(images)
    }
}

/// Asks a datastore in which of these images' sidecars the file is named.
fn ask(
    handle: Arc<DatastoreHandle>,
    images: Vec<Owned>,
    is: Beside,
) -> Asked<Option<String>> {
    Asker::default().ask(TELLING, move || {
        // All datastores are opened at once at the start: this one may be on its way.
        let store = handle.open().ok()?;
        let names = |(image, _): &Owned| {
            let said = store.image(image).and_then(|image| store.said(&image));
            let file = said.ok().flatten().and_then(|(_, file)| file);
            file.is_some_and(|file| file.is_surely(&is))
        };
        images.into_iter().find(names).map(|(_, owner)| owner)
    })
}

fn is_silent(disk: &DiskRecord) -> Error {
    let (name, datastore) = (&disk.name, &disk.datastore);
    let message = format!(
        "datastore {datastore} does not answer in time: Sterna cannot tell whether the file of \
         disk {name} is another disk's"
    );
    Error::unavailable(message).hint("Sterna tries again every few seconds")
}

fn is_exchanged(disk: &DiskRecord, on: &DatastoreHandle, owner: &str) -> Error {
    let (name, datastore, image) = (&disk.name, on.name(), &disk.image);
    let message = format!(
        "on datastore {datastore}, {image} is not the file of disk {name}, but that of \
         {owner}: files were exchanged, or one file is a link to the other"
    );
    let hint = "give each file its name back (the sidecars have not moved): Sterna then \
                serves the disk within seconds";
    Error::in_use(message).hint(hint)
}
