//! Whether an empty place is the place of a disk, or of a copy that is being made, under
//! another address: found out by writing.
//!
//! What two places hold tells them apart only if they hold something (`twins`). Two addresses
//! of one empty place are alike in every byte, and two moves may go there at once. So before
//! anything goes to a device or a server, Sterna writes a few **tracers** there, each 4 KiB of
//! chance, and looks for them at all other devices and servers that have a disk or a copy. If
//! one is there, too, both places are one. Then the tracers are taken back.
//!
//! **Rule.** A tracer is written only over zeroes, of a place that is about to be overwritten,
//! and that `twins` has found nothing against. It is taken back only if it is still there:
//! what somebody else has written over it stays, and Sterna refuses a place that somebody
//! else writes to. While one is out, [`Storage::placing`] keeps
//! others from looking for a place. Several are written, for a server that answers some reads
//! from a cache of its own.
//!
//! **In doubt.** A place without zeroes among those that were picked gets no tracer: `twins`
//! has compared it. A disk's place that does not answer cannot show a tracer: the disk has
//! data there, or is as empty as the place is.
//!
//! **Failures.** A daemon that is killed while tracers are out leaves them in a place that
//! nobody uses. If that is a disk's place after all, 4 KiB that were zeroes are not any more:
//! that takes a kill within these milliseconds, and two addresses of one place.

use std::ops::Range;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_engine::datastore::{Datastore, DatastoreError, Visit};
use sterna_engine::sidecar::Role;
use sterna_os::random;

use crate::Storage;
use crate::asker::{Asked, Asker};
use crate::handle::DatastoreHandle;
use crate::own_disk::visit;
use crate::twins::{Resident, Use};

/// How long a tracer is: a block of every device.
const LEN: u64 = 4096;
/// So many are written.
const TRACERS: usize = 3;
/// So many stretches are read to find zeroes.
const TRIES: usize = 24;
/// How long a disk's place may take to show its bytes.
const LOOK: Duration = Duration::from_secs(2);
/// So many places are looked at side by side.
const AT_ONCE: usize = 16;

/// Bytes of chance at an empty place.
#[derive(Clone, Debug)]
struct Tracer {
    at: u64,
    bytes: Vec<u8>,
}

impl Tracer {
    fn range(&self) -> Range<u64> {
        self.at..self.at + LEN
    }
}

impl Storage {
    /// Refuses a device or a server at which a tracer comes to light that was written to
    /// another one, or the other way round. To be asked last, while `placing` is held, and
    /// only if something is about to be made there.
    pub fn check_is_nowhere_else(
        &self,
        to: &DatastoreHandle,
        store: &Arc<Datastore>,
        placing: Option<&MutexGuard<'_, ()>>,
    ) -> Result<()> {
        if placing.is_none() {
            return Ok(());
        }
        let residents = self.residents_elsewhere(to)?;
        if residents.is_empty() || says_that_it_is_in_use(to) {
            return Ok(());
        }
        let numbers = random::numbers(TRIES)?;
        let tracers = at(to, store, move |visit| put(visit, &numbers))?;
        let tracers: Arc<[Tracer]> = tracers.into();
        if tracers.is_empty() {
            // Either it has data, and was compared; or somebody has filled it since.
            return self.check_is_no_twin(to, store, Use::Overwritten);
        }
        let found = find(&tracers, residents);
        let are_all_there = at(to, store, move |visit| take_back(visit, &tracers))?;
        match found {
            Some(resident) => Err(is_one(to, &resident)),
            None if are_all_there => Ok(()),
            None => Err(is_written_to(to)),
        }
    }
}

/// Whether a record in the place itself says that it is a disk in use: whoever goes there is
/// refused for that, and nothing may be written before. Without a disk, the record is at the
/// end of the place.
fn says_that_it_is_in_use(to: &DatastoreHandle) -> bool {
    let says = to.says("", 0).ok().flatten();
    says.is_some_and(|identity| identity.role == Role::Active)
}

/// Does something at the place, if it answers in time.
fn at<T: Default + Send + 'static>(
    to: &DatastoreHandle,
    store: &Arc<Datastore>,
    work: impl FnOnce(&mut Visit) -> std::result::Result<T, DatastoreError> + Send + 'static,
) -> Result<T> {
    let done = visit(to, store, move |visit| match visit {
        Some(mut visit) => work(&mut visit),
        None => Ok(T::default()),
    })?;
    done.map_err(|error| to.refused(&error))
}

