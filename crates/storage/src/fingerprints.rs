//! Fingerprints of disks that fill their device or their export (`core::fingerprint` has the
//! rule): taken while the disk is served, and asked for before it is served again.
//!
//! A place is read on a visit of its own, at the side of the disk's clients: some 300 reads of
//! 4 KiB, at most every few seconds, and only while clients write. What clients write is
//! counted from before the first of these reads, so that nothing is left out.
//!
//! **Failures.** A place that does not answer is asked again after ten minutes; its disk keeps
//! its last fingerprint. If the state cannot be written, the next look tries it again. At the
//! start, a place that cannot be visited serves nothing either, and is tried again with the
//! disk.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sterna_api::{Error, Result};
use sterna_core::fingerprint::{Fingerprint, LOOK, STRETCH, Whose, checksum, whose};
use sterna_core::{DiskId, Nanos};
use sterna_engine::datastore::{Datastore, DatastoreError, Visit};
use sterna_engine::sidecar::trailer;
use sterna_os::{lock, random};
use sterna_runtime::tasks::Task;
use sterna_state::{DiskRecord, FingerprintRecord};

use crate::Storage;
use crate::asker::{Asked, Asker};
use crate::handle::DatastoreHandle;
use crate::own_disk::visit;

/// How long places may take to be looked at. Nobody waits.
const TAKING: Duration = Duration::from_secs(30);
/// So many places are looked at side by side.
const AT_ONCE: usize = 8;
/// A place that has not answered is asked again after this time.
const AGAIN: Duration = Duration::from_secs(600);
/// Other disks that a place is compared with, if it is not its own disk's: somebody waits.
const OTHERS: usize = 200;
/// The same when the daemon ends: systemd waits, and clients wait for the next daemon.
const AT_THE_END: Duration = Duration::from_secs(2);
/// What clients have written in this time, they may write again until the engine has stopped.
const STOPPING: Nanos = Nanos::from_secs(5);
/// How long the stretches of all of them may take to be read.
const LONG: Duration = Duration::from_secs(4);

/// What is known of the disks that are served.
#[derive(Default)]
pub(crate) struct Fingerprints {
    all: Mutex<HashMap<DiskId, Known>>,
}

/// A disk's fingerprint, and what is needed to say how old it is.
struct Known {
    datastore: String,
    /// None: nobody has looked yet.
    fingerprint: Option<Fingerprint>,
    /// What had been written when it was taken, of this attachment.
    counted: Counted,
    taken: Instant,
    /// The place has not answered since.
    silent: Option<Instant>,
    asker: Asker,
}

/// What a disk's clients have written since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    bytes: u64,
    /// Discards and write-zeroes, of any length.
    zeroes: u64,
}

impl Counted {
    /// Bytes written since an earlier count. Zeroes may be anywhere.
    fn since(self, earlier: Counted) -> u64 {
        match self.zeroes == earlier.zeroes && self.bytes >= earlier.bytes {
            true => self.bytes - earlier.bytes,
            false => u64::MAX,
        }
    }
}

impl Known {
    fn new(datastore: &str, fingerprint: Option<Fingerprint>) -> Known {
        Known {
            datastore: datastore.into(),
            fingerprint,
            counted: Counted::default(),
            taken: Instant::now(),
            silent: None,
            asker: Asker::default(),
        }
    }

    /// What was written since it was taken.
    fn written(&self, counted: Counted) -> u64 {
        let before = self.fingerprint.as_ref().map_or(0, |it| it.written);
        before.saturating_add(counted.since(self.counted))
    }

    fn is_due(&self, counted: Counted) -> bool {
        if self.silent.is_some_and(|since| since.elapsed() < AGAIN) {
            return false;
        }
        let ago = Nanos::from(self.taken.elapsed());
        let fingerprint = self.fingerprint.as_ref();
        fingerprint.is_none_or(|it| it.is_due(self.written(counted), ago))
    }
}

/// Takes the fingerprints of disks while they are served.
pub fn taking(storage: &Arc<Storage>) -> Task {
    let take = |storage: &Arc<Storage>| storage.take_fingerprints(TAKING);
    let every = Duration::from_nanos(LOOK.0);
    Task::every("fingerprints", "learn what exact disks hold", every, storage, take)
}

/// Whether a disk fills its place, so that there is no room for a sidecar.
pub(crate) fn fills(disk: &DiskRecord, size: Option<u64>) -> bool {
    size.is_some_and(|size| trailer::offset(size, disk.size).is_none())
}

/// A place that is looked at.
struct Look {
    disk: DiskId,
    counted: Counted,
    asked: Asked<Option<Fingerprint>>,
}

