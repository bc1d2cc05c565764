//! The lock on an image, in QEMU's manner.
//!
//! QEMU says what it does to an image, and what it lets others do, by locks on
//! single bytes far inside the file (nothing is stored there): byte 100 + n is
//! locked by whoever has permission n, byte 200 + n by whoever lets nobody else
//! have it. All are read locks, so that many can hold the same one; they are
//! looked for by asking whether a write lock would be refused. They belong to the
//! open file and end with it, also after a kill.
//!
//! Doing the same keeps QEMU and its tools off an image that is being served, and
//! Sterna off an image that a virtual machine is using. File systems without such
//! locks have none; then there is nothing to ask and nothing to hold.

use std::fs::File;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::AsRawFd;

use crate::io::Errno;

/// Where "I have permission n" begins (QEMU: `RAW_LOCK_PERM_BASE`).
const HAVE: i64 = 100;
/// Where "nobody else may have n" begins (QEMU: `RAW_LOCK_SHARED_BASE`).
const KEEP: i64 = 200;

/// Permissions, as QEMU numbers them.
const READ: i64 = 0;
const WRITE: i64 = 1;
const WRITE_UNCHANGED: i64 = 2;
const RESIZE: i64 = 3;

/// What serving an image needs.
const OURS: [i64; 2] = [READ, WRITE];
/// What nobody else may do meanwhile.
const NOT_OTHERS: [i64; 3] = [WRITE, WRITE_UNCHANGED, RESIZE];

/// Takes the lock.
pub(super) fn take(file: &File) -> Result<Lock, Errno> {
    let ours = OURS.map(|permission| HAVE + permission);
    let kept = NOT_OTHERS.map(|permission| KEEP + permission);
    for byte in ours.into_iter().chain(kept) {
        match fcntl(file, libc::F_OFD_SETLK, libc::F_RDLCK, byte..byte + 1) {
            Ok(_) => {}
            Err(Errno(libc::EAGAIN | libc::EACCES)) => return Ok(Lock::Others),
            Err(Errno(libc::EINVAL | libc::ENOLCK | libc::EOPNOTSUPP)) => {
                return Ok(Lock::Unknown);
            }
            Err(errno) => return Err(errno),
        }
    }
    // Held first, then looked for: of two that come at once, one sees the other.
    let refused = OURS.map(|permission| KEEP + permission);
    let in_use = NOT_OTHERS.map(|permission| HAVE + permission);
    for byte in refused.into_iter().chain(in_use) {
        let found = fcntl(file, libc::F_OFD_GETLK, libc::F_WRLCK, byte..byte + 1)?;
        if found != libc::F_UNLCK {
            return Ok(Lock::Others);
        }
    }
    Ok(Lock::Ours)
}

/// Holds what was taken by a further descriptor of the same image, too: the lock is there
/// as long as one of them is, and an operation that the kernel has begun holds its own.
pub(super) fn hold(file: &File) {
    let ours = OURS.map(|permission| HAVE + permission);
    let kept = NOT_OTHERS.map(|permission| KEEP + permission);
    for byte in ours.into_iter().chain(kept) {
        // They are all shared with the first descriptor's, so none is refused.
        let _ = fcntl(file, libc::F_OFD_SETLK, libc::F_RDLCK, byte..byte + 1);
    }
}

/// What came of taking the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    Ours,
    /// Somebody uses the image in a way that does not go together with serving it.
    Others,
    /// The file system knows no such locks.
    Unknown,
}

/// Whether anybody has any lock on the file, as programs have on images that they
/// use, be it only for reading.
pub fn is_used(file: &File) -> Result<bool, Errno> {
    let all = 0..0; // To the end of the file, wherever that is.
    let found = fcntl(file, libc::F_OFD_GETLK, libc::F_WRLCK, all)?;
    Ok(found != libc::F_UNLCK)
}

/// Sets or looks for a lock on some bytes; gives the kind of lock that was found.
fn fcntl(file: &File, command: i32, kind: i32, bytes: Range<i64>) -> Result<i32, Errno> {
    let mut lock = MaybeUninit::<libc::flock>::zeroed();
    // SAFETY: all zeroes are a valid `flock` (and no process, which locks of open
    // files demand); the kernel reads it and may write to it.
    unsafe {
        let lock = lock.assume_init_mut();
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        lock.l_start = bytes.start;
        lock.l_len = bytes.end - bytes.start;
        match libc::fcntl(file.as_raw_fd(), command, &raw mut *lock) {
            -1 => Err(Errno::last()),
            _ => Ok(i32::from(lock.l_type)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_used_once_until_it_is_closed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let first = file.reopen().unwrap();
        let second = file.reopen().unwrap();
        assert_eq!(take(&first), Ok(Lock::Ours));
        assert_eq!(take(&second), Ok(Lock::Others));
        let further = file.reopen().unwrap();
        hold(&further);
        drop(first);
        assert_eq!(take(&second), Ok(Lock::Others), "the further one holds it");
        drop(further);
        drop(second);
        // A child that another test is just starting may still have them.
        let third = file.reopen().unwrap();
        while take(&third) == Ok(Lock::Others) {
            std::thread::yield_now();
        }
    }
}
