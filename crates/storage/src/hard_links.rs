//! Files of disks and moves that have a second name.
//!
//! The image of a disk that is served is open, and is known by its file (`own_disk`). A disk that
//! is not served just now has nothing open: its image is looked up by its name, in each datastore
//! that is in the file's file system. All names of a file are in one file system.
//!
//! **No answer.** If a datastore does not answer, the file is refused where it may be an image
//! there: if it is in that datastore, or the datastore is in its file system, or on the same disk
//! or server. A datastore that is elsewhere, or whose own directory does not even answer while the
//! file does, is passed over.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_state::DiskRecord;

use crate::Storage;
use crate::asker::Asked;
use crate::handle::DatastoreHandle;

/// How long a datastore may take to look for one file among its images, hundreds of them on a
/// server. Others who put something on a device or server wait for that.
const NAMES: Duration = Duration::from_secs(3);

/// By what the kernel knows a file: its file system, and its number there.
pub(crate) type Inode = (u64, u64);

/// The file of a disk or a move in one directory, and what it is.
type Known = (String, String);

/// A name of the file, and what it is there; nothing if no image there is that file.
type Found = Option<(PathBuf, String)>;

/// A file that may have a second name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linked {
    pub(crate) inode: Inode,
    /// How many names it has, as its file system says.
    pub(crate) names: u64,
    /// Whether its file system is of this machine. Others (FUSE, SMB) may always say one name.
    pub(crate) is_local: bool,
}

impl Linked {
    fn has_one_name(&self) -> bool {
        self.is_local && self.names == 1
    }
}

/// A datastore that was asked whether one of its images is that file.
struct Question {
    handle: Arc<DatastoreHandle>,
    asked: Asked<io::Result<Found>>,
    /// The file system of its directory, once it has said so.
    file_system: Arc<OnceLock<u64>>,
}

impl Storage {
    /// Refuses a file of a datastore that is the image of a disk or a move under another name,
    /// or may be one.
    pub(crate) fn check_is_no_other_name(
        &self,
        of: &DatastoreHandle,
        shown: &str,
        file: Linked,
    ) -> Result<()> {
        let found = self.other_name(of, shown, file, NAMES)?;
        let Some((name, what)) = found else { return Ok(()) };
        let name = name.display();
        let message =
            format!("{shown} is {what}: {name} is another name of the same file");
        Err(Error::in_use(message).hint(
            "import another image, or remove the name that you do not need: two disks on one \
             file would destroy each other",
        ))
    }