impl Storage {
    /// Refuses a disk whose place holds another disk, or nothing of what the disk held.
    pub fn check_is_its_place(
        &self,
        disk: &DiskRecord,
        on: &DatastoreHandle,
    ) -> Result<()> {
        let store = on.get()?;
        if !fills(disk, store.size_at_opening()) {
            return Ok(());
        }
        let known = self.store.fingerprint(disk.id)?;
        let Some(known) = known.filter(|it| it.datastore == disk.datastore) else {
            return Ok(());
        };
        let own = known.fingerprint.clone();
        let mut others = self.store.fingerprints()?;
        others.retain(|other| other.disk != disk.id);
        others.truncate(OTHERS);
        let told = visit(on, &store, move |place| match place {
            Some(mut place) => look(&mut place, &own, &others),
            None => Whose::Own,
        })?;
        match told {
            Whose::Own | Whose::Unknown => {}
            Whose::Others(other) => {
                return Err(self.is_anothers(disk, other)?.hint(repair(disk, on)));
            }
            Whose::Strangers { read } => {
                return Err(is_strange(disk, read).hint(repair(disk, on)));
            }
        }
        // From now on, what clients write is not known until somebody says so.
        let fingerprint = Fingerprint { is_complete: false, ..known.fingerprint };
        let record = FingerprintRecord { fingerprint: fingerprint.clone(), ..known };
        self.store.set_fingerprints(vec![record])?;
        let known = Known::new(&disk.datastore, Some(fingerprint));
        lock(&self.fingerprints.all).insert(disk.id, known);
        Ok(())
    }

    /// Looks at the places of disks of whose content too much may have changed. After
    /// `limit`, the rest is left to the next time.
    fn take_fingerprints(&self, limit: Duration) -> Result<()> {
        let until = Instant::now() + limit;
        let served = self.exact_disks()?;
        let mut due = self.due(&served);
        while !due.is_empty() && Instant::now() < until {
            let batch: Vec<_> = due.drain(..due.len().min(AT_ONCE)).collect();
            let numbers: Arc<[u128]> = random::numbers(Fingerprint::NUMBERS)?.into();
            let looks: Vec<Look> = batch
                .into_iter()
                .map(|(disk, store, counted)| {
                    let asker = self.asker_of(disk.id);
                    let (size, numbers) = (disk.size, numbers.clone());
                    let work = move || take(&store, size, &numbers);
                    Look { disk: disk.id, counted, asked: asker.ask(limit, work) }
                })
                .collect();
            let taken = looks.into_iter().filter_map(|look| self.has_looked(look));
            self.store.set_fingerprints(taken.collect())?;
        }
        Ok(())
    }

    /// Disks that are served and fill their place, each with that.
    fn exact_disks(&self) -> Result<Vec<(DiskRecord, Arc<Datastore>)>> {
        let find = |disk: DiskRecord| {
            let handle =
                self.handle(&disk.datastore).ok().filter(|it| !it.is_shared())?;
            let store = handle.get().ok()?;
            (fills(&disk, store.size_at_opening()) && self.problem_of(disk.id).is_none())
                .then_some((disk, store))
        };
        Ok(self.store.disks()?.into_iter().filter_map(find).collect())
    }

    /// Those of them that are due, with what they have written so far. Forgets others.
    fn due(
        &self,
        served: &[(DiskRecord, Arc<Datastore>)],
    ) -> Vec<(DiskRecord, Arc<Datastore>, Counted)> {
        let counts: Vec<Option<Counted>> =
            served.iter().map(|(disk, _)| self.counted(disk.id)).collect();
        let mut all = lock(&self.fingerprints.all);
        all.retain(|disk, known| {
            served.iter().any(|(it, _)| it.id == *disk && it.datastore == known.datastore)
        });
        let mut due = Vec::new();
        for ((disk, store), counted) in served.iter().zip(counts) {
            let Some(counted) = counted else { continue };
            let known =
                all.entry(disk.id).or_insert_with(|| Known::new(&disk.datastore, None));
            if known.is_due(counted) {
                due.push((disk.clone(), store.clone(), counted));
            }
        }
        due
    }

    fn counted(&self, disk: DiskId) -> Option<Counted> {
        let stats = self.engine.stats(disk).ok()?;
        Some(Counted { bytes: stats.write.bytes, zeroes: stats.zeroes })
    }

    fn asker_of(&self, disk: DiskId) -> Asker {
        let all = lock(&self.fingerprints.all);
        all.get(&disk).map(|known| known.asker.clone()).unwrap_or_default()
    }

    /// What is to be recorded of a look.
    fn has_looked(&self, look: Look) -> Option<FingerprintRecord> {
        let Look { disk, counted, asked } = look;
        let answer = asked.answer().flatten();
        let mut all = lock(&self.fingerprints.all);
        let known = all.get_mut(&disk)?;
        let Some(fingerprint) = answer else {
            known.silent = Some(Instant::now());
            return None;
        };
        known.fingerprint = Some(fingerprint.clone());
        (known.counted, known.taken, known.silent) = (counted, Instant::now(), None);
        Some(FingerprintRecord { disk, datastore: known.datastore.clone(), fingerprint })
    }

