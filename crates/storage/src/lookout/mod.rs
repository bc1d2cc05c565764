//! The lookout: what has become of the files that disks are served from.
//!
//! A disk goes on where its image is removed, replaced or shortened: its descriptors lead to
//! the file that it had. But what its guest writes from then on is gone with the daemon, or
//! what it reads is not there; so somebody is told within seconds (`status`, and the disk's
//! problem), and what can be done. A disk that is moved away keeps all that it has.
//!
//! Looking may hang with a file system. So it is done on a thread of its own, and each
//! datastore is asked on another one and left behind if it does not answer: neither the
//! reactors nor those who answer the API wait for it, and what was known stays.

mod writes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use sterna_api::Warning;
use sterna_core::DiskId;
use sterna_engine::datastore::{Datastore, DatastoreError};
use sterna_engine::{Astray, HeldFile};
use sterna_os::lock;
use sterna_runtime::tasks::Task;
use sterna_state::DiskRecord;

pub use self::writes::Watched;
use crate::Storage;
use crate::disks::place_of;
use crate::handle::DatastoreHandle;

/// How often files are looked at: so much of what a guest writes may be lost before
/// somebody can know. It takes two questions to the file system for each disk.
const EVERY: Duration = Duration::from_secs(3);

/// What is known of the files that are open.
pub struct Lookout {
    /// Of which there is something to say, with the datastore of that image.
    astray: Mutex<HashMap<DiskId, (String, Trouble)>>,
}

/// What there is to say of a disk's image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Trouble {
    /// It was another file than the one that its sidecar knew when the disk was brought
    /// up.
    was_another: bool,
    /// What has become of it since.
    astray: Option<Astray>,
    /// Its name leads elsewhere because its datastore is not at its place: the file is
    /// where it was, and nobody can move the disk before the datastore is back.
    is_out_of_sight: bool,
}

impl Trouble {
    /// What happened.
    fn message(&self) -> Option<String> {
        match (&self.astray, self.was_another) {
            (Some(astray), _) if self.is_hidden(astray) => Some(
                "its image is out of sight: its datastore is offline, and the guest \
                 works on"
                    .into(),
            ),
            (Some(astray), _) => Some(format!("problem with its image file: {astray}")),
            (None, true) => Some(
                "its image file was replaced while the daemon was down, for example by \
                 a copy or a backup"
                    .into(),
            ),
            (None, false) => None,
        }
    }

    /// Whether the image may be well, and just cannot be seen.
    fn is_hidden(&self, astray: &Astray) -> bool {
        self.is_out_of_sight
            && matches!(astray, Astray::Nameless | Astray::Renamed | Astray::Replaced)
    }

    /// What to do about it.
    fn hint(&self, disk: &str, datastore: &str) -> String {
        match &self.astray {
            Some(astray) if self.is_hidden(astray) => format!(
                "mount the file system of datastore {datastore} again; do not stop the \
                 daemon before"
            ),
            Some(Astray::Renamed) => format!(
                "the next daemon does not find it: before this one ends, put it back, or \
                 move the disk (`sterna migrate {disk} --to DATASTORE`)"
            ),
            Some(Astray::Nameless | Astray::Replaced) => format!(
                "all writes to the disk are lost when the daemon ends: move the disk \
                 now (`sterna migrate {disk} --to DATASTORE`), or put the file back"
            ),
            Some(Astray::Shortened { .. }) => {
                "the missing data cannot be read: stop all programs that use the disk, \
                 restore it from a backup, and restart the daemon"
                    .into()
            }
            Some(Astray::Unseen(_)) => "check its datastore".into(),
            None => format!(
                "check that it is the right file (`sterna disk show {disk}`); the \
                 warning ends when the daemon restarts, or when the disk has moved"
            ),
        }
    }
}

impl Lookout {
    pub(crate) fn new() -> Lookout {
        Lookout { astray: Mutex::default() }
    }

    /// Notes something down of a disk's image on a datastore; says whether that is new. What
    /// was known of an image that the disk has left is forgotten.
    fn note(
        &self,
        disk: DiskId,
        on: &str,
        change: impl FnOnce(&mut Trouble),
    ) -> Option<Trouble> {
        let mut all = lock(&self.astray);
        let known = all.get(&disk).filter(|(there, _)| there == on);
        let old = known.map_or_else(Trouble::default, |(_, trouble)| trouble.clone());
        let mut new = old.clone();
        change(&mut new);
        match new == Trouble::default() {
            true => drop(all.remove(&disk)),
            false => drop(all.insert(disk, (on.to_owned(), new.clone()))),
        }
        (new != old).then_some(new)
    }

