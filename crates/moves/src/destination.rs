//! Whether the destination of a migration that was under way is still the migration's: asked
//! before its mirror opens it again.

use sterna_api::{Error, ErrorCode};
use sterna_engine::ImageSpec;
use sterna_engine::sidecar::Identity;
use sterna_state::{Blame, MigrationRecord};
use sterna_storage::handle::DatastoreHandle;

use super::obstacle::{Obstacle, obstacle};
use super::own_images::{copies, is_copy};
use super::start::partial;
use crate::Moves;

impl Moves {
    /// Checks that the destination image is the one of this migration, and gives
    /// it the sidecar that it should have. With `repair` also if its sidecar is
    /// damaged or gone: then every byte of it is going to be compared.
    pub(super) fn check_destination(
        &self,
        record: &MigrationRecord,
        repair: bool,
    ) -> Result<(), Obstacle> {
        let to = &record.to.datastore;
        let unreachable = |error| Obstacle {
            unreachable: !repair,
            blame: Blame::Away,
            ..obstacle(error, &format!("check datastore {to}"), repair)
        };
        let handle = self.storage.handle(to).map_err(unreachable)?;
        // Here the job's turn is held, so nothing may wait for what hangs.
        handle.must_answer().map_err(unreachable)?;
        let store = handle.get().map_err(unreachable)?;
        self.storage.check_is_no_disk(&handle).map_err(|error| match error.code {
            ErrorCode::Unavailable => unreachable(error),
            _ => obstacle(error, "free the datastore", repair),
        })?;
        let is_its_place = self.check_place(record, &handle, repair, &unreachable)?;
        let image = handle.image(&record.to.image).map_err(unreachable)?;
        let expected = partial(record);
        let is_copys = |found: &Identity| *found == expected || is_copy(found, record);
        handle
            .check_file(&record.to.image)
            .map_err(|error| obstacle(error, "put the file of the copy back", true))?;
        handle
            .follow_growth(&record.to.image, &copies(record), is_its_place)
            .map_err(unreachable)?;
        let said = store.read_sidecar(&image, record.size);
        if said.as_ref().is_ok_and(is_copys) {
            check_is_the_file(record, &handle)?;
        }
        match said {
            Ok(found) if found == expected => Ok(()),
            // A switch-over that was undone, or a crash between two steps: the
            // source outranks it, and says the store.
            Ok(found) if is_copy(&found, record) => {
                handle.identify(&record.to.image, &expected).map_err(unreachable)
            }
            Ok(found) => {
                let message = format!(
                    "Sterna has found another image in the place of the copy on datastore \
                     {to}: the image's sidecar says disk {}, generation {}, {}",
                    found.name, found.generation, found.role
                );
                let remedy = "find out which program, or which other Sterna, put the image \
                              there, and put the copy back";
                Err(obstacle(Error::unavailable(message), remedy, true))
            }
            Err(error) if error.says_no_sidecar() && is_missing(&handle, &image) => {
                let message = format!(
                    "datastore {to} has no image {} of the copy any more",
                    record.to.image
                );
                let remedy = "cancel the migration, or put the copy back if it was moved \
                              away";
                Err(obstacle(Error::unavailable(message), remedy, true))
            }
            Err(error) if repair && error.says_no_sidecar() => {
                handle.identify(&record.to.image, &expected).map_err(unreachable)
            }
            // What cannot be read may be another disk's.
            Err(error) => {
                let remedy =
                    format!("check that the image on datastore {to} is the right image");
                Err(obstacle(handle.refused(&error), &remedy, true))
            }
        }
    }

    /// Checks that the destination's place is still the copy's. Says whether its content proves
    /// that.
    fn check_place(
        &self,
        record: &MigrationRecord,
        on: &DatastoreHandle,
        repair: bool,
        unreachable: &dyn Fn(Error) -> Obstacle,
    ) -> Result<bool, Obstacle> {
        let checked = self.storage.check_is_place_of_copy(record, on, repair);
        let is_proven = checked.map_err(|error| match error.code {
            ErrorCode::Unavailable => unreachable(error),
            _ => not_its_place(error, repair),
        })?;
        if !is_proven {
            let free = self.storage.check_is_still_free(on, record.disk);
            free.map_err(|error| match error.code {
                ErrorCode::Unavailable => unreachable(error),
                _ => obstacle(error, "give the copy a place of its own", repair),
            })?;
        }
        Ok(is_proven)
    }
}

/// Refuses a file of which nobody knows whether it is the copy: its sidecar is beside it, and
/// proves nothing. An operator who was told that, and resumes, knows better.
fn check_is_the_file(
    record: &MigrationRecord,
    on: &DatastoreHandle,
) -> Result<(), Obstacle> {
    let file = &record.to.image;
    let Err(error) = on.check_is_surely(file) else { return Ok(()) };
    let reason = error.to_string();
    if record.pause.as_ref().is_some_and(|pause| pause.reason == reason) {
        tracing::warn!(
            migration = record.id,
            file,
            "the operator says that it is the copy"
        );
        return on.bind_file(file).map_err(|error| obstacle(error, "", true));
    }
    let remedy = "check that no other program has put its file in the place of the copy";
    Err(Obstacle { is_unproven: true, ..obstacle(error, remedy, true) })
}

/// Whether there is nothing where the copy was.
fn is_missing(on: &DatastoreHandle, image: &ImageSpec) -> bool {
    let ImageSpec::File { path, .. } = image else { return false };
    let path = path.clone();
    on.answer_to(move || matches!(path.try_exists(), Ok(false))).unwrap_or(false)
}

/// The place of a copy is another's, or others have written to it.
fn not_its_place(error: Error, repair: bool) -> Obstacle {
    match error.hint.clone() {
        hint if hint.is_empty() => {
            obstacle(error, "put the right device or server back", repair)
        }
        // People who know better have all of it compared.
        hint => obstacle(error, &hint, true),
    }
}
