//! The region map: which regions both images share, in a file that outlives
//! the process.
//!
//! The file is mapped into memory. Setting a region is one aligned 8-byte store
//! into the page cache, so it takes no I/O and no wait, and a process that is
//! killed at any instruction leaves every word whole. The kernel writes the
//! pages back when it likes; nothing here waits for that, so after a power loss
//! any word may be an older one of itself, and so may what was in the images.
//! That is why the header names the boot: under another boot every `Synced` is
//! only `Suspect`, and `Absent` is not certain ([`MapFile::adopt_boot`]).
//!
//! ```text
//!   0      header, two copies (see `header`)
//!   4096   words of 8 bytes, little endian, 16 regions each (see `words`):
//!            bits  0..32  the states, 2 bits a region, lowest first
//!            bits 32..64  crc32c of map generation (u64), word index (u64), states (u32)
//! ```
//!
//! The generation is new with every map, so a block of an older file that comes
//! up in this one, or a word in the wrong place, does not pass for one of ours.
//!
//! **Failure cases.** A state directory that is full fails at creation: the file
//! is written out then, block by block, and only takes its name when it is
//! whole and durable. A file that is damaged fails at opening, where every word
//! is checked; what is damaged is in the error. Nobody else may open the map
//! while it is open (it is locked).

mod header;
mod mapping;
mod words;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sterna_core::Bytes;

use crate::boot::BootId;
use crate::plain;
use crate::sidecar::DiskId;
use header::{HEADER_LEN, Header};
use mapping::Mapping;
use words::{PER_WORD, WORD, seal};

/// A lock that was just given up can live on for a moment in a child of this
/// process that has not yet come to its `exec`: look again for 100 ms.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// What a map is about; a map of something else is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapKey {
    /// The migration.
    pub migration: u64,
    /// The disk that it moves.
    pub disk: DiskId,
    /// The disk's size in bytes.
    pub size: u64,
    /// The size of a region in bytes.
    pub region: u32,
}

impl MapKey {
    /// How many regions the disk has; the last one may be shorter.
    pub fn regions(&self) -> u64 {
        self.size.div_ceil(u64::from(self.region.max(1)))
    }

    fn words(&self) -> u64 {
        self.regions().div_ceil(PER_WORD)
    }

    fn file_len(&self) -> u64 {
        HEADER_LEN as u64 + self.words() * WORD
    }
}

/// Why a region map cannot be made or used. After all but `Io` and `Busy` the
/// way on is to compare or copy everything, with a new map.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The file system said no.
    #[error("cannot {what} the region map {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody has it open.
    #[error("the region map {} is in use; is another daemon running?", .0.display())]
    Busy(PathBuf),
    /// No disk has this shape.
    #[error("a disk of {size} bytes in regions of {region} bytes cannot be mapped")]
    Shape {
        /// The disk's size.
        size: u64,
        /// The region's size.
        region: u32,
    },
    /// Neither copy of the header is whole.
    #[error("the region map's header is damaged")]
    Header,
    /// Made by a newer Sterna.
    #[error("the region map has version {0}, which this Sterna does not know")]
    Version(u32),
    /// A map of another migration or disk.
    #[error("the region map belongs to {found:?}, not to {expected:?}")]
    Other {
        /// What it is about.
        found: MapKey,
        /// What it should be about.
        expected: MapKey,
    },
    /// The file is longer or shorter than its header says.
    #[error("the region map has {found} bytes and should have {expected}")]
    Length {
        /// The file's length.
        found: u64,
        /// What the header asks for.
        expected: u64,
    },
    /// Words that are not whole.
    #[error(
        "the region map is damaged in {count} places, for {from} to {to} of the disk"
    )]
    Words {
        /// How many.
        count: u64,
        /// Where the disk's part of the first of them begins.
        from: Bytes,
        /// Where the disk's part of the last of them ends.
        to: Bytes,
    },
}

/// The region map in its file.
#[derive(Debug)]
pub struct MapFile {
    path: PathBuf,
    mapping: Mapping,
    header: Header,
    /// Keeps the lock; after the mapping, so that nobody gets in before it is gone.
    _file: File,
}

