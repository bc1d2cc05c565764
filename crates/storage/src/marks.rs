//! Whether a directory is the datastore that the state has at its path.
//!
//! It is, if it has the mark that the state knows. What follows is for directories
//! without it:
//!
//! - A datastore that was added before there were marks, or had no room for one, is
//!   known by any of its images, and one without images is taken at its word.
//! - A mark that was lost (files were restored, or copied to new storage, without it)
//!   is not missed where all images are that should be there.
//!
//! All else is another file system, or the bare mount point: nothing is done there. A
//! mark that is there is taken over, as another Sterna may know the directory by it; but not
//! the mark of another datastore of this state, which somebody has copied with its files: with
//! one mark for two, each could be found in the other's place. It is overwritten; unless both
//! are one directory by now, of which each would take the other's mark away for ever.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sterna_core::{DiskId, Mark};
use sterna_engine::datastore::mark::{self, MarkError};
use sterna_engine::datastore::{Datastore, DatastoreError, Location, check_mark, says};
use sterna_engine::sidecar::Role;
use sterna_os::random;
use sterna_state::{Store, StoreError};

use crate::asker::Asker;

/// How long two directories may take to say whether they are one.
const SAYING: Duration = Duration::from_millis(800);

/// A datastore's record, with a location that the engine can open.
pub type DatastoreRecord = sterna_state::DatastoreRecord<Location>;

/// A datastore that was opened.
pub(crate) struct Opened {
    pub(crate) datastore: Arc<Datastore>,
    /// What it is on that others may be on, too.
    pub(crate) backing: Option<String>,
    /// What its directory is known by.
    pub(crate) mark: Option<Mark>,
}

/// Opens a datastore, if what is at its location is it. A directory is marked, if it
/// has no mark yet.
pub(crate) fn open(
    record: &DatastoreRecord,
    sidecars: &Path,
    store: &Store,
) -> Result<Opened, String> {
    let is_directory = |path: &&Path| path.is_dir();
    // What is none is told by opening it.
    let directory = record.location.directory().filter(is_directory);
    let text = |error: DatastoreError| error.to_string();
    let found = match directory {
        Some(path) => {
            let expected = expected(store, &record.name).map_err(|it| it.with_cause())?;
            let others = others(store, &record.name).map_err(|it| it.with_cause())?;
            recognize(path, record.mark, &expected, &others).map_err(text)?
        }
        None => Found::default(),
    };
    // One that is made slower stands for another.
    let is_itself = record.shape.is_none();
    let backing = is_itself.then(|| record.location.backing()).flatten();
    let (name, location) = (record.name.clone(), record.location.clone());
    let datastore = Datastore::open(name, location).map_err(text)?;
    let mut datastore = datastore.keep_sidecars_in(sidecars);
    // Nothing of a directory, which need not ask the state.
    if directory.is_none()
        && let Some(size) =
            store.place_size(&record.name).map_err(|it| it.with_cause())?
    {
        datastore = datastore.was_so_large(size).map_err(text)?;
    }
    let give = |path| give_mark(record, path, found.anothers);
    let mark = directory.and_then(|path| found.own.or_else(|| give(path)));
    if let Some(mark) = mark {
        datastore = datastore.marked(mark);
    }
    if let Some(mark) = mark.filter(|_| mark != record.mark)
        && let Err(error) = store.set_mark(&record.name, mark)
    {
        // The next daemon takes over what it finds; nobody's disk is to wait for that.
        let datastore = &record.name;
        tracing::warn!(datastore, %error, "cannot record the mark of a datastore");
    }
    Ok(Opened { datastore: Arc::new(datastore), backing, mark })
}

/// Gives a directory the mark that it had, or a new one. A file system that is full has
/// no room for it: its datastore is used without until it has.
fn give_mark(
    record: &DatastoreRecord,
    directory: &Path,
    instead_of: Option<Mark>,
) -> Option<Mark> {
    let datastore = &record.name;
    let mark = match record.mark {
        Some(mark) => mark,
        None => Mark(random::number().ok()?),
    };
    match mark::give(mark, directory, instead_of) {
        Ok(mark) => {
            tracing::info!(datastore, directory = %directory.display(), "marked");
            Some(mark)
        }
        Err(error) => {
            // Tried again every few seconds.
            tracing::debug!(datastore, %error, "cannot mark a datastore");
            None
        }
    }
}

