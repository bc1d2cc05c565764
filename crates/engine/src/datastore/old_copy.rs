//! Old copies in a directory: what is there, and the removal of a file that nobody has open.
//!
//! Whoever asks for the removal has looked at the file, and has decided that it may go. It
//! goes only if it still is as it was then, and if no program has it open: on a file system
//! of this machine a lease says so, also of readers ([`Lease`]). Elsewhere the locks of QEMU
//! and Sterna are looked for, and the open files of other programs on this machine; what a
//! program on another machine does without locks is not seen there.
//!
//! **A crash** between the steps leaves the file under its name or under a private one
//! (`removal`), or a sidecar without an image, which is of no account.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::DatastoreError;
use super::directory::{Directory, is_image_name, sidecar_path};
use super::error::{failed, sidecar as sidecar_failed};
use super::removal::{Known, Removed, remove_known_if};
use crate::ground::Ground;
use crate::image::{FoundFile, Lease, Leased, is_used, opened_by_others};
use crate::sidecar;

/// Whoever has come by the file's name just before it was changed has opened the file by
/// then: that takes microseconds.
const ON_ITS_WAY: Duration = Duration::from_millis(5);

/// What has become of an old copy that was to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OldCopy {
    /// It is gone.
    Gone,
    /// It was not there.
    Absent,
    /// It is not what it was when somebody looked at it.
    Changed,
    /// A program has it open; its name, if that is known.
    Opened(Option<String>),
}

/// How it is known that nobody has a file open.
enum Unopened {
    Leased(Lease),
    Looked(File),
}

impl Unopened {
    /// Whether that holds, and the file is as it was.
    fn holds(&self, found: &FoundFile) -> bool {
        let (holds, file) = match self {
            Unopened::Leased(lease) => (lease.holds(), lease.file()),
            Unopened::Looked(file) => (is_used(file) == Ok(false), file),
        };
        holds && FoundFile::of(file).is_ok_and(|now| now == *found)
    }
}

impl Directory {
    /// What there is beside what Sterna has made for itself, by name, and how many things
    /// more than `most`.
    pub(super) fn files(
        &self,
        most: usize,
    ) -> Result<(Vec<(String, FoundFile)>, u64), DatastoreError> {
        self.check()?;
        let entries = fs::read_dir(self.path()).map_err(failed("list", self.path()))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed("list", self.path()))?;
            names.extend(entry.file_name().to_str().map(str::to_owned));
        }
        names.retain(|name| is_image_name(name));
        names.sort();
        let mut files = Vec::new();
        let mut more = 0;
        for name in names {
            if files.len() == most {
                more += 1;
                continue;
            }
            // One that has gone meanwhile is not there.
            let Ok(found) = FoundFile::at(&self.path().join(&name)) else { continue };
            if !found.is_directory {
                files.push((name, found));
            }
        }
        Ok((files, more))
    }

    /// Removes the file with its sidecar, if it is as it was `found`, and nobody has it open.
    pub(super) fn remove_old_copy(
        &self,
        path: &Path,
        found: &FoundFile,
    ) -> Result<OldCopy, DatastoreError> {
        self.check()?;
        match FoundFile::at(path) {
            Ok(now) if now == *found && now.is_file => {}
            Ok(_) => return Ok(OldCopy::Changed),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(OldCopy::Absent);
            }
            Err(error) => return Err(failed("look at", path)(error)),
        }
        let unopened = match Lease::take(path).map_err(failed("look at", path))? {
            Leased::Held(lease) => Unopened::Leased(lease),
            Leased::Opened => return Ok(OldCopy::Opened(opener(path))),
            Leased::Unknown(file) => match is_used(&file) {
                Ok(false) if opener(path).is_none() => Unopened::Looked(file),
                _ => return Ok(OldCopy::Opened(opener(path))),
            },
        };
        if !unopened.holds(found) {
            return Ok(OldCopy::Changed);
        }
        let known = Known::File(found.identity);
        let removed = remove_known_if(path, &known, || {
            thread::sleep(ON_ITS_WAY);
            unopened.holds(found)
        });
        match removed.map_err(failed("remove", path))? {
            Some(Removed::Gone) => {}
            Some(Removed::Absent) => return Ok(OldCopy::Absent),
            Some(Removed::Another) => return Ok(OldCopy::Changed),
            None => return Ok(OldCopy::Opened(None)),
        }
        // The image is gone before its sidecar is, also after a power loss.
        self.sync()?;
        let beside = sidecar_path(path);
        sidecar::file::remove(&beside).map_err(sidecar_failed(path.display()))?;
        Ok(OldCopy::Gone)
    }
}

