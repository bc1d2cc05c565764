//! Disks whose image takes long to be made: all of it is written with zeroes.
//!
//! Until that is done the image calls itself partial, so that nobody takes it for a disk; and a
//! note in the state directory says that this daemon makes it. If the daemon is killed, the
//! next one finds the note, and removes the image. An orderly stop ends the writing, and
//! removes the image.
//!
//! The note alone proves nothing (the state may be restored from a backup): what is removed must
//! be an image of a disk that no state has recorded, which says that it is this disk's,
//! partial and of the first generation. The copy of a move has a higher one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sterna_api::{Error, Provision, Result};
use sterna_core::DiskId;
use sterna_engine::ImageSpec;
use sterna_engine::datastore::{Datastore, DatastoreError};
use sterna_engine::sidecar::{FIRST, Role};
use sterna_runtime::tasks::Task;
use sterna_state::DiskRecord;

use crate::Storage;
use crate::datastores::claim_of as datastore_claim;
use crate::disks::{claim_of, identity, new_record};
use crate::handle::DatastoreHandle;
use crate::own_disk::ends;

/// Where the notes are in the state directory.
const NOTES: &str = "unfinished";

/// How often leftovers are looked for: their datastores may be offline.
const EVERY: Duration = Duration::from_secs(5);

/// Removes what daemons before have left of disks that they were making.
pub fn clearing_unfinished(storage: &Arc<Storage>) -> Task {
    let clear = |storage: &Arc<Storage>| storage.clear_unfinished();
    let what = "remove images of disks that were not finished";
    Task::every("unfinished", what, EVERY, storage, clear)
}

impl Storage {
    fn notes(&self) -> PathBuf {
        self.places.state.join(NOTES)
    }

    /// Notes that a disk's image is being made, durably.
    pub(crate) fn note_unfinished(&self, disk: &DiskRecord) -> Result<()> {
        let notes = self.notes();
        let text = format!("{}\n{}\n{}\n", disk.name, disk.size, disk.datastore);
        let written = fs::create_dir_all(&notes).and_then(|()| {
            let mut file = File::create(notes.join(disk.id.to_string()))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            File::open(&notes)?.sync_all()
        });
        written.map_err(|error| {
            let (name, notes) = (&disk.name, notes.display());
            Error::unavailable(format!(
                "cannot create disk {name}: Sterna cannot note in {notes} that it makes \
                 the image: {error}"
            ))
            .hint("make room in the state directory, then try again")
        })
    }

    /// The image is a disk's, or is gone.
    pub(crate) fn forget_unfinished(&self, disk: DiskId) {
        let note = self.notes().join(disk.to_string());
        match fs::remove_file(&note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let note = note.display();
                tracing::debug!(%note, %error, "a note was left behind");
            }
            _ => {}
        }
    }

    /// Fills a new image with zeroes; then it calls itself what it is to be. Ends early when
    /// the daemon stops.
    pub(crate) fn finish_image(
        &self,
        store: &Datastore,
        image: &ImageSpec,
        disk: &DiskRecord,
        handle: &DatastoreHandle,
        role: Role,
    ) -> Result<()> {
        let filled = store.fill_zeroes(image, disk.size, &mut |_| !self.is_ending());
        let finished = filled
            .and_then(|()| store.write_sidecar(image, &identity(disk, FIRST, role)));
        finished.map_err(|error| match error {
            DatastoreError::Stopped => ends(),
            error => handle.refused(&error),
        })
    }

    /// Removes images that were not finished, where that can be done now.
    fn clear_unfinished(&self) -> Result<()> {
        let Ok(notes) = fs::read_dir(self.notes()) else { return Ok(()) };
        for note in notes.flatten() {
            if let Some(disk) = read(&note.path()) {
                self.clear_one(&disk)?;
            }
        }
        Ok(())
    }

    fn clear_one(&self, disk: &DiskRecord) -> Result<()> {
        let claims = &self.claims;
        let (Ok(_name), Ok(_datastore)) = (
            claims.alone(claim_of(&disk.name)),
            claims.shared(datastore_claim(&disk.datastore)),
        ) else {
            // It is being made.
            return Ok(());
        };
        let is_recorded = self.store.disks()?.iter().any(|it| it.id == disk.id);
        // Without the datastore nobody can get at it any more.
        let handle = self.handle(&disk.datastore).ok().filter(|_| !is_recorded);
        if let Some(handle) = handle {
            // What is offline, or does not answer, is tried again.
            if let Err(error) = self.remove_unfinished(disk, &handle) {
                tracing::debug!(disk = disk.name, %error, "an unfinished image stays");
                return Ok(());
            }
        }
        self.forget_unfinished(disk.id);
        Ok(())
    }

    fn remove_unfinished(
        &self,
        disk: &DiskRecord,
        handle: &Arc<DatastoreHandle>,
    ) -> Result<()> {
        let _placing = self.placing(handle);
        handle.must_answer()?;
        match self.is_made(disk, handle, Role::Partial)? {
            true => self.remove_made(disk, handle),
            false => Ok(()),
        }
    }
}

