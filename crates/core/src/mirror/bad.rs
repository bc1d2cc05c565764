//! Sectors of the source that cannot be read.
//!
//! # Rule
//!
//! A read of the source that fails puts nothing behind but what cannot be read. A chunk
//! that failed is copied again region by region, a region that failed is searched by
//! halves (`narrowing`), and then all of it is copied but for the sectors that are bad:
//! on the destination they are zeroes. Such a region counts as equal but for these; its
//! writes are mirrored as any other's. Meanwhile the copier goes on with everything else.
//!
//! When nothing else is left, each bad sector is tried once more. What still fails keeps
//! the switch-over from happening: the migration pauses and names it, unless it was told
//! to `skip` such sectors. Going on after that pause tries all of them again.
//!
//! # What heals
//!
//! A guest's write that covers a sector: the drive puts it elsewhere, and what it holds is
//! known again. And time: what a later try can read.
//!
//! # One sector, or all of the source
//!
//! What is wrong with a place is wrong there alone. So where [`FAILURES_MAX`] reads in a
//! row have failed, whatever they were, a *witness* is read before anything else: a sector
//! in another part of the disk. If one of [`WITNESSES`] can be read, it is the places; if
//! none can, it is the source, and the migration pauses at once. Errors that speak of a
//! connection, a device or memory are never about a place.
//!
//! # Invariants
//!
//! 1. The map never says `Synced` of a region from a copy or a flush while a sector of it
//!    is known to be bad (`regions` sees to it): whoever comes after a kill copies it
//!    again, and finds the sector again.
//! 2. A sector counts as bad only if it was never written between the two tries that
//!    failed and the switch-over: a write that succeeds takes it out.
//! 3. What was equal before its sector went bad stays as it is on the destination, as long
//!    as that is believed: it is the only copy. Once it is not, the sector is zeroes.
//!
//! # Limits
//!
//! A source of which more than [`REGIONS_MAX`] regions have bad sectors is not one to go on
//! with, and whoever skipped them would lose more than he knows: the migration pauses.

use std::collections::{BTreeMap, BTreeSet};

use super::narrowing::Narrowing;
use super::places::Listed;
use super::sectors::Sectors;
use super::{Config, JobId};
use crate::ByteRange;

/// Failed reads in a row before it is asked whether the source can be read at all.
const FAILURES_MAX: u32 = 3;

/// Sectors that are read to find that out: what is wrong with several parts of a disk at
/// once is the disk.
const WITNESSES: u64 = 4;

/// Parts of the disk in which one is looked for, other than those known to be bad.
const PARTS: u64 = 16;

/// Searches of one region that found nothing though reading it as a whole fails: such a
/// source does not take reads of that size, or fails now and then.
const FRUITLESS_MAX: u8 = 3;

/// Regions with bad sectors: 256 MiB of regions of 64 KiB, in a few hundred kilobytes of
/// memory.
const REGIONS_MAX: usize = 4096;

/// Regions that are copied one by one: 4 GiB of chunks that failed, in a few megabytes.
const ALONE_MAX: usize = 65536;

/// Errors of a read that a medium, or what protects it, gives for one place: EIO, ENODATA,
/// EBADMSG, EILSEQ, EUCLEAN and EREMOTEIO.
const OF_A_PLACE: [i32; 6] = [5, 61, 74, 84, 117, 121];

/// Whether an error of the source may be about one place of it alone.
pub(super) fn is_of_a_place(errno: i32) -> bool {
    OF_A_PLACE.contains(&errno)
}

/// A region with bad sectors.
#[derive(Clone, Copy, Debug)]
struct Known {
    sectors: Sectors,
    /// They were tried again when nothing else was left.
    tried: bool,
}

/// The search for a place that can be read.
#[derive(Debug)]
struct Witness {
    /// Where a read has failed.
    failed: u64,
    errno: i32,
    /// Parts of the disk that were looked at.
    parts: u64,
    /// Reads in them.
    asked: u64,
    job: Option<JobId>,
}

/// What is known of sectors that cannot be read.
#[derive(Debug)]
pub(super) struct Bad {
    size: u64,
    region: u64,
    sector: u64,
    /// The switch-over may leave them behind.
    pub(super) skip: bool,
    known: BTreeMap<u64, Known>,
    /// Regions that are copied and compared one by one: a job with them has failed.
    alone: BTreeSet<u64>,
    /// Regions that are to be searched.
    queue: BTreeSet<u64>,
    pub(super) narrowing: Option<Narrowing>,
    fruitless: BTreeMap<u64, u8>,
    /// Reads that have failed since one succeeded.
    failures: u32,
    witness: Option<Witness>,
}