    /// Nothing is known of a disk any more: it was removed.
    pub fn forget(&self, disk: DiskId) {
        lock(&self.astray).remove(&disk);
    }

    /// The disk has left its image on this datastore.
    pub fn has_left(&self, disk: DiskId, datastore: &str) {
        let mut all = lock(&self.astray);
        if all.get(&disk).is_some_and(|(there, _)| there == datastore) {
            all.remove(&disk);
        }
    }

    /// What there is to say of a disk's image on a datastore.
    fn of(&self, disk: DiskId, on: &str) -> Option<Trouble> {
        let all = lock(&self.astray);
        all.get(&disk)
            .filter(|(there, _)| there == on)
            .map(|(_, trouble)| trouble.clone())
    }
}

/// Looks at the images of disks.
pub fn looking(storage: &Arc<Storage>) -> Task {
    let look = |storage: &Arc<Storage>| storage.look_at_images();
    Task::every("images", "look at the images of disks", EVERY, storage, look)
}

/// What was seen of the open files of a datastore.
struct Seen {
    /// What has become of each.
    files: Vec<(DiskRecord, Option<Astray>)>,
    /// If a file is not in its place: what is at the place of the datastore instead.
    elsewhere: Option<DatastoreError>,
}

/// Looks at open files; and if one is not in its place, whether the datastore still is.
fn look_at(
    open: Vec<(DiskRecord, Weak<HeldFile>)>,
    datastore: Option<&Datastore>,
) -> Seen {
    let look = |(disk, file): (DiskRecord, Weak<HeldFile>)| {
        let astray = file.upgrade()?.check(disk.size).err();
        Some((disk, astray))
    };
    let files: Vec<_> = open.into_iter().filter_map(look).collect();
    let is_lost = files.iter().any(|(_, astray)| astray.is_some());
    let datastore = datastore.filter(|_| is_lost);
    Seen { files, elsewhere: datastore.and_then(|it| it.check().err()) }
}

impl Storage {
    /// Looks at the files of all disks that are served. Several datastores that hang take
    /// no longer than one.
    fn look_at_images(&self) -> sterna_api::Result<()> {
        let mut disks = self.store.disks()?;
        let mut asked = Vec::new();
        for handle in self.all_handles() {
            let on_it = disks.extract_if(.., |disk| disk.datastore == handle.name());
            // Weak, as a move that ends must be the last who has its old image open.
            let open = |disk: DiskRecord| {
                let file = self.engine.held(disk.id).ok()??;
                Some((disk, Arc::downgrade(&file)))
            };
            let open: Vec<(DiskRecord, Weak<HeldFile>)> =
                on_it.filter_map(open).collect();
            if !open.is_empty() {
                let datastore = handle.get().ok();
                let seen = handle.ask_files(move || look_at(open, datastore.as_deref()));
                asked.push((handle, seen));
            }
        }
        for (handle, seen) in asked {
            // What was known of one that does not answer stays.
            let Some(seen) = seen.answer() else { continue };
            if let Some(error) = seen.elsewhere {
                handle.note(&error);
            }
            let is_offline = handle.problem().is_some();
            for (disk, astray) in seen.files {
                self.has_seen(&disk, astray, is_offline);
            }
        }
        Ok(())
    }

    fn has_seen(&self, disk: &DiskRecord, astray: Option<Astray>, is_offline: bool) {
        let on = &disk.datastore;
        let new = self.lookout.note(disk.id, on, |trouble| {
            trouble.is_out_of_sight = is_offline && astray.is_some();
            trouble.astray = astray;
        });
        let Some(new) = new else { return };
        let (name, place) = (&disk.name, self.image_of(disk));
        match new.message() {
            Some(message) => tracing::warn!(disk = name, place, "{message}"),
            None => tracing::info!(disk = name, place, "its image is in its place again"),
        }
    }

