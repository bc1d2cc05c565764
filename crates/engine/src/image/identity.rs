//! Which file a name leads to, and whether that is the file that is meant.
//!
//! A path says nothing of what is there: while an image is served, somebody may remove
//! it, put another file in its place, or shorten it. Whoever holds a descriptor has the
//! file; only the two together say that the file has its name still. So nothing is
//! switched over to, and nothing is removed, by a path alone: the descriptor, or what
//! the sidecar has kept of the file ([`Beside`]), and the path must mean one file.
//!
//! A file is known by its file system, its number there, and when it was made: numbers
//! are given again once a file is gone. Some file systems do not say when a file was
//! made; then its handle has to do (`file_handle`), or else the number. The number of a file
//! that is open is not given again; once nobody has it open, the number alone proves nothing
//! ([`FileIdentity::is_lasting`]). The number of the file system is another one after a
//! reboot, so it is not kept.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, SeekFrom, Statx, StatxFlags, open, seek, statx,
};
use sterna_core::Bytes;

use super::{file_handle, writers};
use crate::ground::Ground;
use crate::io::Stored;
use crate::sidecar::Beside;

const NANOS: u64 = 1_000_000_000;

/// What a file is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: (u32, u32),
    beside: Beside,
}

impl FileIdentity {
    /// The file behind a descriptor.
    pub fn of(file: impl AsFd) -> io::Result<FileIdentity> {
        Ok(FileIdentity::from(&look_at(&file)?).with_handle(&file))
    }

    /// The file that has this name; a link is a file of its own.
    pub fn at(path: &Path) -> io::Result<FileIdentity> {
        let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, asked())?;
        match FileIdentity::from(&found) {
            dated if dated.is_lasting() => Ok(dated),
            _ => FileIdentity::of(open_name(path)?),
        }
    }

    /// The same, with the file's handle where its file system does not say when it was made.
    pub(super) fn with_handle(mut self, file: impl AsFd) -> FileIdentity {
        if !self.is_lasting() {
            self.beside.made = file_handle::mark_of(file);
        }
        self
    }

    /// Whether it proves which file it is even if nobody has had that open meanwhile.
    pub fn is_lasting(&self) -> bool {
        self.beside.made != 0
    }

    /// Whether both are one file, as far as that is known.
    pub fn is(&self, other: &FileIdentity) -> bool {
        self.device == other.device && self.beside.fits(&other.beside)
    }

    /// What may be kept of it.
    pub fn beside(&self) -> Beside {
        self.beside
    }
}

impl From<&Statx> for FileIdentity {
    fn from(found: &Statx) -> FileIdentity {
        let says = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        let made = u64::try_from(found.stx_btime.tv_sec)
            .ok()
            .filter(|_| says)
            .and_then(|seconds| seconds.checked_mul(NANOS))
            .map_or(0, |made| made.saturating_add(found.stx_btime.tv_nsec.into()));
        FileIdentity {
            device: (found.stx_dev_major, found.stx_dev_minor),
            beside: Beside { number: found.stx_ino, made },
        }
    }
}

/// What has this name, a link as well: to look at, not to read.
pub(super) fn open_name(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

fn asked() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::BTIME
}

/// Where a file is on a server, it is what the server says of it now: what is remembered
/// here may be older than what somebody has done to it.
fn look_at(file: impl AsFd) -> io::Result<Statx> {
    Ok(statx(file, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC, asked())?)
}

/// What has become of an image that is held open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Astray {
    /// It was removed.
    Nameless,
    /// Its name is gone, and it has another one.
    Renamed,
    /// Another file has its name.
    Replaced,
    /// It is shorter than its disk, or was since it was opened: what was behind its end is
    /// lost, also if it has been lengthened since.
    Shortened {
        /// The shortest that it was.
        length: u64,
        /// Its disk's size.
        size: u64,
    },
    /// It does not let itself be looked at.
    Unseen(i32),
}

