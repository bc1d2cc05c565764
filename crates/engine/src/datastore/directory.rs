//! A datastore that is a directory: one file for each image.
//!
//! `<name>.raw` holds the bytes, `<name>.raw.sterna` the sidecar. How an image is made is in
//! `creation`.
//!
//! An image is removed only if it is the file that is known: by the descriptor of whoever
//! has it open, or by what its sidecar says of it (`removal`). What is neither is kept.
//!
//! Whatever is done begins with a look at the directory's mark, if it has one:
//! another file system may have come, or gone, since the last time (`mark`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use sterna_core::{Bytes, Mark};

use super::error::{failed, sidecar as sidecar_failed};
use super::mark::{self, MarkError};
use super::removal::{Known, Removed, remove_known};
use super::{DatastoreError, FoundImage, FoundSidecar, Space, system};
use crate::image::{FileIdentity, ImageSpec};
use crate::place;
use crate::plain;
use crate::sidecar::slots::{Origin, Record};
use crate::sidecar::{self, Beside, Identity, MAX_NAME};

/// Behind a disk's name: its image.
pub(super) const IMAGE_SUFFIX: &str = ".raw";
/// Behind an image's name: its sidecar.
const SIDECAR_SUFFIX: &str = ".sterna";
/// A directory with fewer entries is listed in a moment: NFS gives a hundred in an answer.
const FEW: usize = 10_000;

#[derive(Clone, Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// What it is known by.
    pub(super) mark: Option<Mark>,
}

