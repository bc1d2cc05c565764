//! The images of a datastore: made, adopted, found, opened and removed.

use std::collections::BTreeSet;
use std::path::Path;

use super::directory;
use super::error::sidecar as sidecar_failed;
use super::growth::Whereabouts;
use super::{
    Created, Datastore, DatastoreError, FoundImage, FoundSidecar, OldCopy, Ours, Place,
    Provision, place_of, zeroes,
};
use crate::image::{FileIdentity, FoundFile, ImageSpec};
use crate::sidecar::{Identity, Role, SidecarError};

impl Datastore {
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
        // What is at the end of a device that is too short is not its sidecar.
        if let Ours::Whole(medium) = self.ours(&image)? {
            medium.check_fits(expected.size)?;
        }
        let found = self.read_sidecar(&image, expected.size)?;
        if let Some(what) = difference(&found, expected) {
            let place = place_of(&image);
            let newer = found.id == expected.id
                && found.role == Role::Active
                && found.generation > expected.generation;
            return Err(DatastoreError::Mismatch { place, what, newer });
        }
        if let Ours::File(_, path) = self.ours(&image)? {
            directory::check_fits_in(path, expected.size)?;
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
    /// larger and the sidecar is where the end was before: with so many bytes, or shortly behind
    /// the disk. Where nothing at the place can say whose it is, somebody must have proven
    /// that. Says where it was.
    pub fn follow_growth(
        &self,
        image: &ImageSpec,
        expected: &Identity,
        before: Option<u64>,
        is_proven: bool,
    ) -> Result<Whereabouts, DatastoreError> {
        match self.ours(image)? {
            Ours::File(..) => Ok(Whereabouts::Here),
            Ours::Whole(medium) => medium.follow_growth(expected, before, is_proven),
        }
    }

    /// Frees a device or an export whose sidecar is one of `ours`. A file stays.
    pub fn free_ours(
        &self,
        image: &ImageSpec,
        size: u64,
        ours: &dyn Fn(&Identity) -> bool,
    ) -> Result<(), DatastoreError> {
        match self.ours(image)? {
            Ours::File(..) => Ok(()),
            Ours::Whole(medium) => medium.remove_ours(size, ours),
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

    /// Gives `each` of the sidecars of a directory, with and without their images; those of the
    /// image files `first` come first. `each` gets nothing whenever the datastore has answered,
    /// and that did not tell of one. If one cannot be read, it is an error once all others are
    /// told. What a device or an export says: [`Datastore::says_in_use`].
    pub fn sidecars(
        &self,
        first: &BTreeSet<String>,
        each: &mut dyn FnMut(Option<FoundSidecar>),
    ) -> Result<(), DatastoreError> {
        match &self.place {
            Place::Directory(directory) => directory.sidecars(first, each),
            Place::Medium(_) => Ok(()),
        }
    }

    /// The sidecar of that image file of a directory; nothing if there is none, or it says
    /// nothing.
    pub fn found_sidecar(
        &self,
        file: &str,
    ) -> Result<Option<FoundSidecar>, DatastoreError> {
        let Place::Directory(directory) = &self.place else { return Ok(None) };
        directory.check()?;
        directory.found_sidecar(file)
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
    // What is no truth is none in any generation.
    if found.role != expected.role {
        let Identity { role, generation, .. } = found;
        return Some(format!(
            "it is {role}, generation {generation}, and not {}, generation {}",
            expected.role, expected.generation
        ));
    }
    if found.generation != expected.generation {
        let (found, expected) = (found.generation, expected.generation);
        return Some(format!(
            "it has generation {found} and not {expected}; the higher one is right"
        ));
    }
    let (found, expected) = (found.size, expected.size);
    (found != expected).then(|| format!("its disk has {found} bytes and not {expected}"))
}
