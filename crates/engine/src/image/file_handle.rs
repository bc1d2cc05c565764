//! What tells a file from others that had its number, where the file system does not say when
//! files were made (ext4 with small inodes, ext3, most NFS servers).
//!
//! The kernel can give a handle of a file, as an NFS server needs it: the handle has the file's
//! number and its generation, and another file that gets the number later has another generation.
//! It stays the same over a restart of the host, and on NFS it is the server's own handle.
//!
//! Only file systems are asked whose handles stay with the file. FUSE makes up new ones whenever
//! the kernel has forgotten a file.

use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::fstatfs;

use crate::sidecar::Beside;

/// The longest handle (`MAX_HANDLE_SZ`): that of NFS version 4.
const LONGEST: usize = 128;

/// File systems of this machine (`linux/magic.h`): ext2 to ext4, XFS, Btrfs, F2FS.
const OF_THIS_MACHINE: [i64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];
/// NFS. A server that was exchanged may give a file that it has kept another handle.
const NFS: i64 = 0x6969;

/// `struct file_handle` of the kernel, with room.
#[repr(C)]
struct Handle {
    length: u32,
    kind: i32,
    bytes: [u8; LONGEST],
}

/// What stands for the moment at which a file was made; 0 if nothing does.
pub(super) fn mark_of(file: impl AsFd) -> u64 {
    let Ok(system) = fstatfs(&file) else { return 0 };
    // Of this width on no architecture alike.
    #[allow(clippy::unnecessary_cast, reason = "it is narrower on some machines")]
    let kind = system.f_type as i64;
    let is_local = OF_THIS_MACHINE.contains(&kind);
    match handle_of(file.as_fd().as_raw_fd()) {
        Some(handle) if is_local || kind == NFS => {
            Beside::by_handle(digest(&handle), is_local)
        }
        _ => 0,
    }
}

fn handle_of(file: i32) -> Option<Vec<u8>> {
    let mut handle = Handle { length: LONGEST as u32, kind: 0, bytes: [0; LONGEST] };
    let mut mount: libc::c_int = 0;
    // SAFETY: the name ends with a zero byte, the handle has as many bytes as it says, and both
    // outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            file,
            c"".as_ptr(),
            &raw mut handle,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    let bytes = handle.bytes.get(..handle.length as usize).filter(|_| done == 0)?;
    Some([&handle.kind.to_le_bytes(), bytes].concat())
}

/// FNV-1a: a sidecar keeps it, so it must be the same in each version.
fn digest(bytes: &[u8]) -> u64 {
    let add =
        |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_has_one_handle_and_another_file_has_another() {
        let directory = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let path = directory.path().join(name);
            File::options().create(true).truncate(false).write(true).open(path).unwrap()
        };
        let (a, b) = (open("a"), open("b"));
        let handle = |file: &File| handle_of(file.as_raw_fd());
        let Some(first) = handle(&a) else {
            return eprintln!("left out: temporary files have no handles here");
        };
        assert_eq!(handle(&open("a")).as_ref(), Some(&first));
        assert_ne!(handle(&b), Some(first));
    }

    #[test]
    fn a_digest_is_the_same_in_each_version() {
        assert_eq!(digest(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