impl Directory {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the directory, which must be writable.
    pub(super) fn open(path: &Path) -> Result<Directory, DatastoreError> {
        let metadata = path.metadata().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DatastoreError::Missing(path.into()),
            _ => failed("open", path)(error),
        })?;
        if !metadata.is_dir() {
            let expected = "directory";
            return Err(DatastoreError::Kind { path: path.into(), expected });
        }
        // Only making a file shows that files can be made (read-only mounts,
        // NFS with squashed rights).
        let made = plain::open_directory(path)
            .and_then(|directory| plain::make_in(&directory, 0o600))
            .and_then(|(_, trial)| fs::remove_file(path.join(trial)));
        match made {
            // What is there needs no room: its disks are to be served, and moved away.
            Err(error) if is_no_room(&error) => {
                let path = path.display();
                tracing::warn!(%path, %error, "there is no room for another file");
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let why = system::locked(path).unwrap_or(error);
                return Err(failed("create files in", path)(why));
            }
            made => made.map_err(failed("create files in", path))?,
        }
        Ok(Directory { path: path.into(), mark: None })
    }

    /// Refuses what is at its path now, if that is another directory.
    pub(super) fn check(&self) -> Result<(), DatastoreError> {
        match self.mark {
            Some(mark) => check_mark(&self.path, mark),
            None => Ok(()),
        }
    }

    /// The directory's time of change is now, durably: without that, a file system whose device
    /// hangs takes the change into its cache.
    pub(super) fn touch(&self) {
        let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: omitted, last_modification: now };
        // Whether that is allowed is another matter: it was answered.
        let _ = rustix::fs::utimensat(CWD, &self.path, &times, AtFlags::empty());
        let _ = File::open(&self.path).and_then(|directory| directory.sync_all());
    }

    pub(super) fn space(&self) -> Result<Space, DatastoreError> {
        self.check()?;
        system::space(&self.path).map_err(failed("find the space of", &self.path))
    }

    /// The image called `file`, whether it is there or not.
    pub(super) fn image(&self, file: &str) -> Result<ImageSpec, DatastoreError> {
        const LONGEST: usize = MAX_NAME + IMAGE_SUFFIX.len();
        if file.len() > LONGEST {
            return Err(DatastoreError::LongName { len: file.len(), most: LONGEST });
        }
        if !is_image_name(file) {
            return Err(DatastoreError::Name(file.into()));
        }
        Ok(spec(self.path.join(file)))
    }

    /// The path of `image`, if it is one of this directory.
    pub(super) fn path_of<'a>(&self, image: &'a ImageSpec) -> Option<&'a Path> {
        match image {
            ImageSpec::File { path, .. } if path.parent() == Some(&self.path) => {
                Some(path)
            }
            _ => None,
        }
    }

    /// Takes over a file that is in the directory already.
    pub(super) fn adopt(
        &self,
        file: &str,
        identity: &Identity,
    ) -> Result<ImageSpec, DatastoreError> {
        self.check()?;
        let file = Path::new(file)
            .strip_prefix(&self.path)
            .ok()
            .and_then(Path::to_str)
            .unwrap_or(file);
        let image = self.image(file)?;
        let path = self.path.join(file);
        let metadata = path.symlink_metadata().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DatastoreError::Missing(path.clone()),
            _ => failed("open", &path)(error),
        })?;
        if metadata.is_symlink() {
            return Err(DatastoreError::Link(path));
        }
        if !metadata.is_file() {
            return Err(DatastoreError::Kind { path, expected: "regular file" });
        }
        check_fits_in(&path, identity.size)?;
        let beside = sidecar_path(&path);
        match sidecar::file::read(&beside).map_err(sidecar_failed(path.display())) {
            Ok(found) if found.id != identity.id => {
                return Err(super::occupied(path.display(), &found));
            }
            // One that cannot be read now may be another disk's.
            Err(error) if !error.says_no_sidecar() => return Err(error),
            // A damaged sidecar is replaced: that is what adopting is for.
            _ => {}
        }
        let record = record_of(&path, identity, Origin::Found)?;
        sidecar::file::write_all(&beside, &record)
            .map_err(sidecar_failed(path.display()))?;
        Ok(image)
    }

    /// Makes the sidecar of an image that is there say this, and that Sterna has not made
    /// the image.
    pub(super) fn take_over(
        &self,
        path: &Path,
        identity: &Identity,
    ) -> Result<(), DatastoreError> {
        self.check()?;
        let beside = sidecar_path(path);
        let failed = || sidecar_failed(path.display());
        let said = sidecar::file::read_all(&beside).map_err(failed())?;
        let identity = identity.clone();
        let record = Record { identity, origin: Origin::Found, ..said.record };
        sidecar::file::write_all(&beside, &record).map_err(failed())
    }

    /// An image that was taken over, and says `taken`, says again what it said before; false
    /// if its sidecar has not kept that.
    pub(super) fn give_back(
        &self,
        path: &Path,
        taken: &Identity,
    ) -> Result<bool, DatastoreError> {
        self.check()?;
        let beside = sidecar_path(path);
        let failed = || sidecar_failed(path.display());
        let said = sidecar::file::read_all(&beside).map_err(failed())?;
        let before = sidecar::file::read_before(&beside).map_err(failed())?;
        let same =
            |old: &Record| old.identity.id == taken.id && old.identity.size == taken.size;
        let Some(before) = before.filter(|_| said.record.identity == *taken).filter(same)
        else {
            return Ok(false);
        };
        let record = Record { identity: before.identity, ..said.record };
        sidecar::file::write_all(&beside, &record).map_err(failed())?;
        Ok(true)
    }

    /// The file that has the image's name, if that is surely another one than its sidecar
    /// was made for. Of one that is not there, or has no sidecar, nothing is known.
    pub(super) fn another_file(
        &self,
        path: &Path,
    ) -> Result<Option<Beside>, DatastoreError> {
        self.check()?;
        let said = sidecar::file::read_all(&sidecar_path(path)).ok();
        let was = said.and_then(|said| said.record.beside);
        let is = FileIdentity::at(path).ok().map(|file| file.beside());
        Ok(is.filter(|is| was.is_some_and(|was| was.differs(is))))
    }

    /// Refuses such a file.
    pub(super) fn check_file(&self, path: &Path) -> Result<(), DatastoreError> {
        match self.another_file(path)? {
            Some(_) => Err(DatastoreError::Mismatch {
                place: path.display().to_string(),
                what: "another file has its name, and Sterna does not write to that file"
                    .into(),
                newer: false,
            }),
            None => Ok(()),
        }
    }

    /// Refuses a file that is not surely the one that its sidecar was made for. Of one that is
    /// not there nothing is said.
    pub(super) fn check_is_surely(&self, path: &Path) -> Result<(), DatastoreError> {
        self.check_file(path)?;
        let said = sidecar::file::read_all(&sidecar_path(path))
            .map_err(sidecar_failed(path.display()))?;
        let is = match FileIdentity::at(path) {
            Ok(is) => is.beside(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed("look at", path)(error)),
        };
        match said.record.beside {
            Some(was) if was.is_surely(&is) => Ok(()),
            Some(was) if was.is_rehandled(&is) => {
                Err(DatastoreError::Rehandled(path.into()))
            }
            _ => Err(DatastoreError::Unproven(path.into())),
        }
    }

    /// Removes the image and its sidecar, durably; that it is not there is fine. Whoever
    /// has it open says what it is; else its sidecar has to.
    pub(super) fn remove(
        &self,
        path: &Path,
        held: Option<&FileIdentity>,
    ) -> Result<(), DatastoreError> {
        self.check()?;
        let beside = sidecar_path(path);
        let said = || sidecar::file::read_all(&beside).ok()?.record.beside;
        let known = held.map(|file| Known::File(*file));
        let known = known.or_else(|| said().map(Known::Beside));
        let removed = match known {
            Some(known) => remove_known(path, &known).map_err(failed("remove", path))?,
            None if path.symlink_metadata().is_err() => Removed::Absent,
            None => return Err(DatastoreError::Unproven(path.into())),
        };
        if removed == Removed::Another {
            let is = FileIdentity::at(path).map(|file| file.beside());
            return Err(match (known, is) {
                (Some(Known::Beside(was)), Ok(is)) if was.is_rehandled(&is) => {
                    DatastoreError::Rehandled(path.into())
                }
                (Some(Known::Beside(was)), Ok(is)) if !was.differs(&is) => {
                    DatastoreError::Unproven(path.into())
                }
                _ => DatastoreError::Another(path.into()),
            });
        }
        // The image is gone before its sidecar is, also after a power loss.
        let stays = |error: &dyn std::fmt::Display| {
            DatastoreError::SidecarStays(error.to_string())
        };
        self.sync().map_err(|error| stays(&error))?;
        sidecar::file::remove(&beside).map_err(|error| stays(&error))
    }

    /// The images of the directory: the files that have a sidecar.
    pub(super) fn images(&self) -> Result<Vec<FoundImage>, DatastoreError> {
        self.check()?;
        let mut found = Vec::new();
        let entries = fs::read_dir(&self.path).map_err(failed("list", &self.path))?;
        for entry in entries {
            let entry = entry.map_err(failed("list", &self.path))?;
            let Some(file) = image_of(&entry.file_name()) else { continue };
            let Ok(image) = self.image(&file) else { continue };
            if is_file(&self.path.join(&file)) {
                let identity = sidecar::file::read(&entry.path());
                found.push(FoundImage { file, image, identity });
            }
        }
        found.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(found)
    }

    /// All sidecars that can be read, those of the files `first` before the others. `each` hears
    /// of every answer, also of those that tell of no sidecar.
    ///
    /// If the directory has few entries, it is listed before any sidecar is read: then none is
    /// looked for that is not there. If listing takes long or fails, the sidecars of `first` are
    /// told all the same; and if one cannot be read, all others are.
    pub(super) fn sidecars(
        &self,
        first: &BTreeSet<String>,
        each: &mut dyn FnMut(Option<FoundSidecar>),
    ) -> Result<(), DatastoreError> {
        self.check()?;
        let begun = fs::read_dir(&self.path).and_then(|mut listing| {
            let (names, is_all) = begin_listing(&mut listing, each)?;
            Ok((listing, names, is_all))
        });
        let mut read = Ok(());
        let mut tell = |file: &String| match self.found_sidecar(file) {
            Ok(found) => each(found),
            // It may be any disk's.
            Err(error) => read = Err(error),
        };
        if let Ok((_, names, true)) = &begun {
            first.intersection(names).for_each(&mut tell);
            names.difference(first).for_each(tell);
            return read;
        }
        first.iter().for_each(&mut tell);
        let (listing, names, _) = begun.map_err(failed("list", &self.path))?;
        names.difference(first).for_each(&mut tell);
        for entry in listing {
            let name = entry.map_err(failed("list", &self.path))?.file_name();
            image_of(&name)
                .iter()
                .filter(|file| !first.contains(*file))
                .for_each(&mut tell);
        }
        read
    }

    /// The sidecar of that image file; nothing if there is none, or it says nothing.
    pub(super) fn found_sidecar(
        &self,
        file: &str,
    ) -> Result<Option<FoundSidecar>, DatastoreError> {
        let path = self.path.join(file);
        let said = sidecar::file::read_all(&sidecar_path(&path));
        let Record { identity, beside, .. } =
            match said.map_err(sidecar_failed(path.display())) {
                Ok(said) => said.record,
                Err(error) if error.says_no_sidecar() => return Ok(None),
                Err(error) => return Err(error),
            };
        let has_image = match path.symlink_metadata() {
            Ok(found) => found.is_file(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed("find", &path)(error)),
        };
        Ok(Some(FoundSidecar { file: file.into(), identity, beside, has_image }))
    }

    pub(super) fn check_fits(&self, needed: u64) -> Result<(), DatastoreError> {
        let free = self.space()?.free;
        if needed > free {
            return Err(self.full(free, needed));
        }
        Ok(())
    }

    /// Gives an image that is there all its room, in every place that has none.
    pub(super) fn allocate(&self, path: &Path, size: u64) -> Result<(), DatastoreError> {
        self.check()?;
        let opened = OpenOptions::new().write(true).open(path);
        let file = opened.map_err(failed("open", path))?;
        if !place::is_in_place(&file).map_err(failed("open", path))? {
            return Err(no_promise(path));
        }
        let allocated = place::allocate(&file, size).and_then(|()| file.sync_all());
        allocated.map_err(|error| self.no_room(path, size, error))
    }

    /// Why room could not be had.
    pub(super) fn no_room(
        &self,
        path: &Path,
        needed: u64,
        error: io::Error,
    ) -> DatastoreError {
        match error.raw_os_error() {
            Some(libc::ENOSPC) => {
                let free = self.space().map_or(0, |space| space.free);
                self.full(free, needed)
            }
            Some(libc::EDQUOT) => DatastoreError::Quota {
                place: self.path.display().to_string(),
                needed: Bytes(needed),
            },
            _ => failed("allocate", path)(error),
        }
    }

    fn full(&self, free: u64, needed: u64) -> DatastoreError {
        DatastoreError::Full {
            place: self.path.display().to_string(),
            free: Bytes(free),
            needed: Bytes(needed),
        }
    }

    pub(super) fn sync(&self) -> Result<(), DatastoreError> {
        File::open(&self.path)
            .and_then(|directory| directory.sync_all())
            .map_err(failed("write", &self.path))
    }
}

