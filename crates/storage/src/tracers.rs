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
//! **Failures.** If one cannot be written, those that were are taken back at once, if need be
//! over another connection; if a place answers too late, so that nobody waits for it any more,
//! whoever writes there writes no more, and takes back what it has written. Until then nothing
//! else is put on the place: its next visit waits for the last one, or is refused. A tracer
//! that cannot be taken back keeps none of the others there, and the log says where it is. A
//! daemon that is killed while tracers are out leaves them in a place that nobody uses. If
//! that is a disk's place after all, 4 KiB that were zeroes are not any more: that takes a
//! kill within these milliseconds, and two addresses of one place.
//!
//! **Known gap.** Whoever takes a tracer back reads it first, and writes zeroes then. What
//! somebody else writes there between the two is lost; that takes two addresses of one place,
//! and a guest that writes to one of three blocks in these microseconds.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_engine::datastore::{Datastore, Visit};
use sterna_engine::sidecar::Role;
use sterna_os::random;

use crate::Storage;
use crate::asker::Asked;
use crate::handle::DatastoreHandle;
use crate::own_disk::visit;
use crate::twins::{Resident, Use};

mod written;

use written::{Handover, Outcome, Tracer, hand_over, take_back};

/// So many stretches are read to find zeroes.
const TRIES: usize = 24;
/// How long a disk's place may take to show its bytes.
const LOOK: Duration = Duration::from_secs(2);
/// So many places are looked at side by side.
const AT_ONCE: usize = 16;

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
        if residents.is_empty() || says_that_it_is_in_use(store) {
            return Ok(());
        }
        let numbers = random::numbers(TRIES)?;
        let handover = Arc::new(Handover::default());
        let gives = handover.clone();
        let put = at(to, store, move |visit| hand_over(visit, &numbers, &gives));
        let tracers = handover.take();
        if let Err(error) = put {
            if !tracers.is_empty() {
                // They came when time was just up, or the connection broke meanwhile.
                at(to, store, move |visit| take_back(visit, &tracers))?;
            }
            return Err(error);
        }
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

/// Whether the place itself says that a disk uses it, or cannot be read: whoever goes there is
/// refused for that, and nothing may be written before.
fn says_that_it_is_in_use(store: &Datastore) -> bool {
    match store.says_as_a_whole() {
        Ok(says) => says.is_some_and(|identity| identity.role == Role::Active),
        Err(error) => !error.says_no_sidecar(),
    }
}

/// Does something at the place, if it answers in time.
fn at<T: Default + Send + 'static>(
    to: &DatastoreHandle,
    store: &Arc<Datastore>,
    work: impl FnOnce(&mut Visit) -> Outcome<T> + Send + 'static,
) -> Result<T> {
    let done = visit(to, store, move |visit| match visit {
        Some(mut visit) => work(&mut visit),
        None => Ok(T::default()),
    })?;
    done.map_err(|error| to.refused(&error))
}

/// The disk at whose place a tracer is.
fn find(tracers: &Arc<[Tracer]>, residents: Vec<Resident>) -> Option<Resident> {
    let mut left = residents;
    while !left.is_empty() && !tracers.is_empty() {
        let later = left.split_off(left.len().min(AT_ONCE));
        let ask = |resident: Resident| {
            let there = resident.on.get().ok();
            let asked = there.map(|there| has_one(&resident.on, there, tracers));
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
fn has_one(
    on: &DatastoreHandle,
    there: Arc<Datastore>,
    tracers: &Arc<[Tracer]>,
) -> Asked<bool> {
    let tracers = tracers.clone();
    on.visits.looks.ask(LOOK, move || {
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
