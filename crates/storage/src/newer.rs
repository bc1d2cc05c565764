//! Whether a state directory is older than a disk.
//!
//! An image says of itself whose it is, and its generation. An old state (a backup that was
//! restored) expects a lower one, and serves nothing, if the old image was put away when the
//! disk moved. It may not have been: its datastore had failed, or a kill came in between; and
//! a disk that fills its device or export has no room to say anything. So before a disk is
//! served, the other datastores are asked for an image of it with a higher generation.
//!
//! A disk with a migration under way has a copy, which may call itself the truth: it was
//! sealed in a switch-over that was not committed. If it cannot have been, by what this state
//! knows of the switch-over, then the migration has ended since, and the state is older than
//! the disk.
//!
//! **What is not found**: an image on a datastore that does not answer in time or that the
//! state does not know, and one that fills its place. A disk is not kept from its clients
//! because a datastore that it is not on is away; when that is back, it is asked, and people are
//! told (`rivals`).

use std::sync::Arc;
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_state::{DiskRecord, Place};

use crate::Storage;
use crate::asker::Asked;
use crate::fingerprints::fills_its_place;
use crate::handle::{DatastoreHandle, Told};

/// How long one image may take to tell: clients wait for the disk.
const TELLING: Duration = Duration::from_secs(2);

/// The copy that a migration under way makes.
pub struct Copy<'a> {
    /// The migration's number.
    pub migration: u64,
    /// Where it is.
    pub place: &'a Place,
    /// With which generation it may call itself the truth, if it may.
    pub sealed: Option<u64>,
}

impl Storage {
    /// Refuses a disk of which another datastore has a newer image, or the copy of whose
    /// migration has become the truth since this state was made.
    pub fn check_is_newest(
        &self,
        disk: &DiskRecord,
        on: &DatastoreHandle,
        copy: Option<&Copy<'_>>,
    ) -> Result<()> {
        let of_copy =
            |on: &DatastoreHandle| copy.filter(|copy| copy.place.datastore == on.name());
        on.get()?;
        let fills = fills_its_place(disk, Some(on));
        let mut others = self.all_handles();
        others.retain(|it| it.name() != disk.datastore);
        // All at once: several may be silent.
        let told: Vec<_> = others.iter().map(DatastoreHandle::ask_sidecars).collect();
        let is_unasked = told.iter().any(|told| told.has_no_thread());
        let asked: Vec<(Arc<DatastoreHandle>, Asked<Says>)> = others
            .into_iter()
            .zip(told)
            .filter_map(|(other, told)| {
                let file = match of_copy(&other) {
                    Some(copy) => copy.place.image.clone(),
                    None => newer_file(&other, told, disk, fills)?,
                };
                let asked = ask(&other, disk, file, fills);
                Some((other, asked))
            })
            .collect();
        let has_no_thread = |(_, asked): &(_, Asked<_>)| asked.has_no_thread();
        if is_unasked || asked.iter().any(has_no_thread) {
            return Err(no_thread());
        }
        let mut newer = Vec::new();
        for (other, asked) in asked {
            let copy = of_copy(&other);
            let generation = match asked.answer() {
                Some(Says::Generation(generation)) => generation,
                Some(Says::No) if copy.is_some() => continue,
                // It was told a while ago, and another image may be newer, too.
                Some(Says::No) => {
                    other.says_something_else();
                    return Err(has_changed(&other));
                }
                // A copy's datastore may be away, and what it had told is not known.
                Some(Says::Unreadable) | None if copy.is_some() => continue,
                Some(Says::Unreadable) | None => return Err(is_silent(&other)),
            };
            let sealed = copy.and_then(|copy| copy.sealed);
            if generation > disk.generation && sealed != Some(generation) {
                newer.push((generation, other));
            }
        }
        match newer.into_iter().max_by_key(|(generation, _)| *generation) {
            Some((generation, other)) => {
                let migration = copy.map(|copy| copy.migration);
                Err(is_older(disk, generation, other.name(), migration))
            }
            None => Ok(()),
        }
    }
}

