//! The region map's file as memory.
//!
//! The unsafe part of the region map, and all of it. The memory is shared with
//! the page cache, so it is only ever looked at through atomics.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::header::{COPY_LEN, COPY_STRIDE, HEADER_LEN, WROTE_AT};

/// A file, mapped from its start, writable and shared.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is owned memory that is not tied to a thread; all access
// to it is through atomics.
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

    /// The words behind the header.
    pub(super) fn words(&self) -> &[AtomicU64] {
        let count = (self.len - HEADER_LEN) / 8;
        // SAFETY: the mapping is `len` bytes long, lives as long as `self`, and
        // starts at a page; HEADER_LEN is a multiple of 8, so the words are
        // aligned. All access is atomic.
        unsafe {
            let words = self.start.as_ptr().add(HEADER_LEN);
            std::slice::from_raw_parts(words.cast::<AtomicU64>(), count)
        }
    }

    /// The word of the header that says when something was last written.
    pub(super) fn wrote(&self) -> &AtomicU64 {
        // SAFETY: the word lies inside the header, which is mapped as long as `self`
        // lives, and starts at a page; WROTE_AT is a multiple of 8, so it is aligned.
        // All access is atomic, and no copy of the header reaches it.
        unsafe { &*self.start.as_ptr().add(WROTE_AT).cast::<AtomicU64>() }
    }

    /// Overwrites one copy of the header.
    pub(super) fn write_header(&self, copy: usize, bytes: &[u8; COPY_LEN]) {
        // SAFETY: the header lies inside the mapping, which lives as long as
        // `self`, and a byte has no alignment. All access is atomic.
        let page = unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().cast::<AtomicU8>(), HEADER_LEN)
        };
        for (to, from) in page[copy * COPY_STRIDE..].iter().zip(bytes) {
            to.store(*from, Ordering::Relaxed);
        }
    }

    /// Waits until the mapping is on the medium.
    pub(super) fn flush(&self) -> io::Result<()> {
        // SAFETY: exactly the mapping that `new` made.
        let result =
            unsafe { libc::msync(self.start.as_ptr().cast(), self.len, libc::MS_SYNC) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; nothing borrows from it
        // any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Gives the first `len` bytes of `file` space on the medium, so that storing
/// to the mapping cannot run out of it. A file system that cannot do that has
/// them written by the caller or not at all.
pub(super) fn allocate(file: &File, len: u64) -> io::Result<()> {
    let len = libc::off_t::try_from(len).map_err(io::Error::other)?;
    // SAFETY: plain numbers and a file that is open.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOSYS) => Ok(()),
        _ => Err(error),
    }
}
