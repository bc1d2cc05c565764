//! Files that have exchanged their names while no daemon ran.
//!
//! A sidecar says which file its image is (`Beside`). If a disk's name leads to another file,
//! that may be a backup that was restored, so the disk is served, with a warning. But if the
//! sidecar of another disk, or of a copy that a move makes, names exactly that file, then the
//! file is *that* image: two files were exchanged by name, or one is a link to the other. What
//! clients write would land in another disk's only image. So the disk is not served, and no
//! sidecar is changed, until its own file is back.
//!
//! **What is not found**: a file system that does not say when its files were made; a copy of
//! another disk's file (a new file, whose bytes alone are the other disk's); and an image
//! whose datastore does not answer, which cannot be asked.

use std::collections::BTreeMap;

use sterna_api::{Error, Result};
use sterna_core::DiskId;
use sterna_engine::sidecar::Beside;
use sterna_state::DiskRecord;

use crate::Storage;
use crate::handle::DatastoreHandle;

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
        let Some(file) = store.file_now(&image).ok().flatten() else { return Ok(()) };
        let is = file.beside();
        let said = store.said(&image).ok().flatten();
        if said.and_then(|(_, file)| file).is_none_or(|was| !was.differs(&is)) {
            return Ok(());
        }
        match self.owner_of_file(disk.id, is)? {
            Some(owner) => Err(is_exchanged(disk, on, &owner)),
            None => Ok(()),
        }
    }

    /// Whose sidecar names this file, if it is not the disk's own.
    fn owner_of_file(&self, disk: DiskId, is: Beside) -> Result<Option<String>> {
        let mut images: BTreeMap<String, Vec<Owned>> = BTreeMap::new();
        for other in self.store.disks()?.into_iter().filter(|it| it.id != disk) {
            let owner = format!("disk {}", other.name);
            images.entry(other.datastore).or_default().push((other.image, owner));
        }
        for copy in self.store.open_migrations()?.into_iter().filter(|it| it.disk != disk)
        {
            let owner = format!("the copy of disk {}", copy.name);
            images.entry(copy.to.datastore).or_default().push((copy.to.image, owner));
        }
        let ask = |(datastore, images): (String, Vec<Owned>)| {
            let handle = self.handle(&datastore).ok().filter(|it| it.is_shared())?;
            let store = handle.get().ok()?;
            Some(handle.ask_files(move || {
                let names = |(image, _): &Owned| {
                    let said = store.image(image).and_then(|image| store.said(&image));
                    let file = said.ok().flatten().and_then(|(_, file)| file);
                    file.is_some_and(|file| file.is_surely(&is))
                };
                images.into_iter().find(names).map(|(_, owner)| owner)
            }))
        };
        // All are asked before the first is waited for.
        let asked: Vec<_> = images.into_iter().filter_map(ask).collect();
        Ok(asked.into_iter().find_map(|one| one.answer().flatten()))
    }
}

fn is_exchanged(disk: &DiskRecord, on: &DatastoreHandle, owner: &str) -> Error {
    let (name, datastore, image) = (&disk.name, on.name(), &disk.image);
    let message = format!(
        "on datastore {datastore}, {image} is not the file of disk {name}, but that of \
         {owner}: files were exchanged, or one is a link to the other"
    );
    let hint = "give each file its name back (the sidecars have not moved): Sterna then \
                serves the disk within seconds";
    Error::in_use(message).hint(hint)
}