/// What a note says, if it is whole. One that is not was never durable, and no image was made.
fn read(note: &Path) -> Option<DiskRecord> {
    let id = note.file_name()?.to_str()?.parse().ok()?;
    let text = fs::read_to_string(note).ok()?;
    let mut lines = text.lines();
    let (name, size, datastore) = (lines.next()?, lines.next()?, lines.next()?);
    let size = size.parse().ok().filter(|_| text.ends_with('\n'))?;
    let record = new_record(name, size, datastore, Provision::ThickZeroed).ok()?;
    Some(DiskRecord { id, ..record })
}

#[cfg(test)]
mod tests {
    use sterna_engine::datastore;

    use super::*;
    use crate::stage::Stage;

    /// A daemon was killed while it made a disk: its image calls itself so.
    fn killed(stage: &Stage, role: Role) -> DiskRecord {
        let disk = new_record("z", 1 << 20, "here", Provision::ThickZeroed).unwrap();
        stage.storage.note_unfinished(&disk).unwrap();
        let store = stage.handle("here").get().unwrap();
        let says = identity(&disk, FIRST, role);
        store.create_image(&says, datastore::Provision::ThickZeroed).unwrap();
        disk
    }

    fn has_note(stage: &Stage) -> bool {
        fs::read_dir(stage.storage.notes()).is_ok_and(|mut it| it.next().is_some())
    }

    fn has_image(stage: &Stage) -> bool {
        stage.directory("here").join("z.raw").exists()
    }

    #[test]
    fn an_image_that_was_not_finished_is_removed_by_the_next_daemon() {
        let stage = Stage::with(&["here"]);
        killed(&stage, Role::Partial);
        stage.storage.clear_unfinished().unwrap();
        assert!(!has_image(&stage) && !has_note(&stage));
        stage.storage.create_disk("z", 1 << 20, "here", Provision::Thin).unwrap();
    }

    #[test]
    fn an_image_that_calls_itself_the_truth_stays_whatever_a_note_says() {
        let stage = Stage::with(&["here"]);
        killed(&stage, Role::Active);
        stage.storage.clear_unfinished().unwrap();
        assert!(has_image(&stage) && !has_note(&stage));
    }

    #[test]
    fn an_image_is_tried_again_until_its_datastore_answers() {
        let stage = Stage::with(&["here"]);
        killed(&stage, Role::Partial);
        let thaws = stage.handle("here").freezes();
        stage.storage.clear_unfinished().unwrap();
        assert!(has_image(&stage) && has_note(&stage));
        drop(thaws);
    }

    #[test]
    fn nothing_is_noted_any_more_of_a_disk_that_is_made() {
        let stage = Stage::with(&["here"]);
        let wanted = Provision::ThickZeroed;
        stage.storage.create_disk("z", 1 << 20, "here", wanted).unwrap();
        assert!(!has_note(&stage));
        let record = stage.storage.disk_record("z").unwrap();
        let said = stage.handle("here").says(&record.image, record.size).unwrap();
        assert_eq!(said, Some(identity(&record, FIRST, Role::Active)));
    }

    #[test]
    fn a_daemon_that_stops_leaves_no_image_that_is_not_finished() {
        let stage = Stage::with(&["here"]);
        stage.storage.begin_to_end();
        let wanted = Provision::ThickZeroed;
        let stopped = stage.storage.create_disk("z", 1 << 20, "here", wanted);
        assert!(stopped.unwrap_err().message.contains("the daemon stops"));
        assert!(!has_image(&stage));
        stage.storage.clear_unfinished().unwrap();
        assert!(!has_note(&stage));
    }

    #[test]
    fn a_note_that_is_not_whole_says_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let note = scratch.path().join(DiskId(7).to_string());
        for (text, is_whole) in
            [("z\n512\nhere\n", true), ("z\n512\nhe", false), ("", false)]
        {
            fs::write(&note, text).unwrap();
            assert_eq!(read(&note).is_some(), is_whole, "{text:?}");
        }
    }
}
