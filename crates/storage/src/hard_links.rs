//! Files of disks and moves that have a second name.
//!
//! The image of a disk that is served is open, and is known by its file (`own_disk`). A disk that
//! is not served just now has nothing open: its image is looked up by its name. All names of a
//! file are in one file system, so if a datastore does not answer, while the file of which is
//! asked does, that datastore has other files, and is passed over.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sterna_api::{Error, Result};
use sterna_state::DiskRecord;

use crate::Storage;

/// By what the kernel knows a file: its file system, and its number there.
pub(crate) type Inode = (u64, u64);

/// The file of a disk or a move in one directory, and what it is.
type Known = (String, String);

impl Storage {
    /// Refuses a file that is the image of a disk or a move under another name.
    pub(crate) fn check_is_no_other_name(&self, shown: &str, file: Inode) -> Result<()> {
        let Some((name, what)) = self.other_name(file)? else { return Ok(()) };
        let name = name.display();
        let message =
            format!("{shown} is {what}: {name} is another name of the same file");
        Err(Error::in_use(message).hint(
            "import another image, or remove the name that you do not need: two disks on one \
             file would destroy each other",
        ))
    }

    /// The name by which a disk or a move knows that file, and what it is there.
    fn other_name(&self, file: Inode) -> Result<Option<(PathBuf, String)>> {
        for (datastore, images) in self.known_images()? {
            let Ok(handle) = self.handle(&datastore) else { continue };
            let Some(directory) = handle.record().location.directory() else { continue };
            let directory = directory.to_owned();
            let asked = handle.ask_files(move || named(&directory, images, file));
            if let Some(found) = asked.answer().flatten() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// All images of disks and of moves that have not ended, by datastore.
    fn known_images(&self) -> Result<BTreeMap<String, Vec<Known>>> {
        let mut images = BTreeMap::<String, Vec<Known>>::new();
        let mut add = |datastore: String, image: String, what: String| {
            images.entry(datastore).or_default().push((image, what));
        };
        for DiskRecord { name, datastore, image, .. } in self.store.disks()? {
            add(datastore, image, format!("the image of disk {name}"));
        }
        for one in self.store.open_migrations()? {
            let id = one.id;
            for (place, what) in [(one.from, "source"), (one.to, "copy")] {
                add(
                    place.datastore,
                    place.image,
                    format!("the {what} of migration {id}"),
                );
            }
        }
        Ok(images)
    }
}

/// The first of these images whose name leads to that file.
fn named(directory: &Path, images: Vec<Known>, file: Inode) -> Option<(PathBuf, String)> {
    let mut paths = images.into_iter().map(|(image, what)| (directory.join(image), what));
    paths.find(|(path, _)| inode_of(path) == Some(file))
}

fn inode_of(path: &Path) -> Option<Inode> {
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_second_name_of_an_image_is_known_by_its_file_and_a_copy_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("db.raw"), "bytes").unwrap();
        fs::hard_link(at("db.raw"), at("linked.raw")).unwrap();
        fs::copy(at("db.raw"), at("copied.raw")).unwrap();
        let found = |name: &str| {
            let images = ["gone.raw", "db.raw"];
            let images =
                images.map(|it| (it.to_owned(), "the image of disk db".to_owned()));
            let file = inode_of(&at(name)).unwrap();
            named(scratch.path(), images.into(), file).map(|(path, _)| path)
        };
        assert_eq!(found("linked.raw"), Some(at("db.raw")));
        assert_eq!(found("copied.raw"), None);
    }
}
