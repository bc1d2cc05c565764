//! The address space of a pool: reserved whole, and filled where it is used.

use std::io;
use std::ptr::NonNull;

/// The address space of a pool.
pub(super) struct Arena {
    pub(super) base: NonNull<u8>,
    pub(super) len: usize,
}

impl Arena {
    pub(super) fn map(len: usize) -> io::Result<Arena> {
        // SAFETY: a new private mapping at an address of the kernel's choice
        // touches no memory that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Arena { base, len })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and the last reference to the pool is
        // gone, so no `Buf` points into it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
