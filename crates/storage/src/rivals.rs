//! Images that call themselves newer than a disk that is served from elsewhere.
//!
//! Before a disk is served, Sterna asks the other datastores for a newer image of it (`newer`),
//! and goes on without those that do not answer in time. They are asked again when they do:
//! it is too late to refuse the disk then, as clients use it, but people are told that the disk
//! may be an older one. A warning lasts for as long as the image is there and says so.
//!
//! If not all that a datastore has can be read, what it tells counts, and it is asked again after
//! a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sterna_api::{Result, Warning};
use sterna_core::DiskId;
use sterna_os::lock;
use sterna_state::{DiskRecord, Place};

use crate::Storage;
use crate::disks::place_of;
use crate::fingerprints::fills_its_place;
use crate::handle::DatastoreHandle;
use crate::newer::{Says, ask};

/// What is known of rivals: of disks that are not served, too, as one that is refused or being
/// brought up may be served in a moment.
#[derive(Default)]
pub(crate) struct Rivals {
    /// By disk and datastore: several datastores may have a newer image of one disk.
    found: Mutex<BTreeMap<(DiskId, String), Rival>>,
}

#[derive(Clone)]
struct Rival {
    place: Place,
    generation: u64,
}

impl Storage {
    /// Asks a datastore for images that are newer than disks of other datastores, once each time
    /// that it has come back, or has not told a disk. May wait a little for the datastore.
    pub fn look_for_rivals(&self, on: &Arc<DatastoreHandle>) -> Result<()> {
        if on.get().is_err() {
            on.rounds.ask_again();
            return Ok(());
        }
        if !lock(&self.rivals.found).is_empty() {
            self.forget_rivals(on, &self.store.disks()?);
        }
        let Some(round) = on.rounds.due() else { return Ok(()) };
        let answer = on.ask_sidecars().answer();
        let Some(told) = answer.told() else { return Ok(()) };
        // After the sidecars were read: a move that has ended since raised the disk's
        // generation. One that is under way looks after its copy itself.
        let (disks, moves) = (self.store.disks()?, self.store.open_migrations()?);
        let is_copy = |disk: DiskId| {
            moves.iter().any(|it| it.disk == disk && it.to.datastore == on.name())
        };
        let mut is_so = true;
        for disk in disks {
            let is_elsewhere = disk.datastore != on.name() && !is_copy(disk.id);
            let newer = told.newer(&disk, self.fills(&disk));
            let Some((generation, file)) = newer.filter(|_| is_elsewhere) else {
                continue;
            };
            let place = Place { datastore: on.name().into(), image: file.into() };
            let rival = Rival { place, generation };
            if self.is_newer(on, &disk, &rival) {
                tracing::error!(
                    disk = disk.name,
                    datastore = on.name(),
                    generation,
                    "there is a newer image of a disk than the state knows"
                );
                let key = (disk.id, on.name().to_owned());
                lock(&self.rivals.found).insert(key, rival);
            } else {
                is_so = false;
            }
        }
        if !is_so {
            // It was told a while ago, and another image may be newer, too.
            on.says_something_else();
        } else if answer.is_all() {
            on.rounds.is_answered(round);
        } else if on.cannot_tell().is_some() {
            on.rounds.is_put_off();
        }
        Ok(())
    }

    fn fills(&self, disk: &DiskRecord) -> bool {
        fills_its_place(disk, self.handle(&disk.datastore).ok().as_deref())
    }

    /// Whether an image still calls itself newer than the disk. If that is not told in time, it
    /// did.
    fn is_newer(
        &self,
        on: &Arc<DatastoreHandle>,
        disk: &DiskRecord,
        rival: &Rival,
    ) -> bool {
        let asked = ask(on, disk, rival.place.image.clone(), self.fills(disk));
        match asked.answer() {
            Some(Says::Generation(generation)) => generation > disk.generation,
            Some(Says::No) => false,
            Some(Says::Unreadable) | None => true,
        }
    }

