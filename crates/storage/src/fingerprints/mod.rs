//! Fingerprints of disks that fill their device or their export (`core::fingerprint` has the
//! rule), and of the copies that moves make there: taken while the place is in use, and
//! asked for before it is used again.
//!
//! A place is read on a visit of its own, at the side of the disk's clients: some 300 reads of
//! 4 KiB, at most every half minute, and only while something is written. What is written is
//! counted from before the first of these reads, so that nothing is left out.
//!
//! **Failures.** A place that does not answer is asked again after ten minutes, and keeps its
//! last fingerprint. If the state cannot be written, the next round tries it again. At the
//! start, a place that cannot be visited serves nothing either, and is tried again with the
//! disk; nor does one that stops to answer, or is so slow that too few of the disk's own stretches
//! are read in time. So that Sterna itself makes nothing slow, few places that share a disk or a
//! server are looked at at a time (`turns`).

mod known;
mod look;
mod turns;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sterna_api::{Error, Result};
use sterna_core::fingerprint::{Fingerprint, LOOK, STRETCH, Whose, checksum};
use sterna_core::{DiskId, Nanos};
use sterna_engine::Reach;
use sterna_engine::datastore::{Datastore, DatastoreError};
use sterna_engine::mirror::MigrationId;
use sterna_engine::sidecar::trailer;
use sterna_os::lock;
use sterna_runtime::tasks::Task;
use sterna_state::{DiskRecord, FingerprintRecord, MigrationRecord, Step};

use self::known::{Counted, Known};
use self::look::{LONG, Looked, Place};
use self::turns::Turns;
use crate::Storage;
use crate::asker::{Asked, Asker};
use crate::handle::DatastoreHandle;
use crate::own_disk::read_at;

/// How long places may take to be looked at. Nobody waits.
const TAKING: Duration = Duration::from_secs(30);
/// The same when the daemon ends: systemd waits, and clients wait for the next daemon.
const AT_THE_END: Duration = Duration::from_secs(1);
/// So many places are looked at side by side.
const AT_ONCE: usize = 8;
/// Other disks that a place is compared with, if it is not its own disk's: somebody waits.
const OTHERS: usize = 200;
/// How long the visit may take, with its connection.
const VISITING: Duration = Duration::from_secs(24);
/// What clients have written in this time, they may write again until the engine has stopped.
const STOPPING: Nanos = Nanos::from_secs(5);

/// What is known of the places that are in use.
#[derive(Default)]
pub(crate) struct Fingerprints {
    all: Mutex<HashMap<Key, Known>>,
    turns: Turns,
}

/// A disk, and the datastore where it or its copy is.
type Key = (DiskId, String);

/// A place in use that a disk, or a copy of it, fills.
struct Used {
    key: Key,
    size: u64,
    store: Arc<Datastore>,
    counted: Counted,
}

/// A place that is looked at.
struct Look {
    key: Key,
    counted: Counted,
    asked: Asked<Option<Fingerprint>>,
}

/// Takes the fingerprints of disks while they are served.
pub fn taking(storage: &Arc<Storage>) -> Task {
    let take = |storage: &Arc<Storage>| storage.take_fingerprints(TAKING, false);
    let every = Duration::from_nanos(LOOK.0);
    Task::every("fingerprints", "learn what is on exact places", every, storage, take)
}

/// Whether a disk of that size fills its place, so that there is no room for a sidecar.
pub(crate) fn fills(disk: u64, place: Option<u64>) -> bool {
    place.is_some_and(|place| trailer::offset(place, disk).is_none())
}

/// The same of a disk and its datastore; if that is not open, nobody knows.
pub(crate) fn fills_its_place(disk: &DiskRecord, on: Option<&DatastoreHandle>) -> bool {
    let place = on.and_then(|on| on.get().ok());
    fills(disk.size, place.and_then(|place| place.size_at_opening()))
}

impl Storage {
    /// Refuses a disk whose place holds another disk, or nothing of what the disk held. Says
    /// whether its content proves that it is the disk's.
    pub fn check_is_its_place(
        &self,
        disk: &DiskRecord,
        on: &DatastoreHandle,
    ) -> Result<bool> {
        let what = format!("disk {}", disk.name);
        let told = self.check_place(disk.id, disk.size, &what, on);
        told.map_err(|error| {
            let hint = repair(disk, on);
            if error.hint.is_empty() { error.hint(hint) } else { error }
        })
    }

