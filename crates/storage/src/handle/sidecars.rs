//! What all sidecars of a datastore say.
//!
//! At the start each of thousands of disks wants to know of each datastore whether it has a
//! newer image of the disk, or a sidecar that was made for the disk's file. So the sidecars are
//! read one after the other, for all disks at once (`reading`). Those with the name of a disk of
//! this state come first: if there are more than a cold disk reads in time, what is most likely
//! to matter is known. A device or an export that a disk of this state has, or a move, is asked
//! when it is opened first (`at_first`). Of such a place this state may know less than the place
//! itself: if the state is older than the disks, another disk may have got it since.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use sterna_api::{Error, Result};
use sterna_core::DiskId;
use sterna_engine::datastore::{Datastore, DatastoreError, FoundSidecar};
use sterna_engine::sidecar::{Beside, Identity, Role};
use sterna_state::DiskRecord;

use super::DatastoreHandle;
use super::reading::{End, Reading, Told};

/// What the sidecars of a datastore said.
#[derive(Clone, Debug, Default)]
pub struct Sidecars {
    all: Vec<FoundSidecar>,
    /// What the end of a device or an export says, if its sidecar is elsewhere. If a disk fills
    /// the place, these are its guest's bytes.
    end: Option<Identity>,
}

impl Sidecars {
    /// Whether they said nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.end.is_none()
    }

    /// One more was read.
    #[cfg(test)]
    pub(super) fn add(&mut self, found: FoundSidecar) {
        self.all.push(found);
    }

    /// The image of the disk with the highest generation that is, or was, in use: its
    /// generation and its file. A copy that was not finished is nobody's truth.
    fn newest(&self, disk: DiskId) -> Option<(u64, &str)> {
        let mut its: Vec<_> =
            self.all.iter().filter(|it| it.identity.id == disk).collect();
        its.retain(|it| it.has_image && it.identity.role == Role::Active);
        let newest = its.into_iter().max_by_key(|it| it.identity.generation)?;
        Some((newest.identity.generation, &newest.file))
    }

    /// The generation of the disk's image that is, or was, in use, by the end of a place that
    /// this state believes another disk fills.
    fn at_the_end(&self, disk: DiskId) -> Option<u64> {
        let end = self.end.as_ref()?;
        (end.id == disk && end.role == Role::Active).then_some(end.generation)
    }

    /// The generation and the file of the disk's newest image that is, or was, in use. The old
    /// image of a disk that `fills` its place says nothing, so for that the end of any place
    /// counts, too.
    pub fn newest_of(&self, disk: DiskId, fills: bool) -> Option<(u64, &str)> {
        let end = self.at_the_end(disk).filter(|_| fills);
        let end = end.map(|generation| (generation, ""));
        let all = self.newest(disk).into_iter().chain(end);
        all.max_by_key(|(generation, _)| *generation)
    }

    /// The same of an image that is newer than the disk.
    pub fn newer(&self, disk: &DiskRecord, fills: bool) -> Option<(u64, &str)> {
        let newest = self.newest_of(disk.id, fills)?;
        (newest.0 > disk.generation).then_some(newest)
    }

    /// The sidecars that were surely made for this file.
    pub fn made_for<'a>(
        &'a self,
        file: &'a Beside,
    ) -> impl Iterator<Item = &'a FoundSidecar> {
        let is = |it: &&FoundSidecar| it.beside.is_some_and(|its| its.is_surely(file));
        self.all.iter().filter(is)
    }
}

impl DatastoreHandle {
    /// Asks what all sidecars there say, those of disks of this state first.
    pub fn ask_sidecars(self: &Arc<Self>) -> Told {
        self.readings.ask(|reading| {
            let handle = self.clone();
            let thread = thread::Builder::new().name("sterna-sidecars".into());
            let read = move || {
                let read = handle.read_sidecars(&reading);
                let is_open = handle.get().is_ok();
                let end = match read.as_ref().err().map(Error::to_string) {
                    None => End::All,
                    Some(problem) if is_open => End::Part(problem),
                    Some(problem) => End::Closed(problem),
                };
                let is_news = handle.readings.end(&reading, end);
                if let Err(error) = read
                    && is_news
                    && is_open
                {
                    let datastore = handle.name();
                    tracing::warn!(datastore, %error, "cannot tell what images it has");
                }
            };
            thread.spawn(read).is_ok()
        })
    }

    /// Why not all that its sidecars say could be read, when that was tried last.
    pub(crate) fn cannot_tell(&self) -> Option<String> {
        self.readings.problem()
    }

    /// What its sidecars said does not hold any more: they are read anew.
    pub(crate) fn says_something_else(&self) {
        self.readings.forget();
        self.at_first.forget();
    }

