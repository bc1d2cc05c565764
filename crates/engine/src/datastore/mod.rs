//! Datastores: named places that hold disk images.
//!
//! A datastore is a directory (a file for each image), a block device, or an
//! export of an NBD server (one image each). An emulated array is a directory whose
//! images are slow ([`crate::Budget::emulating`]). It makes images, finds them again
//! and says what they say about themselves; the reactors open them by the
//! [`ImageSpec`] that it hands out. Everything here blocks and is for the
//! daemon's threads. What has returned is durable.
//!
//! The sidecar of an image is kept as near to it as possible ([`SidecarPlace`]):
//! a file beside a file, the last block of a device. Where a disk fills its
//! device to the end, it is kept in a directory of the daemon, if one was given
//! ([`Datastore::keep_sidecars_in`]).
//!
//! A directory has a mark ([`Mark`]). A datastore that has been told its own
//! ([`Datastore::marked`]) does nothing in a directory that has not.
//!
//! **Failure cases.** Nothing is overwritten: not a file, not a device that is
//! mounted or held by something, not an image of another disk. A creation that
//! fails leaves nothing. Errors say what to do.

mod backing;
mod below;
mod creation;
mod device;
mod directory;
mod emulated;
mod error;
mod exchange;
mod growth;
mod images;
mod location;
pub mod mark;
mod medium;
mod old_copy;
mod remote;
mod removal;
mod sidecars;
mod system;
mod visit;
mod zeroes;

use std::fmt;
use std::path::{Path, PathBuf};

pub use emulated::{Emulated, ParseEmulatedError};
pub use error::DatastoreError;
pub use growth::Whereabouts;
pub use location::{Location, ParseLocationError};
pub use old_copy::OldCopy;
pub use removal::{Known, Removed, remove_known};
pub use visit::{Data, Visit};

use sterna_core::Mark;

use crate::ground::Ground;
use crate::image::ImageSpec;
use crate::sidecar::{Beside, Identity, SidecarError};
use device::Device;
use directory::Directory;
use medium::{Kind, Medium};
use remote::Remote;

/// How an image gets its space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provision {
    /// As it is written.
    #[default]
    Thin,
    /// All at once.
    Thick,
    /// All at once, and with zeroes written out: later writes cost the same as
    /// the first.
    ThickZeroed,
}

/// What a datastore has, in bytes. A device or export is all its image's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// In all.
    pub capacity: u64,
    /// Free for new images.
    pub free: u64,
    /// Datastores with the same number have this room together: that of a file system, or
    /// of a quota there. Nothing of a device or export.
    pub room: Option<u64>,
}

/// An image that was made.
#[derive(Clone, Debug)]
pub struct Created {
    /// How to open it.
    pub image: ImageSpec,
    /// Whether it reads as zeroes, so that zeroes need not be written. Never
    /// for `ThickZeroed`: writing them is the point.
    pub reads_zero: bool,
}

/// Where the sidecar of an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SidecarPlace {
    /// In this file.
    File(PathBuf),
    /// In the trailer of the device or export, at this offset.
    Trailer(u64),
    /// There is no room, and no directory was given.
    Nowhere,
}

/// An image that was found in a datastore.
#[derive(Debug)]
pub struct FoundImage {
    /// The name of its file in the datastore; empty for a device or export.
    pub file: String,
    /// How to open it.
    pub image: ImageSpec,
    /// What its sidecar says, or why that cannot be read.
    pub identity: Result<Identity, SidecarError>,
}

/// A sidecar that was found in a datastore.
#[derive(Clone, Debug)]
pub struct FoundSidecar {
    /// The name of its image's file in the datastore; empty for a device or export.
    pub file: String,
    /// What it says of its image.
    pub identity: Identity,
    /// Which file it was made for, if it says so.
    pub beside: Option<Beside>,
    /// Whether its image is there.
    pub has_image: bool,
}

/// What a device or an export says that a disk may have.
#[derive(Clone, Debug, Default)]
pub struct SaysInUse {
    /// What it says of itself.
    pub whole: Option<Identity>,
    /// What its end says, if its sidecar is elsewhere. If a disk fills the place, these are its
    /// guest's bytes.
    pub end: Option<Identity>,
}

/// A named place that holds disk images.
#[derive(Clone, Debug)]
pub struct Datastore {
    name: String,
    location: Location,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Directory(Directory),
    Medium(Box<Medium>),
}

/// An image of this datastore.
enum Ours<'a> {
    File(&'a Directory, &'a Path),
    Whole(&'a Medium),
}

impl Datastore {
    /// Opens a datastore: checks that it is there, is what its location says,
    /// can be written and is free.
    pub fn open(
        name: impl Into<String>,
        location: Location,
    ) -> Result<Datastore, DatastoreError> {
        let name = name.into();
        let whole = |kind| Place::Medium(Box::new(Medium::new(kind)));
        let place = match &location {
            Location::Directory(path) => Place::Directory(Directory::open(path)?),
            Location::Device(path) => whole(Kind::Device(Device::open(path)?)),
            Location::Nbd(uri) => whole(Kind::Remote(Remote::open(uri)?)),
            Location::Array(array) => {
                let path = array.path.as_deref();
                let path = path.ok_or_else(|| DatastoreError::NoPlace(name.clone()))?;
                Place::Directory(Directory::open(path)?)
            }
        };
        Ok(Datastore { name, location, place })
    }

    /// Where to keep the sidecar of a disk that fills its device or export; the
    /// file is called after the datastore.
    #[must_use]
    pub fn keep_sidecars_in(mut self, directory: &Path) -> Datastore {
        if let Place::Medium(medium) = &mut self.place {
            medium.sidecar = Some(directory.join(format!("{}.sterna", self.name)));
        }
        self
    }

