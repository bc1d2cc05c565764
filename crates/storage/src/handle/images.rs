//! The images of a datastore: what they take, what they say of themselves, and what is done
//! to them.

use std::fs::File;
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_engine::datastore::{DatastoreError, FoundImage, Location, Whereabouts};
use sterna_engine::sidecar::slots::Origin;
use sterna_engine::sidecar::{Identity, SidecarError};
use sterna_engine::{Beside, FileIdentity, ImageSpec};

use super::{DatastoreHandle, FIGURE};
use crate::refusals::unfit;

/// How long the list of all images may take: thousands of sidecars on NFS.
const LISTING: Duration = Duration::from_secs(30);

/// What is gone of an image that was to be removed.
#[derive(Debug)]
#[must_use]
pub enum Gone {
    /// All of it.
    Wholly,
    /// Its bytes are gone, and its sidecar stays, for this reason.
    ButSidecar(Error),
    /// Nothing of it: another file has its name.
    Another(Error),
    /// Nothing of it: nobody knows whether the file of its name is it.
    Unproven(Error),
}

impl Gone {
    /// Nothing of it may stay.
    pub fn wholly(self) -> Result<()> {
        match self {
            Gone::Wholly => Ok(()),
            Gone::ButSidecar(error) | Gone::Another(error) | Gone::Unproven(error) => {
                Err(error)
            }
        }
    }
}

impl DatastoreHandle {
    /// What an image takes, if it says so in time.
    pub fn allocated(&self, file: &str, size: u64) -> Option<u64> {
        let datastore = self.get().ok()?;
        let file = file.to_owned();
        let is_known = matches!(self.record.location, Location::Device(_));
        let look = move || datastore.allocated(&datastore.image(&file).ok()?, size);
        // A device is not asked: that it is known says nothing of whether the device answers.
        if is_known { look() } else { self.asker.ask(FIGURE, look).answer()? }
    }

    /// The images that have a sidecar, and whether another program has locked them,
    /// if it says so in time.
    pub fn images(&self) -> Result<Vec<(FoundImage, bool)>> {
        let datastore = self.get()?;
        let found = self.listing.ask_patiently(LISTING, move || {
            let images = datastore.images()?.into_iter().map(|found| {
                let locked = is_locked(&found.image);
                (found, locked)
            });
            Ok(images.collect())
        });
        match found.answer() {
            Some(images) => images.map_err(|error| self.refused(&error)),
            None => Err(self.unavailable(&self.silent())),
        }
    }

    /// How to open an image, unchecked.
    pub fn image(&self, file: &str) -> Result<ImageSpec> {
        self.get()?.image(file).map_err(|error| self.refused(&error))
    }

    /// How to open an image that must be the expected one.
    pub fn expect(&self, file: &str, expected: &Identity) -> Result<ImageSpec> {
        let opened = self.get()?.open_image(file, expected);
        opened.map_err(|error| {
            self.note(&error);
            unfit(self.name(), &expected.name, file, &error)
        })
    }

    /// Finds the sidecar of an image whose device or export was made larger since the daemon
    /// before this one opened it, if it is one of `expected`. `is_proven`: the content of the
    /// place says that it is the disk's.
    pub fn follow_growth(
        &self,
        file: &str,
        expected: &[Identity],
        is_proven: bool,
    ) -> Result<()> {
        let datastore = self.get()?;
        if self.is_shared() {
            return Ok(());
        }
        let before = self.store.place_size(self.name())?;
        for one in expected {
            let grown = datastore.image(file).and_then(|image| {
                datastore.follow_growth(&image, one, before, is_proven)
            });
            match grown.map_err(|error| self.refused(&error))? {
                Whereabouts::Nowhere => continue,
                Whereabouts::Behind => tracing::warn!(
                    disk = one.name,
                    datastore = self.name(),
                    "the datastore was made larger; the disk's sidecar is at its new end now"
                ),
                Whereabouts::Here => {}
            }
            self.note_size(&datastore);
            break;
        }
        Ok(())
    }

    /// Makes an image say what it is.
    pub fn identify(&self, file: &str, identity: &Identity) -> Result<()> {
        let datastore = self.get()?;
        let written = datastore
            .image(file)
            .and_then(|image| datastore.write_sidecar(&image, identity));
        written.map_err(|error| self.refused(&error))
    }

    /// The same of an image that must be one of `ours` by what it says of itself.
    pub fn identify_ours(
        &self,
        file: &str,
        identity: &Identity,
        ours: impl Fn(&Identity) -> bool,
    ) -> Result<()> {
        let datastore = self.get()?;
        let written = datastore
            .image(file)
            .and_then(|image| datastore.change_sidecar(&image, identity, &ours));
        written.map_err(|error| self.refused(&error))
    }

    /// Whether there is an image, which must be `ours` by what it says of itself. One
    /// that says nothing may be anybody's.
    pub fn has(
        &self,
        file: &str,
        size: u64,
        ours: impl FnOnce(&Identity) -> bool,
    ) -> Result<bool> {
        match self.says(file, size)? {
            None => Ok(false),
            Some(found) if ours(&found) => Ok(true),
            Some(Identity { name, generation, role, .. }) => Err(Error::in_use(format!(
                "its sidecar names disk {name}, generation {generation}, {role}; this \
                 state expects another image"
            ))),
        }
    }

