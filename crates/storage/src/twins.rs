//! Whether a device or a server that something is to go to is the place of a disk that is
//! there already, under an address that does not say so.
//!
//! Two addresses of one server (a host's names, a port that is passed on, two servers over
//! one file on another machine) are two datastores to whoever looks at addresses. So a few
//! stretches of both are read and compared (`core::twin`), before anything is written. Most
//! are picked where the disk has data, as zeroes are everywhere. A destination that says it is
//! all zeroes is not compared: if it were the place of a disk, nothing would be lost yet.
//!
//! **In doubt.** If the places are equal so far, many more stretches are read before Sterna
//! refuses. If a disk's place cannot be compared, because it does not answer, Sterna refuses,
//! too: it may be the very place. A stretch that the disk's place cannot read is left out.
//!
//! **An old copy** of the disk is alike, too. If the last move from or to the destination was
//! one of that disk, between the destination and the place where the disk is now, that
//! explains it, and the move may begin. If not, Sterna refuses: of a copy that somebody else
//! has made, only that person can say that it is one.
//!
//! **What is not found**: a disk that has only zeroes; a server that answers from a cache of
//! its own, or has the disk at another offset; and whatever comes to be the same place
//! later. Two devices of this machine are told apart by what they lie on (`own_disk`), and
//! not by what they hold; so are files that are imported.

use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use sterna_api::{Error, ErrorCode, Result};
use sterna_core::DiskId;
use sterna_core::twin::{Kinship, PROOFS, Reading, judge, proves_apart};
use sterna_engine::datastore::{Datastore, DatastoreError, Location, Visit};
use sterna_os::random;
use sterna_state::MigrationRecord;

use crate::Storage;
use crate::handle::DatastoreHandle;
use crate::own_disk::{ASKING, ends, read_at};

/// A stretch that is read: a block of a file system.
const STRETCH: u64 = 4096;
/// Where disks begin with something: partition tables, and the superblocks of file systems.
const BEGINNINGS: [u64; 5] = [0, 4 << 10, 16 << 10, 64 << 10, 1 << 20];
/// One of so many stretches is picked anywhere, and the others where there is data.
const ANYWHERE: usize = 4;
/// So many stretches are compared before two places count as one.
const MANY: usize = 1000;
/// And for no longer than this: somebody waits.
const LONG: Duration = Duration::from_secs(4);

/// The pause between two readings of a stretch that differs.
const BETWEEN: Duration = Duration::from_millis(2);

/// What is to be done at a destination.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is overwritten.
    Overwritten,
    /// Its bytes become a disk.
    Imported,
}

/// What follows if a place cannot be compared with that of a disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InDoubt {
    /// It is refused: it may be that very place.
    Refuse,
    /// It is used: it was in use before.
    Pass,
}

impl InDoubt {
    fn passes(self, error: &Error) -> bool {
        self == InDoubt::Pass && error.code == ErrorCode::Unavailable
    }
}

/// A disk, or a copy of one, on a device or a server.
pub(crate) struct Resident {
    pub(crate) disk: DiskId,
    pub(crate) name: String,
    size: u64,
    pub(crate) on: Arc<DatastoreHandle>,
}

/// Why two places could not be compared.
enum Fault {
    /// The disk's place does not answer.
    Resident,
    /// The destination fails.
    Destination(DatastoreError),
}

impl Storage {
    /// Refuses a device or a server that holds what a disk elsewhere holds, unless an
    /// earlier move explains that.
    pub(crate) fn check_is_no_twin(
        &self,
        to: &DatastoreHandle,
        store: &Arc<Datastore>,
        how: Use,
    ) -> Result<()> {
        self.check_is_no_twin_but(to, store, how, &|_| false, InDoubt::Refuse)
    }

