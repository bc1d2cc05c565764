//! By what images and files are known again: the mounting of their file system, or the
//! coming of their device.
//!
//! - A *file system* that Linux shows in `/sys/fs` has a directory there from its mounting
//!   to its unmounting, whose inode number no other one gets in that boot. It is the same
//!   in every mount namespace and after a bind mount. Others have the number of the mount
//!   that the file was opened through, which is never given twice (from Linux 6.8 on).
//!   On btrfs the subvolume's number belongs to it: whoever puts a snapshot in the place of
//!   a subvolume leaves the mounting, the file's number and its time of birth as they were.
//! - A *device* has a sequence number (`diskseq`, from Linux 5.15 on): another one after a
//!   device has gone and come, as the next loop device under the same name.
//! - An export of a *server* is not known again.
//!
//! What of this cannot be read is not known: then a region map is not believed. All of it
//! asks file systems, which may hang: not for a reactor's thread.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{Seek, SeekFrom};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sterna_core::Nanos;
use sterna_core::mirror::{Found, Origin, Storage};

/// `statx`: the mount's own number, never given twice (Linux 6.8).
const STATX_MNT_ID_UNIQUE: u32 = 0x4000;

/// File systems that take the time of a change from this machine's clock, and where nobody
/// can put back an older state of a file while they are mounted. ZFS can (`zfs rollback`).
const OUR_CLOCK: [&str; 7] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs"];

/// `BTRFS_IOC_INO_LOOKUP` (`linux/btrfs.h`), the same number on all machines but PowerPC, MIPS
/// and SPARC, which refuse it: then the storage is not known again.
const BTRFS_LOOKUP: libc::Ioctl = 0xd000_9412_u32 as libc::Ioctl;
/// The root directory of a subvolume: only of that everybody may ask.
const BTRFS_ROOT: u64 = 256;

/// The time (since 1970).
pub(crate) fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// What a file is known by now.
pub(crate) fn storage(path: &Path) -> Storage {
    of_file(path).unwrap_or_default().origin.storage
}

/// What a file that is open is known by now.
pub(crate) fn storage_of(file: &File) -> Storage {
    of(file).unwrap_or_default().origin.storage
}

/// What an image at this path is known by now.
pub(crate) fn found(path: &Path) -> Found {
    of_file(path).unwrap_or_default()
}

fn of_file(path: &Path) -> Option<Found> {
    of(&File::open(path).ok()?)
}

fn of(mut file: &File) -> Option<Found> {
    let metadata = file.metadata().ok()?;
    if metadata.file_type().is_block_device() {
        let storage = match sequence(metadata.rdev()) {
            Some(sequence) => Storage::Device { sequence },
            None => Storage::Unknown,
        };
        let size = file.seek(SeekFrom::End(0)).ok()?;
        // A device does not say when it was written to.
        return Some(Found { origin: Origin { storage, size }, changed: None });
    }
    let mount = Mount::of(file);
    let instance = mount.as_ref().and_then(|mount| mount.instance(file));
    // Of btrfs that would be believed of a subvolume that was put in another one's place.
    let is_btrfs = mount.as_ref().is_some_and(|mount| mount.kind == "btrfs");
    let instance = instance.or_else(|| unique(file).filter(|_| !is_btrfs));
    let storage = match instance {
        Some(instance) => Storage::Mounted { instance, file: metadata.ino() },
        None => Storage::Unknown,
    };
    let ours = mount.is_some_and(|mount| OUR_CLOCK.contains(&mount.kind.as_str()));
    let changed = ours.then(|| changed(&metadata)).flatten();
    Some(Found { origin: Origin { storage, size: metadata.len() }, changed })
}

/// When anything of a file changed, its bytes or what is said of it, at the latest: nobody
/// can set that back.
fn changed(metadata: &Metadata) -> Option<Nanos> {
    /// A file system with times in whole seconds (ext3, ext4 with small inodes) may mean any
    /// moment of that second.
    const WHOLE_SECOND: u64 = 999_999_999;
    let seconds = u64::try_from(metadata.ctime()).ok()?;
    let nanos = match metadata.ctime_nsec() {
        0 => WHOLE_SECOND,
        nanos => u64::try_from(nanos).ok()?,
    };
    Some(Nanos(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}

/// The sequence number of a block device; of a partition, its disk's.
fn sequence(device: u64) -> Option<u64> {
    let device = in_sys(device)?;
    let read = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse().ok();
    read(device.join("diskseq")).or_else(|| read(device.parent()?.join("diskseq")))
}

fn in_sys(device: u64) -> Option<PathBuf> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()
}

/// The mount that a file was opened through, by proc(5)'s list.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// Its device's number, `major:minor`.
    number: String,
    kind: String,
    source: String,
}

