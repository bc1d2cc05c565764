//! Images that call themselves newer than a disk that is served from elsewhere.
//!
//! Before a disk is served, Sterna asks the other datastores for a newer image of it (`newer`),
//! and goes on without those that do not answer in time. They are asked again when they do:
//! it is too late to refuse the disk then, as clients use it, but people are told that the disk
//! may be an older one. A warning lasts for as long as the image says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use sterna_api::{Result, Warning};
use sterna_core::DiskId;
use sterna_os::lock;
use sterna_state::{DiskRecord, Place};

use crate::Storage;
use crate::fingerprints::fills;
use crate::handle::{Answer, DatastoreHandle};
use crate::newer::Says;

/// What is known of rivals.
#[derive(Default)]
pub(crate) struct Rivals {
    /// Datastores that have told since they were last away.
    told: Mutex<BTreeSet<String>>,
    found: Mutex<BTreeMap<DiskId, Rival>>,
}

#[derive(Clone)]
struct Rival {
    place: Place,
    generation: u64,
}

impl Rivals {
    /// A datastore did not tell when it was asked for a disk.
    pub(crate) fn ask_again(&self, datastore: &str) {
        lock(&self.told).remove(datastore);
    }
}

impl Storage {
    /// Asks a datastore for images that are newer than disks that are served from elsewhere,
    /// once each time that it has come back. May wait for the datastore.
    pub fn look_for_rivals(&self, on: &Arc<DatastoreHandle>) -> Result<()> {
        if on.get().is_err() {
            lock(&self.rivals.told).remove(on.name());
            return Ok(());
        }
        if !lock(&self.rivals.found).is_empty() {
            self.forget_rivals(on, &self.store.disks()?);
        }
        if lock(&self.rivals.told).contains(on.name()) {
            return Ok(());
        }
        let Answer::All(told) = on.ask_sidecars().answer() else { return Ok(()) };
        // After the sidecars were read: a move that has ended since raised the disk's
        // generation. One that is under way looks after its copy itself.
        let (disks, moves) = (self.store.disks()?, self.store.open_migrations()?);
        let is_copy = |disk: DiskId| {
            moves.iter().any(|it| it.disk == disk && it.to.datastore == on.name())
        };
        for disk in disks {
            let is_elsewhere = disk.datastore != on.name() && !is_copy(disk.id);
            let place = self.handle(&disk.datastore).and_then(|place| place.get());
            let size = place.ok().and_then(|place| place.size_at_opening());
            let newer = told.newer(&disk, fills(disk.size, size));
            let Some((generation, file)) = newer.filter(|_| is_elsewhere) else {
                continue;
            };
            // What is not served is told elsewhere.
            if self.problem_of(disk.id).is_some() {
                continue;
            }
            let place = Place { datastore: on.name().into(), image: file.into() };
            let rival = Rival { place, generation };
            if is_newer(on, &disk, &rival) {
                tracing::error!(
                    disk = disk.name,
                    datastore = on.name(),
                    generation,
                    "there is a newer image of a disk that is served"
                );
                lock(&self.rivals.found).insert(disk.id, rival);
            }
        }
        lock(&self.rivals.told).insert(on.name().into());
        Ok(())
    }

    /// Forgets what does not call itself newer any more.
    fn forget_rivals(&self, on: &DatastoreHandle, disks: &[DiskRecord]) {
        let found = lock(&self.rivals.found).clone();
        for (id, rival) in found {
            let disk = disks.iter().find(|it| it.id == id);
            let is_here = rival.place.datastore == on.name();
            if disk.is_none_or(|disk| is_here && !is_newer(on, disk, &rival)) {
                lock(&self.rivals.found).remove(&id);
            }
        }
    }

    /// A warning for each of these disks of which a newer image was found.
    pub fn rivals(&self, disks: &[DiskRecord]) -> Vec<Warning> {
        let found = lock(&self.rivals.found).clone();
        let tell = |disk: &DiskRecord| Some(warning(disk, found.get(&disk.id)?));
        disks.iter().filter_map(tell).collect()
    }
}

/// Whether an image still calls itself newer than the disk. If that cannot be read, it did.
fn is_newer(on: &DatastoreHandle, disk: &DiskRecord, rival: &Rival) -> bool {
    match Says::to(disk, on, &rival.place.image) {
        Says::Generation(generation) => generation > disk.generation,
        Says::No => false,
        Says::Unreadable => true,
    }
}

fn warning(disk: &DiskRecord, rival: &Rival) -> Warning {
    let DiskRecord { name, datastore, generation, .. } = disk;
    let (there, image) = (&rival.place.datastore, &rival.place.image);
    let message = format!(
        "the disk is served from datastore {datastore} (generation {generation}), and \
         datastore {there}, which had not told this yet when the disk was brought up, has a newer \
         image of it ({image}, generation {}): the state directory is older than the disk",
        rival.generation
    );
    let hint = format!(
        "stop the clients of {name} and restore the newest state directory; if there is none, \
         decide which image is right: for the newer one `sterna disk remove {name} \
         --keep-image`, then `sterna disk recover`; for the one that is served, remove {image} \
         on {there} by hand"
    );
    Warning { about: format!("disk {name}"), message, hint }
}