    /// The same for the copy that a move makes. Unless all of it is going to be compared, a
    /// place to which others wrote since the daemon ended is refused, with what to look for as
    /// the error's hint. Says whether its content proves it.
    pub fn check_is_place_of_copy(
        &self,
        copy: &MigrationRecord,
        on: &DatastoreHandle,
        is_compared: bool,
    ) -> Result<bool> {
        let what = format!("the copy of disk {}", copy.name);
        self.check(copy.disk, copy.size, &what, on, !is_compared)
    }

    /// Refuses a place that is not this disk's. Says whether its content proves it.
    pub(crate) fn check_place(
        &self,
        disk: DiskId,
        size: u64,
        what: &str,
        on: &DatastoreHandle,
    ) -> Result<bool> {
        self.check(disk, size, what, on, false)
    }

    /// The same; `alone` if nobody but the daemon writes there.
    fn check(
        &self,
        disk: DiskId,
        size: u64,
        what: &str,
        on: &DatastoreHandle,
        alone: bool,
    ) -> Result<bool> {
        let store = on.get()?;
        if !fills(size, store.size_at_opening()) && !store.was_filled(size) {
            return Ok(false);
        }
        let Some(known) = self.store.fingerprint(disk, on.name())? else {
            return Ok(false);
        };
        let turn = self.fingerprints.turns.take(on.backing(), LONG, on.ending());
        let _turn = turn.ok_or_else(|| waits_for_others(what, on))?;
        let (own, state) = (known.fingerprint.clone(), self.store.clone());
        let others = move || Ok(state.fingerprints_of_others(disk, OTHERS)?);
        let told = read_at(on, &store, VISITING, move |place| match place {
            Some(mut visit) => {
                let read = |at| Some(checksum(&visit.read(&(at..at + STRETCH)).ok()?));
                Place::new(size, read).look(&own, others)
            }
            None => Ok(Looked::unknown()),
        })?;
        let Looked { whose, is_proven, is_late, is_broken, changed } = told?;
        if is_broken && matches!(whose, Whose::Own | Whose::Unknown) {
            return Err(does_not_answer(what, on));
        }
        if is_late && matches!(whose, Whose::Own | Whose::Unknown) {
            return Err(is_slow(what, on));
        }
        if let Some((changed, read)) = changed.filter(|_| alone)
            && matches!(whose, Whose::Own | Whose::Unknown)
        {
            return Err(is_changed(what, on, changed, read));
        }
        match whose {
            Whose::Own => self.goes_on(known).map(|()| is_proven),
            Whose::Unknown => self.goes_on(known).map(|()| false),
            Whose::Others(other) => Err(self.is_anothers(what, on, other)?),
            Whose::Strangers { read } => Err(is_strange(what, on, read)),
        }
    }

    /// A place is used again. From now on, what is written is not known until somebody
    /// says so.
    fn goes_on(&self, known: FingerprintRecord) -> Result<()> {
        let fingerprint = Fingerprint { is_complete: false, ..known.fingerprint };
        let key = (known.disk, known.datastore.clone());
        let mut all = lock(&self.fingerprints.all);
        all.entry(key).or_insert_with(|| Known::new(Some(fingerprint.clone())));
        drop(all);
        if known.fingerprint.is_complete {
            let record = FingerprintRecord { fingerprint, ..known };
            self.store.set_fingerprints(vec![record])?;
        }
        Ok(())
    }

    /// Looks at the places of whose content too much may have changed. After `limit`, the
    /// rest is left to the next time.
    fn take_fingerprints(&self, limit: Duration, at_the_end: bool) -> Result<()> {
        let until = Instant::now() + limit;
        let used = self.exact_places()?;
        let (mut due, news) = self.due(used, at_the_end);
        // First: a place that is looked at may not answer, and a kill may come meanwhile.
        self.record(news)?;
        while !due.is_empty() && Instant::now() < until {
            let batch: Vec<_> = due.drain(..due.len().min(AT_ONCE)).collect();
            let left = until.saturating_duration_since(Instant::now());
            let ask = |(used, known): (Used, Asker)| {
                let Used { key, size, store, counted } = used;
                let asked = known.ask(left, move || take(&store, size));
                Look { key, counted, asked }
            };
            let looks: Vec<Look> = batch.into_iter().map(ask).collect();
            let taken = looks.into_iter().filter_map(|look| self.has_looked(look));
            self.record(taken.collect())?;
        }
        Ok(())
    }