/// The file of a newer image of the disk, as far as it is known there.
fn newer_file(
    on: &DatastoreHandle,
    told: Told,
    disk: &DiskRecord,
    fills: bool,
) -> Option<String> {
    let answer = told.answer();
    if !answer.is_all() {
        on.rounds.ask_again();
    }
    // Of a part, those that are most likely the disk's were read first.
    let (_, file) = answer.told()?.newer(disk, fills)?;
    Some(file.to_owned())
}

/// What an image says to a disk.
pub(crate) enum Says {
    /// It is the disk's, is or was in use, and has that generation.
    Generation(u64),
    /// It is not, or not any more.
    No,
    /// It cannot be read now.
    Unreadable,
}

/// Asks a datastore what the image of that file says to a disk, which `fills` its own place or
/// not: the same as it has told of all its images, of this one, as it is now.
pub(crate) fn ask(
    other: &Arc<DatastoreHandle>,
    disk: &DiskRecord,
    file: String,
    fills: bool,
) -> Asked<Says> {
    let (disk, there) = (disk.id, other.clone());
    other.visits.sidecar.ask(TELLING, move || {
        match there.generation_now(disk, &file, fills) {
            Ok(Some(generation)) => Says::Generation(generation),
            Ok(None) => Says::No,
            Err(_) => Says::Unreadable,
        }
    })
}

/// A newer image is there, by what was told, and does not confirm that.
fn is_silent(on: &DatastoreHandle) -> Error {
    let name = on.name();
    let message = format!(
        "datastore {name} may have a newer image of the disk, and does not answer now"
    );
    Error::unavailable(message)
        .hint("repair the datastore; Sterna tries again every few seconds")
}

/// What it told of a newer image is not so any more, so nobody knows what it has.
fn has_changed(on: &DatastoreHandle) -> Error {
    let message = format!(
        "datastore {} had a newer image of the disk, and has not any more: Sterna looks again \
         what images it has",
        on.name()
    );
    Error::unavailable(message).hint("wait: Sterna tries again every few seconds")
}

/// Nobody could be asked. The datastores may be in the best of order, so the disk waits.
pub(crate) fn no_thread() -> Error {
    let message = "the system has no thread to ask the datastores what images of the disk \
                   they have";
    Error::unavailable(message).hint(
        "check the limit of threads (TasksMax of the service); Sterna tries again every few \
         seconds",
    )
}

fn is_older(
    disk: &DiskRecord,
    generation: u64,
    there: &str,
    migration: Option<u64>,
) -> Error {
    let name = &disk.name;
    let first = migration.map_or_else(String::new, |id| {
        format!("`sterna migration cancel {id}`, which keeps both images, then ")
    });
    let message = format!(
        "datastore {there} has a newer image of the disk (generation {generation}; this state \
         knows {}): the state directory is older than the disk",
        disk.generation
    );
    Error::in_use(message).hint(format!(
        "restore the newest state directory; if there is none, {first}`sterna disk remove \
         {name} --keep-image`, then `sterna disk recover`"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sterna_api::ErrorCode;
    use sterna_engine::datastore::Provision;
    use sterna_engine::sidecar::{Identity, Role};

    use crate::disks::identity;
    use crate::stage::Stage;

    #[test]
    fn a_disk_is_older_than_the_next_image_if_the_newest_is_gone() {
        let stage = Stage::with(&["here", "there"]);
        let disk = stage.disk_x("here", 3);
        let there = stage.handle("there").get().unwrap();
        for (name, generation) in [("seven", 7), ("five", 5)] {
            let says = identity(&disk, generation, Role::Active);
            let says = Identity { name: name.into(), ..says };
            there.create_image(&says, Provision::Thin).unwrap();
        }
        let check = || stage.storage.check_is_newest(&disk, &stage.handle("here"), None);
        let refused = || check().unwrap_err();
        assert!(refused().message.contains("generation 7"), "{:?}", refused());
        // Its sidecar stays, which says nothing without it.
        fs::remove_file(stage.directory("there").join("seven.raw")).unwrap();
        assert_eq!(refused().code, ErrorCode::Unavailable);
        assert!(refused().message.contains("generation 5"), "{:?}", refused());
        fs::remove_file(stage.directory("there").join("five.raw")).unwrap();
        assert_eq!(refused().code, ErrorCode::Unavailable);
        check().unwrap();
    }
}