    /// Records what clients have written since the fingerprints were taken, with what they
    /// may write until the engine has stopped. For the end of the daemon in good order.
    pub fn complete_fingerprints(&self) -> Result<()> {
        self.take_fingerprints(AT_THE_END)?;
        let disks: Vec<DiskId> = lock(&self.fingerprints.all).keys().copied().collect();
        let count = |disk| {
            let more = self.samples.of_disk(disk, STOPPING).write.bytes as u64;
            Some((disk, self.counted(disk)?, more))
        };
        let counts: Vec<_> = disks.into_iter().filter_map(count).collect();
        let all = lock(&self.fingerprints.all);
        let complete = |(disk, counted, more): (DiskId, Counted, u64)| {
            let known = all.get(&disk)?;
            let fingerprint = Fingerprint {
                written: known.written(counted).saturating_add(more),
                is_complete: true,
                ..known.fingerprint.clone()?
            };
            let datastore = known.datastore.clone();
            Some(FingerprintRecord { disk, datastore, fingerprint })
        };
        let records: Vec<_> = counts.into_iter().filter_map(complete).collect();
        drop(all);
        match records.is_empty() {
            true => Ok(()),
            false => Ok(self.store.set_fingerprints(records)?),
        }
    }

    fn is_anothers(&self, disk: &DiskRecord, other: DiskId) -> Result<Error> {
        let DiskRecord { name, datastore, .. } = disk;
        let disks = self.store.disks()?;
        let other = disks.iter().find(|it| it.id == other).map_or("?", |it| &it.name);
        let message = format!(
            "datastore {datastore} holds the bytes of disk {other}, and not those of disk \
             {name}: devices may have swapped their names, or servers their files"
        );
        Ok(Error::in_use(message))
    }
}

fn is_strange(disk: &DiskRecord, read: usize) -> Error {
    let DiskRecord { name, datastore, .. } = disk;
    let message = format!(
        "datastore {datastore} does not hold disk {name} any more: of {read} places that \
         Sterna remembers, (nearly) none holds what it held"
    );
    Error::in_use(message)
}

fn repair(disk: &DiskRecord, on: &DatastoreHandle) -> String {
    let (disk, datastore, location) = (&disk.name, on.name(), &on.record().location);
    format!(
        "put the right device or server back: Sterna then serves the disk within seconds; if \
         its content was replaced on purpose, `sterna disk remove {disk} --keep-image`, then \
         `sterna disk import {disk} {location} --on {datastore}`"
    )
}

/// Whose a place is.
fn look(
    place: &mut Visit,
    own: &Fingerprint,
    others: &[FingerprintRecord],
) -> Whose<DiskId> {
    let mut seen = BTreeMap::new();
    let until = Instant::now() + LONG;
    read_marks(place, own, &mut seen, until);
    let holds = |at| seen.get(&at).copied();
    if own.fits(holds) {
        return Whose::Own;
    }
    for other in others {
        read_marks(place, &other.fingerprint, &mut seen, until);
    }
    let others = others.iter().map(|it| (it.disk, &it.fingerprint));
    whose(own, others, |at| seen.get(&at).copied())
}

/// Reads what is not known yet of the stretches of a fingerprint.
fn read_marks(
    place: &mut Visit,
    fingerprint: &Fingerprint,
    seen: &mut BTreeMap<u64, u32>,
    until: Instant,
) {
    for mark in &fingerprint.marks {
        if !seen.contains_key(&mark.at) && Instant::now() < until {
            let read = place.read(&(mark.at..mark.at + STRETCH));
            let sum = read.ok().filter(|bytes| bytes.len() == STRETCH as usize);
            seen.extend(sum.map(|bytes| (mark.at, checksum(&bytes))));
        }
    }
}

/// Takes the fingerprint of a place; none of one that fails.
fn take(store: &Datastore, size: u64, numbers: &[u128]) -> Option<Fingerprint> {
    let taken = store.connected(|place| {
        let mut place = place?;
        let read = |at| match place.read(&(at..at + STRETCH)) {
            Ok(bytes) => Ok(Some(bytes)),
            // A bad sector, or the end of everything: a server then does not answer again.
            Err(DatastoreError::Io { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        Fingerprint::take(size, numbers, read).ok()
    });
    taken.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_counts_from_the_last_look_and_zeroes_may_be_anywhere() {
        let count = |bytes, zeroes| Counted { bytes, zeroes };
        assert_eq!(count(9, 2).since(count(4, 2)), 5);
        assert_eq!(count(9, 3).since(count(4, 2)), u64::MAX);
        // Attached anew, and nobody has looked since.
        assert_eq!(count(1, 2).since(count(4, 2)), u64::MAX);
    }

    #[test]
    fn a_disk_that_nobody_has_looked_at_is_due_and_a_silent_place_waits() {
        let mut known = Known::new("fast", None);
        assert!(known.is_due(Counted::default()));
        known.silent = Some(Instant::now());
        assert!(!known.is_due(Counted::default()));
    }
}