impl Mount {
    fn of(file: &File) -> Option<Mount> {
        let info = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
        let info = fs::read_to_string(info).ok()?;
        let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
        Mount::find(&fs::read_to_string("/proc/self/mountinfo").ok()?, id.trim())
    }

    fn find(mounts: &str, id: &str) -> Option<Mount> {
        let line = mounts.lines().find(|line| line.split(' ').next() == Some(id))?;
        let mut after = line.split(" - ").nth(1)?.split(' ');
        Some(Mount {
            number: line.split(' ').nth(2)?.to_owned(),
            kind: after.next()?.to_owned(),
            source: after.next()?.to_owned(),
        })
    }

    /// The number of this mounting of the file system that has the file, where Linux shows
    /// it.
    fn instance(&self, file: &File) -> Option<u64> {
        let shown = match self.kind.as_str() {
            "ext2" | "ext3" | "ext4" => self.shown_as("ext4"),
            "xfs" | "f2fs" => self.shown_as(&self.kind),
            "btrfs" => self.btrfs(),
            _ => None,
        };
        let number = fs::metadata(shown?).ok()?.ino();
        match self.kind.as_str() {
            // The number's upper half hardly ever differs, and subvolumes count from 256.
            "btrfs" => Some(number ^ subvolume(file)?.rotate_left(32)),
            _ => Some(number),
        }
    }

    fn shown_as(&self, kind: &str) -> Option<PathBuf> {
        let device = fs::canonicalize(format!("/sys/dev/block/{}", self.number)).ok()?;
        Some(Path::new("/sys/fs").join(kind).join(device.file_name()?))
    }

    /// The one that has the device.
    fn btrfs(&self) -> Option<PathBuf> {
        let device = fs::canonicalize(&self.source).ok()?;
        let device: &OsStr = device.file_name()?;
        let all = fs::read_dir("/sys/fs/btrfs").ok()?.flatten();
        let mut all = all.map(|entry| entry.path());
        all.find(|path| path.join("devices").join(device).exists())
    }
}

/// The number of the subvolume that has the file: no other one ever gets it.
fn subvolume(file: &File) -> Option<u64> {
    /// `btrfs_ioctl_ino_lookup_args`.
    #[repr(C)]
    struct Lookup {
        tree: u64,
        object: u64,
        name: [u8; 4080],
    }
    let mut lookup = Lookup { tree: 0, object: BTRFS_ROOT, name: [0; 4080] };
    // SAFETY: the kernel fills the structure, which is of the size that the number says.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), BTRFS_LOOKUP, &raw mut lookup) };
    (done == 0).then_some(lookup.tree)
}

/// The number of the mount that a file was opened through.
fn unique(file: &File) -> Option<u64> {
    let mut statx = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: an empty path with `AT_EMPTY_PATH` means the descriptor itself;
    // the kernel fills the structure.
    let statx = unsafe {
        let fd = file.as_raw_fd();
        let (flags, mask) = (libc::AT_EMPTY_PATH, STATX_MNT_ID_UNIQUE);
        if libc::statx(fd, c"".as_ptr(), flags, mask, statx.as_mut_ptr()) < 0 {
            return None;
        }
        statx.assume_init()
    };
    (statx.stx_mask & STATX_MNT_ID_UNIQUE != 0).then_some(statx.stx_mnt_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
220 22 0:45 / /vm rw,relatime shared:9 master:4 - nfs4 nas.lan:/export/vm rw,vers=4.2
";

    #[test]
    fn a_mount_is_found_by_its_number() {
        let nfs = Mount::find(MOUNTS, "220").unwrap();
        assert_eq!((nfs.number.as_str(), nfs.kind.as_str()), ("0:45", "nfs4"));
        assert_eq!(nfs.source, "nas.lan:/export/vm");
        assert_eq!(nfs.instance(&File::open("/proc/self/mountinfo").unwrap()), None);
        assert_eq!(Mount::find(MOUNTS, "2"), None);
    }

    #[test]
    fn a_file_is_known_again_and_so_is_whoever_wrote_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        for path in [&one, &other] {
            fs::write(path, "bytes").unwrap();
        }
        let was = found(&one);
        assert_ne!(was.origin.storage, Storage::Unknown, "{was:?}");
        assert_eq!(was, found(&one));
        assert_ne!(was.origin.storage, found(&other).origin.storage);
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(&one, "BYTES").unwrap();
        let is = found(&one);
        assert_eq!(was.origin, is.origin);
        assert!(was.changed < is.changed && is.changed <= Some(now()), "{is:?}");
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        let nowhere = Path::new("/nosuch/image");
        assert_eq!(storage(nowhere), Storage::Unknown);
    }
}
