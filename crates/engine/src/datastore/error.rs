//! What can go wrong with datastores, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use sterna_core::{Bytes, DiskId};

use crate::sidecar::{Identity, Role, SidecarError};

/// Why a datastore cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum DatastoreError {
    /// The system said no.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is nothing at the location.
    #[error("{} does not exist; create it, or correct the location", .0.display())]
    Missing(PathBuf),
    /// What is at the location is not the datastore.
    #[error("another file system is at {}: {what}; mount the right one", path.display())]
    Elsewhere {
        /// The location.
        path: PathBuf,
        /// How that shows.
        what: String,
    },
    /// An emulated array without a directory.
    #[error("the emulated array {0} has no directory; give it one (`&path=/vm/array`)")]
    NoPlace(String),
    /// Something else than the location claims.
    #[error("{} is not a {expected}", path.display())]
    Kind {
        /// The location.
        path: PathBuf,
        /// What it should be.
        expected: &'static str,
    },
    /// The file would be overwritten.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The name would lead out of the datastore.
    #[error("`{0}` is not the name of a file in this datastore; give a plain file name")]
    Name(String),
    /// The image's name would be too long with a sidecar's suffix.
    #[error(
        "the name of the file has {len} bytes, and the name of an image may have {most}, \
         because its sidecar's name is longer; rename the file"
    )]
    LongName {
        /// The length of the name.
        len: usize,
        /// The longest that fits.
        most: usize,
    },
    /// A link is no image: it may lead elsewhere tomorrow.
    #[error(
        "{} is a symbolic link, and an image must be a regular file; give the target of \
         the link, on a datastore of the target's directory, or move the target here",
        .0.display()
    )]
    Link(PathBuf),
    /// Another file has the name of the image that was to be removed.
    #[error("another file now has the name {}: Sterna removed nothing", .0.display())]
    Another(PathBuf),
    /// Nobody knows whether the file is the image that is meant.
    #[error(
        "Sterna cannot verify that {} is the right file, and has changed nothing there",
        .0.display()
    )]
    Unproven(PathBuf),
    /// The same, as its file server gave it another handle.
    #[error(
        "the file server has given {} another handle than before, so Sterna cannot verify that \
         it is the right file, and has changed nothing there: the server was exchanged or \
         restored from a backup, or another file has the name",
        .0.display()
    )]
    Rehandled(PathBuf),
    /// The image is removed; that, or the removal of its sidecar, could not be finished.
    #[error("the image is removed, but the removal of its sidecar failed: {0}")]
    SidecarStays(String),
    /// The image does not fit.
    #[error("{place} has {free} free, and the image needs {needed}")]
    Full {
        /// The datastore's location.
        place: String,
        /// What is left.
        free: Bytes,
        /// What is needed.
        needed: Bytes,
    },
    /// There may be bytes left, and there is no room for another file.
    #[error("the file system of {place} has no room for another file (inodes)")]
    NoFiles {
        /// The datastore's location.
        place: String,
    },
    /// A quota lets the image have no room.
    #[error("a quota does not permit the {needed} that the image needs in {place}")]
    Quota {
        /// The datastore's location.
        place: String,
        /// What is needed.
        needed: Bytes,
    },
    /// Room that is allocated there does not serve for later writes.
    #[error(
        "{place} is on a file system that writes to new places (copy-on-write), and \
         cannot overwrite this image in place: Sterna cannot reserve room for the image"
    )]
    NoPromise {
        /// The image.
        place: String,
    },
    /// The device or export is smaller than the disk.
    #[error("{place} has {capacity}, and the disk needs {needed}")]
    TooSmall {
        /// The device or export.
        place: String,
        /// Its size.
        capacity: Bytes,
        /// The disk's size.
        needed: Bytes,
    },
    /// No disk has this size.
    #[error("a disk cannot have {0} bytes; choose a multiple of 512")]
    Size(u64),
    /// A file system on the device is mounted.
    #[error("{} is mounted on {mount}; unmount it first", device.display())]
    Mounted {
        /// The device.
        device: PathBuf,
        /// Where it is mounted.
        mount: String,
    },
    /// Something else uses the device.
    #[error(
        "{} is in use by {holders}; free the device first (see `lsblk`)", device.display()
    )]
    Held {
        /// The device.
        device: PathBuf,
        /// The devices on top of it, or what else is known.
        holders: String,
    },
    /// The device or export has a disk on it already.
    #[error("{place} holds the disk {name} ({id}, {role}, generation {generation})")]
    Occupied {
        /// The device or export.
        place: String,
        /// The disk's name.
        name: String,
        /// The disk.
        id: DiskId,
        /// What the image is to it.
        role: Role,
        /// Its generation.
        generation: u64,
    },
    /// The image is not the one that was expected.
    #[error("{place} does not hold the expected image: {what}")]
    Mismatch {
        /// The image.
        place: String,
        /// What differs.
        what: String,
        /// It is the truth of the same disk, with a higher generation.
        newer: bool,
    },
    /// The sidecar cannot be used.
    #[error("{place}: {source}")]
    Sidecar {
        /// The image.
        place: String,
        /// Why not.
        source: SidecarError,
    },
    /// The disk fills the device or export, and no directory for sidecars was given.
    #[error(
        "{0} has no room for a sidecar beside the disk; keep it in the state directory"
    )]
    NoSidecarPlace(String),
    /// The NBD server cannot be used.
    #[error("cannot use {uri}: {reason}")]
    Remote {
        /// The server's address and export.
        uri: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The image is not one of this datastore.
    #[error("{image} is not an image of the datastore {datastore}")]
    Foreign {
        /// The image.
        image: String,
        /// The datastore.
        datastore: String,
    },
    /// The caller stopped a long operation.
    #[error("stopped")]
    Stopped,
}

