//! How an image of a directory is made.
//!
//! It is made under another name, with all its space, made durable, given its sidecar, and
//! only then linked to its own name, which fails if that is taken. So an image is there whole
//! or not at all, and no file is ever overwritten. What a crash may leave is the other name
//! (replaced the next time) or a sidecar without an image (of no account).
//!
//! **Allocating takes minutes**, and meanwhile others may put an image and its sidecar there
//! (`cp x.raw x.raw.sterna`). So both names are looked at again before the sidecar is made,
//! and that fails if there is one by then: only the one that was left before, without an
//! image, is replaced. If the image comes after that, our sidecar goes, unless others have
//! written to it.
//!
//! **The other name** is the same each time, so that what a crash left is found. Whoever makes
//! an image has the file locked (`flock`), so that another daemon with this directory does not
//! take it for a leftover.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::directory::{Directory, IMAGE_SUFFIX, no_promise, sidecar_path, spec};
use super::error::{failed, sidecar as sidecar_failed};
use super::{DatastoreError, Provision, system, zeroes};
use crate::image::{FileIdentity, ImageSpec};
use crate::place;
use crate::plain::{self, FRESH_PREFIX};
use crate::sidecar::slots::{Origin, Record};
use crate::sidecar::{self, Identity, SidecarError};

/// An image and its sidecar.
const FILES: u64 = 2;
/// With fewer free bytes it is not for the files alone that there is no room.
const LITTLE: u64 = 1 << 20;

impl Directory {
    pub(super) fn create(
        &self,
        identity: &Identity,
        provision: Provision,
    ) -> Result<ImageSpec, DatastoreError> {
        let created = self.create_with(identity, provision, || {});
        created.map_err(|error| match error.is_out_of_room() && self.lacks_files() {
            true => DatastoreError::NoFiles { place: self.path().display().to_string() },
            false => error,
        })
    }

    /// Whether its file system has room, but not for another file and its sidecar.
    fn lacks_files(&self) -> bool {
        rustix::fs::statvfs(self.path()).is_ok_and(|found| {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            // One that does not count its files says none.
            found.f_files > 0 && found.f_favail < FILES && free > LITTLE
        })
    }

    /// The same; what happens during the allocation is done by `meanwhile`.
    fn create_with(
        &self,
        identity: &Identity,
        provision: Provision,
        meanwhile: impl FnOnce(),
    ) -> Result<ImageSpec, DatastoreError> {
        self.check()?;
        let name = &identity.name;
        let ImageSpec::File { path, .. } =
            self.image(&format!("{name}{IMAGE_SUFFIX}"))?
        else {
            return Err(DatastoreError::Name(name.clone()));
        };
        if path.symlink_metadata().is_ok() {
            return Err(DatastoreError::Exists(path));
        }
        if provision != Provision::Thin {
            self.check_fits(identity.size)?;
        }
        self.check_may_remove(&path)?;
        let left = FileIdentity::at(&sidecar_path(&path)).ok();
        let unfinished = Unfinished::begin(self.path().join(unfinished_name(name)))?;
        let made = self.make(&unfinished, identity.size, provision);
        meanwhile();
        // That may have taken minutes. What is there by now is not ours to tidy up.
        self.check()?;
        let made = made.and_then(|()| unfinished.publish(&path, identity, left));
        // In any case: on success it is the second name of the image.
        let removed = unfinished.remove();
        made?;
        if let Err(error) = removed {
            // What cannot be used is not left, as far as that can be removed.
            let _ = fs::remove_file(&path);
            let _ = sidecar::file::remove(&sidecar_path(&path));
            return Err(failed("remove", &unfinished.path)(error));
        }
        self.sync()?;
        Ok(spec(path))
    }

    /// Refuses to make an image where nothing can be removed: what is made there by and by
    /// would have to stay, the unfinished image among it.
    fn check_may_remove(&self, image: &Path) -> Result<(), DatastoreError> {
        match system::locked(self.path()) {
            Some(why) => Err(failed("create", image)(why)),
            None => Ok(()),
        }
    }

    /// Makes it a file of zeroes, durably.
    fn make(
        &self,
        unfinished: &Unfinished,
        size: u64,
        provision: Provision,
    ) -> Result<(), DatastoreError> {
        let Unfinished { path, file } = unfinished;
        let promised = provision == Provision::Thin
            || place::keep_in_place(file).map_err(failed("create", path))?;
        if !promised {
            return Err(no_promise(path));
        }
        file.set_len(size).map_err(failed("create", path))?;
        if provision != Provision::Thin {
            match place::allocate(file, size) {
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    zeroes::fill(path, size, &mut |_| true)?;
                }
                allocated => {
                    allocated.map_err(|error| self.no_room(path, size, error))?;
                }
            }
        }
        file.sync_all().map_err(failed("create", path))
    }
}

fn unfinished_name(name: &str) -> String {
    format!("{FRESH_PREFIX}{name}")
}

/// An image under its other name.
struct Unfinished {
    path: PathBuf,
    /// It is locked.
    file: File,
}

