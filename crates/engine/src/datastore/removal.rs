//! Removing a file that is known, and no other that has got its name.
//!
//! The system removes names, not files: between a look at a name and its removal another
//! file can get it. So the file is first given a name that nobody else knows, looked at
//! again under that name, and only then removed; one that turns out to be another gets its
//! name back.
//!
//! **What remains.** Between the renaming and the second look, and while a name is given
//! back, the other file is not to be found by its name; if that has been taken once more
//! meanwhile, the file stays under the private one, and the error says so. A crash between
//! the renaming and the removal leaves the file under the private name, which begins with
//! [`REMOVED_PREFIX`]: it takes room until somebody removes it. Whoever writes to the
//! private name on purpose is not kept from it.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, RenameFlags, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::image::FileIdentity;
use crate::plain;
use crate::sidecar::Beside;

/// How the names begin that files have while they are removed. No image's does.
const REMOVED_PREFIX: &str = ".removed-";

/// What a file that is to be removed is known by.
#[derive(Clone, Copy, Debug)]
pub enum Known {
    /// By a descriptor that is held, or was until a moment ago.
    File(FileIdentity),
    /// By what its sidecar has kept. The number of a file alone proves nothing: another file may
    /// have got it.
    Beside(Beside),
}

impl Known {
    /// Whether this is the file.
    pub fn is(&self, found: &FileIdentity) -> bool {
        match self {
            Known::File(file) => file.is(found),
            Known::Beside(beside) => beside.is_surely(&found.beside()),
        }
    }
}

/// What has become of a file that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It is gone.
    Gone,
    /// It was not there.
    Absent,
    /// Another file has its name: nothing was done.
    Another,
}

/// Removes the file at `path` if it is the one that is known.
pub fn remove_known(path: &Path, known: &Known) -> io::Result<Removed> {
    let removed = remove_known_if(path, known, || true)?;
    // Nobody was asked who could say no.
    Ok(removed.unwrap_or(Removed::Another))
}

/// The same, if `may` says so at a moment at which nobody can come by the file's name any
/// more; nothing if that says no, and the file has its name back.
pub(super) fn remove_known_if(
    path: &Path,
    known: &Known,
    may: impl FnOnce() -> bool,
) -> io::Result<Option<Removed>> {
    let directory = plain::directory_of(path)?;
    match FileIdentity::at(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Some(Removed::Absent));
        }
        Err(error) => return Err(error),
        Ok(found) if !known.is(&found) => return Ok(Some(Removed::Another)),
        Ok(_) => {}
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let private = plain::fresh_name(REMOVED_PREFIX);
    renameat(&directory, name, &directory, &private)?;
    let aside = path.with_file_name(&private);
    let found = FileIdentity::at(&aside);
    if !found.as_ref().is_ok_and(|found| known.is(found)) {
        give_back(&directory, &private, name.as_ref(), &aside)?;
        return found.map(|_| Some(Removed::Another));
    }
    if !may() {
        give_back(&directory, &private, name.as_ref(), &aside)?;
        return Ok(None);
    }
    unlinkat(&directory, &private, AtFlags::empty())?;
    Ok(Some(Removed::Gone))
}

/// Gives another file its name back.
fn give_back(
    directory: &File,
    private: &str,
    name: &Path,
    aside: &Path,
) -> io::Result<()> {
    match renameat_with(directory, private, directory, name, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // A file system that does not know how: a name that is free is taken.
        Err(Errno::INVAL | Errno::NOSYS) if name_is_free(directory, name) => {
            Ok(renameat(directory, private, directory, name)?)
        }
        Err(error) => {
            let aside = aside.display();
            Err(io::Error::other(format!(
                "another file had the image's name; Sterna could not give that file its \
                 name back, and keeps it as {aside}: {error}"
            )))
        }
    }
}

fn name_is_free(directory: &File, name: &Path) -> bool {
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    matches!(found, Err(Errno::NOENT))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_removed_once_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db.raw");
        fs::write(&path, "bytes").unwrap();
        let known = Known::File(FileIdentity::at(&path).unwrap());
        assert_eq!(remove_known(&path, &known).unwrap(), Removed::Gone);
        assert_eq!(remove_known(&path, &known).unwrap(), Removed::Absent);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn another_file_stays_by_whatever_the_one_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db.raw");
        fs::write(&path, "bytes").unwrap();
        let known = FileIdentity::at(&path).unwrap();
        fs::rename(&path, directory.path().join("away")).unwrap();
        fs::write(&path, "another").unwrap();
        for known in [Known::File(known), Known::Beside(known.beside())] {
            assert_eq!(remove_known(&path, &known).unwrap(), Removed::Another);
        }
        assert_eq!(fs::read(&path).unwrap(), b"another");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_has_its_name_back_if_it_may_not_go_after_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db.raw");
        fs::write(&path, "bytes").unwrap();
        let known = Known::File(FileIdentity::at(&path).unwrap());
        let may_not = || {
            assert!(!path.exists(), "nobody comes by its name");
            false
        };
        assert_eq!(remove_known_if(&path, &known, may_not).unwrap(), None);
        assert_eq!(fs::read(&path).unwrap(), b"bytes");
        let gone = remove_known_if(&path, &known, || true).unwrap();
        assert_eq!(gone, Some(Removed::Gone));
    }

    #[test]
    fn a_name_is_given_back_unless_it_was_taken_again() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let held = plain::open_directory(directory.path()).unwrap();
        let back = || give_back(&held, "private", "db.raw".as_ref(), &at("private"));
        fs::write(at("private"), "another").unwrap();
        back().unwrap();
        assert_eq!(fs::read(at("db.raw")).unwrap(), b"another");
        fs::write(at("private"), "one more").unwrap();
        assert!(back().unwrap_err().to_string().contains("private"));
        assert_eq!(fs::read(at("db.raw")).unwrap(), b"another");
        assert_eq!(fs::read(at("private")).unwrap(), b"one more");
    }
}