/// Writes tracers where there are zeroes.
fn put(
    visit: &mut Visit,
    numbers: &[u128],
) -> std::result::Result<Vec<Tracer>, DatastoreError> {
    let blocks = visit.size() / LEN;
    let mut tracers: Vec<Tracer> = Vec::new();
    for number in numbers.iter().filter(|_| blocks > 0) {
        let tracer = tracer(*number, blocks);
        let is_new = tracers.iter().all(|it| it.at != tracer.at);
        if !is_new || visit.read(&tracer.range())?.iter().any(|byte| *byte != 0) {
            continue;
        }
        visit.write(tracer.at, &tracer.bytes)?;
        tracers.push(tracer);
        if tracers.len() == TRACERS {
            break;
        }
    }
    Ok(tracers)
}

/// The tracer of a number, in a place of so many blocks.
fn tracer(number: u128, blocks: u64) -> Tracer {
    let at = (number % u128::from(blocks)) as u64 * LEN;
    let word = |step: u64| {
        // Each word is another one (the steps of splitmix64); none is all zeroes.
        let mixed = (number as u64 ^ (number >> 64) as u64)
            .wrapping_add(step.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1
    };
    let bytes = (0..LEN / 8).flat_map(|step| word(step).to_le_bytes()).collect();
    Tracer { at, bytes }
}

/// Puts zeroes where a tracer still is; says whether all still were.
fn take_back(
    visit: &mut Visit,
    tracers: &[Tracer],
) -> std::result::Result<bool, DatastoreError> {
    let mut are_all_there = true;
    for tracer in tracers {
        match visit.read(&tracer.range())? == tracer.bytes {
            true => visit.write(tracer.at, &[0; LEN as usize])?,
            false => are_all_there = false,
        }
    }
    Ok(are_all_there)
}

/// The disk at whose place a tracer is.
fn find(tracers: &Arc<[Tracer]>, residents: Vec<Resident>) -> Option<Resident> {
    let mut left = residents;
    while !left.is_empty() && !tracers.is_empty() {
        let later = left.split_off(left.len().min(AT_ONCE));
        let ask = |resident: Resident| {
            let asked = resident.on.get().ok().map(|there| has_one(there, tracers));
            (resident, asked)
        };
        let asked: Vec<(Resident, Option<Asked<bool>>)> =
            left.into_iter().map(ask).collect();
        let mut found = None;
        for (resident, asked) in asked {
            if asked.and_then(Asked::answer) == Some(true) {
                found.get_or_insert(resident);
            }
        }
        if found.is_some() {
            return found;
        }
        left = later;
    }
    None
}

/// Asks whether a place has one of the tracers.
fn has_one(there: Arc<Datastore>, tracers: &Arc<[Tracer]>) -> Asked<bool> {
    let tracers = tracers.clone();
    Asker::default().ask(LOOK, move || {
        let looked = there.connected(|visit| {
            let Some(mut visit) = visit else { return false };
            let size = visit.size();
            tracers.iter().filter(|it| it.range().end <= size).any(|tracer| {
                visit.read(&tracer.range()).is_ok_and(|read| read == tracer.bytes)
            })
        });
        looked.unwrap_or(false)
    })
}

fn is_written_to(to: &DatastoreHandle) -> Error {
    let message = format!(
        "something else writes to datastore {}: what Sterna wrote there was overwritten at once",
        to.name()
    );
    Error::in_use(message).hint(
        "find out what writes there (a move may go to the same place under another address: \
         `sterna migration list`), or choose another datastore",
    )
}

fn is_one(to: &DatastoreHandle, resident: &Resident) -> Error {
    let (disk, there, to) = (&resident.name, resident.on.name(), to.name());
    let message = format!(
        "datastores {to} and {there} are one place under two addresses: what is written to \
         {to} comes to light at {there}, where disk {disk} is or goes"
    );
    Error::invalid(message)
        .hint(format!("choose another datastore, and `sterna datastore remove {to}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracers_lie_within_the_place_and_no_two_words_of_one_are_alike() {
        for number in [1, 77, u128::MAX, 1 << 90] {
            let tracer = tracer(number, 10);
            assert!(tracer.range().end <= 10 * LEN && tracer.bytes.len() as u64 == LEN);
            let mut words: Vec<&[u8]> = tracer.bytes.chunks(8).collect();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len() as u64, LEN / 8);
        }
        assert_ne!(tracer(5, 10).bytes, tracer(6, 10).bytes);
    }
}
