//! What all sidecars of a datastore say.
//!
//! At the start each of thousands of disks wants to know of each datastore whether it has a
//! newer image of the disk, or a sidecar that was made for the disk's file. So the sidecars are
//! read one after the other, for all disks at once, and what they say is kept for [`KEPT`]. Those
//! with the name of a disk of this state come first: if there are more than a cold disk reads in
//! time, what is most likely to matter is known. A device or an export that a disk of this state
//! has, or a move, is asked once, when it is opened first: later its server may take no second
//! client. Of such a place this state may know less than the place itself: if the state is older
//! than the disks, another disk may have got it since.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use sterna_core::DiskId;
use sterna_engine::datastore::{Datastore, FoundSidecar};
use sterna_engine::sidecar::{Beside, Identity, Role};
use sterna_os::lock;
use sterna_state::DiskRecord;

use super::DatastoreHandle;
use crate::asker::Asker;

/// How long a datastore may say nothing at all: clients wait for their disks, and one datastore
/// that hangs is no reason to keep those of all others waiting. A sidecar is read in 0.1 ms on
/// this machine, in a millisecond over a network, and in ten from a cold disk.
const TELLING: Duration = Duration::from_secs(1);
/// How long one that goes on telling is waited for: the clients of all disks wait meanwhile, and
/// what is most likely to matter is told first.
const LONGEST: Duration = Duration::from_secs(2);
/// So long what they told is believed. Whoever acts on it reads the one sidecar again; a disk
/// that is not served asks every few seconds, and each time thousands would be read.
const KEPT: Duration = Duration::from_secs(60);

/// What the sidecars of a datastore said.
#[derive(Clone, Debug, Default)]
pub struct Sidecars {
    all: Vec<FoundSidecar>,
    /// What the end of a place in use says. If a disk fills the place, these are its guest's
    /// bytes.
    end: Option<Identity>,
}

impl Sidecars {
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

