//! What follows for I/O from the kind of a file system: whose it is (this machine's, or that
//! of a server, which may not answer), and what it does with direct writes of less than a
//! block.

use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

/// File systems of this machine, by the number that `statfs` gives: the kernel starts
/// direct I/O on them without waiting, or says that it would have to. All others may
/// have a server somewhere, which may not answer.
const OF_THIS_MACHINE: [i64; 5] = [
    0xEF53, // ext2, ext3, ext4
    XFS,
    0x9123_683E, // Btrfs
    0xF2F5_2010, // F2FS
    0x0102_1994, // tmpfs: a helper thread for each request costs more than the request
];

const NFS: i64 = 0x6969;

const XFS: i64 = 0x5846_5342;

/// Whether the file is on a file system that waits for nobody but this machine.
pub fn is_of_this_machine(file: &impl AsRawFd) -> bool {
    kind(file).is_some_and(|kind| OF_THIS_MACHINE.contains(&kind))
}

/// Whether a direct write that was answered is on the storage. The NFS client sends its
/// server a COMMIT before it answers one; any other server may have it in a cache.
pub(super) fn stores_direct_writes(file: &impl AsRawFd) -> bool {
    kind(file).is_some_and(|kind| kind == NFS || OF_THIS_MACHINE.contains(&kind))
}

/// Whether the file system carries out a direct write of less than a block through the page
/// cache, if the block is shared with another file (`cp --reflink`). It says a smaller
/// alignment all the same. A direct write of the same page at that time makes the kernel
/// report a loss (EIO), and what went through the cache is not on the device.
pub(super) fn caches_parts_of_blocks(file: &impl AsRawFd) -> bool {
    kind(file) == Some(XFS)
}

fn kind(file: &impl AsRawFd) -> Option<i64> {
    let mut found = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel fills the structure; all zeroes are a valid one.
    let found = unsafe {
        if libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) < 0 {
            return None;
        }
        found.assume_init()
    };
    Some(found.f_type)
}