/// An image that should be in a datastore's directory.
struct Expected {
    file: String,
    disk: DiskId,
    /// Its generation is this or a higher one: a fence raises it before the state knows.
    generation: u64,
}

impl Expected {
    /// Whether it is there; an old copy of it is not it.
    fn is_in(&self, directory: &Path) -> bool {
        says(directory, &self.file).is_some_and(|says| {
            says.id == self.disk
                && says.generation >= self.generation
                && says.role != Role::Retired
        })
    }
}

/// The images that should be on a datastore, as the state says.
fn expected(store: &Store, datastore: &str) -> Result<Vec<Expected>, StoreError> {
    let disks = store.disks()?.into_iter().filter(|it| it.datastore == datastore);
    let mut all: Vec<Expected> = disks
        .map(|it| Expected { file: it.image, disk: it.id, generation: it.generation })
        .collect();
    let copies = store
        .open_migrations()?
        .into_iter()
        .filter(|it| it.to.datastore == datastore && !it.to.image.is_empty());
    all.extend(copies.map(|it| Expected {
        file: it.to.image,
        disk: it.disk,
        generation: 0,
    }));
    Ok(all)
}

/// Another datastore of this state.
struct Other {
    mark: Mark,
    directory: PathBuf,
}

impl Other {
    /// Whether it is that directory by another path. What does not say so in time is another:
    /// this one has answered.
    fn is(&self, directory: &Path) -> bool {
        let paths = [self.directory.clone(), directory.to_owned()];
        let asked = Asker::default().ask(SAYING, || {
            paths.map(|path| path.metadata().ok().map(|it| (it.dev(), it.ino())))
        });
        asked.answer().is_some_and(|[its, this]| its.is_some() && its == this)
    }
}

/// All other datastores that have a mark.
fn others(store: &Store, datastore: &str) -> Result<Vec<Other>, StoreError> {
    let all: Vec<DatastoreRecord> = store.datastores()?;
    let others = all.into_iter().filter(|it| it.name != datastore);
    let marked = others.filter_map(|it| {
        let directory = it.location.directory()?.to_owned();
        Some(Other { mark: it.mark?, directory })
    });
    Ok(marked.collect())
}

/// What a directory that is the datastore is marked with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    own: Option<Mark>,
    /// That of another datastore, which was copied there.
    anothers: Option<Mark>,
}

/// What marks a directory that is the datastore; an error if it is another directory.
fn recognize(
    directory: &Path,
    mark: Option<Mark>,
    expected: &[Expected],
    others: &[Other],
) -> Result<Found, DatastoreError> {
    let found = match mark::read(directory) {
        Ok(found) => Some(found),
        Err(MarkError::Missing | MarkError::Damaged(_)) => None,
        Err(error) => return Err(elsewhere(directory, error.to_string())),
    };
    let is_there = |image: &Expected| image.is_in(directory);
    let is_all_there = || !expected.is_empty() && expected.iter().all(is_there);
    if let Some(mark) = mark
        && found != Some(mark)
        && !is_all_there()
    {
        // Whose mark it is makes no difference: nobody need be asked.
        return check_mark(directory, mark)
            .map(|()| Found { own: Some(mark), anothers: None });
    }
    // One that has no mark of its own yet may be another view of the other's directory.
    let is_anothers = |found: Mark| {
        let mut its = others.iter().filter(|it| it.mark == found).peekable();
        mark.is_some_and(|mark| mark != found)
            && its.peek().is_some()
            && !its.any(|it| it.is(directory))
    };
    let found = match found {
        Some(found) if is_anothers(found) => Found { own: None, anothers: Some(found) },
        own => Found { own, anothers: None },
    };
    if mark.is_some() || expected.is_empty() || expected.iter().any(is_there) {
        return Ok(found);
    }
    let what = "none of the datastore's images is there";
    Err(elsewhere(directory, what.into()))
}

fn elsewhere(directory: &Path, what: String) -> DatastoreError {
    DatastoreError::Elsewhere { path: PathBuf::from(directory), what }
}

#[cfg(test)]
mod tests {
    use sterna_engine::sidecar::{Identity, file};

    use super::*;

