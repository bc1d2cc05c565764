//! Old images that could not be put away when their migrations ended: their datastores were
//! away just then.
//!
//! Such an image still calls itself the truth of its disk, so no disk can be put in its place,
//! and a state from an old backup would serve it. Sterna tries again while the datastore is known,
//! also after a restart: the note of the migration says that the image stays. It becomes an
//! old copy then. A file stays, as it is the operator who has seen last what became of it; what
//! is on a device or an export stays as well, but the sidecar behind it goes, so that the place
//! is free for a disk.
//!
//! If something else is there by then, or nothing, the note says so.
//!
//! Nothing is done unless the image says of itself what the migration has left there, and the
//! disk is served from a newer image that is under its name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sterna_api::Result;
use sterna_engine::sidecar::{Identity, Role};
use sterna_os::lock;
use sterna_runtime::threads;
use sterna_state::{DiskRecord, MigrationRecord, Step};
use sterna_storage::datastores::claim_of as datastore_claim;
use sterna_storage::handle::DatastoreHandle;

use super::left_behind::STAYS;
use super::own_images::is_old_source;
use super::start::partial;
use crate::{KEPT, Moves};

/// The migrations whose old images are still to be put away, and whether one is at it. Nothing
/// until they were looked for in the state.
#[derive(Debug, Default)]
pub(super) struct Overdue(Mutex<Option<BTreeMap<u64, bool>>>);

impl Overdue {
    /// One more. If nobody has looked for them yet, its note tells of it.
    pub(super) fn add(&self, id: u64) {
        if let Some(all) = lock(&self.0).as_mut() {
            all.insert(id, false);
        }
    }

    /// Begins with one; false if somebody else is at it, or it is done.
    fn begin(&self, id: u64) -> bool {
        let mut all = lock(&self.0);
        let begun = all.as_mut().and_then(|all| all.get_mut(&id));
        begun.is_some_and(|begun| !std::mem::replace(begun, true))
    }

    /// What was begun has ended: for good, or to be tried again.
    fn end(&self, id: u64, is_done: bool) {
        let mut all = lock(&self.0);
        let Some(all) = all.as_mut() else { return };
        match is_done {
            true => drop(all.remove(&id)),
            false => drop(all.insert(id, false)),
        }
    }
}

/// How it went with an image.
enum Tried {
    /// It is an old copy now, or no image any more.
    PutAway,
    /// What is there is not what the migration has left, or may be needed.
    NotOurs,
    /// The time for it has not come.
    NotYet,
}

/// What there is in the place of an image that is to be put away.
#[derive(Clone, Copy, Debug)]
enum Instead {
    /// What an earlier attempt has made of it, before it could be noted.
    OldCopy,
    /// Another image.
    Another,
    /// No file.
    NoFile,
    /// A device or an export without a sidecar, of which the image was to be kept.
    NoSidecar,
}

impl Moves {
    /// Tries again to put away old images, each by itself: their storage may hang.
    pub fn put_away_overdue(self: &Arc<Self>) -> Result<()> {
        for id in self.overdue()? {
            threads::aside(self, move |moves| moves.put_away_one(id));
        }
        Ok(())
    }

    /// The same of one datastore, before the caller needs the place.
    pub fn put_away_overdue_at(&self, datastore: &str) -> Result<()> {
        for id in self.overdue()? {
            if self.migration_record(id)?.from.datastore == datastore {
                self.put_away_one(id);
            }
        }
        Ok(())
    }

    /// The migrations whose old images are to be put away.
    fn overdue(&self) -> Result<Vec<u64>> {
        if let Some(all) = lock(&self.overdue.0).as_ref() {
            return Ok(all.keys().copied().collect());
        }
        let stays = |one: &MigrationRecord| {
            let is_noted = one.note.as_ref().is_some_and(|it| it.starts_with(STAYS));
            one.step == Step::Completed && is_noted
        };
        let found = self.storage.store.migrations()?.into_iter().filter(stays);
        let found: BTreeMap<u64, bool> = found.map(|one| (one.id, false)).collect();
        let mut all = lock(&self.overdue.0);
        Ok(all.get_or_insert(found).keys().copied().collect())
    }

    fn put_away_one(&self, id: u64) {
        if !self.overdue.begin(id) {
            return;
        }
        let tried =
            self.migration_record(id).and_then(|record| self.put_away_late(&record));
        match &tried {
            Ok(Tried::PutAway) => tracing::info!(migration = id, "old image put away"),
            Ok(Tried::NotOurs) => {
                tracing::info!(migration = id, "the old image is not there any more");
            }
            Ok(Tried::NotYet) => {}
            Err(error) => {
                tracing::debug!(migration = id, %error, "the old image still stays");
            }
        }
        self.overdue.end(id, matches!(tried, Ok(Tried::PutAway | Tried::NotOurs)));
    }