impl MapFile {
    /// Makes a map with every region `Absent`, in the place of what `path` may
    /// hold. Durable when it returns, and all the space that it will ever need
    /// is allocated.
    pub fn create(path: &Path, key: MapKey, boot: BootId) -> Result<MapFile, MapError> {
        let len = key.file_len();
        if key.size == 0 || key.region == 0 || usize::try_from(len).is_err() {
            return Err(MapError::Shape { size: key.size, region: key.region });
        }
        let header = Header { key, generation: new_generation(), boot };
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        let made = write_out(&temporary, &header)
            .and_then(|file| std::fs::rename(&temporary, path).map(|()| file));
        let file = made.map_err(|error| {
            // The first error is the one to tell.
            let _ = std::fs::remove_file(&temporary);
            failed("create", path, error)
        })?;
        plain::sync_directory_of(path).map_err(|error| failed("create", path, error))?;
        let file = lock(file, path)?;
        let mapping =
            Mapping::new(&file, len).map_err(|error| failed("map", path, error))?;
        Ok(MapFile { path: path.into(), mapping, header, _file: file })
    }

    /// Opens the map at `path`, which must be about `key`; checks every word.
    pub fn open(path: &Path, key: MapKey) -> Result<MapFile, MapError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| failed("open", path, error))?;
        let file = lock(file, path)?;
        let header = header::read(&file).map_err(|error| match error {
            header::ReadError::Io(error) => failed("read", path, error),
            header::ReadError::Damaged => MapError::Header,
            header::ReadError::Version(version) => MapError::Version(version),
        })?;
        if header.key != key {
            return Err(MapError::Other { found: header.key, expected: key });
        }
        let found = file.metadata().map_err(|error| failed("read", path, error))?.len();
        let expected = key.file_len();
        if found != expected || usize::try_from(expected).is_err() {
            return Err(MapError::Length { found, expected });
        }
        // A copy of the file may have holes; filling them later could fail, as
        // a signal in the middle of a guest's write.
        mapping::allocate(&file, expected)
            .map_err(|error| failed("allocate", path, error))?;
        let mapping =
            Mapping::new(&file, expected).map_err(|error| failed("map", path, error))?;
        let map = MapFile { path: path.into(), mapping, header, _file: file };
        map.check()?;
        Ok(map)
    }

    /// What the map is about.
    pub fn key(&self) -> MapKey {
        self.header.key
    }

    /// Whether the map was last used under `boot`, so that no power loss lies
    /// between.
    pub fn same_boot(&self, boot: BootId) -> bool {
        self.header.boot == boot
    }

    /// Makes the map one of `boot`. If it was used under another one, the
    /// regions are distrusted first, durably, and only then the header changes;
    /// so a crash in between loses nothing. Gives the number of suspects.
    pub fn adopt_boot(&mut self, boot: BootId) -> Result<u64, MapError> {
        if self.same_boot(boot) {
            return Ok(0);
        }
        let suspects = self.distrust();
        self.flush()?;
        self.header.boot = boot;
        for copy in 0..header::COPIES {
            self.mapping.write_header(copy, &self.header.encode());
            self.flush()?;
        }
        Ok(suspects)
    }

    /// Waits until the map as it is now is on the medium.
    pub fn flush(&self) -> Result<(), MapError> {
        self.mapping.flush().map_err(|error| failed("write", &self.path, error))
    }
}

/// A number that no other map of this machine has.
fn new_generation() -> u64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Nanoseconds reach over 64 bits in 2554; wrapping keeps them apart.
    since.as_nanos() as u64
}

/// Writes a map of `Absent` regions to `path`, every block of it, durably.
fn write_out(path: &Path, header: &Header) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    let len = header.key.file_len();
    file.set_len(len)?;
    mapping::allocate(&file, len)?;
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

fn lock(file: File, path: &Path) -> Result<File, MapError> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(failed("lock", path, error)),
        }
    }
    Err(MapError::Busy(path.into()))
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> MapError {
    MapError::Io { what, path: path.into(), source }
}

#[cfg(test)]
mod tests;