    /// What an image says of itself; nothing if there is no image.
    pub fn says(&self, file: &str, size: u64) -> Result<Option<Identity>> {
        let datastore = self.get()?;
        let image = self.image(file)?;
        let missing = |error: &DatastoreError| {
            let DatastoreError::Sidecar { source, .. } = error else { return false };
            matches!(source, SidecarError::Missing)
        };
        match datastore.read_sidecar(&image, size) {
            Ok(found) => Ok(Some(found)),
            // A device or an export without a sidecar is free; a file is somebody's.
            Err(error)
                if missing(&error)
                    && (!datastore.holds_many()
                        || datastore.allocated(&image, size).is_none()) =>
            {
                Ok(None)
            }
            Err(error) => Err(self.refused(&error)),
        }
    }

    /// Frees a device or an export whose sidecar is one of `ours`.
    pub fn free_ours(
        &self,
        file: &str,
        size: u64,
        ours: impl Fn(&Identity) -> bool,
    ) -> Result<()> {
        let datastore = self.get()?;
        let freed = datastore
            .image(file)
            .and_then(|image| datastore.free_ours(&image, size, &ours));
        freed.map_err(|error| self.refused(&error))
    }

    /// Removes an image, if it is the file that was held, or that its sidecar knows.
    pub fn remove(
        &self,
        file: &str,
        size: u64,
        held: Option<&FileIdentity>,
    ) -> Result<Gone> {
        let datastore = self.get()?;
        let removed = datastore
            .image(file)
            .and_then(|image| datastore.remove_image(&image, size, held));
        match removed {
            Ok(()) => Ok(Gone::Wholly),
            Err(error @ DatastoreError::SidecarStays(_)) => {
                Ok(Gone::ButSidecar(self.refused(&error)))
            }
            Err(error @ DatastoreError::Another(_)) => {
                Ok(Gone::Another(self.refused(&error)))
            }
            Err(error @ (DatastoreError::Unproven(_) | DatastoreError::Rehandled(_))) => {
                Ok(Gone::Unproven(self.refused(&error)))
            }
            Err(error) => Err(self.refused(&error)),
        }
    }

    /// Makes an image that is there already say this, and that it was there.
    pub fn take_over(&self, file: &str, identity: &Identity) -> Result<()> {
        let datastore = self.get()?;
        let written =
            datastore.image(file).and_then(|image| datastore.take_over(&image, identity));
        written.map_err(|error| self.refused(&error))
    }

    /// Makes an image that was taken over, and says `taken`, say what it said before; false
    /// if nobody knows that any more.
    pub fn give_back(&self, file: &str, taken: &Identity) -> Result<bool> {
        let datastore = self.get()?;
        let given =
            datastore.image(file).and_then(|image| datastore.give_back(&image, taken));
        given.map_err(|error| self.refused(&error))
    }

    /// Where an image's file comes from, if it is one.
    pub fn origin(&self, file: &str) -> Result<Option<Origin>> {
        let datastore = self.get()?;
        let origin = datastore.image(file).and_then(|image| datastore.origin(&image));
        origin.map_err(|error| self.refused(&error))
    }

    /// Makes the sidecar of an image say which file that is. Gives what it has said
    /// before, if that was something else.
    pub(crate) fn bind(&self, file: &str, is: &FileIdentity) -> Result<Option<Beside>> {
        let datastore = self.get()?;
        let bound = datastore.image(file).and_then(|image| datastore.bind(&image, is));
        bound.map_err(|error| self.refused(&error))
    }

    /// The same with the file that has the image's name now.
    pub fn bind_file(&self, file: &str) -> Result<()> {
        let ImageSpec::File { path, .. } = self.image(file)? else { return Ok(()) };
        let is = FileIdentity::at(&path).map_err(|error| {
            self.unavailable(&format!("cannot look at {}: {error}", path.display()))
        })?;
        self.bind(file, &is).map(drop)
    }

    /// Refuses a file that is not surely the one that its sidecar was made for.
    pub fn check_is_surely(&self, file: &str) -> Result<()> {
        let datastore = self.get()?;
        let checked =
            datastore.image(file).and_then(|image| datastore.check_is_surely(&image));
        checked.map_err(|error| self.refused(&error))
    }

    /// Refuses a file that is surely another one than its sidecar was made for.
    pub fn check_file(&self, file: &str) -> Result<()> {
        let datastore = self.get()?;
        let checked =
            datastore.image(file).and_then(|image| datastore.check_file(&image));
        checked.map_err(|error| self.refused(&error))
    }
}

/// Whether another program has locked the image. What cannot be asked is told when
/// the image is opened.
fn is_locked(image: &ImageSpec) -> bool {
    let ImageSpec::File { path, .. } = image else { return false };
    File::open(path)
        .is_ok_and(|file| sterna_engine::is_used(&file).is_ok_and(|used| used))
}