    /// Records them. What the state does not take is news again in the next round.
    fn record(&self, these: Vec<FingerprintRecord>) -> Result<()> {
        let written = |it: &FingerprintRecord| {
            ((it.disk, it.datastore.clone()), it.fingerprint.written)
        };
        let written: Vec<(Key, u64)> = these.iter().map(written).collect();
        self.store.set_fingerprints(these)?;
        let mut all = lock(&self.fingerprints.all);
        for (key, written) in written {
            all.get_mut(&key).into_iter().for_each(|known| known.is_recorded(written));
        }
        Ok(())
    }

    /// Places in use that a disk or a copy fills. What is known of others is forgotten.
    fn exact_places(&self) -> Result<Vec<Used>> {
        // Mostly all datastores are directories, and then the state need not be asked.
        let none_is_exact = self.all_handles().iter().all(|it| it.is_shared());
        if none_is_exact && lock(&self.fingerprints.all).is_empty() {
            return Ok(Vec::new());
        }
        let disks = self.store.disks()?;
        let copies = self.store.open_migrations()?;
        let places = disks.iter().map(|it| (it.id, it.size, &it.datastore, None));
        // Until a move has ended, its disk is known by what is on the old place as well: another
        // disk's place may have been swapped for that.
        let moves: Vec<Key> =
            copies.iter().map(|it| (it.disk, it.from.datastore.clone())).collect();
        // After the commit it is the disk.
        let copies = copies.iter().filter(|it| it.step != Step::Committed);
        let copies = copies.map(|it| (it.disk, it.size, &it.to.datastore, Some(it.id)));
        let places: Vec<_> = places.chain(copies).collect();
        self.forget_others(|(disk, datastore)| {
            let key = (*disk, datastore.clone());
            moves.contains(&key)
                || places.iter().any(|(id, _, on, _)| id == disk && *on == datastore)
        })?;
        let used = |(disk, size, on, copy): (DiskId, u64, &String, Option<u64>)| {
            let handle = self.handle(on).ok().filter(|it| !it.is_shared())?;
            let store = handle.get().ok()?;
            if !fills(size, store.size_at_opening()) {
                return None;
            }
            let counted = self.counted(disk, copy)?;
            Some(Used { key: (disk, on.clone()), size, store, counted })
        };
        Ok(places.into_iter().filter_map(used).collect())
    }

    /// Forgets what is known of places that have no disk and no copy any more.
    fn forget_others(&self, has: impl Fn(&Key) -> bool) -> Result<()> {
        if lock(&self.fingerprints.all).keys().all(&has) {
            return Ok(());
        }
        self.store.forget_old_fingerprints()?;
        lock(&self.fingerprints.all).retain(|key, _| has(key));
        Ok(())
    }

    /// Those that are due, and what is to be recorded of all.
    fn due(
        &self,
        used: Vec<Used>,
        at_the_end: bool,
    ) -> (Vec<(Used, Asker)>, Vec<FingerprintRecord>) {
        let mut all = lock(&self.fingerprints.all);
        let (mut due, mut news) = (Vec::new(), Vec::new());
        for used in used {
            let known = all.entry(used.key.clone()).or_insert_with(|| Known::new(None));
            let new = known.news(used.counted);
            news.extend(new.map(|fingerprint| record(&used.key, fingerprint)));
            if known.is_due(used.counted, at_the_end) {
                let asker = known.asker.clone();
                due.push((used, asker));
            }
        }
        (due, news)
    }

    /// What was written to a disk that is served, or to its copy.
    fn counted(&self, disk: DiskId, copy: Option<u64>) -> Option<Counted> {
        let stats = self.engine.stats(disk).ok()?;
        let copied = match copy {
            Some(id) => {
                // What was copied lacks the zeroes, and what is in sync what was copied again.
                let progress = self.engine.progress(MigrationId(id)).ok()?;
                progress.copied.0 + progress.synced.0
            }
            None => 0,
        };
        let bytes = stats.write.bytes + copied;
        let reach = self.reach(disk, copy);
        Some(Counted { bytes, zeroes: stats.zeroes, copy, reach })
    }

    /// How a disk is reached, or its copy: not one that a move has let go of.
    fn reach(&self, disk: DiskId, copy: Option<u64>) -> Option<Reach> {
        self.engine.reach(disk, copy.is_some()).ok().flatten()
    }

