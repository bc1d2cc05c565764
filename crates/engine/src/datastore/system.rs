//! The system calls of datastores that the standard library does not have.

use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

use super::Space;

/// The space of the file system that `path` is on, as an ordinary user sees it.
pub(super) fn space(path: &Path) -> io::Result<Space> {
    let device = path.metadata()?.dev();
    let path = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)?;
    let mut stat = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path ends with a NUL, and the kernel fills the structure.
    let stat = unsafe {
        if libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        stat.assume_init()
    };
    let block = stat.f_frsize;
    // Directories with quotas of their own are on one file system, and differ in size.
    let mut room = DefaultHasher::new();
    (device, stat.f_blocks).hash(&mut room);
    Ok(Space {
        capacity: stat.f_blocks.saturating_mul(block),
        free: stat.f_bavail.saturating_mul(block),
        room: Some(room.finish()),
    })
}

/// Why files cannot be made in a directory, or not removed, whoever asks for it.
pub(super) fn locked(directory: &Path) -> Option<io::Error> {
    let found = statx(CWD, directory, AtFlags::empty(), StatxFlags::empty()).ok()?;
    let has = |attribute| found.stx_attributes.contains(attribute);
    let why = if has(StatxAttributes::APPEND) {
        "the directory is append-only (`chattr -a` ends that)"
    } else if has(StatxAttributes::IMMUTABLE) {
        "the directory is immutable (`chattr -i` ends that)"
    } else {
        return None;
    };
    Some(io::Error::new(io::ErrorKind::PermissionDenied, why))
}
