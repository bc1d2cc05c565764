//! Whether a device or a server that something is to go to is the place of a disk that is
//! there already, under an address that does not say so.
//!
//! Two addresses of one server (a host's names, a port that is passed on, two servers over
//! one file on another machine) are two datastores to whoever looks at addresses. So a few
//! stretches of both are read and compared (`core::twin`), before anything is written. Most
//! are picked where the disk has data, as zeroes are everywhere.
//!
//! **An old copy** of the disk is alike, too. If Sterna itself has copied the disk there, or
//! from there, that explains it, and the move may begin. If not, Sterna refuses the move: of
//! a copy that somebody else has made, only that person can say that it is one.
//!
//! **What is not found**: a disk that has only zeroes; a server that answers from a cache of
//! its own, or has the disk at another offset; and whatever comes to be the same place
//! later. Two devices of this machine are told apart by what they lie on (`itself`), and
//! not by what they hold.

use std::ops::Range;
use std::sync::Arc;

use sterna_api::{Error, Result};
use sterna_core::DiskId;
use sterna_core::twin::{Kinship, Reading, judge};
use sterna_engine::datastore::{Datastore, DatastoreError, Location, Visit};
use sterna_os::random;
use sterna_state::Step;

use crate::Storage;
use crate::handle::DatastoreHandle;
use crate::itself::{ASKING, silent};
use crate::patience::Patience;

/// A stretch that is read: a block of a file system.
const STRETCH: u64 = 4096;
/// Stretches that are read where the disk has data.
const AMONG_DATA: usize = 16;
/// Stretches that are read anywhere.
const ANYWHERE: usize = 8;

/// A disk, or a copy of one, on a device or a server.
struct Resident {
    disk: DiskId,
    name: String,
    size: u64,
    on: Arc<DatastoreHandle>,
}

impl Storage {
    /// Refuses a device or a server that holds what a disk elsewhere holds, unless an
    /// earlier move explains that.
    pub(crate) fn check_is_no_twin(
        &self,
        to: &DatastoreHandle,
        store: &Arc<Datastore>,
    ) -> Result<()> {
        if to.is_shared() {
            return Ok(());
        }
        for resident in self.residents(to)? {
            let Ok(there) = resident.on.get() else { continue };
            if self.kinship(&resident, there, to, store.clone())? != Kinship::Alike {
                continue;
            }
            if !self.has_copied(resident.disk, to)? {
                return Err(alike(&resident, to));
            }
        }
        Ok(())
    }

    /// Disks and copies on other devices and servers that answer, and that could be `to`.
    fn residents(&self, to: &DatastoreHandle) -> Result<Vec<Resident>> {
        let is_device =
            |one: &DatastoreHandle| matches!(one.record().location, Location::Device(_));
        let find = |name: &str| {
            let handle = self.handle(name).ok().filter(|it| it.name() != to.name())?;
            let cannot_be = handle.is_shared() || is_device(&handle) && is_device(to);
            (!cannot_be && handle.must_answer().is_ok()).then_some(handle)
        };
        let mut all = Vec::new();
        for disk in self.store.disks()? {
            let Some(on) = find(&disk.datastore) else { continue };
            all.push(Resident { disk: disk.id, name: disk.name, size: disk.size, on });
        }
        for copy in self.store.migrations()?.into_iter().filter(|it| !it.step.ended()) {
            let Some(on) = find(&copy.to.datastore) else { continue };
            all.push(Resident { disk: copy.disk, name: copy.name, size: copy.size, on });
        }
        Ok(all)
    }

    fn kinship(
        &self,
        resident: &Resident,
        there: Arc<Datastore>,
        to: &DatastoreHandle,
        store: Arc<Datastore>,
    ) -> Result<Kinship> {
        let sizes =
            [Some(resident.size), there.size_at_opening(), store.size_at_opening()];
        let size = sizes.into_iter().flatten().min().unwrap_or(0);
        let numbers = numbers()?;
        let compared = Patience::default().ask(ASKING, move || {
            there.connected(|first| {
                store.connected(|second| compare(first, second, size, &numbers))
            })
        });
        // A disk whose server answers nobody is no reason to refuse another place.
        let Some(compared) = compared.answer() else {
            return resident
                .on
                .must_answer()
                .map_or(Ok(Kinship::Unknown), |()| Err(silent(to)));
        };
        let Ok(compared) = compared else { return Ok(Kinship::Unknown) };
        compared.and_then(|it| it).map_err(|error| to.refused(&error))
    }

