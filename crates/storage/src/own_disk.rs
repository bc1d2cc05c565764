//! Whether a datastore is a disk of this daemon under another name: an export of the daemon
//! itself, or a device that shares bytes with the image of a disk or with another datastore
//! that has one.
//!
//! A copy to such a datastore would overwrite a disk, or be the very image that is moved,
//! whose removal would then be the end of both. So no move and no new disk goes there.
//!
//! **Devices** are compared by what they lie on (`Ground`): a device and its partition, two
//! loop devices over one file, two nodes of one device are one place. Sterna compares what it
//! learned when it opened images and datastores, and asks no datastore, because one may hang.
//!
//! **Exports** say in their description which disk they are, and say so through a server
//! that passes them on (a tunnel, `nbdkit nbd`). If a server hides the description
//! (`qemu-nbd nbd:…`), or a program below a device reads the export, Sterna reads some places
//! of it, picked by chance: if (nearly) all of these reads come to one disk meanwhile, it is
//! that disk. If a server answers all from a cache, or has the disk at another offset, Sterna
//! does not see its reads, and does not find the disk.
//!
//! **Two addresses** of one server are found by what they hold (`twins`).
//!
//! **Programs** that give an image another name (a file system in user space, a server of
//! the image's file) have it open for writing. So while another program has any disk's image
//! open for writing, Sterna puts nothing on a device or a server. Sterna does not see what a
//! server on another machine has open, or the kernel itself, or a program that this daemon may
//! not look at: for these, a move keeps an old image that another program can write to
//! (`end` of `sterna_moves`).

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_core::DiskId;
use sterna_engine::datastore::{Datastore, Location, Visit};
use sterna_engine::{Ground, Opener, description, opened_by_others};
use sterna_os::{lock, random};
use sterna_state::DiskRecord;

use crate::Storage;
use crate::handle::DatastoreHandle;
use crate::twins::Use;

/// How long a server may take to say what its export is, with a look through all open files
/// (2 s at most) while somebody is connected to it. A connection to another continent, not
/// more.
pub(crate) const ASKING: Duration = Duration::from_secs(12);

/// Places of an export that are read, and the most bytes of each: no application reads all
/// of them by chance in the same moment, and the server is not kept busy.
const READS: usize = 8;
const READ_MOST: u64 = 15 * SECTOR;
const SECTOR: u64 = 512;

/// Something that must not be overwritten.
struct Precious {
    /// What it is, for people.
    what: String,
    /// If it is a disk that is a file: that one.
    disk: Option<String>,
    ground: Ground,
}

/// What was heard of a server.
struct Heard {
    /// How it describes its export.
    says: Option<String>,
    /// The disk to which (nearly) all came that was read from it.
    came: Option<DiskId>,
}