    /// Forgets what does not call itself newer any more, and what was on a datastore that was
    /// removed. A datastore whose newer image is gone is asked anew: of several images only the
    /// newest was told of.
    fn forget_rivals(&self, on: &Arc<DatastoreHandle>, disks: &[DiskRecord]) {
        let found = lock(&self.rivals.found).clone();
        for (key, rival) in found {
            let disk = disks.iter().find(|it| it.id == key.0);
            let is_gone = self.handle(&key.1).is_err();
            let is_over = |disk| key.1 == on.name() && !self.is_newer(on, disk, &rival);
            if !is_gone && disk.is_some_and(|disk| !is_over(disk)) {
                continue;
            }
            lock(&self.rivals.found).remove(&key);
            if !is_gone && disk.is_some() {
                on.says_something_else();
                on.rounds.ask_again();
            }
        }
    }

    /// A warning for each of these disks that is served although a newer image was found. A
    /// disk that is not served tells itself what is wrong.
    pub fn rivals(&self, disks: &[DiskRecord]) -> Vec<Warning> {
        let found = lock(&self.rivals.found).clone();
        let tell = |disk: &DiskRecord| {
            let its = found.iter().filter(|((id, _), _)| *id == disk.id);
            let (_, rival) = its.max_by_key(|(_, rival)| rival.generation)?;
            let is_served = self.problem_of(disk.id).is_none();
            let Place { datastore, image } = &rival.place;
            let place = match self.handle(datastore) {
                Ok(there) => place_of(&there.record().location, image),
                Err(_) => image.clone(),
            };
            (is_served && rival.generation > disk.generation)
                .then(|| warning(disk, rival, &place))
        };
        disks.iter().filter_map(tell).collect()
    }
}