/// Another program that has the file open for writing, if one can be seen.
fn opener(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let ground = Ground::of(&file).ok()?;
    opened_by_others(&[ground]).map(|(_, opener)| opener.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn directory() -> (tempfile::TempDir, Directory) {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        (place, directory)
    }

    #[test]
    fn an_old_copy_goes_with_its_sidecar_and_nothing_else_does() {
        let (place, directory) = directory();
        let at = |name: &str| place.path().join(name);
        for name in ["old.raw", "old.raw.sterna", "other.raw"] {
            fs::write(at(name), name).unwrap();
        }
        let found = FoundFile::at(&at("old.raw")).unwrap();
        let removed = directory.remove_old_copy(&at("old.raw"), &found).unwrap();
        assert_eq!(removed, OldCopy::Gone);
        let (left, _) = directory.files(9).unwrap();
        assert_eq!(left.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["other.raw"]);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nor its sidecar");
        let again = directory.remove_old_copy(&at("old.raw"), &found).unwrap();
        assert_eq!(again, OldCopy::Absent);
    }

    #[test]
    fn a_file_that_was_changed_replaced_or_linked_since_stays() {
        let (place, directory) = directory();
        let path = place.path().join("old.raw");
        let fresh = || {
            let _ = fs::remove_file(&path);
            fs::write(&path, "old").unwrap();
            FoundFile::at(&path).unwrap()
        };
        let stays = |found: &FoundFile| {
            let removed = directory.remove_old_copy(&path, found).unwrap();
            assert_eq!(removed, OldCopy::Changed);
        };
        let found = fresh();
        fs::write(&path, "new").unwrap();
        stays(&found);
        let found = fresh();
        fs::rename(&path, place.path().join("away")).unwrap();
        fs::write(&path, "old").unwrap();
        stays(&found);
        let found = fresh();
        fs::hard_link(&path, place.path().join("second")).unwrap();
        stays(&found);
        fs::remove_file(&path).unwrap();
        symlink("away", &path).unwrap();
        stays(&FoundFile::at(&path).unwrap());
        assert!(path.symlink_metadata().is_ok());
    }

    #[test]
    fn a_file_that_somebody_reads_stays() {
        let (place, directory) = directory();
        let path = place.path().join("old.raw");
        fs::write(&path, "old").unwrap();
        let found = FoundFile::at(&path).unwrap();
        let reader = File::open(&path).unwrap();
        if let Ok(Leased::Unknown(_)) = Lease::take(&path) {
            return eprintln!("left out: temporary files are not on a disk here");
        }
        let removed = directory.remove_old_copy(&path, &found).unwrap();
        assert!(matches!(removed, OldCopy::Opened(_)));
        drop(reader);
        assert_eq!(directory.remove_old_copy(&path, &found).unwrap(), OldCopy::Gone);
    }

    #[test]
    fn files_are_listed_by_name_and_not_more_than_asked_for() {
        let (place, directory) = directory();
        for name in ["b.raw", "a.qcow2", ".hidden", "a.qcow2.sterna", "c.raw"] {
            fs::write(place.path().join(name), name).unwrap();
        }
        fs::create_dir(place.path().join("directory")).unwrap();
        let names = |most| {
            let (files, more) = directory.files(most).unwrap();
            (files.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), more)
        };
        let all = ["a.qcow2", "b.raw", "c.raw"].map(str::to_owned).to_vec();
        assert_eq!(names(9), (all.clone(), 0));
        assert_eq!(names(1), (all[..1].to_vec(), 3));
    }
}