/// What is to be done once a region was searched.
pub(super) enum Searched {
    /// These are its bad sectors, and what can be read is as before.
    Found,
    /// More of it can be read than was thought: it is copied again.
    Readable,
    /// Nothing is wrong with any of its sectors, time after time, though it cannot be read.
    InVain,
}

impl Bad {
    pub(super) fn new(config: &Config) -> Bad {
        Bad {
            size: config.size,
            region: config.region,
            sector: config.sector.max(1),
            skip: config.skip_bad,
            known: BTreeMap::new(),
            alone: BTreeSet::new(),
            queue: BTreeSet::new(),
            narrowing: None,
            fruitless: BTreeMap::new(),
            failures: 0,
            witness: None,
        }
    }

    fn none_of(&self, region: u64) -> Sectors {
        let offset = region * self.region;
        let len = self.region.min(self.size - offset);
        Sectors::none_of(ByteRange::new(offset, len), self.sector)
    }

    /// The bad sectors of a region.
    pub(super) fn of(&self, region: u64) -> Sectors {
        self.known.get(&region).map_or(Sectors::default(), |known| known.sectors)
    }

    /// Whether a region is known to have some.
    pub(super) fn has(&self, region: u64) -> bool {
        self.known.contains_key(&region)
    }

    /// Whether a region goes into a job of its own.
    pub(super) fn is_alone(&self, region: u64) -> bool {
        self.has(region) || self.alone.contains(&region)
    }

    /// Whether a region is left until it was searched.
    pub(super) fn is_aside(&self, region: u64) -> bool {
        self.queue.contains(&region)
    }

    /// All of them.
    pub(super) fn listed(&self) -> Listed {
        let ranges = self.known.values().flat_map(|known| known.sectors.ranges());
        Listed::of(ranges)
    }

