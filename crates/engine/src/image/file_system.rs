//! Whose a file system is: this machine's, or that of a server, which may not answer.

use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

/// File systems of this machine, by the number that `statfs` gives: the kernel starts
/// direct I/O on them without waiting, or says that it would have to. All others may
/// have a server somewhere, which may not answer.
const OF_THIS_MACHINE: [i64; 4] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0xF2F5_2010, // F2FS
];

/// Whether the file is on a file system that waits for nobody but this machine.
pub fn is_of_this_machine(file: &impl AsRawFd) -> bool {
    let mut found = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel fills the structure; all zeroes are a valid one.
    let found = unsafe {
        if libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) < 0 {
            return false;
        }
        found.assume_init()
    };
    OF_THIS_MACHINE.contains(&found.f_type)
}
