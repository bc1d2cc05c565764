//! The sidecar as a file beside an image file.
//!
//! It is made whole, under another name, with room for all that is ever written to it
//! ([`slots`]); from then on it is written in place, one slot after the other. Whoever
//! reads sees the old record or the new one, also after a power loss, and when a write
//! has returned it is the new one.
//!
//! A file of an older Sterna, or one that is damaged, is replaced by a new one. If there is
//! no room for that, an old one is written over as it is: its record is one sector, which a
//! disk writes whole.
//!
//! In a directory where others may write as well, what has the sidecar's name may be a link
//! to something precious: it is not followed, and a file with a second name is replaced
//! rather than written to (`plain`).

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Beside;
use super::slots::{self, FILE_LEN, Origin, Record, Said};
use super::{Identity, SidecarError};
use crate::plain;

/// Its mode: what a disk is called is for its owner.
const MODE: u32 = 0o600;

/// What the sidecar file at `path` says of whose bytes the image holds.
pub fn read(path: &Path) -> Result<Identity, SidecarError> {
    Ok(read_all(path)?.record.identity)
}

/// All that the sidecar file at `path` says.
pub fn read_all(path: &Path) -> Result<Said, SidecarError> {
    match plain::open_ours(path, false) {
        Ok(file) => read_from(&file).map_err(|error| error.or_failed("read", path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(SidecarError::Missing)
        }
        Err(error) => Err(failed("open", path, error)),
    }
}

/// What the sidecar file at `path` said before it was written last, if it has that still.
pub fn read_before(path: &Path) -> Result<Option<Record>, SidecarError> {
    let failed = |error| failed("read", path, error);
    let file = plain::open_ours(path, false).map_err(failed)?;
    Ok(slots::decode_before(&bytes_of(&file).map_err(failed)?))
}

/// Why a file that is open says nothing.
enum Unread {
    Io(io::Error),
    Sidecar(SidecarError),
}

impl Unread {
    fn or_failed(self, what: &'static str, path: &Path) -> SidecarError {
        match self {
            Unread::Io(error) => failed(what, path, error),
            Unread::Sidecar(error) => error,
        }
    }
}

fn read_from(file: &File) -> Result<Said, Unread> {
    slots::decode(&bytes_of(file).map_err(Unread::Io)?).map_err(Unread::Sidecar)
}

fn bytes_of(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut limited = file.take(FILE_LEN as u64 + 1);
    limited.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Makes the sidecar file at `path` say whose bytes the image holds; durable when it
/// returns. What it says of the image's file stays. On an error the old record or the new
/// one is there, whole.
pub fn write(path: &Path, identity: &Identity) -> Result<(), SidecarError> {
    change(path, |old| {
        let (beside, origin) = match old {
            Some(old) => (old.beside, old.origin),
            None => (None, Origin::Unknown),
        };
        Record { identity: identity.clone(), beside, origin }
    })
}

/// Makes the sidecar file at `path`, durably, where there must be none yet.
pub fn make(path: &Path, record: &Record) -> Result<(), SidecarError> {
    plain::place(path, &slots::encode_file(record)?, MODE)
        .map_err(|error| failed("create", path, error))
}

/// The same with what is known of the image's file.
pub fn write_all(path: &Path, record: &Record) -> Result<(), SidecarError> {
    change(path, |_| record.clone())
}

/// Makes it say which file the image is, if it can be read.
pub fn write_beside(path: &Path, beside: Beside) -> Result<(), SidecarError> {
    let said = read_all(path)?;
    write_all(path, &Record { beside: Some(beside), ..said.record })
}

/// Writes what comes of what is there.
fn change(
    path: &Path,
    new: impl FnOnce(Option<&Record>) -> Record,
) -> Result<(), SidecarError> {
    // One that cannot be written in place is replaced, so it has to be read all the same.
    let open = plain::open_ours(path, true).ok();
    let said = match &open {
        Some(file) => read_from(file).ok(),
        None => read_all(path).ok(),
    };
    let record = new(said.as_ref().map(|said| &said.record));
    if let (Some(file), Some(said)) = (&open, said.as_ref().filter(|it| !it.is_old())) {
        let (at, sequence) = said.next();
        let slot = slots::encode(&record, sequence)?;
        let written = file.write_all_at(&slot, at).and_then(|()| file.sync_data());
        let Err(error) = written else { return Ok(()) };
        // What is read of that slot from now on may not be what the disk has, so the next
        // write could spoil the one that is right: better a new file.
        let whole = slots::encode_file(&record)?;
        return plain::replace(path, &whole, MODE)
            .map_err(|_| failed("write", path, error));
    }
    match plain::replace(path, &slots::encode_file(&record)?, MODE) {
        Err(error) if is_full(&error) => match (&open, said) {
            (Some(file), Some(_)) => {
                let old = record.identity.encode()?;
                let written = file.write_all_at(&old, 0).and_then(|()| file.sync_data());
                written.map_err(|error| failed("write", path, error))
            }
            _ => Err(failed("write", path, error)),
        },
        replaced => replaced.map_err(|error| failed("write", path, error)),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Removes the sidecar file at `path`, durably; that it is not there is fine.
pub fn remove(path: &Path) -> Result<(), SidecarError> {
    match fs::remove_file(path) {
        Ok(()) => {
            plain::sync_directory_of(path).map_err(|error| failed("remove", path, error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("remove", path, error)),
    }
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> SidecarError {
    SidecarError::Io { what, path: path.into(), source }
}
