//! Files that have exchanged their names while no daemon ran.
//!
//! A sidecar says which file its image is (`Beside`). If a disk's name leads to another file,
//! that may be a backup that was restored, so the disk is served, with a warning. But if the
//! sidecar of another image names exactly that file, then the file is *that* image: two files were
//! exchanged by name, or one is a link to the other. It may be another disk's, a copy that a
//! move makes, or an old copy. Clients would read what is another's or stale, and what they
//! write would land in an image that may be another disk's only one. So the disk is not served,
//! and no sidecar is changed, until its own file is back.
//!
//! **What is not found**: a file system that does not say when its files were made; a sidecar
//! of an old format, which does not name its file; a copy of another disk's file (a new file,
//! whose bytes alone are the other disk's); an image on another datastore that cannot be
//! opened; and a file whose own disk has got a new file since, which is that disk's then.

use std::sync::Arc;
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_engine::datastore::FoundSidecar;
use sterna_engine::sidecar::{Beside, Role};
use sterna_state::DiskRecord;

use crate::Storage;
use crate::handle::{Answer, DatastoreHandle};
use crate::newer::no_thread;

/// How long a datastore may take to say what one sidecar says.
const TELLING: Duration = Duration::from_secs(3);

impl Storage {
    /// Refuses a disk whose name leads to the file of another disk or of a copy.
    pub fn check_is_its_file(
        &self,
        disk: &DiskRecord,
        on: &DatastoreHandle,
    ) -> Result<()> {
        let store = on.get()?;
        let image = store.image(&disk.image).map_err(|error| on.refused(&error))?;
        // What cannot be read now is told by the opening of the image.
        let Some(is) = store.another_file(&image).ok().flatten() else { return Ok(()) };
        match self.owner_of_file(disk, is)? {
            Some(owner) => Err(is_exchanged(disk, on, &owner)),
            None => Ok(()),
        }
    }

    /// Whose sidecar names this file, if it is not the image's own.
    fn owner_of_file(&self, disk: &DiskRecord, is: Beside) -> Result<Option<String>> {
        let mut handles = self.all_handles();
        handles.retain(|handle| handle.is_shared());
        // All at once: several may be silent.
        let told: Vec<_> = handles.iter().map(DatastoreHandle::ask_sidecars).collect();
        if told.iter().any(|told| told.has_no_thread()) {
            return Err(no_thread());
        }
        // A copy of its own sidecar says nothing of another image. With another generation it
        // is no copy: the disk has left that image, or this state is older than it.
        let is_disks = |it: &&FoundSidecar| {
            let said = &it.identity;
            said.id == disk.id
                && said.role == Role::Active
                && said.generation == disk.generation
        };
        let mut owner = None;
        for (handle, told) in handles.iter().zip(told) {
            let is_here = handle.name() == disk.datastore;
            let is_own = |it: &&FoundSidecar| is_here && it.file == disk.image;
            let answer = told.answer();
            let Some(told) = answer.told() else {
                // If the disk is served, its sidecar is changed, and says nothing any more; and
                // whoever's file it is may lose it. Only one that cannot be opened is left out:
                // one that is still being opened will tell.
                let is_away = matches!(answer, Answer::Failed) && handle.get().is_err();
                if is_here || !is_away {
                    return Err(is_silent(disk, handle));
                }
                continue;
            };
            let others = told.made_for(&is).filter(|it| !is_own(it) && !is_disks(it));
            for found in others {
                let Some(still) = still(handle, found, is) else {
                    return Err(is_silent(disk, handle));
                };
                owner = owner.or(still);
            }
            if owner.is_none() && !answer.is_all() {
                return Err(is_silent(disk, handle));
            }
        }
        Ok(owner)
    }
}

/// Whose image it is, if its sidecar still names the file. Nothing if that cannot be read now.
fn still(
    handle: &Arc<DatastoreHandle>,
    found: &FoundSidecar,
    is: Beside,
) -> Option<Option<String>> {
    let (there, file) = (handle.clone(), found.file.clone());
    let said = handle.visits.sidecar.ask(TELLING, move || {
        let store = there.get().ok()?;
        store.said(&store.image(&file).ok()?).ok()
    });
    let said = said.answer()??;
    let its = said.filter(|(_, file)| file.is_some_and(|file| file.is_surely(&is)));
    Some(its.map(|(identity, _)| {
        let name = identity.name;
        match identity.role {
            Role::Active => format!("disk {name}"),
            Role::Partial => format!("the copy of disk {name}"),
            Role::Retired => format!("an old copy of disk {name}"),
        }
    }))
}