    /// Puts an image into a directory; gives what the state says of it.
    fn image(directory: &Path, name: &str, generation: u64, role: Role) -> Expected {
        let disk = DiskId(name.bytes().map(u128::from).sum());
        let path = directory.join(format!("{name}.raw"));
        std::fs::write(&path, [1; 512]).unwrap();
        let says = Identity { id: disk, name: name.into(), size: 512, generation, role };
        file::write(&directory.join(format!("{name}.raw.sterna")), &says).unwrap();
        Expected { file: format!("{name}.raw"), disk, generation: 5 }
    }

    fn give(mark: Mark, directory: &Path) {
        assert_eq!(mark::give(mark, directory, None).unwrap(), mark);
    }

    fn own(own: Option<Mark>) -> Found {
        Found { own, anothers: None }
    }

    fn is_refused(recognized: &Result<Found, DatastoreError>) -> bool {
        matches!(recognized, Err(DatastoreError::Elsewhere { .. }))
    }

    #[test]
    fn a_directory_is_known_by_its_mark_and_by_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert!(is_refused(&recognize(path, Some(Mark(7)), &[], &[])));
        give(Mark(7), path);
        assert_eq!(recognize(path, Some(Mark(7)), &[], &[]).unwrap(), own(Some(Mark(7))));
        assert!(is_refused(&recognize(path, Some(Mark(8)), &[], &[])));
    }

    #[test]
    fn one_that_never_had_a_mark_is_known_by_any_of_its_images() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(recognize(path, None, &[], &[]).unwrap(), own(None));
        let lost = Expected { file: "b.raw".into(), disk: DiskId(2), generation: 1 };
        let known = [lost, image(path, "a", 4, Role::Active)];
        assert!(is_refused(&recognize(path, None, &known, &[])), "it is an older one");
        image(path, "a", 5, Role::Retired);
        assert!(is_refused(&recognize(path, None, &known, &[])), "the disk has left it");
        image(path, "a", 7, Role::Active);
        assert_eq!(recognize(path, None, &known, &[]).unwrap(), own(None));
    }

    #[test]
    fn a_lost_mark_is_not_missed_where_all_images_are() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let known = ["a", "b"].map(|name| image(path, name, 5, Role::Active));
        assert_eq!(recognize(path, Some(Mark(7)), &known, &[]).unwrap(), own(None));
        // Another Sterna has marked it.
        give(Mark(8), path);
        assert_eq!(
            recognize(path, Some(Mark(7)), &known, &[]).unwrap(),
            own(Some(Mark(8)))
        );
        std::fs::remove_file(path.join("b.raw")).unwrap();
        assert!(is_refused(&recognize(path, Some(Mark(7)), &known, &[])));
    }

    #[test]
    fn the_mark_of_another_datastore_of_this_state_is_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let known = [image(path, "a", 5, Role::Active)];
        give(Mark(8), path);
        let elsewhere = tempfile::tempdir().unwrap();
        let others = [another(elsewhere.path())];
        let found = recognize(path, Some(Mark(7)), &known, &others).unwrap();
        assert_eq!(found, Found { own: None, anothers: Some(Mark(8)) });
        assert_eq!(mark::give(Mark(7), path, found.anothers).unwrap(), Mark(7));
        assert_eq!(
            recognize(path, Some(Mark(7)), &known, &others).unwrap(),
            own(Some(Mark(7)))
        );
        // Without its images it may be the other one.
        give_over(Mark(8), path);
        assert!(is_refused(&recognize(path, Some(Mark(7)), &[], &others)));
        assert_eq!(recognize(path, None, &[], &others).unwrap(), own(Some(Mark(8))));
    }

    #[test]
    fn two_datastores_that_have_become_one_directory_have_one_mark() {
        let scratch = tempfile::tempdir().unwrap();
        let [path, view] = ["one", "view"].map(|name| scratch.path().join(name));
        std::fs::create_dir(&path).unwrap();
        std::os::unix::fs::symlink(&path, &view).unwrap();
        let known = [image(&path, "a", 5, Role::Active)];
        give(Mark(8), &path);
        let found = recognize(&view, Some(Mark(7)), &known, &[another(&path)]);
        assert_eq!(found.unwrap(), own(Some(Mark(8))));
    }

    /// A datastore with the mark 8.
    fn another(directory: &Path) -> Other {
        Other { mark: Mark(8), directory: directory.into() }
    }

    fn give_over(mark: Mark, directory: &Path) {
        let before = mark::read(directory).ok();
        assert_eq!(mark::give(mark, directory, before).unwrap(), mark);
    }
}
