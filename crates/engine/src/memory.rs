//! Memory as a kill leaves it: files in memory.
//!
//! A guest's write may have to wait until something is noted where the next daemon looks, so
//! that may be no place that can stand still. A file system on a disk can: while it is
//! frozen, or its device hangs, whoever writes to a file or to a mapping of one waits, and
//! with a mapping he keeps the lock of the whole address space meanwhile. These files are in
//! `/dev/shm` instead: they outlive the process, wait for no disk (for swap, as all memory
//! does), and are gone when the machine is started anew. Each belongs to a file in the state
//! directory, which has the number that is its name: a region map (`mirror::map`), or the
//! account of a disk (`account`).
//!
//! A store is a `pwrite` of 8 bytes within a page, which the kernel copies whole whatever
//! kill comes: some 0.5 us. Where even that is too long, words of it are [`Mapped`]. All the
//! memory is allocated when the file is made.
//!
//! Behind its content a file says where it belongs (`home`), and whoever has it open or
//! mapped has it locked, shared with others: so a daemon that starts can remove what nobody
//! comes back for (`leftovers`).
//!
//! Whoever may write to `/dev/shm` may put a file of that name there. So one is made anew
//! and only for us to read and write, and one that is found is believed if it is ours
//! alone. Where there is no such directory, or it is none in memory, nothing outlives the
//! process, and what that means is the next daemon's matter.

mod home;
mod leftovers;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::fs::{
    FileType, FlockOperation, MemfdFlags, Mode, OFlags, flock, fstat, fstatfs,
    memfd_create, open, unlink,
};
use rustix::process::geteuid;

pub(crate) use self::home::Home;
pub use self::leftovers::remove_leftovers;
pub(crate) use self::leftovers::renew_home;
use crate::place;

/// Where the machine keeps memory that has a name.
const DIRECTORY: &str = "/dev/shm";
/// What `statfs` calls a file system in memory (`TMPFS_MAGIC`).
const IN_MEMORY: i64 = 0x0102_1994;

/// What a file in memory is of, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// Of the region map with this generation.
    Map(u64),
    /// Of the account with this one.
    Account(u64),
}

impl Name {
    pub(crate) fn path(self) -> PathBuf {
        match self {
            Name::Map(number) => format!("{DIRECTORY}/sterna-map-{number:016x}"),
            Name::Account(number) => format!("{DIRECTORY}/sterna-account-{number:016x}"),
        }
        .into()
    }

    /// What a kill costs where it cannot be kept.
    fn warn(self, error: &io::Error) {
        match self {
            Name::Map(_) => tracing::warn!(
                %error,
                "cannot keep a region map in {DIRECTORY}: after a kill Sterna does not \
                 trust the map"
            ),
            Name::Account(_) => tracing::warn!(
                %error,
                "cannot keep in {DIRECTORY} whether a disk has unflushed writes: after a \
                 kill Sterna assumes so, unless the disk is in a file whose file system \
                 stays mounted"
            ),
        }
    }
}

/// A file in memory.
#[derive(Debug)]
pub(crate) struct Memory {
    file: File,
}

impl Memory {
    /// Makes it, all zeroes, in the place of what is there. Whether a kill leaves it there
    /// depends on the machine.
    pub(crate) fn create(
        name: Name,
        len: u64,
        home: Option<&Home>,
    ) -> io::Result<Memory> {
        let file = named(name, len, home).or_else(|error| {
            name.warn(&error);
            let file = File::from(memfd_create("sterna", MemfdFlags::CLOEXEC)?);
            place::allocate(&file, len).map(|()| file)
        })?;
        Ok(Memory { file })
    }

    /// Opens what a process that is gone has left; nothing if that is not all there, or not
    /// ours.
    pub(crate) fn open(name: Name, len: u64) -> Option<Memory> {
        let file = open_ours(&name.path())?;
        let size = u64::try_from(fstat(&file).ok()?.st_size).ok()?;
        // An older Sterna has made one that does not say where it belongs.
        let whole = size == len || size == len + home::LEN;
        if !(whole && is_ours(&file)) {
            return None;
        }
        lock(&file);
        Some(Memory { file })
    }

    /// Takes it away, if it is there.
    pub(crate) fn remove(name: Name) {
        // What stays is of no account: nothing else has its number.
        let _ = unlink(name.path());
    }

    /// Stores bytes, which are in one page.
    pub(crate) fn store(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    pub(crate) fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The first words of it, so many, to be read and stored in place.
    pub(crate) fn map(&self, words: usize) -> io::Result<Mapped> {
        let len = words * size_of::<u64>();
        let has = fstat(&self.file)?.st_size;
        if usize::try_from(has).is_ok_and(|has| has < len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that
        // exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                // All of it at once: a later store waits for nothing.
                libc::MAP_SHARED | libc::MAP_POPULATE,
                self.file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapped { base, words })
    }
}

/// Words of a file in memory.
#[derive(Debug)]
pub(crate) struct Mapped {
    base: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: it is memory of this process until it is dropped, and all that is done with it is
// atomic.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words are mapped, from a page's beginning, for as long as this
        // lives; the file has all of them, and nobody but this user can make it shorter.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.words) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it is left.
        unsafe {
            libc::munmap(self.base.as_ptr().cast(), self.words * size_of::<u64>());
        }
    }
}

fn named(name: Name, len: u64, home: Option<&Home>) -> io::Result<File> {
    Memory::remove(name);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = File::from(open(name.path(), flags, Mode::RUSR | Mode::WUSR)?);
    let made = if is_in_memory(&file) {
        place::allocate(&file, len + home::LEN)
    } else {
        Err(io::Error::other("it is not in memory"))
    };
    let made = made.and_then(|()| {
        // Nobody must take for left what cannot be locked.
        let page = home.filter(|_| lock(&file)).and_then(Home::encode);
        page.map_or(Ok(()), |page| file.write_all_at(&page, len))
    });
    if made.is_err() {
        Memory::remove(name);
    }
    made.map(|()| file)
}

/// Locks it together with others, until nobody has it open or mapped by this opening of it.
fn lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockShared).is_ok()
}

/// Opens what is there, and is no link.
fn open_ours(path: &Path) -> Option<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).ok().map(File::from)
}

/// Whether it is a file in memory that only we may use.
fn is_ours(file: &File) -> bool {
    let Ok(found) = fstat(file) else { return false };
    let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    let alone = found.st_uid == geteuid().as_raw() && found.st_mode & 0o077 == 0;
    regular && alone && found.st_nlink == 1 && is_in_memory(file)
}

fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| found.f_type == IN_MEMORY)
}