    /// What is to be recorded of a look.
    fn has_looked(&self, look: Look) -> Option<FingerprintRecord> {
        let Look { key, counted, asked } = look;
        let taken = asked.answer().flatten();
        let reach = self.reach(key.0, counted.copy);
        let mut all = lock(&self.fingerprints.all);
        let fingerprint = all.get_mut(&key)?.has_looked(counted, reach, taken)?;
        Some(record(&key, fingerprint))
    }

    /// Records what was written since the fingerprints were taken, with what may still come
    /// until the engine has stopped. For the end of the daemon in good order.
    pub fn complete_fingerprints(&self) -> Result<()> {
        self.take_fingerprints(AT_THE_END, true)?;
        let used = self.exact_places()?;
        let all = lock(&self.fingerprints.all);
        let complete = |Used { key, counted, .. }: Used| {
            let more = self.samples.of_disk(key.0, STOPPING).write.bytes as u64;
            let fingerprint = all.get(&key)?.complete(counted, more)?;
            Some(record(&key, fingerprint))
        };
        let records: Vec<_> = used.into_iter().filter_map(complete).collect();
        drop(all);
        Ok(self.store.set_fingerprints(records)?)
    }

    fn is_anothers(
        &self,
        what: &str,
        on: &DatastoreHandle,
        other: DiskId,
    ) -> Result<Error> {
        let (datastore, disks) = (on.name(), self.store.disks()?);
        let other = disks.iter().find(|it| it.id == other).map_or("?", |it| &it.name);
        let message = format!(
            "datastore {datastore} holds the bytes of disk {other}, and not those of {what}: \
             devices may have swapped their names, or servers their files"
        );
        Ok(Error::in_use(message))
    }
}

fn record((disk, datastore): &Key, fingerprint: Fingerprint) -> FingerprintRecord {
    FingerprintRecord { disk: *disk, datastore: datastore.clone(), fingerprint }
}

fn is_strange(what: &str, on: &DatastoreHandle, read: usize) -> Error {
    let datastore = on.name();
    Error::in_use(format!(
        "datastore {datastore} does not hold {what} any more: of {read} places that Sterna \
         remembers, (nearly) none holds what it held"
    ))
}

fn does_not_answer(what: &str, on: &DatastoreHandle) -> Error {
    let datastore = on.name();
    let message = format!(
        "datastore {datastore} cannot be read: Sterna could not look whether it holds {what}"
    );
    Error::unavailable(message)
        .hint("repair the datastore; Sterna tries again every few seconds")
}

fn is_slow(what: &str, on: &DatastoreHandle) -> Error {
    let (datastore, seconds) = (on.name(), LONG.as_secs());
    let message = format!(
        "datastore {datastore} is so slow that Sterna could not look within {seconds} s \
         whether it holds {what}"
    );
    Error::unavailable(message)
        .hint("find out why the datastore is slow; Sterna tries again every few seconds")
}

fn waits_for_others(what: &str, on: &DatastoreHandle) -> Error {
    let datastore = on.name();
    let message = format!(
        "Sterna looks at other places on the storage of datastore {datastore} first, and has \
         not seen yet whether it holds {what}"
    );
    Error::unavailable(message).hint("Sterna tries again every few seconds")
}

fn is_changed(what: &str, on: &DatastoreHandle, changed: usize, read: usize) -> Error {
    let datastore = on.name();
    let message = format!(
        "somebody else has written to {what} on datastore {datastore} while no daemon ran: \
         {changed} of {read} places that Sterna remembers have changed"
    );
    Error::in_use(message).hint(
        "make sure that no other disk has this place by now: the state may come from a backup",
    )
}

fn repair(disk: &DiskRecord, on: &DatastoreHandle) -> String {
    let (disk, datastore, location) = (&disk.name, on.name(), &on.record().location);
    format!(
        "put the right device or server back: Sterna then serves the disk within seconds; if \
         its content was replaced on purpose, `sterna disk remove {disk} --keep-image`, then \
         `sterna disk import {disk} {location} --on {datastore}`"
    )
}

/// Takes the fingerprint of a place; none of one that fails.
fn take(store: &Datastore, size: u64) -> Option<Fingerprint> {
    let taken = store.connected(|place| {
        let mut place = place?;
        let read = |at| match place.read(&(at..at + STRETCH)) {
            Ok(bytes) => Ok(Some(bytes)),
            // A bad sector, or the end of everything: a server then does not answer again.
            Err(DatastoreError::Io { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        Fingerprint::take(size, read).ok()
    });
    taken.ok().flatten()
}
