//! The sidecar as a file beside an image file.
//!
//! It is replaced as a whole: written under another name, fsynced, renamed, the
//! directory fsynced. Whoever reads sees the old record or the new one, also
//! after a power loss, and when a write has returned it is the new one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::{Identity, RECORD_LEN, SidecarError};

/// Reads the sidecar file at `path`.
pub fn read(path: &Path) -> Result<Identity, SidecarError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(SidecarError::Missing);
        }
        Err(error) => return Err(failed("open", path, error)),
    };
    let mut bytes = Vec::new();
    file.take(RECORD_LEN as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed("read", path, error))?;
    if bytes.len() != RECORD_LEN {
        return Err(SidecarError::Damaged("it has the wrong length"));
    }
    match Identity::decode(&bytes) {
        // The file is there, so its zeroes are damage.
        Err(SidecarError::Missing) => Err(SidecarError::Damaged("all zeroes")),
        decoded => decoded,
    }
}

/// Replaces the sidecar file at `path`; durable when it returns. On an error
/// the old record or the new one is there, whole.
pub fn write(path: &Path, identity: &Identity) -> Result<(), SidecarError> {
    let record = identity.encode()?;
    replace(path, &record).map_err(|error| failed("write", path, error))
}

/// Removes the sidecar file at `path`, durably; that it is not there is fine.
pub fn remove(path: &Path) -> Result<(), SidecarError> {
    match fs::remove_file(path) {
        Ok(()) => sync_directory_of(path).map_err(|error| failed("remove", path, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("remove", path, error)),
    }
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> SidecarError {
    SidecarError::Io { what, path: path.into(), source }
}

/// Puts `bytes` in the place of whatever `path` holds, atomically and durably.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_directory_of(path)
}

/// Makes the directory entry of `path` durable.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}