    /// The name by which a disk or a move knows that file, and what it is there.
    fn other_name(
        &self,
        of: &DatastoreHandle,
        shown: &str,
        file: Linked,
        limit: Duration,
    ) -> Result<Found> {
        if file.has_one_name() {
            return Ok(None);
        }
        // All are asked before the first answer is waited for.
        let questions: Vec<Question> = self
            .known_images()?
            .into_iter()
            .filter_map(|(datastore, images)| {
                ask(self.handle(&datastore).ok()?, images, file.inode, limit)
            })
            .collect();
        let mut silent = None;
        for Question { handle, asked, file_system } in questions {
            let has_no_thread = asked.has_no_thread();
            match asked.answer() {
                Some(Ok(None)) => {}
                Some(Ok(found)) => return Ok(found),
                None if has_no_thread => {
                    let why = "the system has no thread to ask it";
                    silent.get_or_insert_with(|| unknown(&handle, shown, why));
                }
                unanswered => {
                    let system = file_system.get().copied();
                    if may_have(&handle, system, of, file.inode) {
                        let why = why(unanswered, limit);
                        silent.get_or_insert_with(|| unknown(&handle, shown, &why));
                    }
                }
            }
        }
        silent.map_or(Ok(None), Err)
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

/// Asks a datastore whether one of these images is that file; not one that has no files.
fn ask(
    handle: Arc<DatastoreHandle>,
    images: Vec<Known>,
    file: Inode,
    limit: Duration,
) -> Option<Question> {
    let directory = handle.record().location.directory()?.to_owned();
    let file_system = Arc::<OnceLock<u64>>::default();
    let said = Arc::clone(&file_system);
    let look = move || {
        let system = match directory.metadata() {
            // No name there leads to any file.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found?.dev(),
        };
        // Only this question sets it.
        let _ = said.set(system);
        if system != file.0 {
            return Ok(None);
        }
        named(&directory, images, file)
    };
    let asked = handle.names.ask_patiently(limit, look);
    Some(Question { handle, asked, file_system })
}

/// Whether a file of datastore `of` may be in a datastore that does not say what it has.
fn may_have(
    silent: &DatastoreHandle,
    file_system: Option<u64>,
    of: &DatastoreHandle,
    file: Inode,
) -> bool {
    let is_on_one = || silent.backing().is_some_and(|it| Some(it) == of.backing());
    silent.name() == of.name()
        || file_system.map_or_else(is_on_one, |system| system == file.0)
}

/// Why a datastore has not said what it has.
fn why(unanswered: Option<io::Result<Found>>, limit: Duration) -> String {
    match unanswered {
        Some(Err(error)) => error.to_string(),
        _ => format!("it has not answered for {} s", limit.as_secs()),
    }
}

/// Nobody knows whether a file is an image of that datastore.
fn unknown(silent: &DatastoreHandle, shown: &str, why: &str) -> Error {
    silent.has_not_answered();
    let message = format!(
        "datastore {} does not say whether {shown} is one of its images under another name: \
         {why}",
        silent.name()
    );
    Error::unavailable(message).hint("import the image once that datastore answers")
}

/// The first of these images whose name leads to that file. An error if one of them cannot be
/// looked at, and none of the others is that file.
fn named(directory: &Path, images: Vec<Known>, file: Inode) -> io::Result<Found> {
    let mut unseen = Ok(None);
    for (image, what) in images {
        let path = directory.join(image);
        match inode_of(&path) {
            Ok(found) if found == Some(file) => return Ok(Some((path, what))),
            Ok(_) => {}
            Err(error) => unseen = Err(error),
        }
    }
    unseen
}

/// What has that name, if anything has.
fn inode_of(path: &Path) -> io::Result<Option<Inode>> {
    match path.metadata() {
        Ok(found) => Ok(Some((found.dev(), found.ino()))),
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use super::*;
    use crate::stage::Stage;

    /// Too short for a question to be waited for.
    const SHORT: Duration = Duration::from_millis(1);

    /// The image of disk x on `here`, as a file that is not of this machine.
    fn image_of_x(stage: &Stage) -> Linked {
        let disk = stage.disk_x("here", 1);
        let path = stage.directory("here").join(disk.image);
        let inode = inode_of(&path).unwrap().unwrap();
        Linked { inode, names: 1, is_local: false }
    }

    /// The datastore does not answer until what this gives is dropped.
    fn hangs(handle: &DatastoreHandle) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel::<()>();
        let hang = move || {
            let _ = held.recv();
        };
        assert_eq!(handle.names.ask(SHORT, hang).answer(), None);
        release
    }

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
            let file = inode_of(&at(name)).unwrap().unwrap();
            let found = named(scratch.path(), images.into(), file).unwrap();
            found.map(|(path, _)| path)
        };
        assert_eq!(found("linked.raw"), Some(at("db.raw")));
        assert_eq!(found("copied.raw"), None);
    }

    #[test]
    fn an_image_that_cannot_be_looked_at_is_not_taken_for_another_file() {
        let scratch = tempfile::tempdir().unwrap();
        // A name that is too long is an error, and not a name that is free.
        let images = vec![("x".repeat(300), "the image of disk x".to_owned())];
        assert!(named(scratch.path(), images, (1, 1)).is_err());
    }

    #[test]
    fn only_a_file_of_this_machine_is_believed_to_have_one_name() {
        let stage = Stage::with(&["here"]);
        let file = image_of_x(&stage);
        let here = stage.handle("here");
        let check = |file| stage.storage.check_is_no_other_name(&here, "/y.raw", file);
        let refused = check(file).unwrap_err();
        assert!(refused.message.contains("is the image of disk x"), "{refused}");
        assert!(check(Linked { names: 2, is_local: true, ..file }).is_err());
        assert!(check(Linked { is_local: true, ..file }).is_ok(), "nobody is asked");
    }

    #[test]
    fn a_file_is_refused_while_a_datastore_that_may_have_it_does_not_answer() {
        let stage = Stage::with(&["here", "there"]);
        let file = image_of_x(&stage);
        let (here, there) = (stage.handle("here"), stage.handle("there"));
        let of_nobody = Linked { inode: (file.inode.0, u64::MAX), ..file };
        let storage = &stage.storage;
        assert!(storage.check_is_no_other_name(&here, "/y.raw", of_nobody).is_ok());
        let release = hangs(&here);
        for of in [&here, &there] {
            let refused = storage.other_name(of, "/y.raw", of_nobody, SHORT).unwrap_err();
            assert!(refused.message.contains("datastore here does not say"), "{refused}");
            assert!(refused.hint.contains("once that datastore answers"), "{refused:?}");
        }
        let elsewhere = (file.inode.0 + 1, 1);
        assert!(may_have(&here, Some(file.inode.0), &there, file.inode));
        assert!(!may_have(&here, Some(file.inode.0), &there, elsewhere));
        drop(release);
    }
}