    /// Whether a move has copied the disk there, or from there, since the datastore was added:
    /// before, its name may have been another place's.
    fn has_copied(&self, disk: DiskId, datastore: &DatastoreHandle) -> Result<bool> {
        let (name, added) = (datastore.name(), datastore.record().added);
        Ok(self.store.migrations()?.iter().any(|one| {
            let is_end = [&one.from, &one.to].iter().any(|it| it.datastore == name);
            let said = one.report.as_ref().map_or(0, |report| report.copied);
            let has_copied = one.step == Step::Completed || one.counted.copied + said > 0;
            one.disk == disk && one.started >= added && is_end && has_copied
        }))
    }
}

/// Reads the same stretches of both places, until they are known to be two.
fn compare(
    first: Option<Visit>,
    second: Option<Visit>,
    size: u64,
    numbers: &[u128],
) -> Result<Kinship, DatastoreError> {
    let (Some(mut first), Some(mut second)) = (first, second) else {
        return Ok(Kinship::Unknown);
    };
    if size < STRETCH {
        return Ok(Kinship::Unknown);
    }
    let mut readings = Vec::new();
    // Most disks begin with what no other place does: then nothing more is asked.
    let mut stretches = vec![stretch(0, size)];
    loop {
        for stretch in &stretches {
            let before = first.read(stretch)?;
            let other = second.read(stretch)?;
            readings.push(Reading { before, other, after: first.read(stretch)? });
            if judge(&readings) == Kinship::Apart {
                return Ok(Kinship::Apart);
            }
        }
        if readings.len() > 1 {
            return Ok(judge(&readings));
        }
        stretches = pick(size, &first.data(size), numbers);
    }
}

/// The stretch that has this byte, of a place of that size.
fn stretch(at: u64, size: u64) -> Range<u64> {
    let start = at.min(size.saturating_sub(STRETCH)) / STRETCH * STRETCH;
    start..start + STRETCH
}

/// Stretches of a place of that size: some among its data, and some anywhere.
fn pick(size: u64, data: &[Range<u64>], numbers: &[u128]) -> Vec<Range<u64>> {
    let stretch = |at| stretch(at, size);
    let sum: u64 = data.iter().map(|it| it.end - it.start).sum();
    let among = |number: &u128| {
        let mut left = (*number % u128::from(sum.max(1))) as u64;
        for extent in data {
            let len = extent.end - extent.start;
            if left < len {
                return stretch(extent.start + left);
            }
            left -= len;
        }
        stretch(0)
    };
    let anywhere = |number: &u128| stretch((*number % u128::from(size)) as u64);
    let (first, rest) = numbers.split_at(AMONG_DATA.min(numbers.len()));
    first.iter().map(among).chain(rest.iter().map(anywhere)).collect()
}

fn numbers() -> Result<Vec<u128>> {
    (0..AMONG_DATA + ANYWHERE).map(|_| random::number()).collect()
}

fn alike(resident: &Resident, to: &DatastoreHandle) -> Error {
    let (disk, there, to) = (&resident.name, resident.on.name(), to.name());
    let message = format!(
        "datastore {to} holds the bytes of disk {disk}, which is on datastore {there}: the \
         two datastores may be one place under two addresses"
    );
    Error::in_use(message).hint(format!(
        "if they are one, `sterna datastore remove {to}`; if {to} is another place with an \
         old copy of the disk, have its server make it anew, empty, and try again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_picked_within_the_place_and_where_it_has_data() {
        for size in [STRETCH, 10_000, 1 << 40] {
            let data = [0..size / 4, size / 2..size];
            let picked = pick(size, &data, &numbers().unwrap());
            assert_eq!(picked.len(), AMONG_DATA + ANYWHERE);
            assert!(picked.iter().all(|it| it.end <= size), "{picked:?}");
        }
        let data = [1 << 30, 1 << 35].map(|at| at..at + STRETCH);
        let picked = pick(1 << 40, &data, &numbers().unwrap());
        assert!(picked[..AMONG_DATA].iter().all(|it| data.contains(it)), "{picked:?}");
    }

    #[test]
    fn a_place_without_data_is_read_at_its_beginning() {
        let picked = pick(1 << 40, &[], &numbers().unwrap());
        assert_eq!(picked[0], 0..STRETCH);
    }
}