pub(super) fn no_promise(path: &Path) -> DatastoreError {
    DatastoreError::NoPromise { place: path.display().to_string() }
}

/// Whether all of the image has its room, and keeps it when it is written.
pub(super) fn is_thick(path: &Path, size: u64) -> bool {
    let in_place = || File::open(path).and_then(|file| place::is_in_place(&file));
    allocated(path).is_some_and(|has| has >= size) && in_place().unwrap_or(false)
}

/// Refuses what is at `path`, if it has not this mark.
pub(super) fn check_mark(path: &Path, mark: Mark) -> Result<(), DatastoreError> {
    let what = match mark::read(path) {
        Ok(found) if found == mark => return Ok(()),
        Ok(_) => "the mark there belongs to another datastore".into(),
        Err(MarkError::Io(source)) => {
            return Err(failed("read the mark of", path)(source));
        }
        // A path that leads nowhere leads to no other file system.
        Err(MarkError::Missing) => {
            path.metadata().map_err(failed("find", path))?;
            MarkError::Missing.to_string()
        }
        Err(error) => error.to_string(),
    };
    Err(DatastoreError::Elsewhere { path: path.into(), what })
}

/// What the image `file` of the directory says of itself, if there is one.
pub(super) fn says(directory: &Path, file: &str) -> Option<Identity> {
    let path = directory.join(file);
    let says = sidecar::file::read(&sidecar_path(&path)).ok()?;
    is_file(&path).then_some(says)
}

