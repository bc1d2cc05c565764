//! The region map as a kill leaves it: a file in memory.
//!
//! A guest's write waits until its region is called late where the next daemon looks, so
//! that may be no place that can stand still. A file system on a disk can: while it is
//! frozen, or its device hangs, whoever writes to a file or to a mapping of one waits, and
//! with a mapping he keeps the lock of the whole address space meanwhile. The file is in
//! `/dev/shm` instead: it outlives the process, waits for no disk (for swap, as all memory
//! does), and is gone when the machine is started anew; so is what a map of another boot is
//! worth. It is the map's file byte by byte; see `keeper` for the one in the state
//! directory.
//!
//! A store is a `pwrite` of 8 bytes within a page, which the kernel copies whole whatever
//! kill comes: some 0.5 us. All the memory is allocated when the file is made.
//!
//! Whoever may write to `/dev/shm` may put a file of that name there. So one is made anew
//! and only for us to read and write, and one that is found is believed if it is ours
//! alone. Where there is no such directory, or it is none in memory, nothing outlives the
//! process: then a map that is found after a kill is compared.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{
    FileType, MemfdFlags, Mode, OFlags, fstat, fstatfs, memfd_create, open, unlink,
};
use rustix::process::geteuid;

use super::header::HEADER_LEN;
use super::words::WORD;
use crate::place;

/// Where the machine keeps memory that has a name.
const DIRECTORY: &str = "/dev/shm";
/// What `statfs` calls a file system in memory (`TMPFS_MAGIC`).
const IN_MEMORY: i64 = 0x0102_1994;

/// A map's memory.
#[derive(Debug)]
pub(super) struct Memory {
    file: File,
}

impl Memory {
    /// Makes the memory of the map of that generation, all zeroes, in the place of what is
    /// there. Whether a kill leaves it there depends on the machine.
    pub(super) fn create(generation: u64, len: u64) -> io::Result<Memory> {
        let file = named(generation, len).or_else(|error| {
            tracing::warn!(
                %error,
                "cannot keep a region map in {DIRECTORY}: after a kill Sterna does not \
                 trust the map"
            );
            let file = File::from(memfd_create("sterna-map", MemfdFlags::CLOEXEC)?);
            place::allocate(&file, len).map(|()| file)
        })?;
        Ok(Memory { file })
    }

    /// Opens what a process that is gone has left; nothing if that is not all there, or not
    /// ours.
    pub(super) fn open(generation: u64, len: u64) -> Option<Memory> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(open(path(generation), flags, Mode::empty()).ok()?);
        let found = fstat(&file).ok()?;
        let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        let alone = found.st_uid == geteuid().as_raw() && found.st_mode & 0o077 == 0;
        let whole = found.st_nlink == 1 && u64::try_from(found.st_size) == Ok(len);
        (regular && alone && whole && is_in_memory(&file)).then_some(Memory { file })
    }

    /// Takes it away, if it is there.
    pub(super) fn remove(generation: u64) {
        // What stays is of no account: no other map has its number.
        let _ = unlink(path(generation));
    }

    /// Stores bytes, which are in one page.
    pub(super) fn store(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

fn named(generation: u64, len: u64) -> io::Result<File> {
    Memory::remove(generation);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = File::from(open(path(generation), flags, Mode::RUSR | Mode::WUSR)?);
    let made = if is_in_memory(&file) {
        place::allocate(&file, len)
    } else {
        Err(io::Error::other("it is not in memory"))
    };
    if made.is_err() {
        Memory::remove(generation);
    }
    made.map(|()| file)
}

fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| found.f_type == IN_MEMORY)
}

pub(super) fn path(generation: u64) -> PathBuf {
    format!("{DIRECTORY}/sterna-map-{generation:016x}").into()
}

/// Where a word is in the file.
pub(super) fn at(index: u64) -> u64 {
    HEADER_LEN as u64 + index * WORD
}