fn is_silent(disk: &DiskRecord, on: &DatastoreHandle) -> Error {
    let (name, datastore) = (&disk.name, on.name());
    let tells = match on.cannot_tell() {
        Some(problem) => format!("cannot tell what images it has ({problem})"),
        None => "does not tell in time what images it has".into(),
    };
    let message = format!(
        "datastore {datastore} {tells}: Sterna does not know yet whether the file of disk \
         {name} is another disk's"
    );
    let or_remove = match disk.datastore == datastore {
        true => String::new(),
        false => {
            format!(", or, if no disk is there, `sterna datastore remove {datastore}`")
        }
    };
    Error::unavailable(message).hint(format!(
        "repair datastore {datastore}{or_remove}; Sterna tries again every few seconds"
    ))
}

fn is_exchanged(disk: &DiskRecord, on: &DatastoreHandle, owner: &str) -> Error {
    let (name, datastore, image) = (&disk.name, on.name(), &disk.image);
    let message = format!(
        "on datastore {datastore}, {image} is not the file of disk {name}, but that of \
         {owner}: files were exchanged, or one file is a link to the other"
    );
    let hint = "give each file its name back (the sidecars have not moved): Sterna then \
                serves the disk within seconds";
    Error::in_use(message).hint(hint)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sterna_core::DiskId;
    use sterna_engine::datastore::Provision;
    use sterna_engine::sidecar::Identity;
    use sterna_os::lock;

    use crate::disks::identity;
    use crate::stage::Stage;

    use super::*;

    /// The disk `x`, whose file and that of a disk `y` of another datastore were exchanged.
    fn exchanged() -> (Stage, DiskRecord) {
        let stage = Stage::with(&["here", "there"]);
        let disk = stage.disk_x("here", 1);
        let x = identity(&disk, 1, Role::Active);
        let y = Identity { id: DiskId(8), name: "y".into(), ..x };
        let there = stage.handle("there").get().unwrap();
        there.create_image(&y, Provision::Thin).unwrap();
        let file = |datastore: &str, name: &str| stage.directory(datastore).join(name);
        let (x, y) = (file("here", "x.raw"), file("there", "y.raw"));
        let aside = file("here", "aside");
        for (from, to) in [(&x, &aside), (&y, &x), (&aside, &y)] {
            fs::rename(from, to).unwrap();
        }
        (stage, disk)
    }

    #[test]
    fn a_disk_waits_for_a_datastore_that_is_still_being_opened() {
        let (stage, disk) = exchanged();
        let here = stage.handle("here");
        let there = stage.storage.new_handle(stage.handle("there").record().clone());
        lock(&stage.storage.handles).insert("there".into(), there.clone());
        let check = || stage.storage.check_is_its_file(&disk, &here).unwrap_err();
        let opening = there.opens();
        assert!(check().message.contains("does not tell in time"));
        drop(opening);
        // It tells on from where it was.
        let until = std::time::Instant::now() + TELLING * 3;
        while check().code == sterna_api::ErrorCode::Unavailable {
            assert!(std::time::Instant::now() < until, "{:?}", check());
        }
        assert!(check().message.contains("that of disk y"), "{:?}", check());
    }

    #[test]
    fn a_disk_that_waits_for_a_datastore_that_cannot_be_read_says_why() {
        let (stage, disk) = exchanged();
        let check = || stage.storage.check_is_its_file(&disk, &stage.handle("here"));
        fs::remove_file(stage.directory("there").join("y.raw.sterna")).unwrap();
        check().unwrap();
        stage.handle("there").says_something_else();
        fs::create_dir(stage.directory("there").join("y.raw.sterna")).unwrap();
        let refused = check().unwrap_err();
        assert!(refused.message.contains("y.raw.sterna"), "{refused:?}");
        assert!(refused.hint.contains("sterna datastore remove there"), "{refused:?}");
    }

    #[test]
    fn a_disk_is_not_served_from_an_image_that_it_has_left() {
        let stage = Stage::with(&["here", "there"]);
        // The move has ended before the old image was retired.
        stage.image_of_x("here", 1);
        let disk = stage.disk_x("there", 2);
        let check = || stage.storage.check_is_its_file(&disk, &stage.handle("there"));
        check().unwrap();
        let [old, new] = ["here", "there"].map(|it| stage.directory(it).join("x.raw"));
        fs::rename(old, new).unwrap();
        let refused = check().unwrap_err();
        assert!(refused.message.contains("that of disk x"), "{}", refused.message);
    }
}
