//! What must be in order before a disk of a VM is moved, and what things are called.

use std::path::{Path, PathBuf};

use sterna_api::{Error, Guard, Result};
use sterna_engine::datastore::Location;
use sterna_moves::no_room;
use sterna_qemu::Drive;
use sterna_state::Reach;
use sterna_storage::handle::DatastoreHandle;

/// The directory of a datastore that QEMU can open.
pub(super) fn directory_of(handle: &DatastoreHandle) -> Result<PathBuf> {
    match &handle.record().location {
        Location::Directory(directory) => Ok(directory.clone()),
        _ => {
            let message = format!("datastore {} is not a directory", handle.name());
            Err(Error::invalid(message).hint(
                "QEMU itself writes the new image, so the image must be a plain file",
            ))
        }
    }
}

/// libvirt does not say how long single requests take.
pub(super) fn check_guard(reach: &Reach, guard: &Guard) -> Result<()> {
    match (reach, guard.p99_us) {
        (Reach::Libvirt { .. }, Some(_)) => {
            let message = "libvirt does not report how long single requests take";
            Err(Error::invalid(message).hint("use --keep instead of --p99"))
        }
        _ => Ok(()),
    }
}

/// The new image is thin: it needs what the old one takes, and a device or export that is
/// to hold it the whole size.
pub(super) fn check_room(handle: &DatastoreHandle, drive: &Drive) -> Result<()> {
    let name = handle.name();
    let space = handle.look().map_err(|problem| {
        Error::unavailable(format!("datastore {name} cannot be used: {problem}"))
            .hint("repair this; Sterna tries again every few seconds")
    })?;
    let thin = drive.allocated.filter(|_| handle.record().location.directory().is_some());
    let needs = thin.unwrap_or(drive.size).min(drive.size);
    if space.free >= needs {
        return Ok(());
    }
    Err(no_room(&drive.device, needs, name, space.free)
        .hint(format!("make room on datastore {name}")))
}

/// Where an image is that is on no datastore: its directory, if it has one.
pub(super) fn place_of(image: &str) -> String {
    let image = sterna_qemu::file_of(image).unwrap_or_else(|| image.to_owned());
    match Path::new(&image).parent().filter(|_| image.starts_with('/')) {
        Some(directory) => directory.display().to_string(),
        None => image,
    }
}

/// A device's name as a part of a file's.
pub(super) fn plain(device: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    device.chars().map(|c| if keep(c) { c } else { '-' }).collect()
}