    /// Bytes in all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.known.values().map(|known| known.sectors.bytes()).sum()
    }

    /// Regions with some that the switch-over waits for.
    pub(super) fn regions_in_the_way(&self) -> u64 {
        if self.skip { 0 } else { self.known.len() as u64 }
    }

    /// Whether no region is left to be searched, or to be tried again, and the source as
    /// such can be read.
    pub(super) fn all_tried(&self) -> bool {
        self.queue.is_empty()
            && self.narrowing.is_none()
            && self.witness.is_none()
            && self.known.values().all(|known| known.tried)
    }

    /// Whether the switch-over may come, as far as these are concerned.
    pub(super) fn allow_switch(&self) -> bool {
        self.known.is_empty() || self.skip && self.all_tried()
    }

    /// The regions of a job cannot be read together. Says whether that can be borne.
    pub(super) fn failed(&mut self, regions: std::ops::Range<u64>) -> bool {
        if regions.end - regions.start > 1 {
            self.alone.extend(regions);
        } else {
            self.queue.insert(regions.start);
        }
        let borne = self.alone.len() <= ALONE_MAX
            && self.known.len() + self.queue.len() <= REGIONS_MAX;
        if !borne {
            self.alone.clear();
        }
        borne
    }

    /// A region was read.
    pub(super) fn was_read(&mut self, region: u64) {
        self.alone.remove(&region);
        self.fruitless.remove(&region);
    }

    /// A guest's write to `range` has succeeded. Names the regions that have no bad
    /// sector any more.
    pub(super) fn wrote(
        &mut self,
        range: ByteRange,
        regions: std::ops::Range<u64>,
    ) -> Vec<u64> {
        if let Some(narrowing) = &mut self.narrowing {
            narrowing.wrote(range);
        }
        let mut whole = Vec::new();
        for (region, known) in self.known.range_mut(regions) {
            known.sectors.remove_inside(range);
            if known.sectors.is_none() {
                whole.push(*region);
            }
        }
        whole.iter().for_each(|region| {
            self.known.remove(region);
        });
        whole
    }

    /// A guest's write has failed: what it has done is not known, so what is bad in these
    /// regions is tried again.
    pub(super) fn write_failed(&mut self, regions: std::ops::Range<u64>) {
        self.known.range_mut(regions).for_each(|(_, known)| known.tried = false);
    }

    /// Begins to search a region, or to try one again if nothing else is `left`. Those
    /// that are `taken` come later.
    pub(super) fn begin_search(&mut self, left: bool, taken: impl Fn(u64) -> bool) {
        if self.narrowing.is_some() {
            return;
        }
        if let Some(region) = self.queue.iter().copied().find(|it| !taken(*it)) {
            let known = self.known.get(&region);
            let known = known.map_or(self.none_of(region), |known| known.sectors);
            self.narrowing = Some(Narrowing::search(region, known));
        } else if !left && self.queue.is_empty() {
            let again =
                self.known.iter().find(|(it, known)| !known.tried && !taken(**it));
            self.narrowing = again
                .map(|(region, known)| Narrowing::look_again(*region, known.sectors));
        }
    }

    /// Takes in what a search has found, if it has ended, of which region.
    pub(super) fn end_search(&mut self) -> Option<(u64, Searched)> {
        let found = self.narrowing.as_ref().and_then(Narrowing::end)?;
        let Narrowing { region, again, .. } = self.narrowing.take()?;
        self.queue.remove(&region);
        let before = self.of(region);
        if found.is_none() {
            self.known.remove(&region);
        } else {
            self.known.insert(region, Known { sectors: found, tried: again });
        }
        let searched = match again {
            true if found.count() < before.count() => Searched::Readable,
            true => Searched::Found,
            false if found.is_none() => {
                let times = self.fruitless.entry(region).or_insert(0);
                *times += 1;
                match *times >= FRUITLESS_MAX {
                    true => Searched::InVain,
                    false => Searched::Found,
                }
            }
            false => Searched::Found,
        };
        Some((region, searched))
    }

    /// A read of the source has succeeded: it is not the source.
    pub(super) fn source_reads(&mut self) {
        self.failures = 0;
        self.witness = None;
    }

    /// A read of the source has failed there, with this errno.
    pub(super) fn source_failed(&mut self, at: u64, errno: i32) {
        self.failures += 1;
        if self.failures >= FAILURES_MAX && self.witness.is_none() {
            self.witness =
                Some(Witness { failed: at, errno, parts: 0, asked: 0, job: None });
        }
    }

    /// Whether a witness is to be read before anything else.
    pub(super) fn doubts_source(&self) -> bool {
        self.witness.is_some()
    }

    /// The next sector that may show that the source can be read; nothing while one is
    /// being read.
    pub(super) fn next_witness(&mut self) -> Option<ByteRange> {
        let witness = self.witness.as_mut().filter(|witness| witness.job.is_none())?;
        while witness.asked < WITNESSES && witness.parts < PARTS {
            witness.parts += 1;
            // Far from the failure first, and from each other.
            let part = witness.parts * 5 % (PARTS + 1);
            let away = u128::from(self.size) * u128::from(part) / u128::from(PARTS + 1);
            let at = (witness.failed + away as u64) % self.size;
            let at = at / self.sector * self.sector;
            let known = self.known.get(&(at / self.region));
            let it = ByteRange::new(at, self.sector.min(self.size - at));
            if known.is_none_or(|known| known.sectors.rest_of(it) == [it]) {
                witness.asked += 1;
                return Some(it);
            }
        }
        witness.asked = WITNESSES;
        None
    }

    /// Why the source cannot be read, once no witness is left.
    pub(super) fn no_witness(&self) -> Option<i32> {
        let witness = self.witness.as_ref()?;
        let none = witness.job.is_none() && witness.asked >= WITNESSES;
        none.then_some(witness.errno)
    }

    /// Whether this job reads a witness.
    pub(super) fn is_witness(&self, job: JobId) -> bool {
        self.witness.as_ref().is_some_and(|witness| witness.job == Some(job))
    }

    /// A sector or a piece is being read by this job.
    pub(super) fn started(&mut self, job: JobId) {
        match (&mut self.witness, &mut self.narrowing) {
            (Some(witness), _) => witness.job = Some(job),
            (None, Some(narrowing)) => narrowing.started(job),
            (None, None) => {}
        }
    }

    /// The witness could not be read.
    pub(super) fn witness_failed(&mut self) {
        if let Some(witness) = &mut self.witness {
            witness.job = None;
        }
    }

    /// The operator lets it go on: what was tried is tried again.
    pub(super) fn resumed(&mut self) {
        self.known.values_mut().for_each(|known| known.tried = false);
        self.narrowing = None; // What it has found may have been the source as such.
        self.failures = 0;
        self.witness = None;
        self.fruitless.clear();
    }
}
