//! The system calls of the daemon that the standard library does not have.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The effective user id of this process.
pub fn effective_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Takes over a descriptor that this process was started with.
///
/// # Safety
///
/// The descriptor is open and belongs to nobody else in this process.
pub(crate) unsafe fn take_over(raw: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise. Asking for the flags shows that it is open.
    let flags = unsafe { libc::fcntl(raw, libc::F_GETFD) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and the caller gives it to us.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: sets a flag of a descriptor that is ours.
    unsafe { libc::fcntl(raw, libc::F_SETFD, flags | libc::FD_CLOEXEC) };
    Ok(fd)
}

/// Whether another process has a lock on any byte of the file, as QEMU has on
/// images that it uses.
pub(crate) fn is_locked(file: &File) -> io::Result<bool> {
    let mut lock = MaybeUninit::<libc::flock>::zeroed();
    // SAFETY: all zeroes are a valid `flock`: the whole file, and no process,
    // which is what `F_OFD_GETLK` demands. The kernel writes to it.
    let lock = unsafe {
        let lock = lock.assume_init_mut();
        lock.l_type = libc::F_WRLCK as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        if libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut *lock) < 0 {
            return Err(io::Error::last_os_error());
        }
        *lock
    };
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
}