    /// A disk has just been opened: its sidecar says from now on which file it is, and if
    /// that was another one before, somebody is told.
    pub(crate) fn know_again(&self, disk: &DiskRecord, handle: &DatastoreHandle) {
        let Some(file) = self.engine.held(disk.id).ok().flatten() else { return };
        let is = file.identity();
        let was = handle.bind(&disk.image, is).unwrap_or_else(|error| {
            // The next start tries it again.
            tracing::debug!(disk = disk.name, %error, "its sidecar does not know its file");
            None
        });
        let was_another = was.is_some_and(|was| was.differs(&is.beside()));
        let noted = Trouble { was_another, ..Trouble::default() };
        let on = &disk.datastore;
        let new = self.lookout.note(disk.id, on, |trouble| *trouble = noted);
        if let Some(message) = new.and_then(|new| new.message()) {
            tracing::warn!(disk = disk.name, place = self.image_of(disk), "{message}");
        }
    }

    /// What is wrong with the image of a disk that is served.
    pub(crate) fn astray(&self, disk: &DiskRecord) -> Option<String> {
        self.trouble_of(disk)?.message()
    }

    /// The same for those who look after the daemon.
    pub fn warning_of(&self, disk: &DiskRecord, about: String) -> Option<Warning> {
        let trouble = self.trouble_of(disk)?;
        let message = format!("{} ({})", trouble.message()?, self.image_of(disk));
        Some(Warning { about, message, hint: trouble.hint(&disk.name, &disk.datastore) })
    }

    /// What is known of a disk's image. A datastore that has just gone offline takes its
    /// images out of sight before they are looked at again.
    fn trouble_of(&self, disk: &DiskRecord) -> Option<Trouble> {
        let mut trouble = self.lookout.of(disk.id, &disk.datastore)?;
        let handle = self.handle(&disk.datastore);
        trouble.is_out_of_sight |= handle.is_ok_and(|it| it.problem().is_some());
        Some(trouble)
    }

    fn image_of(&self, disk: &DiskRecord) -> String {
        match self.handle(&disk.datastore) {
            Ok(handle) => place_of(&handle.record().location, &disk.image),
            Err(_) => disk.image.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_said_once_and_kept_until_it_is_over() {
        let (lookout, disk) = (Lookout::new(), DiskId(7));
        let see = |astray| lookout.note(disk, "here", |trouble| trouble.astray = astray);
        assert_eq!(see(None), None);
        assert!(see(Some(Astray::Nameless)).is_some());
        assert_eq!(see(Some(Astray::Nameless)), None);
        let hint = lookout.of(disk, "here").expect("it is known").hint("db", "here");
        assert!(hint.contains("move the disk now (`sterna migrate db"), "{hint}");
        assert!(see(Some(Astray::Replaced)).is_some());
        assert_eq!(see(None), Some(Trouble::default()));
        assert_eq!(lookout.of(disk, "here"), None);
    }

    #[test]
    fn an_image_of_a_datastore_that_is_offline_is_not_lost() {
        let trouble = Trouble {
            astray: Some(Astray::Nameless),
            is_out_of_sight: true,
            ..Trouble::default()
        };
        let (message, hint) = (trouble.message(), trouble.hint("db", "slow"));
        assert!(message.is_some_and(|it| it.contains("out of sight")));
        assert!(hint.contains("do not stop the daemon"), "{hint}");
        assert!(!hint.contains("sterna migrate"), "{hint}");
    }

    #[test]
    fn a_disk_that_came_as_another_file_stays_so_while_it_is_well() {
        let (lookout, disk) = (Lookout::new(), DiskId(7));
        lookout.note(disk, "here", |trouble| trouble.was_another = true);
        assert_eq!(lookout.note(disk, "here", |trouble| trouble.astray = None), None);
        let said = lookout.of(disk, "here").and_then(|trouble| trouble.message());
        assert!(said.is_some_and(|said| said.contains("was replaced")));
    }

    #[test]
    fn what_is_known_of_an_image_goes_when_the_disk_leaves_it() {
        let (lookout, disk) = (Lookout::new(), DiskId(7));
        let another = |trouble: &mut Trouble| trouble.was_another = true;
        lookout.note(disk, "here", another);
        assert_eq!(lookout.of(disk, "there"), None);
        // It is the new image that was replaced.
        lookout.note(disk, "there", another);
        lookout.has_left(disk, "here");
        assert!(lookout.of(disk, "there").is_some());
        lookout.has_left(disk, "there");
        assert_eq!(lookout.of(disk, "there"), None);
    }
}
