//! What all sidecars of a datastore say.
//!
//! At the start each of thousands of disks wants to know of each datastore whether it has a
//! newer image of the disk, or a sidecar that was made for the disk's file. So the sidecars are
//! read all at once, and what they say is kept for [`KEPT`]. A device or an export that a disk of
//! this state has, or a move, is asked once, when it is opened first: later its server may take no
//! second client. Of such a place this state may know less than the place itself: if the state is
//! older than the disks, another disk may have got it since.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sterna_core::DiskId;
use sterna_engine::datastore::{Datastore, FoundSidecar};
use sterna_engine::sidecar::{Beside, Identity, Role};
use sterna_os::lock;

use super::DatastoreHandle;
use crate::asker::{Asked, Asker};

/// How long datastores may take to tell: clients wait for their disks, and one datastore that
/// hangs is no reason to keep those of all others waiting. A sidecar is read in 0.1 ms on this
/// machine, and in a millisecond over a network.
const TELLING: Duration = Duration::from_secs(1);
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
    pub fn newest(&self, disk: DiskId) -> Option<(u64, &str)> {
        let mut its: Vec<_> =
            self.all.iter().filter(|it| it.identity.id == disk).collect();
        its.retain(|it| it.has_image && it.identity.role == Role::Active);
        let newest = its.into_iter().max_by_key(|it| it.identity.generation)?;
        Some((newest.identity.generation, &newest.file))
    }

    /// The generation of the disk's image that is, or was, in use, by the end of a place that
    /// this state believes another disk fills.
    pub fn at_the_end(&self, disk: DiskId) -> Option<u64> {
        let end = self.end.as_ref()?;
        (end.id == disk && end.role == Role::Active).then_some(end.generation)
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

/// What is known, or has been asked for.
pub enum Told {
    /// It is known.
    Known(Option<Arc<Sidecars>>),
    /// It has been asked for.
    Asked(Asked<Option<Arc<Sidecars>>>),
}

impl Told {
    /// Whether the system had no thread to ask.
    pub fn has_no_thread(&self) -> bool {
        matches!(self, Told::Asked(asked) if asked.has_no_thread())
    }

    /// What the sidecars say; nothing if the datastore does not answer in time.
    pub fn answer(self) -> Option<Arc<Sidecars>> {
        match self {
            Told::Known(known) => known,
            Told::Asked(asked) => asked.answer()?,
        }
    }
}

impl DatastoreHandle {
    /// Asks what all sidecars there say.
    pub fn ask_sidecars(self: &Arc<Self>) -> Told {
        if let Some(known) = self.known_sidecars() {
            return Told::Known(Some(known));
        }
        let handle = self.clone();
        let read = move || {
            let read = Arc::new(handle.read_sidecars()?);
            *lock(&handle.said) = Some((Instant::now(), read.clone()));
            Some(read)
        };
        // Another disk's question may bring it meanwhile.
        let known = || self.known_sidecars().map(Some);
        match self.reading.ask_unless(TELLING, known, read) {
            Ok(asked) => Told::Asked(asked),
            Err(known) => Told::Known(known),
        }
    }

    fn known_sidecars(&self) -> Option<Arc<Sidecars>> {
        let said = lock(&self.said);
        said.as_ref().filter(|(at, _)| at.elapsed() < KEPT).map(|(_, said)| said.clone())
    }

    fn read_sidecars(&self) -> Option<Sidecars> {
        let datastore = self.open().ok()?;
        if !self.is_shared() && self.is_in_use()? {
            return Some(lock(&self.said_at_first).clone().unwrap_or_default());
        }
        Some(Sidecars { all: datastore.sidecars().ok()?, end: None })
    }

    /// It is open, and may be for the first time: if it is a place in use, it is asked what it
    /// says before anybody uses it. One that does not answer is not asked again.
    pub(super) fn hears_at_first(&self, datastore: &Arc<Datastore>) {
        let is_new = !self.is_shared() && lock(&self.said_at_first).is_none();
        if !is_new || self.is_in_use() != Some(true) {
            return;
        }
        let there = datastore.clone();
        let said = Asker::default().ask(TELLING, move || {
            let image = there.image("").ok();
            let end = image.and_then(|image| there.read_sidecar(&image, 0).ok());
            Sidecars { all: there.sidecars().unwrap_or_default(), end }
        });
        *lock(&self.said_at_first) = Some(said.answer().unwrap_or_default());
    }

    /// Whether a disk or a move of this state has the place.
    pub(super) fn is_in_use(&self) -> Option<bool> {
        let (disks, moves) =
            (self.store.disks().ok()?, self.store.open_migrations().ok()?);
        let has = disks.iter().any(|disk| disk.datastore == self.name());
        Some(has || moves.iter().any(|it| it.is_on(self.name())))
    }
}