/// Whether there is a file, and not a link to one.
/// The image file of which a file of that name is the sidecar.
fn image_of(name: &OsStr) -> Option<String> {
    Some(name.to_str()?.strip_suffix(SIDECAR_SUFFIX)?.to_owned())
}

/// The image files that have a sidecar among the first [`FEW`] entries, and whether there are
/// no more entries.
fn begin_listing(
    listing: &mut fs::ReadDir,
    each: &mut dyn FnMut(Option<FoundSidecar>),
) -> io::Result<(BTreeSet<String>, bool)> {
    let mut names = BTreeSet::new();
    for _ in 0..FEW {
        let Some(entry) = listing.next() else { return Ok((names, true)) };
        each(None);
        names.extend(image_of(&entry?.file_name()));
    }
    Ok((names, false))
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// What the sidecar of the image at `path` is to say.
fn record_of(
    path: &Path,
    identity: &Identity,
    origin: Origin,
) -> Result<Record, DatastoreError> {
    let file = FileIdentity::at(path).map_err(failed("look at", path))?;
    Ok(Record { identity: identity.clone(), beside: Some(file.beside()), origin })
}

/// Whether a file of this name may be an image: it is neither hidden, nor elsewhere, nor a
/// sidecar.
pub(super) fn is_image_name(file: &str) -> bool {
    !file.is_empty()
        && !file.starts_with('.')
        && !file.contains(['/', '\0'])
        && !file.ends_with(SIDECAR_SUFFIX)
}

/// The sidecar of the image at `path`.
pub(super) fn sidecar_path(path: &Path) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(SIDECAR_SUFFIX);
    path.into()
}

/// Checks that the file at `path` has `needed` bytes.
pub(super) fn check_fits_in(path: &Path, needed: u64) -> Result<(), DatastoreError> {
    let found = path.symlink_metadata().map_err(failed("open", path))?;
    if found.is_symlink() {
        return Err(DatastoreError::Link(path.into()));
    }
    let len = found.len();
    if len >= needed {
        return Ok(());
    }
    Err(DatastoreError::TooSmall {
        place: path.display().to_string(),
        capacity: Bytes(len),
        needed: Bytes(needed),
    })
}

/// The bytes that a file takes on its medium.
pub(super) fn allocated(path: &Path) -> Option<u64> {
    // Blocks of stat(2) are 512 bytes, whatever the file system's are.
    path.metadata().ok().map(|metadata| metadata.blocks() * 512)
}

/// The name of an image's file.
pub(super) fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

pub(super) fn spec(path: PathBuf) -> ImageSpec {
    ImageSpec::File { path, direct: true }
}
fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