impl fmt::Display for Astray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Astray::Nameless => f.write_str("the file was removed"),
            Astray::Renamed => f.write_str("the file, or its directory, was renamed"),
            Astray::Replaced => f.write_str("another file was put in its place"),
            Astray::Shortened { length, size } => write!(
                f,
                "the image was shortened: it had {} and the disk needs {}",
                Bytes(length),
                Bytes(size)
            ),
            Astray::Unseen(errno) => {
                write!(
                    f,
                    "cannot look at the file: {}",
                    io::Error::from_raw_os_error(errno)
                )
            }
        }
    }
}

/// The file of an image that is open, and the name by which it was opened.
#[derive(Debug)]
pub struct HeldFile {
    path: PathBuf,
    file: Arc<Stored>,
    identity: FileIdentity,
    ground: Ground,
    /// The least length that was seen.
    shortest: AtomicU64,
}

impl HeldFile {
    /// A file that was opened by this path.
    pub(super) fn new(path: &Path, file: Arc<Stored>) -> io::Result<HeldFile> {
        let (identity, ground) = (FileIdentity::of(&*file)?, Ground::of(&*file)?);
        let shortest = AtomicU64::new(u64::MAX);
        Ok(HeldFile { path: path.into(), file, identity, ground, shortest })
    }

    /// By which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is known by.
    pub fn identity(&self) -> &FileIdentity {
        &self.identity
    }

    /// What its bytes lie on, as that was when it was opened.
    pub fn ground(&self) -> &Ground {
        &self.ground
    }

    /// Whether it can be known of it, when it is opened, who else has it open for writing.
    pub fn tells_writers(&self) -> bool {
        writers::are_told(&*self.file)
    }

