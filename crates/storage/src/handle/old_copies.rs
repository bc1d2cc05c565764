//! The files of a directory, whoever has made them, and the removal of old copies.
//!
//! Whether one may go is not decided here. All is asked with the datastore's time limit.

use std::path::PathBuf;
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_engine::datastore::{DatastoreError, OldCopy};
use sterna_engine::sidecar::Identity;
use sterna_engine::{Beside, FoundFile, ImageSpec};

use super::DatastoreHandle;

/// How long the list of all files may take: thousands of them on NFS.
const LISTING: Duration = Duration::from_secs(10);

/// How long a removal may take: a file of terabytes in many pieces.
const REMOVAL: Duration = Duration::from_secs(60);

/// So many files are listed at most: nobody reads more, and the answer stays small.
const MOST: usize = 10_000;

/// What there is at the place of an image.
#[derive(Clone, Debug)]
pub struct ImageLook {
    /// Where that is.
    pub path: PathBuf,
    /// What is there, if anything is.
    pub found: Option<FoundFile>,
    /// What its sidecar says of it and of its file, if it has one; or why that is not known.
    pub said: std::result::Result<Option<(Identity, Option<Beside>)>, String>,
}

impl DatastoreHandle {
    /// Refuses a datastore that is not a directory: it is one image.
    pub fn check_is_directory(&self) -> Result<()> {
        if self.record().location.directory().is_some() {
            return Ok(());
        }
        let name = self.name();
        let message = format!(
            "datastore {name} is not a directory: as a whole it is one image at most, and \
             has no list of images"
        );
        Err(Error::invalid(message)
            .hint(format!("see `sterna datastore show {name}` and `sterna disk list`")))
    }

    /// What a datastore that is one image at most says of itself, if it answers in time.
    pub fn says_as_a_whole(&self) -> Result<Option<Identity>> {
        let datastore = self.must_answer_reads()?;
        let said = self.answer_to(move || datastore.says_as_a_whole())?;
        said.map_err(|error| self.refused(&error))
    }

    /// The command that removes an old copy there, if it is a directory.
    pub fn removal_command(&self, file: &str) -> Option<String> {
        self.record().location.directory()?;
        Some(format!("`sterna datastore remove-image {} {file}`", self.name()))
    }

    /// The files there, by name, and how many more there are than are listed.
    pub fn files(&self) -> Result<(Vec<(String, FoundFile)>, u64)> {
        let datastore = self.must_answer_reads()?;
        let listed = self.listing.ask_patiently(LISTING, move || datastore.files(MOST));
        match listed.answer() {
            Some(files) => files.map_err(|error| self.refused(&error)),
            None => Err(self.unavailable(&self.silent())),
        }
    }

    /// What there is at the place of an image.
    pub fn look_at_image(&self, file: &str) -> Result<ImageLook> {
        let datastore = self.must_answer_reads()?;
        let image = self.image(file)?;
        let ImageSpec::File { path, .. } = image.clone() else {
            return Err(Error::internal(format!("{file} is no file")));
        };
        self.answer_to(move || {
            let found = match FoundFile::at(&path) {
                Ok(found) => Some(found),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => {
                    let message = format!("cannot look at {}: {error}", path.display());
                    return Err(Error::unavailable(message));
                }
            };
            let said = datastore.said(&image).map_err(|error| error.to_string());
            Ok(ImageLook { path, found, said })
        })?
    }

    /// Removes the file of an image, with its sidecar, if it is as it was found and no
    /// program has it open.
    pub fn remove_old_copy(&self, file: &str, found: &FoundFile) -> Result<OldCopy> {
        let datastore = self.get()?;
        let (file, found) = (file.to_owned(), *found);
        let removed = self.listing.ask_patiently(REMOVAL, move || {
            let image = datastore.image(&file)?;
            datastore.remove_old_copy(&image, &found)
        });
        match removed.answer() {
            Some(removed) => {
                removed.map_err(|error: DatastoreError| self.refused(&error))
            }
            None => Err(self.unavailable(&self.silent()).hint(
                "whether the image is removed is not known: list the images again when \
                 the datastore answers",
            )),
        }
    }
}