    /// The same of a place in use, which must not be the place of any disk but its owners.
    pub(crate) fn check_is_no_twin_of_others(
        &self,
        on: &DatastoreHandle,
        store: &Arc<Datastore>,
        owners: &[DiskId],
        in_doubt: InDoubt,
    ) -> Result<()> {
        let is_owner = |disk: &DiskId| owners.contains(disk);
        self.check_is_no_twin_but(on, store, Use::Overwritten, &is_owner, in_doubt)
    }

    fn check_is_no_twin_but(
        &self,
        to: &DatastoreHandle,
        store: &Arc<Datastore>,
        how: Use,
        is_owner: &dyn Fn(&DiskId) -> bool,
        in_doubt: InDoubt,
    ) -> Result<()> {
        if to.is_shared() {
            return Ok(());
        }
        let mut residents = self.residents(to)?;
        residents.retain(|it| !is_owner(&it.disk));
        if residents.is_empty() || is_empty(to, store)? {
            return Ok(());
        }
        let numbers: Arc<[u128]> = random::numbers(MANY)?.into();
        let until = Instant::now() + ASKING;
        for resident in residents {
            // What was in use before is not kept from it by places that hang.
            let hangs = || resident.on.must_answer().is_err() || Instant::now() > until;
            if in_doubt == InDoubt::Pass && hangs() {
                continue;
            }
            let kinship = match self.kinship(&resident, to, store, numbers.clone()) {
                Err(error) if in_doubt.passes(&error) && !self.is_ending() => continue,
                kinship => kinship?,
            };
            if kinship == Kinship::Alike && !self.has_copied(&resident, to)? {
                return Err(alike(&resident, to, how));
            }
        }
        Ok(())
    }

    /// Disks and copies on other devices and servers, that could be at `to`. Two devices are
    /// told apart by what they lie on.
    fn residents(&self, to: &DatastoreHandle) -> Result<Vec<Resident>> {
        let is_device =
            |one: &DatastoreHandle| matches!(one.record().location, Location::Device(_));
        let mut all = self.residents_elsewhere(to)?;
        all.retain(|it| !(is_device(&it.on) && is_device(to)));
        Ok(all)
    }

    /// Disks and copies on all other devices and servers.
    pub(crate) fn residents_elsewhere(
        &self,
        to: &DatastoreHandle,
    ) -> Result<Vec<Resident>> {
        let find = |name: &str| {
            let handle = self.handle(name).ok().filter(|it| it.name() != to.name())?;
            (!handle.is_shared()).then_some(handle)
        };
        let mut all = Vec::new();
        // One that is recorded meanwhile is there twice, and not never.
        let placed = self.placements.all();
        for disk in placed.into_iter().chain(self.store.disks()?) {
            let Some(on) = find(&disk.datastore) else { continue };
            all.push(Resident { disk: disk.id, name: disk.name, size: disk.size, on });
        }
        for copy in self.store.open_migrations()? {
            let Some(on) = find(&copy.to.datastore) else { continue };
            all.push(Resident { disk: copy.disk, name: copy.name, size: copy.size, on });
        }
        Ok(all)
    }

    fn kinship(
        &self,
        resident: &Resident,
        to: &DatastoreHandle,
        store: &Arc<Datastore>,
        numbers: Arc<[u128]>,
    ) -> Result<Kinship> {
        let there = resident.on.get().map_err(|_| incomparable(resident, to))?;
        let sizes =
            [Some(resident.size), there.size_at_opening(), store.size_at_opening()];
        let size = sizes.into_iter().flatten().min().unwrap_or(0);
        let store = store.clone();
        let pair = to.visits.pair(resident.on.name());
        let compared = pair.ask_in_turn(ASKING, Some(to.ending()), move || {
            let visit = there.connected(|first| {
                let second = store.connected(|second| second);
                let second = second.map_err(Fault::Destination)?;
                compare(first, second, size, &numbers)
            });
            visit.map_err(|_| Fault::Resident)?
        });
        match compared.answer_unless(to.ending()) {
            None if self.is_ending() => Err(ends()),
            Some(Ok(kinship)) => Ok(kinship),
            Some(Err(Fault::Destination(error))) => Err(to.refused(&error)),
            Some(Err(Fault::Resident)) | None => Err(incomparable(resident, to)),
        }
    }