    /// The file itself.
    pub fn file(&self) -> impl AsRawFd + '_ {
        self.file.as_fd()
    }

    /// Whether the name leads to the file still, and the file has all bytes of a disk of
    /// this size. Asks the file system twice, so it may hang with it.
    ///
    /// # Errors
    ///
    /// What has become of it; the worst of it, if several things have.
    pub fn check(&self, size: u64) -> Result<(), Astray> {
        let found = look_at(&*self.file).map_err(unseen)?;
        let is_file =
            FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile;
        let length = match is_file {
            true => found.stx_size,
            false => {
                seek(&*self.file, SeekFrom::End(0)).map_err(|it| unseen(it.into()))?
            }
        };
        self.is_short(length);
        let length = self.shortest.load(Ordering::Relaxed);
        if length < size {
            return Err(Astray::Shortened { length, size });
        }
        // Links lead to devices, and never to images that are files.
        let follow = if is_file { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
        let flags = follow | AtFlags::STATX_FORCE_SYNC;
        let named = match statx(CWD, &self.path, flags, asked()) {
            Ok(named) => named,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {
                return Err(match self.name_now() {
                    None => Astray::Nameless,
                    Some(_) => Astray::Renamed,
                });
            }
            Err(error) => return Err(unseen(error.into())),
        };
        let device = |of: &Statx| (of.stx_rdev_major, of.stx_rdev_minor);
        let is_it = match is_file {
            true => FileIdentity::from(&named).is(&self.identity),
            false => device(&named) == device(&found),
        };
        match (is_it, found.stx_nlink) {
            (true, 0) => Err(Astray::Nameless),
            (true, _) => Ok(()),
            (false, _) => Err(Astray::Replaced),
        }
    }

    /// Whether the file is there, and its name leads to none or to another one. May hang
    /// with its file system.
    pub fn has_another_name(&self) -> bool {
        match self.check(0) {
            Err(Astray::Renamed) => true,
            Err(Astray::Replaced) => self.name_now().is_some(),
            _ => false,
        }
    }

    /// The name that the kernel knows of the file now, if it leads to the file. A file that was
    /// removed on NFS has one that goes with the last descriptor.
    fn name_now(&self) -> Option<PathBuf> {
        let file = self.file.as_fd().as_raw_fd();
        let name = std::fs::read_link(format!("/proc/self/fd/{file}")).ok()?;
        let goes_soon = name.file_name()?.as_encoded_bytes().starts_with(b".nfs");
        let is_it = FileIdentity::at(&name).is_ok_and(|found| found.is(&self.identity));
        (is_it && !goes_soon).then_some(name)
    }

    /// It has been seen with this length.
    pub(super) fn is_short(&self, length: u64) {
        self.shortest.fetch_min(length, Ordering::Relaxed);
    }

    /// Makes a shortened file as long as a disk of this size, with zeroes: for a copy of
    /// which all is going to be compared. A device that is as long again is well, too.
    ///
    /// # Errors
    ///
    /// What the file system says; of a device that is too short, how long it is.
    pub fn lengthen(&self, size: u64) -> io::Result<()> {
        let found = look_at(&*self.file)?;
        let is_file =
            FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile;
        if !is_file {
            let length = seek(&*self.file, SeekFrom::End(0))?;
            if length < size {
                let (has, needs) = (Bytes(length), Bytes(size));
                return Err(io::Error::other(format!(
                    "the device has {has} now, and the disk needs {needs}"
                )));
            }
        } else if found.stx_size < size {
            rustix::fs::ftruncate(&*self.file, size)?;
        }
        self.shortest.store(u64::MAX, Ordering::Relaxed);
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unseen(error: io::Error) -> Astray {
    Astray::Unseen(error.raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::symlink;

    use super::*;

    const SIZE: u64 = 4096;

    /// A file of a directory that is held.
    fn held(directory: &Path) -> HeldFile {
        let path = directory.join("db.raw");
        fs::write(&path, [1; SIZE as usize]).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        HeldFile::new(&path, Arc::new(Stored::new(file, &Arc::default(), true))).unwrap()
    }

    #[test]
    fn a_file_has_its_name_until_it_is_renamed_and_again_when_it_is_back() {
        let directory = tempfile::tempdir().unwrap();
        let held = held(directory.path());
        assert_eq!(held.check(SIZE), Ok(()));
        let away = directory.path().join("away");
        fs::rename(held.path(), &away).unwrap();
        assert_eq!(held.check(SIZE), Err(Astray::Renamed));
        assert!(held.has_another_name());
        fs::rename(&away, held.path()).unwrap();
        assert_eq!(held.check(SIZE), Ok(()));
        fs::remove_file(held.path()).unwrap();
        assert_eq!(held.check(SIZE), Err(Astray::Nameless));
        assert!(!held.has_another_name());
    }

    #[test]
    fn another_file_of_that_name_is_not_it_nor_is_a_link_to_it() {
        let directory = tempfile::tempdir().unwrap();
        let held = held(directory.path());
        let away = directory.path().join("away");
        fs::rename(held.path(), &away).unwrap();
        fs::write(held.path(), [1; SIZE as usize]).unwrap();
        assert_eq!(held.check(SIZE), Err(Astray::Replaced));
        fs::remove_file(held.path()).unwrap();
        symlink(&away, held.path()).unwrap();
        assert_eq!(held.check(SIZE), Err(Astray::Replaced));
    }

    #[test]
    fn a_file_that_was_shortened_stays_so_however_long_it_gets() {
        let directory = tempfile::tempdir().unwrap();
        let held = held(directory.path());
        let change = |length| {
            let file = OpenOptions::new().write(true).open(held.path()).unwrap();
            file.set_len(length).unwrap();
        };
        let shortened = Err(Astray::Shortened { length: 512, size: SIZE });
        change(512);
        assert_eq!(held.check(SIZE), shortened);
        change(2 * SIZE);
        assert_eq!(held.check(SIZE), shortened);
        assert_eq!(held.check(512), Ok(()));
        change(512);
        held.lengthen(SIZE).unwrap();
        assert_eq!(held.check(SIZE), Ok(()));
        assert_eq!(fs::read(held.path()).unwrap()[512..], [0; SIZE as usize - 512]);
    }
}