impl Unfinished {
    /// Begins one, in the place of one that a crash left.
    fn begin(path: PathBuf) -> Result<Unfinished, DatastoreError> {
        // For writing: over NFS nothing is locked otherwise.
        if let Ok(left) = plain::open_ours(&path, true)
            && is_locked(&left)
        {
            return Err(DatastoreError::Exists(path));
        }
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("create", &path))?;
        if is_locked(&file) {
            return Err(DatastoreError::Exists(path));
        }
        Ok(Unfinished { path, file })
    }

    /// Gives the image its sidecar and its name, if both are free but for the sidecar that
    /// was `left` before.
    fn publish(
        &self,
        image: &Path,
        identity: &Identity,
        left: Option<FileIdentity>,
    ) -> Result<(), DatastoreError> {
        let file = FileIdentity::of(&self.file).map_err(failed("look at", &self.path))?;
        if FileIdentity::at(&self.path).is_ok_and(|now| !now.is(&file)) {
            return Err(DatastoreError::Another(self.path.clone()));
        }
        if image.symlink_metadata().is_ok() {
            return Err(DatastoreError::Exists(image.into()));
        }
        let beside = sidecar_path(image);
        match (FileIdentity::at(&beside), left) {
            (Ok(now), Some(left)) if now.is(&left) => {
                fs::remove_file(&beside).map_err(failed("replace", &beside))?;
            }
            (Ok(_), _) => return Err(DatastoreError::Exists(beside)),
            (Err(_), _) => {}
        }
        let (beside_it, identity) = (Some(file.beside()), identity.clone());
        let record = Record { identity, beside: beside_it, origin: Origin::Made };
        sidecar::file::make(&beside, &record).map_err(|error| match &error {
            SidecarError::Io { source, .. }
                if source.kind() == io::ErrorKind::AlreadyExists =>
            {
                DatastoreError::Exists(beside.clone())
            }
            _ => sidecar_failed(beside.display())(error),
        })?;
        fs::hard_link(&self.path, image).map_err(|error| {
            // The first error is the one to tell.
            if sidecar::file::read_all(&beside).is_ok_and(|said| said.record == record) {
                let _ = sidecar::file::remove(&beside);
            }
            match error.kind() {
                io::ErrorKind::AlreadyExists => DatastoreError::Exists(image.into()),
                _ => failed("create", image)(error),
            }
        })
    }

    /// Takes the other name away.
    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Locks a file that is being made, or says that somebody else has. Where nothing can be
/// locked, nobody has.
fn is_locked(file: &File) -> bool {
    let locked = flock(file, FlockOperation::NonBlockingLockExclusive);
    locked == Err(rustix::io::Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use sterna_core::DiskId;

    use super::*;
    use crate::sidecar::Role;

    fn disk(id: u128) -> Identity {
        let (id, name) = (DiskId(id), "a".to_owned());
        Identity { id, name, size: 1 << 20, generation: 1, role: Role::Partial }
    }

    /// Makes the disk 1 while somebody does something in its directory; gives what comes of
    /// that, and the directory.
    fn made_while(
        meanwhile: impl FnOnce(&Path),
    ) -> (Result<ImageSpec, DatastoreError>, tempfile::TempDir) {
        let at = tempfile::tempdir().unwrap();
        let directory = Directory::open(at.path()).unwrap();
        let made =
            directory.create_with(&disk(1), Provision::Thick, || meanwhile(at.path()));
        (made, at)
    }

    fn put_sidecar(at: &Path) {
        let record = Record { identity: disk(2), beside: None, origin: Origin::Unknown };
        sidecar::file::make(&at.join("a.raw.sterna"), &record).unwrap();
    }

    fn says(at: &Path) -> Identity {
        sidecar::file::read(&at.join("a.raw.sterna")).unwrap()
    }

    fn names(at: &Path) -> Vec<String> {
        let entries = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> =
            entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_image_or_a_sidecar_that_comes_during_the_allocation_is_left_alone() {
        let (made, at) = made_while(|at| {
            fs::write(at.join("a.raw"), "theirs").unwrap();
            put_sidecar(at);
        });
        assert!(matches!(made, Err(DatastoreError::Exists(_))), "{made:?}");
        assert_eq!((says(at.path()), names(at.path()).len()), (disk(2), 2));
        assert_eq!(fs::read(at.path().join("a.raw")).unwrap(), b"theirs");
        let (made, at) = made_while(put_sidecar);
        assert!(matches!(made, Err(DatastoreError::Exists(_))), "{made:?}");
        assert_eq!(
            (says(at.path()), names(at.path())),
            (disk(2), vec!["a.raw.sterna".into()])
        );
    }

    #[test]
    fn what_a_crash_left_is_replaced() {
        let at = tempfile::tempdir().unwrap();
        let directory = Directory::open(at.path()).unwrap();
        put_sidecar(at.path());
        fs::write(at.path().join(unfinished_name("a")), "a part").unwrap();
        directory.create(&disk(1), Provision::Thin).unwrap();
        assert_eq!(says(at.path()), disk(1));
        assert_eq!(names(at.path()), ["a.raw", "a.raw.sterna"]);
    }

    #[test]
    fn an_image_that_somebody_else_is_making_is_left_alone() {
        let (made, at) = made_while(|at| {
            let other = Directory::open(at).unwrap();
            let refused = other.create(&disk(2), Provision::Thin);
            assert!(matches!(refused, Err(DatastoreError::Exists(_))), "{refused:?}");
        });
        made.unwrap();
        assert_eq!(says(at.path()), disk(1));
        // Nor is another file taken for the one that was made.
        let (made, at) = made_while(|at| {
            let other = at.join(unfinished_name("a"));
            fs::remove_file(&other).unwrap();
            fs::write(&other, "another").unwrap();
        });
        assert!(matches!(made, Err(DatastoreError::Another(_))), "{made:?}");
        assert!(!names(at.path()).contains(&"a.raw".into()));
    }
}
