//! What the images of a datastore say of themselves.

use super::directory;
use super::error::{check_none_but_ours, sidecar as sidecar_failed};
use super::{Datastore, DatastoreError, Ours, SidecarPlace};
use crate::image::{FileIdentity, ImageSpec};
use crate::sidecar::slots::Origin;
use crate::sidecar::{Beside, Identity, SidecarError};

impl Datastore {
    /// Where the sidecar of the image of a disk of `size` bytes is.
    pub fn sidecar_place(
        &self,
        image: &ImageSpec,
        size: u64,
    ) -> Result<SidecarPlace, DatastoreError> {
        Ok(match self.ours(image)? {
            Ours::File(_, path) => SidecarPlace::File(directory::sidecar_path(path)),
            Ours::Whole(medium) => medium.sidecar_place(size),
        })
    }

    /// What the image of a disk of `size` bytes says about itself.
    pub fn read_sidecar(
        &self,
        image: &ImageSpec,
        size: u64,
    ) -> Result<Identity, DatastoreError> {
        match self.ours(image)? {
            Ours::File(directory, path) => {
                directory.check()?;
                crate::sidecar::file::read(&directory::sidecar_path(path))
                    .map_err(sidecar_failed(path.display()))
            }
            Ours::Whole(medium) => medium.read_sidecar(size),
        }
    }

    /// What the sidecar of a file says of its image and of the file; nothing without one, nor
    /// of a device or an export.
    pub fn said(
        &self,
        image: &ImageSpec,
    ) -> Result<Option<(Identity, Option<Beside>)>, DatastoreError> {
        let Ours::File(directory, path) = self.ours(image)? else { return Ok(None) };
        directory.check()?;
        match crate::sidecar::file::read_all(&directory::sidecar_path(path)) {
            Ok(said) => Ok(Some((said.record.identity, said.record.beside))),
            Err(SidecarError::Missing) => Ok(None),
            Err(error) => Err(sidecar_failed(path.display())(error)),
        }
    }

    /// The file that has the image's name, if that is surely another one than its sidecar
    /// was made for. Nothing is known of a device or an export.
    pub fn another_file(
        &self,
        image: &ImageSpec,
    ) -> Result<Option<Beside>, DatastoreError> {
        let Ours::File(directory, path) = self.ours(image)? else { return Ok(None) };
        directory.another_file(path)
    }

    /// Replaces what the image says about itself: atomic, and durable when it
    /// returns.
    pub fn write_sidecar(
        &self,
        image: &ImageSpec,
        identity: &Identity,
    ) -> Result<(), DatastoreError> {
        match self.ours(image)? {
            Ours::File(directory, path) => {
                directory.check()?;
                crate::sidecar::file::write(&directory::sidecar_path(path), identity)
                    .map_err(sidecar_failed(path.display()))
            }
            Ours::Whole(medium) => medium.write_sidecar(identity),
        }
    }

    /// The same of an image that must be one of `ours` by what it says of itself: what a
    /// name or an address leads to may be another image by now, and nothing is written to
    /// that.
    pub fn change_sidecar(
        &self,
        image: &ImageSpec,
        identity: &Identity,
        ours: &dyn Fn(&Identity) -> bool,
    ) -> Result<(), DatastoreError> {
        match self.ours(image)? {
            Ours::File(_, path) => {
                let said = crate::sidecar::file::read(&directory::sidecar_path(path));
                check_none_but_ours(&path.display().to_string(), said, ours)?;
                self.write_sidecar(image, identity)
            }
            Ours::Whole(medium) => medium.change_sidecar(identity, ours),
        }
    }

    /// Makes an image that is there already say this, and that Sterna has not made it: what
    /// comes to nothing leaves it where it is.
    pub fn take_over(
        &self,
        image: &ImageSpec,
        identity: &Identity,
    ) -> Result<(), DatastoreError> {
        match self.ours(image)? {
            Ours::File(directory, path) => directory.take_over(path, identity),
            Ours::Whole(medium) => medium.write_sidecar(identity),
        }
    }

    /// An image that was taken over, and says `taken`, says again what it said before; false
    /// if nobody knows that any more, as of a device or an export.
    pub fn give_back(
        &self,
        image: &ImageSpec,
        taken: &Identity,
    ) -> Result<bool, DatastoreError> {
        match self.ours(image)? {
            Ours::File(directory, path) => directory.give_back(path, taken),
            Ours::Whole(_) => Ok(false),
        }
    }

    /// Where the file of an image comes from, if that is known. Nothing of a device or an
    /// export: what is removed of these is only the sidecar.
    pub fn origin(&self, image: &ImageSpec) -> Result<Option<Origin>, DatastoreError> {
        let Ours::File(directory, path) = self.ours(image)? else { return Ok(None) };
        directory.check()?;
        let said = crate::sidecar::file::read_all(&directory::sidecar_path(path));
        let said = said.map_err(sidecar_failed(path.display()))?;
        Ok(Some(said.record.origin))
    }

    /// Refuses a file that is surely another one than its sidecar was made for.
    pub fn check_file(&self, image: &ImageSpec) -> Result<(), DatastoreError> {
        let Ours::File(directory, path) = self.ours(image)? else { return Ok(()) };
        directory.check_file(path)
    }

    /// Refuses a file that is not surely the one that its sidecar was made for. Nothing is known
    /// of a device or an export.
    pub fn check_is_surely(&self, image: &ImageSpec) -> Result<(), DatastoreError> {
        let Ours::File(directory, path) = self.ours(image)? else { return Ok(()) };
        directory.check_is_surely(path)
    }

    /// Makes the sidecar of a file say which file it is, as that is known to be the image.
    /// Gives what it has said before, if it was something else.
    pub fn bind(
        &self,
        image: &ImageSpec,
        file: &FileIdentity,
    ) -> Result<Option<Beside>, DatastoreError> {
        let Ours::File(directory, path) = self.ours(image)? else { return Ok(None) };
        directory.check()?;
        let (sidecar, is) = (directory::sidecar_path(path), file.beside());
        let failed = || sidecar_failed(path.display());
        let said = crate::sidecar::file::read_all(&sidecar).map_err(failed())?;
        if said.is_old() || said.record.beside != Some(is) {
            crate::sidecar::file::write_beside(&sidecar, is).map_err(failed())?;
        }
        Ok(said.record.beside.filter(|was| *was != is))
    }
}
