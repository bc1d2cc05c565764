//! Which parts of a file are data and which are holes, for helper threads.

use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{FileType, fstat};
use sterna_core::ByteRange;

use super::Extent;
use crate::io::Errno;

/// The extents from `offset`, at most `limit`. A file that cannot say is data. One that
/// ends before the range does is an error: a hole would be read as zeroes.
pub(super) fn find(
    file: &(impl AsRawFd + AsFd),
    offset: u64,
    len: u64,
    limit: usize,
) -> Result<Vec<Extent>, Errno> {
    let (mut at, end) = (offset, offset + len);
    let mut found = Vec::new();
    while at < end && found.len() < limit {
        let data = match seek(file, at, libc::SEEK_DATA) {
            Ok(data) => data.min(end),
            Err(Errno(libc::ENXIO)) => end,
            Err(Errno(libc::EINVAL | libc::EOPNOTSUPP)) => at,
            Err(errno) => return Err(errno),
        };
        if data > at {
            found.push(extent(at, data, true));
            at = data;
            continue;
        }
        let hole = match seek(file, at, libc::SEEK_HOLE) {
            Ok(hole) if hole > at => hole.min(end),
            // The file changes meanwhile, or cannot say.
            Ok(_) | Err(Errno(libc::EINVAL | libc::EOPNOTSUPP | libc::ENXIO)) => end,
            Err(errno) => return Err(errno),
        };
        found.push(extent(at, hole, false));
        at = hole;
    }
    // Last, so that what was cut off meanwhile is not a hole either.
    check_reaches(file, end)?;
    Ok(found)
}

/// Refuses a regular file that ends before `end`.
fn check_reaches(file: &impl AsFd, end: u64) -> Result<(), Errno> {
    let found = fstat(file).map_err(|error| Errno(error.raw_os_error()))?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    let length = u64::try_from(found.st_size).unwrap_or(0);
    if is_file && length < end { Err(Errno(libc::EIO)) } else { Ok(()) }
}

/// Tells the page cache what will be read.
pub(super) fn will_need(
    file: &impl AsRawFd,
    offset: u64,
    len: u64,
) -> Result<u64, Errno> {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let (offset, len) = (signed(offset), signed(len));
    // SAFETY: no pointers are involved.
    let result = unsafe {
        libc::posix_fadvise(file.as_raw_fd(), offset, len, libc::POSIX_FADV_WILLNEED)
    };
    // Advice: if it is not taken, nothing is lost.
    let _ = result;
    Ok(0)
}

fn extent(from: u64, to: u64, hole: bool) -> Extent {
    Extent { range: ByteRange::new(from, to - from), hole, zero: hole }
}

fn seek(file: &impl AsRawFd, at: u64, whence: i32) -> Result<u64, Errno> {
    let at = i64::try_from(at).map_err(|_| Errno(libc::EINVAL))?;
    // SAFETY: no pointers are involved.
    let found = unsafe { libc::lseek(file.as_raw_fd(), at, whence) };
    u64::try_from(found).map_err(|_| Errno::last())
}
