//! The region map's file as the kernel writes it.
//!
//! A word is stored through a mapping of the file, because that takes no I/O and no
//! wait: once a page is dirty, storing to it is no matter of the file system. Making it
//! dirty is, and where that fails (no room on a file system that writes to new places, a
//! file that was cut short, a device that is gone) a store by this process would be
//! answered with a signal that ends it, and all its guests' storage with it. So it is the
//! kernel that stores: it copies the word out of a small file in memory, and answers a
//! fault with an error. A word that could not be stored so is written with `pwrite`,
//! which works in more cases and says why it does not. Nothing here ever reads the
//! mapping.
//!
//! The unsafe part of the region map, and all of it.

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

use super::header::{COPIED_AT, COPY_LEN, COPY_STRIDE, HEADER_LEN, WROTE_AT};
use super::words::WORD;
use crate::place;

/// A file, mapped from its start, writable and shared.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is owned memory that is not tied to a thread, and no reference
// into it is ever made.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `file`, which must be there: a header and
    /// whole words.
    pub(super) fn new(file: &File, len: u64) -> io::Result<Mapping> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        if len <= HEADER_LEN {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no
        // memory that Rust knows of.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }

    /// Stores a word, whole: it lies in one page, and a kill does not cut the kernel's
    /// copy of it. False if the page cannot be made dirty.
    pub(super) fn store(&self, index: u64, word: u64) -> bool {
        self.copy_in(at(index), &word.to_le_bytes())
    }

    /// Stores when something was last written.
    pub(super) fn store_wrote(&self, word: u64) -> bool {
        self.copy_in(WROTE_AT as u64, &word.to_le_bytes())
    }

    /// Stores when something was last written to the destination.
    pub(super) fn store_copied(&self, word: u64) -> bool {
        self.copy_in(COPIED_AT as u64, &word.to_le_bytes())
    }

    /// Overwrites one copy of the header.
    pub(super) fn store_header(&self, copy: usize, bytes: &[u8; COPY_LEN]) -> bool {
        self.copy_in((copy * COPY_STRIDE) as u64, bytes)
    }

    /// Has the kernel copy bytes into the mapping, which are in one page of it.
    fn copy_in(&self, at: u64, bytes: &[u8]) -> bool {
        let end = at + bytes.len() as u64;
        let fits = usize::try_from(end).is_ok_and(|end| end <= self.len);
        fits && STAGE.with(|stage| {
            let Some(stage) = stage.get_or_init(|| stage_file().ok()) else {
                return false;
            };
            if stage.write_all_at(bytes, 0).is_err() {
                return false;
            }
            // SAFETY: the bytes lie inside the mapping, which lives as long as `self`
            // and which nothing borrows from. The kernel answers a fault with an error.
            let copied = unsafe {
                let to = self.start.as_ptr().add(at as usize);
                libc::pread(stage.as_raw_fd(), to.cast(), bytes.len(), 0)
            };
            usize::try_from(copied) == Ok(bytes.len())
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; nothing borrows from it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

thread_local! {
    /// Where the kernel copies words from; one for each thread that has maps.
    static STAGE: OnceCell<Option<File>> = const { OnceCell::new() };
}

fn stage_file() -> io::Result<File> {
    // SAFETY: a name that ends with a NUL; the descriptor is nobody else's.
    unsafe {
        match libc::memfd_create(c"sterna-map".as_ptr(), libc::MFD_CLOEXEC) {
            fd if fd < 0 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}

/// Where a word is in the file.
pub(super) fn at(index: u64) -> u64 {
    HEADER_LEN as u64 + index * WORD
}

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
