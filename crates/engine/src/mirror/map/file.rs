//! The file of a region map: made whole before it has its name, with all the room that it
//! will need, and locked while it is open.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::MapError;
use super::error::failed;
use super::header::Header;
use super::words::seal;
use crate::place;

/// A lock that was just given up can live on for a moment in a child of this
/// process that has not yet come to its `exec`: look again for 100 ms.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Gives the first `len` bytes of `file` space on the medium. A file system that cannot
/// do that has them written by the caller or not at all.
pub(super) fn allocate(file: &File, len: u64) -> io::Result<()> {
    match place::allocate(file, len) {
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) =>
        {
            Ok(())
        }
        allocated => allocated,
    }
}

/// What a map is called until it is whole.
pub(super) fn beside(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    temporary.into()
}

/// A number that no other map of this machine has.
pub(super) fn new_generation() -> u64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Nanoseconds reach over 64 bits in 2554; wrapping keeps them apart.
    since.as_nanos() as u64
}

/// Makes a file of `len` bytes that has its space, to be overwritten in place.
fn open_new(path: &Path, len: u64) -> io::Result<File> {
    // What is there may share its blocks, and only an empty file takes the attribute.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    // Where that cannot be had, a full file system is found out page by page.
    let _ = place::keep_in_place(&file);
    file.set_len(len)?;
    allocate(&file, len)?;
    Ok(file)
}

/// Writes a map of `Absent` regions to `path`, every block of it, durably.
pub(super) fn write_out(path: &Path, header: &Header) -> io::Result<File> {
    let file = open_new(path, header.key.file_len())?;
    let mut writer = BufWriter::with_capacity(1 << 20, &file);
    writer.write_all(&header.page())?;
    for index in 0..header.key.words() {
        writer.write_all(&seal(header.generation, index, 0).to_le_bytes())?;
    }
    writer.flush()?;
    drop(writer);
    file.sync_all()?;
    Ok(file)
}

pub(super) fn lock(file: File, path: &Path) -> Result<File, MapError> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(failed("lock", path, error)),
        }
    }
    Err(MapError::Busy(path.into()))
}
