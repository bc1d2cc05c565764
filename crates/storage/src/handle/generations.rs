//! Of which disks a datastore has the truth, by what its images say of themselves.
//!
//! At the start each of thousands of disks wants to know this of each datastore, so the
//! sidecars are read all at once, and what they say is kept for [`KEPT`]. A device or an export
//! that a disk of this state has, or a move, is not asked: it is known, and its server may take
//! no second client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sterna_core::DiskId;
use sterna_engine::sidecar::Role;
use sterna_os::lock;

use super::DatastoreHandle;
use crate::asker::Asked;

/// How long datastores may take to tell: clients wait for their disks, and one datastore that
/// hangs is no reason to keep those of all others waiting. Sidecars are read in 0.1 ms each
/// here, and in a millisecond over a network.
const TELLING: Duration = Duration::from_secs(1);
/// So long what they told is believed. Whoever acts on it reads the image's sidecar again; a
/// disk that is not served asks every few seconds, and each time thousands of sidecars would be
/// read.
const KEPT: Duration = Duration::from_secs(60);

/// The highest generation of each disk's images that are, or were, in use, and which file
/// it is.
pub(crate) type Generations = HashMap<DiskId, (u64, String)>;

/// What is known, or has been asked for.
pub enum Told {
    /// It is known.
    Known(Arc<Generations>),
    /// It has been asked for.
    Asked(Asked<Option<Arc<Generations>>>),
}

impl Told {
    /// The generations; nothing if the datastore does not answer in time.
    pub fn answer(self) -> Option<Arc<Generations>> {
        match self {
            Told::Known(known) => Some(known),
            Told::Asked(asked) => asked.answer()?,
        }
    }
}

impl DatastoreHandle {
    /// Asks for the generations there.
    pub fn ask_generations(self: &Arc<Self>) -> Told {
        if let Some(known) = self.known_generations() {
            return Told::Known(known);
        }
        let handle = self.clone();
        Told::Asked(self.reading.ask(TELLING, move || {
            // Another disk's question has brought it meanwhile.
            if let Some(known) = handle.known_generations() {
                return Some(known);
            }
            let read = Arc::new(handle.read_generations()?);
            *lock(&handle.generations) = Some((Instant::now(), read.clone()));
            Some(read)
        }))
    }

    fn known_generations(&self) -> Option<Arc<Generations>> {
        let known = lock(&self.generations);
        known
            .as_ref()
            .filter(|(at, _)| at.elapsed() < KEPT)
            .map(|(_, known)| known.clone())
    }

    fn read_generations(&self) -> Option<Generations> {
        let mut generations = Generations::new();
        if !self.is_shared() && self.is_in_use()? {
            return Some(generations);
        }
        for image in self.open().ok()?.images().ok()? {
            // A copy that was not finished is nobody's truth, nor is an old one.
            let Some(says) = image.identity.ok().filter(|it| it.role == Role::Active)
            else {
                continue;
            };
            let known = generations.entry(says.id).or_default();
            if says.generation > known.0 {
                *known = (says.generation, image.file);
            }
        }
        Some(generations)
    }

    /// Whether a disk or a move of this state has the place.
    fn is_in_use(&self) -> Option<bool> {
        let (disks, moves) =
            (self.store.disks().ok()?, self.store.open_migrations().ok()?);
        let has = disks.iter().any(|disk| disk.datastore == self.name());
        Some(has || moves.iter().any(|it| it.is_on(self.name())))
    }
}