impl DatastoreError {
    /// Whether it says that something found no room.
    pub(super) fn is_out_of_room(&self) -> bool {
        match self {
            DatastoreError::Io { source, .. }
            | DatastoreError::Sidecar {
                source: SidecarError::Io { source, .. }, ..
            } => source.kind() == io::ErrorKind::StorageFull,
            _ => false,
        }
    }

    /// Whether it says that an image has no sidecar, or one that says nothing. If a sidecar
    /// cannot be read, or a newer Sterna has written it, the image may be any disk's.
    pub fn says_no_sidecar(&self) -> bool {
        let DatastoreError::Sidecar { source, .. } = self else { return false };
        matches!(
            source,
            SidecarError::Missing | SidecarError::Foreign | SidecarError::Damaged(_)
        )
    }
}

/// An `Io` error about `path`.
pub(super) fn failed<'a>(
    what: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> DatastoreError + 'a {
    move |source| DatastoreError::Io { what, path: path.into(), source }
}

/// Refuses an image that is none of `ours` by what was read of it.
pub(super) fn check_ours(
    place: &str,
    said: Result<Identity, SidecarError>,
    ours: &dyn Fn(&Identity) -> bool,
) -> Result<(), DatastoreError> {
    let found = said.map_err(sidecar(place))?;
    if ours(&found) {
        return Ok(());
    }
    let Identity { name, id, generation, role, .. } = found;
    let what = format!(
        "its sidecar says disk {name} ({id}), generation {generation}, {role}; Sterna wrote \
         nothing to it"
    );
    Err(DatastoreError::Mismatch { place: place.into(), what, newer: false })
}

/// The same of a sidecar in a file of its own, which is made anew if it says nothing.
pub(super) fn check_none_but_ours(
    place: &str,
    said: Result<Identity, SidecarError>,
    ours: &dyn Fn(&Identity) -> bool,
) -> Result<(), DatastoreError> {
    check_ours(place, said, ours)
        .or_else(|error| if error.says_no_sidecar() { Ok(()) } else { Err(error) })
}

/// A `Sidecar` error about the image at `place`.
pub(super) fn sidecar(
    place: impl std::fmt::Display,
) -> impl FnOnce(SidecarError) -> DatastoreError {
    move |source| DatastoreError::Sidecar { place: place.to_string(), source }
}
