//! What the bytes of an image or a device lie on, on this machine: which stretches of which
//! devices and files.
//!
//! One place has many names: a device and its partitions, two loop devices over one file
//! (or over two of its names), a second node of a device. Two grounds that share bytes are
//! one place; to copy from one to the other would destroy the disk. Names do not count here,
//! only the numbers by which the kernel knows devices and files.
//!
//! Partitions and loop devices say which stretch they have, so two that lie side by side
//! share nothing. What has its bytes somewhere in others (a volume of several devices, a
//! file in a file system) does not say where: it meets whoever has those others plainly, and
//! not its like. So two logical volumes on one disk are two places, and the disk itself is
//! the same place as each of them.
//!
//! Behind other servers, other machines, and file systems in user space nothing is seen, nor
//! below a file system of several devices (btrfs).

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, fstat};

/// Stretches below a device, at most: more than anybody stacks.
const STRETCHES_MAX: usize = 64;

/// The kernel counts devices in sectors of this size, whatever theirs is.
const SECTOR: u64 = 512;

/// Of a loop device: which file it is over (`linux/loop.h`). The answer is 232 bytes: the
/// file's device, its number, its number as a device, where the loop device begins in it,
/// and what does not matter here.
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
const LOOP_STATUS_WORDS: usize = 29;

/// What can have bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    /// A block device, by its number.
    Device(u64),
    /// A file: its file system's device, and its number there.
    File(u64, u64),
}

#[derive(Clone, Debug)]
struct Stretch {
    thing: Thing,
    bytes: Range<u64>,
    /// All of it belongs to the ground; else some of it, nobody says which.
    is_plain: bool,
    /// What people call the thing.
    name: String,
}

/// What some bytes lie on.
#[derive(Clone, Debug, Default)]
pub struct Ground(Vec<Stretch>);

impl Ground {
    /// Of a file or device that is open.
    pub fn of(file: impl AsFd) -> io::Result<Ground> {
        let found = fstat(file)?;
        Ok(match FileType::from_raw_mode(found.st_mode) {
            FileType::BlockDevice => Ground::of_device(found.st_rdev),
            _ => {
                let name = "its file".to_owned();
                Ground::built(Thing::File(found.st_dev, found.st_ino), name)
            }
        })
    }

    /// Of the block device at a path; nothing if there is none. Asks the file system of the
    /// path, which may hang.
    pub fn at(device: &Path) -> Option<Ground> {
        let found = device.metadata().ok()?;
        let kind = FileType::from_raw_mode(found.mode());
        (kind == FileType::BlockDevice).then(|| Ground::of_device(found.rdev()))
    }

    fn of_device(number: u64) -> Ground {
        Ground::built(Thing::Device(number), name_of(number))
    }

    fn built(thing: Thing, name: String) -> Ground {
        let mut ground = Ground::default();
        ground.lay(Stretch { thing, bytes: 0..u64::MAX, is_plain: true, name });
        ground
    }

    /// What both lie on, if they share bytes.
    pub fn shares(&self, other: &Ground) -> Option<Shared> {
        let met = |mine: &Stretch| {
            let theirs = other.0.iter().find(|it| mine.meets(it))?;
            Some(Shared { name: mine.name.clone(), is_within: !theirs.is_plain })
        };
        let mut all = self.0.iter().filter_map(met);
        let first = all.next()?;
        // What both have plainly says more.
        Some(
            std::iter::once(first.clone())
                .chain(all)
                .find(|it| !it.is_within)
                .unwrap_or(first),
        )
    }

    /// Whether it has bytes of this file plainly.
    pub(crate) fn is_on_file(&self, device: u64, number: u64) -> bool {
        self.is_plainly_on(Thing::File(device, number))
    }

    /// The same of a block device.
    pub(crate) fn is_on_device(&self, number: u64) -> bool {
        self.is_plainly_on(Thing::Device(number))
    }

    /// Whether a file may be one that it has bytes of, by its number alone.
    pub(crate) fn has_file_number(&self, number: u64) -> bool {
        self.0.iter().any(|it| matches!(it.thing, Thing::File(_, its) if its == number))
    }