fn warning(disk: &DiskRecord, rival: &Rival, place: &str) -> Warning {
    let DiskRecord { name, datastore, generation, .. } = disk;
    let (there, image) = (&rival.place.datastore, &rival.place.image);
    let message = format!(
        "the disk is served from datastore {datastore} (generation {generation}), and \
         datastore {there}, which had not told this yet when the disk was brought up, has a newer \
         image of it ({place}, generation {}): the state directory is older than the disk",
        rival.generation
    );
    // Of a device or an export, no command removes an image that nobody has.
    let remove = match image.is_empty() {
        true => {
            format!("`sterna datastore remove {there}`: Sterna then leaves {place} alone")
        }
        false => format!("remove {image} and {image}.sterna on {there} by hand"),
    };
    let hint = format!(
        "stop the clients of {name} and restore the newest state directory; if there is none, \
         decide which image is right: for the newer one `sterna disk remove {name} \
         --keep-image`, then `sterna disk recover`; for the one that is served, {remove}"
    );
    Warning { about: format!("disk {name}"), message, hint }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sterna_engine::datastore::Provision;
    use sterna_engine::sidecar::{Identity, Role};

    use super::*;
    use crate::disks::identity;
    use crate::stage::Stage;

    #[test]
    fn a_warning_ends_when_the_newer_image_is_gone_though_its_sidecar_stays() {
        let stage = Stage::with(&["here", "there"]);
        let disk = stage.disk_x("here", 1);
        stage.image_of_x("there", 5);
        stage.is_served(&disk);
        let rivals = || {
            stage.storage.look_for_rivals(&stage.handle("there")).unwrap();
            stage.storage.rivals(std::slice::from_ref(&disk))
        };
        let image = stage.directory("there").join("x.raw");
        let warned = rivals();
        assert!(warned[0].message.contains(&image.display().to_string()), "{warned:?}");
        assert!(warned[0].hint.contains("x.raw.sterna"), "{warned:?}");
        fs::remove_file(image).unwrap();
        assert!(rivals().is_empty());
    }

    #[test]
    fn a_newer_image_on_a_device_is_told_by_its_place() {
        let stage = Stage::with(&["here"]);
        let disk = stage.disk_x("here", 1);
        let place = Place { datastore: "lun".into(), image: String::new() };
        let warned = warning(&disk, &Rival { place, generation: 5 }, "/dev/lun");
        assert!(warned.message.contains("(/dev/lun, generation 5)"), "{warned:?}");
        assert!(warned.hint.contains("sterna datastore remove lun"), "{warned:?}");
    }

    #[test]
    fn a_newer_image_is_told_of_also_if_another_sidecar_cannot_be_read() {
        let stage = Stage::with(&["here", "there"]);
        let disk = stage.disk_x("here", 1);
        stage.image_of_x("there", 5);
        let unreadable = stage.directory("there").join("z.raw.sterna");
        fs::create_dir(&unreadable).unwrap();
        stage.is_served(&disk);
        stage.storage.look_for_rivals(&stage.handle("there")).unwrap();
        assert_eq!(stage.storage.rivals(std::slice::from_ref(&disk)).len(), 1);
    }

    #[test]
    fn a_newer_image_that_is_gone_when_it_is_looked_at_does_not_hide_the_next() {
        let stage = Stage::with(&["here", "there"]);
        stage.disk_x("here", 1);
        stage.image_of_x("there", 5);
        let there = stage.handle("there");
        assert!(there.ask_sidecars().answer().is_all());
        fs::remove_file(stage.directory("there").join("x.raw")).unwrap();
        stage.storage.look_for_rivals(&there).unwrap();
        assert!(there.rounds.due().is_some());
        stage.storage.look_for_rivals(&there).unwrap();
        assert!(there.rounds.due().is_none());
    }

    /// An image of the disk `x` of another name, with that generation.
    fn another_image(stage: &Stage, disk: &DiskRecord, datastore: &str, generation: u64) {
        let says = identity(disk, generation, Role::Active);
        let says = Identity { name: generation.to_string(), ..says };
        let there = stage.handle(datastore).get().unwrap();
        there.create_image(&says, Provision::Thin).unwrap();
    }

    #[test]
    fn if_the_newest_image_is_gone_people_are_told_of_the_next() {
        let stage = Stage::with(&["here", "there"]);
        let disk = stage.disk_x("here", 3);
        for generation in [7, 5] {
            another_image(&stage, &disk, "there", generation);
        }
        stage.is_served(&disk);
        let told = || {
            stage.storage.look_for_rivals(&stage.handle("there")).unwrap();
            stage.storage.rivals(std::slice::from_ref(&disk)).pop()
        };
        for generation in [7, 5] {
            let warned = told().unwrap().message;
            assert!(warned.contains(&format!("generation {generation})")), "{warned}");
            let file = format!("{generation}.raw");
            fs::remove_file(stage.directory("there").join(file)).unwrap();
        }
        assert!(told().is_none());
    }

    #[test]
    fn of_newer_images_on_several_datastores_people_are_told_of_the_newest_that_is_there()
    {
        let stage = Stage::with(&["here", "one", "two"]);
        let disk = stage.disk_x("here", 3);
        for (datastore, generation) in [("one", 7), ("two", 5)] {
            another_image(&stage, &disk, datastore, generation);
        }
        stage.is_served(&disk);
        for datastore in ["one", "two"] {
            stage.storage.look_for_rivals(&stage.handle(datastore)).unwrap();
        }
        let warned =
            || stage.storage.rivals(std::slice::from_ref(&disk)).remove(0).message;
        assert!(warned().contains("generation 7)"), "{}", warned());
        fs::remove_file(stage.directory("one").join("7.raw")).unwrap();
        stage.storage.look_for_rivals(&stage.handle("one")).unwrap();
        assert!(warned().contains("generation 5)"), "{}", warned());
    }

    #[test]
    fn a_newer_image_that_was_found_before_its_disk_was_served_is_told_of_afterwards() {
        let stage = Stage::with(&["here", "there"]);
        let disk = stage.disk_x("here", 1);
        stage.image_of_x("there", 5);
        stage.storage.look_for_rivals(&stage.handle("there")).unwrap();
        let rivals = || stage.storage.rivals(&stage.storage.store.disks().unwrap());
        assert!(rivals().is_empty(), "it tells itself what is wrong");
        stage.is_served(&disk);
        assert_eq!(rivals().len(), 1);
    }

    #[test]
    fn a_newer_image_on_a_datastore_that_was_removed_is_forgotten() {
        let stage = Stage::with(&["here", "there"]);
        let disk = stage.disk_x("here", 1);
        stage.image_of_x("there", 5);
        stage.is_served(&disk);
        stage.storage.look_for_rivals(&stage.handle("there")).unwrap();
        let rivals = || stage.storage.rivals(std::slice::from_ref(&disk)).len();
        assert_eq!(rivals(), 1);
        stage.storage.remove_datastore("there").unwrap();
        stage.storage.look_for_rivals(&stage.handle("here")).unwrap();
        assert_eq!(rivals(), 0);
    }
}