    /// The generation and the file of an image that is newer than the disk. The old image of a
    /// disk that `fills` its place says nothing, so for that the end of any place counts, too.
    pub fn newer(&self, disk: &DiskRecord, fills: bool) -> Option<(u64, &str)> {
        let end = self.at_the_end(disk.id).filter(|_| fills);
        let end = end.map(|generation| (generation, ""));
        let all = self.newest(disk.id).into_iter().chain(end);
        let newest = all.max_by_key(|(generation, _)| *generation)?;
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

/// The reading of a datastore's sidecars.
#[derive(Default)]
pub(super) struct Reading {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What they said, and when.
    said: Option<(Instant, Arc<Sidecars>)>,
    /// Since when they are being read, and when one was read last.
    under_way: Option<Instant>,
    so_far: Vec<FoundSidecar>,
}

impl State {
    fn known(&self) -> Option<Arc<Sidecars>> {
        let said = self.said.as_ref().filter(|(at, _)| at.elapsed() < KEPT);
        said.map(|(_, said)| said.clone())
    }
}

/// What a datastore was asked.
pub struct Told {
    handle: Arc<DatastoreHandle>,
    asked: Instant,
    /// The system had no thread to ask.
    pub has_no_thread: bool,
}

/// What a datastore has told.
pub enum Answer {
    /// What all its sidecars say.
    All(Arc<Sidecars>),
    /// What those say that it has read. It tells on, and too slowly to be waited for.
    Part(Arc<Sidecars>),
    /// It does not answer, or cannot.
    Nothing,
}

impl Told {
    /// What the sidecars say. Waits for [`TELLING`] if the datastore tells nothing at all, and
    /// for [`LONGEST`] if it does.
    pub fn answer(self) -> Answer {
        let reading = &self.handle.reading;
        let mut state = lock(&reading.state);
        loop {
            if let Some(known) = state.known() {
                return Answer::All(known);
            }
            let Some(heard) = state.under_way else { return Answer::Nothing };
            let now = Instant::now();
            let until = match state.so_far.is_empty() {
                true => (heard + TELLING).min(self.asked + LONGEST),
                // One that has told something answers, though one sidecar may take long.
                false => self.asked + LONGEST,
            };
            let wait = until.saturating_duration_since(now);
            if wait.is_zero() && state.so_far.is_empty() {
                return Answer::Nothing;
            }
            if wait.is_zero() {
                let so_far = Sidecars { all: state.so_far.clone(), end: None };
                return Answer::Part(Arc::new(so_far));
            }
            state = match reading.changed.wait_timeout(state, wait) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

impl DatastoreHandle {
    /// Asks what all sidecars there say, those of disks of this state first.
    pub fn ask_sidecars(self: &Arc<Self>) -> Told {
        let mut told =
            Told { handle: self.clone(), asked: Instant::now(), has_no_thread: false };
        let mut state = lock(&self.reading.state);
        if state.known().is_some() || state.under_way.is_some() {
            return told;
        }
        let handle = self.clone();
        let thread = thread::Builder::new().name("sterna-sidecars".into());
        if thread.spawn(move || handle.read_all_sidecars()).is_ok() {
            state.under_way = Some(Instant::now());
            state.so_far.clear();
        } else {
            told.has_no_thread = true;
        }
        told
    }

    fn read_all_sidecars(&self) {
        let read = self.read_sidecars();
        let mut state = lock(&self.reading.state);
        state.under_way = None;
        if let Some(read) = read {
            state.said = Some((Instant::now(), Arc::new(read)));
        }
        drop(state);
        self.reading.changed.notify_all();
    }

    fn read_sidecars(&self) -> Option<Sidecars> {
        let datastore = self.open().ok()?;
        if !self.is_shared() && self.is_in_use()? {
            return match self.said_at_first.get() {
                Some(said) => said.clone(),
                // It was not asked: its disk came while this daemon ran.
                None => Some(Sidecars::default()),
            };
        }
        let disks = self.store.disks().ok()?;
        let names: BTreeSet<String> = disks
            .into_iter()
            .flat_map(|disk| [format!("{}.raw", disk.name), disk.image])
            // A device has no image of a name.
            .filter(|file| !file.is_empty())
            .collect();
        let mut each = |found: FoundSidecar| {
            let mut state = lock(&self.reading.state);
            state.under_way = Some(Instant::now());
            state.so_far.push(found);
        };
        let read = datastore.sidecars(&names, &mut each);
        let all = std::mem::take(&mut lock(&self.reading.state).so_far);
        read.ok().map(|()| Sidecars { all, end: None })
    }

    /// A place in use is open, and may be for the first time: then it is asked what it says,
    /// before anybody uses it. One that does not answer is not asked again.
    pub(super) fn hears_at_first(&self, datastore: &Arc<Datastore>) {
        if self.said_at_first.get().is_some() {
            return;
        }
        let there = datastore.clone();
        let said = Asker::default().ask(TELLING, move || {
            let image = there.image("").ok();
            let end = image.and_then(|image| there.read_sidecar(&image, 0).ok());
            let mut all = Vec::new();
            let _ = there.sidecars(&BTreeSet::new(), &mut |found| all.push(found));
            Sidecars { all, end }
        });
        // Whoever opens it is alone.
        let _ = self.said_at_first.set(said.answer());
    }

    /// Whether a disk or a move of this state has the place.
    pub(super) fn is_in_use(&self) -> Option<bool> {
        let (disks, moves) =
            (self.store.disks().ok()?, self.store.open_migrations().ok()?);
        let has = disks.iter().any(|disk| disk.datastore == self.name());
        Some(has || moves.iter().any(|it| it.is_on(self.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::on_a_fresh_directory;

    fn found() -> FoundSidecar {
        let identity = Identity {
            id: DiskId(1),
            name: "x".into(),
            generation: 1,
            role: Role::Active,
            size: 512,
        };
        FoundSidecar { file: "x.raw".into(), identity, beside: None, has_image: true }
    }

    /// What comes of a question that was asked so long ago, while the sidecars are being read and
    /// the last one was read so long ago.
    fn answer(handle: &Arc<DatastoreHandle>, asked: Duration, heard: Duration) -> Answer {
        let now = Instant::now();
        lock(&handle.reading.state).under_way = now.checked_sub(heard);
        let asked = now.checked_sub(asked).unwrap();
        Told { handle: handle.clone(), asked, has_no_thread: false }.answer()
    }

    #[test]
    fn a_datastore_that_tells_on_is_waited_for_and_one_that_does_not_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let handle = on_a_fresh_directory(&scratch);
        let silent = answer(&handle, Duration::ZERO, TELLING);
        assert!(matches!(silent, Answer::Nothing));
        lock(&handle.reading.state).so_far.push(found());
        for heard in [Duration::ZERO, TELLING * 2] {
            let slow = answer(&handle, LONGEST, heard);
            assert!(matches!(slow, Answer::Part(_)));
        }
        // It comes to its end while somebody waits.
        lock(&handle.reading.state).under_way = Some(Instant::now());
        let waits = handle.ask_sidecars();
        let told = thread::scope(|scope| {
            let told = scope.spawn(|| waits.answer());
            handle.read_all_sidecars();
            told.join().unwrap()
        });
        assert!(matches!(told, Answer::All(_)));
    }

    #[test]
    fn a_datastore_that_cannot_tell_keeps_nobody_waiting() {
        let scratch = tempfile::tempdir().unwrap();
        let handle = on_a_fresh_directory(&scratch);
        std::fs::remove_dir(scratch.path().join("images")).unwrap();
        assert!(matches!(handle.ask_sidecars().answer(), Answer::Nothing));
    }
}
