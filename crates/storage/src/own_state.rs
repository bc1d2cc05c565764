//! Whether a place is the daemon's own state: a disk there would let a guest overwrite the
//! records of all disks.
//!
//! Directories and files are told by what they are (file system and inode), not by their
//! names: a link, a bind mount or a second name leads there as well. The images of emulated
//! arrays are in the state directory, too; they are disks, and so is what is below `arrays/`.
//!
//! **What is not found**: a device or a server that has the state's files.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sterna_api::{Error, Result};

use crate::Storage;
use crate::handle::DatastoreHandle;

/// What the state directory has its own files in.
const OWN: [&str; 5] = ["maps", "commits", "sidecars", "accounts", "unfinished"];
/// What has images.
const ARRAYS: &str = "arrays";

impl Storage {
    /// Refuses a datastore whose directory is the state directory, or below it.
    pub(crate) fn check_is_not_state(&self, on: &DatastoreHandle) -> Result<()> {
        let Some(directory) = on.record().location.directory() else { return Ok(()) };
        let (asked, state) = (directory.to_owned(), self.places.state.clone());
        let found = on.answer_to(move || lies_in(&asked, &state))?;
        match found {
            Ok(false) => Ok(()),
            Ok(true) => Err(self.is_state(directory)),
            // Who opens it says that better.
            Err(error) if is_no_directory(&error) => Ok(()),
            Err(error) => Err(unknown(directory, &error)),
        }
    }

    /// Refuses a file of the state that has a second name in a datastore.
    pub(crate) fn check_is_no_state_file(
        &self,
        on: &DatastoreHandle,
        file: &str,
    ) -> Result<()> {
        let Some(directory) = on.record().location.directory() else { return Ok(()) };
        let path = directory.join(file);
        let (asked, state) = (path.clone(), self.places.state.clone());
        match on.answer_to(move || is_file_of(&asked, &state))? {
            Ok(false) => Ok(()),
            Ok(true) => Err(self.is_state(&path)),
            Err(error) => Err(unknown(&path, &error)),
        }
    }

    fn is_state(&self, place: &Path) -> Error {
        let (place, state) = (place.display(), self.places.state.display());
        Error::invalid(format!("{place} belongs to the state of this daemon ({state})"))
            .hint(
                "give a place outside of the state directory: a guest that writes there \
                   would destroy what Sterna knows of all disks",
            )
    }
}

fn unknown(place: &Path, error: &io::Error) -> Error {
    let place = place.display();
    Error::unavailable(format!(
        "cannot tell whether {place} is the daemon's state: {error}"
    ))
}

fn is_no_directory(error: &io::Error) -> bool {
    use io::ErrorKind as E;
    matches!(error.kind(), E::NotFound | E::NotADirectory | E::PermissionDenied)
}

/// The file system of a file or directory, and its number there.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Whether a directory is the state directory or below it, and not among its arrays.
fn lies_in(directory: &Path, state: &Path) -> io::Result<bool> {
    let of = |path: &Path| fs::metadata(path).map(|it| identity(&it));
    let own = OWN.iter().filter_map(|name| of(&state.join(name)).ok());
    let own: Vec<_> = own.chain([of(state)?]).collect();
    let arrays = of(&state.join(ARRAYS)).ok();
    let (mut path, mut here) = (PathBuf::from(directory), of(directory)?);
    loop {
        if own.contains(&here) || (arrays == Some(here) && path == directory) {
            return Ok(true);
        }
        path.push("..");
        let above = of(&path)?;
        if arrays == Some(here) || above == here {
            return Ok(false);
        }
        here = above;
    }
}

/// Whether a file is one of the state's, under a second name.
fn is_file_of(file: &Path, state: &Path) -> io::Result<bool> {
    let asked = fs::metadata(file)?;
    for directory in OWN.iter().map(|name| state.join(name)).chain([state.to_owned()]) {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for entry in entries {
            // One that is gone by now is not it.
            let is_it =
                entry?.metadata().is_ok_and(|it| identity(&it) == identity(&asked));
            if is_it {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_state_and_what_is_below_it_is_known_by_any_name() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |path: &str| scratch.path().join(path);
        for path in ["state/maps", "state/more/below", "state/arrays/old", "beside/deep"]
        {
            fs::create_dir_all(at(path)).unwrap();
        }
        symlink(at("state/more"), at("link")).unwrap();
        let in_it = |path: &str| lies_in(&at(path), &at("state")).unwrap();
        for path in [
            "state",
            "state/maps",
            "state/more",
            "state/more/below",
            "link",
            "link/below",
            "state/arrays",
            "beside/../state",
        ] {
            assert!(in_it(path), "{path}");
        }
        for path in ["", "beside", "beside/deep", "state/arrays/old", "state/.."] {
            assert!(!in_it(path), "{path}");
        }
    }

    #[test]
    fn a_file_of_the_state_is_known_under_a_second_name() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |path: &str| scratch.path().join(path);
        fs::create_dir_all(at("state/maps")).unwrap();
        for file in ["state/state.db", "state/maps/1.map", "image"] {
            fs::write(at(file), "x").unwrap();
        }
        fs::hard_link(at("state/state.db"), at("second")).unwrap();
        fs::hard_link(at("state/maps/1.map"), at("third")).unwrap();
        fs::hard_link(at("image"), at("fourth")).unwrap();
        for (file, is_it) in
            [("second", true), ("third", true), ("fourth", false), ("image", false)]
        {
            assert_eq!(is_file_of(&at(file), &at("state")).unwrap(), is_it, "{file}");
        }
    }
}
