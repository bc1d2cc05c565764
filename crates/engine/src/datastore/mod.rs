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
mod device;
mod directory;
mod emulated;
mod error;
mod exchange;
mod growth;
mod location;
pub mod mark;
mod medium;
mod old_copy;
mod remote;
mod removal;
mod system;
mod visit;
mod zeroes;

use std::fmt;
use std::path::{Path, PathBuf};

pub use emulated::{Emulated, ParseEmulatedError};
pub use error::DatastoreError;
pub use location::{Location, ParseLocationError};
pub use old_copy::OldCopy;
pub use removal::{Known, Removed, remove_known};
pub use visit::{Data, Visit};

use sterna_core::Mark;

use crate::ground::Ground;
use crate::image::{FileIdentity, FoundFile, ImageSpec};
use crate::sidecar::Beside;
use crate::sidecar::slots::Origin;
use crate::sidecar::{Identity, Role, SidecarError};
use device::Device;
use directory::Directory;
use error::sidecar as sidecar_failed;
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

    /// Makes an image with its sidecar. Never overwrites a file or an image of
    /// another disk.
    pub fn create_image(
        &self,
        identity: &Identity,
        provision: Provision,
    ) -> Result<Created, DatastoreError> {
        check(identity)?;
        match &self.place {
            Place::Directory(directory) => Ok(Created {
                image: directory.create(identity, provision)?,
                reads_zero: provision != Provision::ThickZeroed,
            }),
            Place::Medium(medium) => medium.create(identity, provision),
        }
    }

    /// Takes over what is there already: the raw file `file` of a directory, or
    /// the device or export as a whole (`file` is empty then).
    pub fn adopt(
        &self,
        file: &str,
        identity: &Identity,
    ) -> Result<ImageSpec, DatastoreError> {
        check(identity)?;
        match &self.place {
            Place::Directory(directory) => directory.adopt(file, identity),
            Place::Medium(_) if !file.is_empty() => {
                Err(DatastoreError::Name(file.into()))
            }
            Place::Medium(medium) => medium.adopt(identity),
        }
    }

    /// The image whose file is called `file` (empty for a device or export),
    /// unchecked. The inverse of [`Datastore::file_of`].
    pub fn image(&self, file: &str) -> Result<ImageSpec, DatastoreError> {
        match &self.place {
            Place::Directory(directory) => directory.image(file),
            Place::Medium(_) if !file.is_empty() => {
                Err(DatastoreError::Name(file.into()))
            }
            Place::Medium(medium) => Ok(medium.image()),
        }
    }

    /// The name of the image's file in this datastore, to be remembered; empty
    /// for a device or export.
    pub fn file_of(&self, image: &ImageSpec) -> Result<String, DatastoreError> {
        Ok(match self.ours(image)? {
            Ours::File(_, path) => directory::file_name(path).into(),
            Ours::Whole(_) => String::new(),
        })
    }

    /// The image called `file`, checked: it must be the `expected` one by its
    /// sidecar (disk, generation, role, size), and large enough.
    pub fn open_image(
        &self,
        file: &str,
        expected: &Identity,
    ) -> Result<ImageSpec, DatastoreError> {
        let image = self.image(file)?;
        let found = self.read_sidecar(&image, expected.size)?;
        if let Some(what) = difference(&found, expected) {
            let place = place_of(&image);
            let newer = found.id == expected.id
                && found.role == Role::Active
                && found.generation > expected.generation;
            return Err(DatastoreError::Mismatch { place, what, newer });
        }
        match self.ours(&image)? {
            Ours::File(_, path) => directory::check_fits_in(path, expected.size)?,
            Ours::Whole(medium) => medium.check_fits(expected.size)?,
        }
        Ok(image)
    }

    /// Whether a disk of that size has filled its device or export before that was made
    /// larger. Its sidecar is still in a file.
    pub fn was_filled(&self, size: u64) -> bool {
        match &self.place {
            Place::Directory(_) => false,
            Place::Medium(medium) => medium.was_filled(size),
        }
    }

    /// Brings the sidecar of an image to the end of its device or export, if that was made
    /// larger and the sidecar is where the end was before. Where nothing at the place can say
    /// whose it is, somebody must have proven that. Says whether something was done.
    pub fn follow_growth(
        &self,
        image: &ImageSpec,
        expected: &Identity,
        is_proven: bool,
    ) -> Result<bool, DatastoreError> {
        match self.ours(image)? {
            Ours::File(..) => Ok(false),
            Ours::Whole(medium) => medium.follow_growth(expected, is_proven),
        }
    }

    /// Removes the image of a disk of `size` bytes: its file and sidecar, or, on
    /// a device or export, the sidecar alone. Durable; that it is gone already
    /// is fine. Whoever has had the file open says which it is (`held`); else its
    /// sidecar has to.
    ///
    /// # Errors
    ///
    /// Nothing is removed if the file is not, or not provably, the one that is meant.
    pub fn remove_image(
        &self,
        image: &ImageSpec,
        size: u64,
        held: Option<&FileIdentity>,
    ) -> Result<(), DatastoreError> {
        match self.ours(image)? {
            Ours::File(directory, path) => directory.remove(path, held),
            Ours::Whole(medium) => medium.remove(size),
        }
    }

    /// The file of an image, which must not be open here, if another program has it open
    /// for writing. Blocks for a moment. Nothing where that cannot be known.
    pub fn written_by_others<'a>(&self, image: &'a ImageSpec) -> Option<&'a Path> {
        crate::image::written_by_others(image)
    }

    /// The bytes that the image of a disk of `size` bytes takes, if that can be
    /// found out.
    pub fn allocated(&self, image: &ImageSpec, size: u64) -> Option<u64> {
        match self.ours(image).ok()? {
            Ours::File(_, path) => directory::allocated(path),
            Ours::Whole(medium) => medium.allocated(size),
        }
    }

    /// Whether all of a disk's image in a file has its room, for now and for later
    /// writes. Devices and exports do not say.
    pub fn is_thick(&self, image: &ImageSpec, size: u64) -> bool {
        match self.ours(image) {
            Ok(Ours::File(_, path)) => directory::is_thick(path, size),
            _ => false,
        }
    }

    /// Gives an image that is there the room of all of it, where it can.
    pub fn allocate(&self, image: &ImageSpec, size: u64) -> Result<(), DatastoreError> {
        match self.ours(image)? {
            Ours::File(directory, path) => directory.allocate(path, size),
            Ours::Whole(_) => Ok(()),
        }
    }

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

    /// The images that are there, for rebuilding a lost state directory. Only
    /// what has a sidecar counts.
    pub fn images(&self) -> Result<Vec<FoundImage>, DatastoreError> {
        let medium = match &self.place {
            Place::Directory(directory) => return directory.images(),
            Place::Medium(medium) => medium,
        };
        let identity = match medium.found() {
            Err(DatastoreError::Sidecar { source: SidecarError::Missing, .. }) => {
                return Ok(Vec::new());
            }
            Err(DatastoreError::Sidecar { source, .. }) => Err(source),
            Err(error) => return Err(error),
            Ok(identity) => Ok(identity),
        };
        Ok(vec![FoundImage { file: String::new(), image: medium.image(), identity }])
    }

    /// What there is in a directory beside marks and sidecars, by name, and how many things
    /// more than `most`. Nothing of a device or an export.
    pub fn files(
        &self,
        most: usize,
    ) -> Result<(Vec<(String, FoundFile)>, u64), DatastoreError> {
        match &self.place {
            Place::Directory(directory) => directory.files(most),
            Place::Medium(_) => Ok((Vec::new(), 0)),
        }
    }

    /// Removes the file of an image that is to be as it was `found`, with its sidecar, if no
    /// program has it open. Durable. Says what has become of it.
    pub fn remove_old_copy(
        &self,
        image: &ImageSpec,
        found: &FoundFile,
    ) -> Result<OldCopy, DatastoreError> {
        match self.ours(image)? {
            Ours::File(directory, path) => directory.remove_old_copy(path, found),
            Ours::Whole(_) => Err(DatastoreError::Unproven(place_of(image).into())),
        }
    }

    /// Writes zeroes over the whole image of a disk of `size` bytes, durably:
    /// the rest of making a `ThickZeroed` one. `progress` hears how many bytes
    /// are done and says whether to go on.
    pub fn fill_zeroes(
        &self,
        image: &ImageSpec,
        size: u64,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), DatastoreError> {
        match self.ours(image)? {
            Ours::File(directory, path) => {
                directory.check()?;
                zeroes::fill(path, size, progress)
            }
            Ours::Whole(medium) => medium.fill_zeroes(size, progress),
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

fn check(identity: &Identity) -> Result<(), DatastoreError> {
    let size = identity.size;
    if size == 0 || !size.is_multiple_of(512) || size > i64::MAX as u64 {
        return Err(DatastoreError::Size(size));
    }
    identity.encode().map(|_| ()).map_err(sidecar_failed(&identity.name))
}

/// What is wrong with the image that says `found`.
fn difference(found: &Identity, expected: &Identity) -> Option<String> {
    if found.id != expected.id {
        return Some(format!("it belongs to the disk {} ({})", found.name, found.id));
    }
    if found.generation != expected.generation {
        let (found, expected) = (found.generation, expected.generation);
        return Some(format!(
            "it has generation {found} and not {expected}; the higher one is right"
        ));
    }
    if found.role != expected.role {
        return Some(format!("it is {} and not {}", found.role, expected.role));
    }
    let (found, expected) = (found.size, expected.size);
    (found != expected).then(|| format!("its disk has {found} bytes and not {expected}"))
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