    /// The generation of the disk's image of that file, if it is, or was, in use; read now.
    /// Of a device or an export, whichever of its sidecars says so. Blocks.
    pub(crate) fn generation_now(
        &self,
        disk: DiskId,
        file: &str,
        fills: bool,
    ) -> Result<Option<u64>> {
        let datastore = self.open()?;
        let told = match self.is_shared() {
            true => datastore
                .found_sidecar(file)
                .map(|found| Sidecars { all: found.into_iter().collect(), end: None }),
            false => said_in_use(&datastore),
        };
        let told = told.map_err(|error| self.refused(&error))?;
        Ok(told.newest_of(disk, fills).map(|(generation, _)| generation))
    }

    /// Reads all sidecars.
    fn read_sidecars(&self, reading: &Reading) -> Result<()> {
        let datastore = self.open()?;
        if !self.is_shared() {
            let said = self.said_as_a_whole(datastore)?;
            reading.hear(|told| *told = said);
            return Ok(());
        }
        let disks = self.store.disks()?;
        let names: BTreeSet<String> = disks
            .into_iter()
            .flat_map(|disk| [format!("{}.raw", disk.name), disk.image])
            // A device has no image of a name.
            .filter(|file| !file.is_empty())
            .collect();
        let mut each = |found| reading.hear(|told| told.all.extend(found));
        let read = datastore.sidecars(&names, &mut each);
        read.map_err(|error| self.refused(&error))
    }

    /// What a device or an export says.
    fn said_as_a_whole(&self, datastore: Arc<Datastore>) -> Result<Sidecars> {
        let said = match self.is_in_use() {
            Some(true) => self.at_first.ask_again(move || said_in_use(&datastore).ok()),
            Some(false) => {
                return said_in_use(&datastore).map_err(|error| self.refused(&error));
            }
            // The state cannot be read now.
            None => None,
        };
        said.ok_or_else(|| self.unavailable("it does not tell what is there"))
    }

    /// A place in use is open, and may be for the first time: then it is asked what it says,
    /// before anybody uses it.
    pub(super) fn hears_at_first(&self, datastore: &Arc<Datastore>) {
        let datastore = datastore.clone();
        self.at_first.ask(move || said_in_use(&datastore).ok());
    }

    /// Whether a disk or a move of this state has the place.
    pub(super) fn is_in_use(&self) -> Option<bool> {
        let (disks, moves) =
            (self.store.disks().ok()?, self.store.open_migrations().ok()?);
        let has = disks.iter().any(|disk| disk.datastore == self.name());
        Some(has || moves.iter().any(|it| it.is_on(self.name())))
    }
}

/// What a device or an export says that a disk may have. Blocks.
fn said_in_use(datastore: &Datastore) -> std::result::Result<Sidecars, DatastoreError> {
    let said = datastore.says_in_use()?;
    let mut told = Sidecars { all: Vec::new(), end: said.end };
    told.all.extend(said.whole.map(|identity| FoundSidecar {
        file: String::new(),
        identity,
        beside: None,
        has_image: true,
    }));
    Ok(told)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use crate::handle::on_a_fresh_directory;
    use crate::handle::reading::{Answer, TELLING};

    #[test]
    fn all_that_a_directory_has_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        let handle = on_a_fresh_directory(&scratch);
        assert!(handle.ask_sidecars().answer().is_all());
    }

    #[test]
    fn what_all_but_one_sidecar_say_is_a_part_until_that_can_be_read() {
        let scratch = tempfile::tempdir().unwrap();
        let handle = on_a_fresh_directory(&scratch);
        // It can be opened, and not be read.
        let unreadable = scratch.path().join("images/x.raw.sterna");
        fs::create_dir(&unreadable).unwrap();
        assert!(!handle.ask_sidecars().answer().is_all());
        let problem = handle.cannot_tell().unwrap();
        assert!(problem.contains("x.raw.sterna"), "{problem}");
        fs::remove_dir(unreadable).unwrap();
        assert!(!handle.ask_sidecars().answer().is_all(), "that was a moment ago");
        handle.says_something_else();
        assert!(handle.ask_sidecars().answer().is_all());
        assert_eq!(handle.cannot_tell(), None);
    }

    #[test]
    fn a_datastore_that_cannot_tell_keeps_nobody_waiting() {
        let scratch = tempfile::tempdir().unwrap();
        let handle = on_a_fresh_directory(&scratch);
        fs::remove_dir(scratch.path().join("images")).unwrap();
        let asked = Instant::now();
        assert!(matches!(handle.ask_sidecars().answer(), Answer::Failed));
        assert!(asked.elapsed() < TELLING);
        assert!(handle.cannot_tell().is_some());
    }
}