    /// Whether it has bytes of a block device plainly.
    pub(crate) fn has_device(&self) -> bool {
        let is_one = |it: &Stretch| matches!(it.thing, Thing::Device(_));
        self.0.iter().any(|it| it.is_plain && is_one(it))
    }

    fn is_plainly_on(&self, thing: Thing) -> bool {
        self.0.iter().any(|it| it.is_plain && it.thing == thing)
    }

    /// Adds a stretch, and what it lies on.
    fn lay(&mut self, stretch: Stretch) {
        if self.0.len() >= STRETCHES_MAX {
            return;
        }
        self.0.push(stretch.clone());
        let Stretch { thing, bytes, is_plain, .. } = stretch;
        let number = match thing {
            Thing::Device(number) => number,
            // Somewhere in its file system.
            Thing::File(device, _) => return self.lay_somewhere(device),
        };
        let Some(device) = sysfs(number) else { return };
        // A stretch is no longer than its device.
        let size = counted(&device.join("size")).map_or(u64::MAX, |it| it * SECTOR);
        let bytes = bytes.start..bytes.end.min(size);
        if device.join("partition").exists() {
            let begin = counted(&device.join("start")).unwrap_or(0) * SECTOR;
            if let Some(whole) = device.parent().and_then(number_of) {
                let (thing, bytes) = (Thing::Device(whole), shifted(&bytes, begin));
                self.lay(Stretch { thing, bytes, is_plain, name: name_of(whole) });
            }
        }
        if let Some((thing, begin, name)) = file_of_loop(&device) {
            self.lay(Stretch { thing, bytes: shifted(&bytes, begin), is_plain, name });
        }
        for below in fs::read_dir(device.join("slaves")).into_iter().flatten() {
            let below = below.ok().and_then(|it| fs::canonicalize(it.path()).ok());
            if let Some(number) = below.as_deref().and_then(number_of) {
                self.lay_somewhere(number);
            }
        }
    }

    /// Some of a block device, if it is one.
    fn lay_somewhere(&mut self, device: u64) {
        if sysfs(device).is_none() {
            return;
        }
        let (thing, bytes) = (Thing::Device(device), 0..u64::MAX);
        self.lay(Stretch { thing, bytes, is_plain: false, name: name_of(device) });
    }
}

impl Stretch {
    fn meets(&self, other: &Stretch) -> bool {
        self.thing == other.thing
            && (self.is_plain || other.is_plain)
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
    }
}

/// What two grounds share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    name: String,
    /// The other one is somewhere within, such as in a file system there.
    pub is_within: bool,
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A stretch that begins so far into what is below.
fn shifted(bytes: &Range<u64>, begin: u64) -> Range<u64> {
    bytes.start.saturating_add(begin)..bytes.end.saturating_add(begin)
}

/// What the kernel says of a block device.
fn sysfs(number: u64) -> Option<PathBuf> {
    let (major, minor) = (libc::major(number), libc::minor(number));
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()
}