    fn put_away_late(&self, record: &MigrationRecord) -> Result<Tried> {
        let (store, on) = (&self.storage.store, &record.from.datastore);
        // One that is removed meanwhile has no record either.
        let Ok(_claim) = self.storage.claims.shared(datastore_claim(on)) else {
            return Ok(Tried::NotYet);
        };
        let disk = store.disks()?.into_iter().find(|disk| disk.id == record.disk);
        let Some(disk) = disk.filter(|disk| is_elsewhere(disk, record)) else {
            return Ok(Tried::NotOurs);
        };
        let has = |one: &MigrationRecord| one.has(on, &record.from.image);
        if self.storage.problem_of(disk.id).is_some()
            || store.open_migrations()?.iter().any(has)
        {
            return Ok(Tried::NotYet);
        }
        let (handle, file) = (self.storage.handle(on)?, &record.from.image);
        handle.must_answer()?;
        // Of a place that is to be free, it may be that only the last step has failed before.
        let frees = !handle.is_shared() && !record.keep_source;
        let is_left = |it: &Identity| {
            let is_of_us = it.role == Role::Active || frees && it.role == Role::Retired;
            is_of_us && is_old_source(it, record)
        };
        let says = handle.says(file, record.size)?;
        store.must_be_there()?;
        if !says.as_ref().is_some_and(is_left) {
            return self.has_left(record, &handle, says.as_ref());
        }
        self.check_won(record)?;
        let retired = Identity {
            generation: record.source_generation,
            role: Role::Retired,
            ..partial(record)
        };
        match frees {
            true => handle.free_ours(file, record.size, is_left)?,
            false => handle.identify_ours(file, &retired, is_left)?,
        }
        store.set_end_note(record.id, &self.put_away_note(record, &handle))?;
        Ok(Tried::PutAway)
    }

    /// Notes what is there instead of an image that is to be put away.
    fn has_left(
        &self,
        record: &MigrationRecord,
        handle: &DatastoreHandle,
        says: Option<&Identity>,
    ) -> Result<Tried> {
        let instead = match says {
            Some(says) if is_old_source(says, record) => Instead::OldCopy,
            Some(_) => Instead::Another,
            // Sterna frees such a place by its sidecar alone.
            None if !handle.is_shared() && !record.keep_source => Instead::OldCopy,
            None if !handle.is_shared() => Instead::NoSidecar,
            // A file that cannot be looked at is an error, and may be there.
            None => match handle.look_at_image(&record.from.image)?.found {
                Some(_) => return Ok(Tried::NotYet),
                None => Instead::NoFile,
            },
        };
        let (note, tried) = match left(&self.place(&record.from), instead) {
            Some(note) => (note, Tried::NotOurs),
            None => (self.put_away_note(record, handle), Tried::PutAway),
        };
        self.storage.store.set_end_note(record.id, &note)?;
        Ok(tried)
    }

    fn put_away_note(&self, record: &MigrationRecord, on: &DatastoreHandle) -> String {
        let place = self.place(&record.from);
        match on.removal_command(&record.from.image) {
            Some(command) => format!("{KEPT} {place}; {command} removes the old image"),
            None if record.keep_source => format!("{KEPT} {place}"),
            None => format!(
                "the old image was put away later: datastore {} was away when the migration \
                 ended",
                record.from.datastore
            ),
        }
    }
}

/// What is said of an old image that is not at its place any more, or not known to be; nothing
/// of one that is put away.
fn left(place: &str, instead: Instead) -> Option<String> {
    Some(match instead {
        Instead::OldCopy => return None,
        Instead::Another => {
            format!(
                "the old image is not at {place} any more: another image is there now"
            )
        }
        Instead::NoFile => format!(
            "the old image is not at {place} any more: there is no file of that name now"
        ),
        Instead::NoSidecar => format!(
            "the old image at {place} has no sidecar any more: Sterna does not know whether \
             the image's bytes are still there"
        ),
    })
}

/// Whether a disk has a newer image than the one that a migration has left, in another place.
fn is_elsewhere(disk: &DiskRecord, left: &MigrationRecord) -> bool {
    let is_there = disk.datastore == left.from.datastore && disk.image == left.from.image;
    disk.generation > left.source_generation && !is_there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_of_an_old_image_that_has_left_is_not_tried_again() {
        for (instead, said) in [
            (Instead::Another, "not at /a/db.raw any more: another image"),
            (Instead::NoFile, "not at /a/db.raw any more: there is no file of that name"),
            (Instead::NoSidecar, "/a/db.raw has no sidecar any more"),
        ] {
            let note = left("/a/db.raw", instead).unwrap_or_default();
            assert!(!note.starts_with(STAYS), "{note}");
            assert!(note.contains(said), "{note}");
            assert!(!note.contains("removed"), "nobody knows who did it: {note}");
        }
        assert_eq!(
            left("/dev/vdb", Instead::OldCopy),
            None,
            "its note is that of the end"
        );
    }
}