    /// A device or an export had so many bytes when a daemon last saw it.
    pub fn was_so_large(mut self, size: u64) -> Result<Datastore, DatastoreError> {
        if let Place::Medium(medium) = &mut self.place {
            medium.was_so_large(size)?;
        }
        Ok(self)
    }

    /// Whether it was made larger, and has the sidecar of an image where its end was before.
    pub fn has_left_behind(&self) -> bool {
        match &self.place {
            Place::Directory(_) => false,
            Place::Medium(medium) => medium.behind.is_some(),
        }
    }

    /// By what its directory is known from now on.
    #[must_use]
    pub fn marked(mut self, mark: Mark) -> Datastore {
        if let Place::Directory(directory) = &mut self.place {
            directory.mark = Some(mark);
        }
        self
    }

    /// Whether it can be known again, if it is a directory.
    pub fn is_marked(&self) -> bool {
        match &self.place {
            Place::Directory(directory) => directory.mark.is_some(),
            Place::Medium(_) => true,
        }
    }

    /// Refuses what is at its location now, if that is another directory.
    pub fn check(&self) -> Result<(), DatastoreError> {
        match &self.place {
            Place::Directory(directory) => directory.check(),
            Place::Medium(_) => Ok(()),
        }
    }

    /// Writes something that nobody reads: where writes hang (a file system that is frozen for a
    /// snapshot, or whose device is gone), this does, though all that is cached is answered.
    /// What is at its path now is not looked at. Blocks.
    pub fn touch(&self) {
        if let Place::Directory(directory) = &self.place {
            directory.touch();
        }
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// What a device lies on, as that was when it was opened. Nothing of other kinds.
    pub fn ground(&self) -> Option<&Ground> {
        let Place::Medium(medium) = &self.place else { return None };
        match &medium.kind {
            Kind::Device(device) => Some(&device.ground),
            Kind::Remote(_) => None,
        }
    }

    /// The size of a device or an export, as that was when it was opened.
    pub fn size_at_opening(&self) -> Option<u64> {
        match &self.place {
            Place::Directory(_) => None,
            Place::Medium(medium) => Some(medium.capacity()),
        }
    }

    /// The size that a device or an export has now. Nothing of a directory. Blocks.
    pub fn size_now(&self) -> Result<Option<u64>, DatastoreError> {
        match &self.place {
            Place::Directory(_) => Ok(None),
            Place::Medium(medium) => medium.size_now().map(Some),
        }
    }

    /// Does something during a visit, if it is a device or an export: servers have files
    /// open for as long as somebody is connected.
    pub fn connected<T>(
        &self,
        then: impl FnOnce(Option<Visit>) -> T,
    ) -> Result<T, DatastoreError> {
        let Place::Medium(medium) = &self.place else { return Ok(then(None)) };
        match &medium.kind {
            Kind::Remote(remote) => Ok(then(Some(remote.visit()?))),
            Kind::Device(device) => Ok(then(Some(device.visit()?))),
        }
    }

    /// What it has; an error if it is gone or cannot be read.
    pub fn space(&self) -> Result<Space, DatastoreError> {
        match &self.place {
            Place::Directory(directory) => directory.space(),
            Place::Medium(medium) => medium.space(),
        }
    }

    /// Whether an image takes only the space that was written.
    pub fn supports_thin(&self) -> bool {
        matches!(self.place, Place::Directory(_))
    }

    /// Whether it can hold more than one image.
    pub fn holds_many(&self) -> bool {
        matches!(self.place, Place::Directory(_))
    }

    /// What a device or an export says of itself, whatever the size of its disk is; nothing
    /// if it says nothing, and of a directory.
    pub fn says_as_a_whole(&self) -> Result<Option<Identity>, DatastoreError> {
        let Place::Medium(medium) = &self.place else { return Ok(None) };
        match medium.found() {
            Ok(found) => Ok(Some(found)),
            Err(DatastoreError::Sidecar { source: SidecarError::Missing, .. }) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What a device or an export says that a disk may have; a directory says nothing. The
    /// place is read once.
    pub fn says_in_use(&self) -> Result<SaysInUse, DatastoreError> {
        match &self.place {
            Place::Directory(_) => Ok(SaysInUse::default()),
            Place::Medium(medium) => medium.says_in_use(),
        }
    }

    /// Which of ours `image` is; one of somewhere else is refused.
    fn ours<'a>(&'a self, image: &'a ImageSpec) -> Result<Ours<'a>, DatastoreError> {
        let ours = match &self.place {
            Place::Directory(directory) => {
                directory.path_of(image).map(|path| Ours::File(directory, path))
            }
            Place::Medium(medium) => {
                (*image == medium.image()).then_some(Ours::Whole(medium))
            }
        };
        ours.ok_or_else(|| DatastoreError::Foreign {
            image: place_of(image),
            datastore: self.name.clone(),
        })
    }
}

/// What the image `file` of a directory says of itself, if there is one. For a
/// directory of which nobody knows yet whose it is.
pub fn says(directory: &Path, file: &str) -> Option<Identity> {
    directory::says(directory, file)
}

/// Refuses what is at `path`, if it has not this mark.
pub fn check_mark(path: &Path, mark: Mark) -> Result<(), DatastoreError> {
    directory::check_mark(path, mark)
}

fn occupied(place: impl fmt::Display, found: &Identity) -> DatastoreError {
    DatastoreError::Occupied {
        place: place.to_string(),
        name: found.name.clone(),
        id: found.id,
        role: found.role,
        generation: found.generation,
    }
}

/// What to call an image in an error.
fn place_of(image: &ImageSpec) -> String {
    match image {
        ImageSpec::File { path, .. } => path.display().to_string(),
        ImageSpec::Nbd(uri) => uri.to_string(),
    }
}