impl Storage {
    /// Keeps others from looking for a place on a device or a server, until what goes there
    /// is recorded, or is known as a placement: two that look at once would both find that
    /// nothing is there. Directories need no such thing.
    pub fn placing(&self, to: &DatastoreHandle) -> Option<MutexGuard<'_, ()>> {
        (!to.is_shared()).then(|| lock(&self.placing))
    }

    /// Opens a datastore for an image that is to be made there; refused if it is a disk under
    /// another name, or may be one, and if it does not answer. Hold what `placing` gives
    /// until the image is recorded.
    pub fn open_for_new(&self, to: &DatastoreHandle) -> Result<Arc<Datastore>> {
        self.open_for(to, Use::Overwritten)
    }

    /// The same for an image that becomes a disk, or is overwritten by one.
    pub(crate) fn open_for(
        &self,
        to: &DatastoreHandle,
        how: Use,
    ) -> Result<Arc<Datastore>> {
        // Before it is opened: a device that is a disk's is refused then, and nobody knows
        // by whom.
        self.check_is_no_disk(to)?;
        to.must_answer()?;
        let store = to.open()?;
        self.check_has_no_other_name(to, &store)?;
        self.check_is_no_twin(to, &store, how)?;
        Ok(store)
    }

    /// Whether a location is an export of this daemon.
    pub(crate) fn exports(&self, location: &Location) -> bool {
        self.places.nbd.iter().any(|place| place.serves(location))
    }

    /// Refuses a datastore that is a disk, or shares bytes with one.
    pub fn check_is_no_disk(&self, to: &DatastoreHandle) -> Result<()> {
        self.check_address(to)?;
        if to.is_shared() {
            return Ok(());
        }
        to.must_answer()?;
        self.check_passes_no_disk_on(to, &to.open()?)
    }

    /// Refuses a disk that tells so before it is opened: an export by its address, a device
    /// by what it lies on.
    pub(crate) fn check_address(&self, to: &DatastoreHandle) -> Result<()> {
        let location = &to.record().location;
        if self.exports(location) {
            let message = format!(
                "datastore {} is an export of this daemon itself: {location}",
                to.name()
            );
            return Err(Error::invalid(message).hint("choose another datastore"));
        }
        let Location::Device(path) = location else { return Ok(()) };
        let path = path.clone();
        // The path may be on what hangs, whatever the device itself does.
        let ground = to.answer_of_path(move || Ground::at(&path))?;
        ground.map_or(Ok(()), |ground| self.check_shares_nothing(to, &ground))
    }

    /// Refuses a server or a device while another program has the image of a disk open for
    /// writing: it may be the one that gives that image its other name.
    fn check_has_no_other_name(
        &self,
        to: &DatastoreHandle,
        store: &Arc<Datastore>,
    ) -> Result<()> {
        if store.holds_many() {
            return Ok(());
        }
        let (disks, grounds) = self.grounds()?;
        // Servers have files open while somebody is connected.
        match visit(to, store, move |_connection| opened_by_others(&grounds))? {
            Some((at, opener)) => Err(is_open(&disks[at], to, &opener)),
            None => Ok(()),
        }
    }

    /// What the images of disks lie on, of those that are open.
    pub(crate) fn grounds(&self) -> Result<(Vec<DiskRecord>, Vec<Ground>)> {
        let held = |disk: DiskRecord| {
            let image = self.engine.held(disk.id).ok().flatten()?;
            Some((disk, image.ground().clone()))
        };
        Ok(self.store.disks()?.into_iter().filter_map(held).unzip())
    }

    /// Refuses a server, or a device over one, that passes on a disk of ours.
    fn check_passes_no_disk_on(
        &self,
        to: &DatastoreHandle,
        store: &Arc<Datastore>,
    ) -> Result<()> {
        let disks = self.store.disks()?;
        let ids: Vec<DiskId> = disks.iter().map(|disk| disk.id).collect();
        let mut heard = self.hear(to, store, &ids)?;
        if heard.came.is_some() {
            // An application may have read all of these places, too, while a slow server
            // was waited for. It does not do so twice.
            let again = self.hear(to, store, &ids)?;
            heard.came = heard.came.filter(|came| again.came == Some(*came));
        }
        let is_it = |disk: &DiskRecord| {
            let described = |says: &String| says.contains(&description(disk.id));
            heard.came == Some(disk.id) || heard.says.as_ref().is_some_and(described)
        };
        let Some(disk) = disks.into_iter().find(is_it) else { return Ok(()) };
        let message = format!(
            "datastore {} is disk {} of this daemon: a server passes on its export",
            to.name(),
            disk.name
        );
        Err(Error::invalid(message).hint("choose another datastore"))
    }

    /// Asks a server what its export is, and reads from it.
    fn hear(
        &self,
        to: &DatastoreHandle,
        store: &Arc<Datastore>,
        disks: &[DiskId],
    ) -> Result<Heard> {
        let reads = picked(store.size_at_opening().unwrap_or(0))?;
        let watched = self.engine.watch_reads(disks, &reads);
        let heard = visit(to, store, move |visit| {
            let Some(mut visit) = visit else { return (None, false) };
            let says = visit.description().map(str::to_owned);
            let is_read =
                !reads.is_empty() && reads.iter().all(|it| visit.read(it).is_ok());
            (says, is_read)
        });
        let came = self.engine.reads_came(watched);
        let (says, is_read) = heard?;
        Ok(Heard { says, came: came.filter(|_| is_read) })
    }

    /// The disk, or the copy of one, that has some of these bytes, for people.
    pub(crate) fn shares_with(&self, ground: &Ground) -> Result<Option<String>> {
        let all = self.precious(None)?;
        Ok(all
            .into_iter()
            .find(|one| ground.shares(&one.ground).is_some())
            .map(|it| it.what))
    }

    fn check_shares_nothing(&self, to: &DatastoreHandle, ground: &Ground) -> Result<()> {
        let (name, location) = (to.name(), &to.record().location);
        for one in self.precious(Some(name))? {
            let Some(shared) = ground.shares(&one.ground) else { continue };
            let what = &one.what;
            let message = match &one.disk {
                _ if shared.is_within => format!(
                    "{what} lies within datastore {name}: both have their bytes on {shared}"
                ),
                Some(disk) => format!(
                    "datastore {name} is the image of disk {disk}: {location} has its \
                     bytes there"
                ),
                None => format!(
                    "datastore {name} and {what} are the same bytes: both are on {shared}"
                ),
            };
            let hint = "choose another datastore; of two that are one place, keep one \
                        (`sterna datastore remove`)";
            return Err(Error::invalid(message).hint(hint));
        }
        Ok(())
    }

    /// All disks and copies, but for those on that datastore, as far as it is known what they
    /// lie on.
    fn precious(&self, but_on: Option<&str>) -> Result<Vec<Precious>> {
        let of_device = |name: &str| {
            let store = self.handle(name).ok()?.get().ok()?;
            store.ground().cloned()
        };
        let mut all = Vec::new();
        for disk in
            self.store.disks()?.into_iter().filter(|it| Some(&*it.datastore) != but_on)
        {
            let held = self.engine.held(disk.id).ok().flatten();
            let ground = held.map(|image| image.ground().clone());
            let Some(ground) = ground.or_else(|| of_device(&disk.datastore)) else {
                continue;
            };
            let what = format!("disk {} on datastore {}", disk.name, disk.datastore);
            // A device has no image of a name.
            let disk = (!disk.image.is_empty()).then_some(disk.name);
            all.push(Precious { what, disk, ground });
        }
        for disk in self.placements.all() {
            let DiskRecord { name, datastore, .. } = disk;
            let ground = of_device(&datastore).filter(|_| Some(&*datastore) != but_on);
            let Some(ground) = ground else { continue };
            let what =
                format!("disk {name}, which is being created on datastore {datastore}");
            all.push(Precious { what, disk: None, ground });
        }
        for one in self.store.open_migrations()? {
            let to = &one.to.datastore;
            let Some(ground) = of_device(to).filter(|_| Some(&**to) != but_on) else {
                continue;
            };
            let what = format!("the copy of disk {} on datastore {to}", one.name);
            all.push(Precious { what, disk: None, ground });
        }
        Ok(all)
    }
}