/// The number of the device of which the kernel speaks there.
fn number_of(device: &Path) -> Option<u64> {
    let text = fs::read_to_string(device.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
}

fn name_of(number: u64) -> String {
    let found = sysfs(number);
    let name = found.as_deref().and_then(Path::file_name);
    match name.map(|it| it.to_string_lossy().replace('!', "/")) {
        Some(name) => format!("/dev/{name}"),
        None => format!("device {}:{}", libc::major(number), libc::minor(number)),
    }
}

fn counted(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// What a loop device is over, where it begins there, and what that is called.
fn file_of_loop(device: &Path) -> Option<(Thing, u64, String)> {
    let named = fs::read_to_string(device.join("loop/backing_file")).ok()?;
    let named = named.trim_end_matches('\n').to_owned();
    if let Some((thing, begin)) = status_of_loop(device) {
        return Some((thing, begin, named));
    }
    // It has no node in `/dev` that may be opened: then by the name of its file.
    let found = fs::metadata(&named).ok()?;
    let thing = match FileType::from_raw_mode(found.mode()) {
        FileType::BlockDevice => Thing::Device(found.rdev()),
        _ => Thing::File(found.dev(), found.ino()),
    };
    Some((thing, counted(&device.join("loop/offset")).unwrap_or(0), named))
}

/// The same of the loop device itself, which has its file open: whatever the file is
/// called by now.
fn status_of_loop(device: &Path) -> Option<(Thing, u64)> {
    let node = Path::new("/dev").join(device.file_name()?);
    let file = File::open(node).ok()?;
    if Some(file.metadata().ok()?.rdev()) != number_of(device) {
        return None;
    }
    let mut status = [0_u64; LOOP_STATUS_WORDS];
    // SAFETY: the kernel writes 232 bytes, as many as there are.
    let asked =
        unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64, status.as_mut_ptr()) };
    if asked < 0 {
        return None;
    }
    let [on, number, as_device, begin, ..] = status;
    let thing = match as_device {
        0 => Thing::File(on, number),
        device => Thing::Device(device),
    };
    Some((thing, begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lies_on(stretches: &[(Thing, Range<u64>, bool)]) -> Ground {
        let stretch = |(thing, bytes, is_plain): &(Thing, Range<u64>, bool)| Stretch {
            thing: *thing,
            bytes: bytes.clone(),
            is_plain: *is_plain,
            name: format!("{thing:?}"),
        };
        Ground(stretches.iter().map(stretch).collect())
    }

    const DISK: Thing = Thing::Device(8);
    const FILE: Thing = Thing::File(8, 77);

    fn partition(number: u64, bytes: Range<u64>) -> Ground {
        let own = (Thing::Device(number), 0..bytes.end - bytes.start, true);
        lies_on(&[own, (DISK, bytes, true)])
    }

    #[test]
    fn a_disk_is_each_of_its_partitions_and_these_are_not_each_other() {
        let (one, two) = (partition(9, 10..20), partition(10, 20..30));
        let whole = lies_on(&[(DISK, 0..30, true)]);
        assert!(one.shares(&whole).is_some() && whole.shares(&two).is_some());
        assert_eq!(one.shares(&two), None);
        assert_eq!(two.shares(&one), None);
        let again = partition(11, 15..25);
        assert!(again.shares(&one).is_some() && again.shares(&two).is_some());
    }

    #[test]
    fn what_lies_somewhere_on_a_disk_is_the_disk_and_not_its_like() {
        let whole = lies_on(&[(DISK, 0..30, true)]);
        let volume = |n| lies_on(&[(Thing::Device(n), 0..9, true), (DISK, 0..30, false)]);
        assert_eq!(volume(20).shares(&volume(21)), None);
        assert!(whole.shares(&volume(20)).unwrap().is_within);
        assert!(!volume(20).shares(&whole).unwrap().is_within);
        // So is a file in the disk's file system.
        let file = lies_on(&[(FILE, 0..9, true), (DISK, 0..u64::MAX, false)]);
        assert!(whole.shares(&file).unwrap().is_within);
        assert_eq!(file.shares(&volume(20)), None);
    }

    #[test]
    fn a_file_has_one_ground_by_all_of_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let [path, link, other] =
            ["db", "link", "other"].map(|name| directory.path().join(name));
        fs::write(&path, "db").unwrap();
        fs::write(&other, "other").unwrap();
        fs::hard_link(&path, &link).unwrap();
        let ground = |path: &Path| Ground::of(File::open(path).unwrap()).unwrap();
        assert!(ground(&path).shares(&ground(&link)).is_some());
        assert_eq!(ground(&path).shares(&ground(&other)), None);
        let found = fs::metadata(&link).unwrap();
        assert!(ground(&path).is_on_file(found.dev(), found.ino()));
        assert!(!ground(&other).is_on_file(found.dev(), found.ino()));
    }

    #[test]
    fn only_a_device_has_a_ground_by_its_path() {
        assert!(Ground::at(Path::new("/tmp")).is_none());
        assert!(Ground::at(Path::new("/dev/null")).is_none());
        assert!(Ground::at(Path::new("/dev/nosuch")).is_none());
    }
}
