//! Taking a range over from another file by reference (reflink): the file system
//! lets both share the blocks until one of them is written. It does that or says
//! that it cannot; `copy_file_range`, which would do anything to succeed, is not used
//! (`docs/adr/0006-no-copy-file-range.md`).

use std::os::fd::AsRawFd;

use crate::io::{Errno, Stored};

/// Makes the range of `to` share the blocks of the same range of `from`. What is
/// in the page cache of either is written out first. Blocks: for the datastore's threads.
pub(super) fn range(
    from: &Stored,
    to: &Stored,
    offset: u64,
    len: u64,
) -> Result<u64, Errno> {
    let range = libc::file_clone_range {
        src_fd: from.as_raw_fd().into(),
        src_offset: offset,
        src_length: len,
        dest_offset: offset,
    };
    // SAFETY: the kernel reads the structure; both files are open.
    match unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONERANGE, &raw const range) } {
        0 => Ok(0),
        _ => Err(Errno::last()),
    }
}