/// Places to read of an export of that size; none if it is too small to pick any.
fn picked(size: u64) -> Result<Vec<Range<u64>>> {
    let Some(space) = size.checked_sub(READ_MOST) else { return Ok(Vec::new()) };
    let pick = |_| {
        let number = random::number()?;
        // Its halves are as good as two numbers.
        let (place, odd) = (number as u64, (number >> 64) as u64);
        let start = place % (space / SECTOR + 1) * SECTOR;
        Ok(start..start + (1 + odd % (READ_MOST / SECTOR)) * SECTOR)
    };
    (0..READS).map(pick).collect()
}

/// Does something during a visit of a place, if that answers in time; the place of a
/// directory has no visit.
pub(crate) fn visit<T: Send + 'static>(
    to: &DatastoreHandle,
    store: &Arc<Datastore>,
    work: impl FnOnce(Option<Visit>) -> T + Send + 'static,
) -> Result<T> {
    let asked = to.ask_visit(store, ASKING, None, work);
    asked.answer().ok_or_else(|| hangs(to, ASKING))?.map_err(|error| to.refused(&error))
}

/// The same of a visit that only reads, within `limit`; it is left behind when the daemon
/// stops.
pub(crate) fn read_at<T: Send + 'static>(
    to: &DatastoreHandle,
    store: &Arc<Datastore>,
    limit: Duration,
    work: impl FnOnce(Option<Visit>) -> T + Send + 'static,
) -> Result<T> {
    let asked = to.ask_visit(store, limit, Some(to.ending()), work);
    match asked.answer_unless(to.ending()) {
        Some(done) => done.map_err(|error| to.refused(&error)),
        None if to.ending().load(Ordering::Relaxed) => Err(ends()),
        None => Err(hangs(to, limit)),
    }
}

/// A visit has had its time, or an earlier one that goes on.
fn hangs(to: &DatastoreHandle, limit: Duration) -> Error {
    silent(to, to.silent_for().unwrap_or(limit).max(limit))
}

/// Nothing is compared any more.
pub(crate) fn ends() -> Error {
    Error::unavailable("the daemon stops").hint("ask again when it runs")
}

pub(crate) fn silent(to: &DatastoreHandle, limit: Duration) -> Error {
    to.has_not_answered();
    let (name, seconds) = (to.name(), limit.as_secs());
    let message =
        format!("datastore {name} cannot be used: it has not answered for {seconds} s");
    Error::unavailable(message).hint("repair this; Sterna tries again every few seconds")
}

fn is_open(disk: &DiskRecord, to: &DatastoreHandle, opener: &Opener) -> Error {
    let message = has_open(opener, disk, &format!("datastore {}", to.name()));
    Error::in_use(message).hint("stop that program, or choose another datastore")
}

/// What is wrong with a place while a program has the image of a disk open for writing.
pub(crate) fn has_open(opener: &Opener, disk: &DiskRecord, place: &str) -> String {
    format!(
        "{opener} has the image of disk {} open for writing: {place} may be that very image \
         under another name",
        disk.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_picked_within_the_export_and_by_chance() {
        assert!(
            picked(0).unwrap().is_empty() && picked(READ_MOST - 1).unwrap().is_empty()
        );
        for size in [READ_MOST, 10_000, 1 << 40] {
            let reads = picked(size).unwrap();
            assert_eq!(reads.len(), READS);
            let fits = |it: &Range<u64>| it.start < it.end && it.end <= size;
            assert!(reads.iter().all(fits), "{reads:?}");
        }
        assert_ne!(picked(1 << 40).unwrap(), picked(1 << 40).unwrap());
    }

    #[test]
    fn a_place_that_hangs_is_said_to_for_as_long_as_it_has() {
        let stage = crate::stage::Stage::with(&["here"]);
        let (here, limit) = (stage.handle("here"), Duration::from_millis(10));
        let store = here.get().unwrap();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let hang = move |_| held.recv().is_err();
        assert!(read_at(&here, &store, limit, hang).is_err());
        std::thread::sleep(Duration::from_secs(1));
        let told = read_at(&here, &store, limit, |_| ()).unwrap_err();
        assert!(told.message.contains("for 1 s"), "{}", told.message);
        drop(release);
    }
}