    /// Whether the last move that had to do with the destination has copied that disk
    /// between it and the place where the disk is now; since the datastore was added, as its
    /// name may have been another place's before.
    fn has_copied(&self, resident: &Resident, to: &DatastoreHandle) -> Result<bool> {
        let (name, added) = (to.name(), to.record().added);
        let ends =
            |one: &MigrationRecord| [&one.from, &one.to].map(|it| it.datastore.clone());
        let mut all = self.store.migrations()?.into_iter().rev();
        // One that was refused has copied nothing.
        let last =
            all.find(|one| one.report.is_some() && ends(one).iter().any(|it| it == name));
        Ok(last.is_some_and(|one| {
            let is_pair = ends(&one).iter().any(|it| it == resident.on.name());
            let copied = one.report.as_ref().map_or(0, |report| report.copied);
            one.disk == resident.disk && is_pair && one.started >= added && copied > 0
        }))
    }
}

/// Whether the destination says that it is all zeroes.
fn is_empty(to: &DatastoreHandle, store: &Arc<Datastore>) -> Result<bool> {
    let size = store.size_at_opening().unwrap_or(0);
    read_at(to, store, ASKING, move |visit| {
        visit.is_some_and(|mut visit| {
            let data = visit.data(size);
            data.is_all && data.stretches.is_empty()
        })
    })
}

/// Reads the same stretches of both places, until they are known to be two, or there is no
/// reason left to doubt that they are one.
fn compare(
    first: Option<Visit>,
    second: Option<Visit>,
    size: u64,
    numbers: &[u128],
) -> Result<Kinship, Fault> {
    let (Some(mut first), Some(mut second)) = (first, second) else {
        return Ok(Kinship::Unknown);
    };
    if size < STRETCH {
        return Ok(Kinship::Unknown);
    }
    let until = Instant::now() + LONG;
    let mut kinship = Kinship::Unknown;
    // Most disks begin with what no other place does: then nothing more is asked.
    for at in BEGINNINGS.into_iter().filter(|at| *at < size) {
        kinship = kinship.max(look(&mut first, &mut second, &stretch(at, size))?);
        if kinship == Kinship::Apart {
            return Ok(kinship);
        }
    }
    // If they are one place, both have their data at the same places: what says more
    // exactly where that is serves for both. Zeroes say nothing, so few are not enough.
    let told = [first.data(size), second.data(size)].map(|it| it.stretches);
    let told = told.into_iter().filter(|it| !it.is_empty());
    let data = told.min_by_key(|it| sum(it)).unwrap_or_default();
    for stretch in pick(size, &data, numbers) {
        if kinship == Kinship::Apart || Instant::now() > until {
            break;
        }
        kinship = kinship.max(look(&mut first, &mut second, &stretch)?);
    }
    // Bad sectors are few: a disk's place that can be read nowhere does not answer.
    let reads = |at: &u64| first.read(&stretch(*at, size)).is_ok();
    match kinship == Kinship::Unknown && !BEGINNINGS.iter().any(reads) {
        true => Err(Fault::Resident),
        false => Ok(kinship),
    }
}

/// Reads a stretch of both places. Nothing is known of one that the first place cannot read.
/// One that differs is read again and again: an application that writes one thing and another
/// by turns would be taken for two places.
fn look(
    first: &mut Visit,
    second: &mut Visit,
    stretch: &Range<u64>,
) -> Result<Kinship, Fault> {
    let mut readings: Vec<Reading> = Vec::new();
    loop {
        let Ok(before) = first.read(stretch) else { return Ok(Kinship::Unknown) };
        let other = second.read(stretch).map_err(Fault::Destination)?;
        let Ok(after) = first.read(stretch) else { return Ok(Kinship::Unknown) };
        readings.push(Reading { before, other, after });
        match judge(&readings[readings.len() - 1..]) {
            Kinship::Apart if readings.len() < PROOFS => thread::sleep(BETWEEN),
            Kinship::Apart if proves_apart(&readings) => return Ok(Kinship::Apart),
            Kinship::Apart => return Ok(Kinship::Unknown),
            kinship => return Ok(kinship),
        }
    }
}

/// The stretch that has this byte, of a place of that size.
fn stretch(at: u64, size: u64) -> Range<u64> {
    let start = at.min(size.saturating_sub(STRETCH)) / STRETCH * STRETCH;
    start..start + STRETCH
}

/// Stretches of a place of that size, one for each number: most of them among its data, as
/// far as that is known, and one of [`ANYWHERE`] anywhere.
fn pick(size: u64, data: &[Range<u64>], numbers: &[u128]) -> Vec<Range<u64>> {
    let sum = sum(data);
    let among = |number: u128| {
        let mut left = (number % u128::from(sum)) as u64;
        for extent in data {
            let len = extent.end - extent.start;
            if left < len {
                return extent.start + left;
            }
            left -= len;
        }
        0
    };
    let place = |(at, number): (usize, &u128)| match sum == 0 || at % ANYWHERE == 0 {
        true => (*number % u128::from(size)) as u64,
        false => among(*number),
    };
    numbers.iter().enumerate().map(place).map(|at| stretch(at, size)).collect()
}

/// How many bytes there are in these stretches.
fn sum(stretches: &[Range<u64>]) -> u64 {
    stretches.iter().map(|it| it.end - it.start).sum()
}

fn incomparable(resident: &Resident, to: &DatastoreHandle) -> Error {
    let (disk, there, to) = (&resident.name, resident.on.name(), to.name());
    let message = format!(
        "datastore {to} is not empty, and Sterna cannot compare it with disk {disk} on \
         datastore {there}, which does not answer: {to} may be the disk's own place under \
         another address"
    );
    Error::unavailable(message).hint(format!(
        "repair datastore {there} (`sterna datastore show {there}`), or choose another \
         datastore"
    ))
}

fn alike(resident: &Resident, to: &DatastoreHandle, how: Use) -> Error {
    let (disk, there, to) = (&resident.name, resident.on.name(), to.name());
    let message = format!(
        "datastore {to} holds the bytes of disk {disk}, which is on datastore {there}: the \
         two datastores may be one place under two addresses"
    );
    let hint = match how {
        Use::Overwritten => format!(
            "`sterna datastore remove {to}`, unless you know that {to} is another place, with \
             an old copy of the disk: then first have its server make that export anew, empty"
        ),
        Use::Imported => format!(
            "if they are one, `sterna datastore remove {to}`; if {to} is another place with \
             a copy of the disk, create a disk on an empty place, and copy the bytes into it"
        ),
    };
    Error::invalid(message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_picked_within_the_place_and_where_it_has_data() {
        for size in [STRETCH, 10_000, 1 << 40] {
            let data = [0..size / 4, size / 2..size];
            let picked = pick(size, &data, &random::numbers(MANY).unwrap());
            assert!(picked.len() == MANY && picked.iter().all(|it| it.end <= size));
        }
        let data = [1 << 30, 1 << 35].map(|at| at..at + STRETCH);
        let picked = pick(1 << 40, &data, &random::numbers(MANY).unwrap());
        let among = picked.iter().filter(|it| data.contains(it)).count();
        assert!(among >= MANY - MANY / ANYWHERE, "{among}");
    }

    #[test]
    fn a_place_of_whose_data_nothing_is_known_is_read_all_over() {
        let picked = pick(1 << 40, &[], &random::numbers(MANY).unwrap());
        assert!(picked.iter().any(|it| it.start > 1 << 39));
    }
}
