//! Every region's state: the stored map, what no flush covers yet, and the guest writes in
//! flight.
//!
//! A region is *behind* if its copy on the destination is not what the source
//! holds and no write in flight will make it so. `behind == 0` is the gate of
//! the switch-over, so it is counted, not searched for.
//!
//! Invariants:
//! - A region with guest writes in flight has an entry in `busy`; the entry
//!   knows whether both sides will be equal when all of them have landed.
//! - The map says `Synced` only for regions without an entry whose bytes a flush of the
//!   destination has covered. Of one that is equal and not covered, or whose turn to be
//!   stored has not come, it says what it said when the region was behind, and the region
//!   is in `unflushed`.
//! - A region with sectors that cannot be read is `marred`. It is equal but for these; the
//!   map does not call it `Synced` for a flush, and what it covered is known in memory.
//! - `behind` = regions neither stored as `Synced`, nor `unflushed`, nor marred and
//!   covered, nor busy and `equal`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::counted::{Behind, Counted};
use super::unflushed::Unflushed;
use super::{RegionMap, RequestId, Stored};
use crate::{ByteRange, IdMap};

/// Guest writes in flight in one region.
#[derive(Debug)]
struct Busy {
    /// The writes, in the order in which they were started. A write counts until
    /// both sides are done with it, even if the guest was answered long ago.
    flights: Vec<RequestId>,
    /// Both sides will hold the same bytes when all flights have landed.
    equal: bool,
}

/// Every region's state.
#[derive(Debug)]
pub(super) struct Regions<M> {
    map: M,
    size: u64,
    region: u64,
    busy: IdMap<u64, Busy>,
    unflushed: Unflushed,
    /// Regions with sectors that cannot be read, and whether a flush covers the others.
    marred: BTreeMap<u64, bool>,
    behind: Behind,
    caught_up: u64,
}

impl<M: RegionMap> Regions<M> {
    pub(super) fn new(counted: Counted<M>, size: u64, region: u64) -> Self {
        let Counted { map, behind } = counted;
        assert!(region.is_power_of_two(), "a region is a power of two");
        assert_eq!(map.regions(), size.div_ceil(region), "the map fits the disk");
        let unflushed = Unflushed::none(map.regions());
        Regions {
            map,
            size,
            region,
            busy: IdMap::default(),
            unflushed,
            marred: BTreeMap::new(),
            behind,
            caught_up: 0,
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.map.regions()
    }

    /// Whether a kill would leave the map as it is.
    pub(super) fn is_kept(&self) -> bool {
        self.map.is_kept()
    }

    pub(super) fn keep_again(&mut self) {
        self.map.keep_again();
    }

    pub(super) fn behind(&self) -> u64 {
        self.behind.total()
    }

    /// Regions that copies made equal, all in all.
    pub(super) fn caught_up(&self) -> u64 {
        self.caught_up
    }

    pub(super) fn map(&self) -> &M {
        &self.map
    }

    /// Bytes that are equal on both sides.
    pub(super) fn synced_bytes(&self) -> u64 {
        let behind = self.behind() * self.region;
        if self.behind() == self.count() { 0 } else { self.size.saturating_sub(behind) }
    }

    pub(super) fn stored(&self, region: u64) -> Stored {
        self.map.get(region)
    }

    /// The regions that `range` touches.
    pub(super) fn of(&self, range: ByteRange) -> Range<u64> {
        range.offset / self.region..range.end().div_ceil(self.region)
    }

    /// The bytes of the regions from `first` to before `end`.
    pub(super) fn bytes(&self, regions: Range<u64>) -> ByteRange {
        let offset = regions.start * self.region;
        let end = (regions.end * self.region).min(self.size);
        ByteRange::new(offset, end - offset)
    }

    /// The regions that lie wholly inside `range`; the disk's last, short region
    /// counts as whole if the range reaches the disk's end.
    pub(super) fn inside(&self, range: ByteRange) -> Range<u64> {
        let first = range.offset.div_ceil(self.region);
        let end = if range.end() >= self.size {
            self.count()
        } else {
            range.end() / self.region
        };
        first..end.max(first)
    }

    /// Whether guest writes are in flight there.
    pub(super) fn is_busy(&self, region: u64) -> bool {
        self.busy.contains_key(&region)
    }

    /// Whether both sides are equal, or will be when the writes in flight land.
    pub(super) fn is_equal(&self, region: u64) -> bool {
        match self.busy.get(&region) {
            Some(busy) => busy.equal,
            None => {
                self.unflushed.has(region)
                    || self.map.get(region) == Stored::Synced
                    || self.marred.get(&region) == Some(&true)
            }
        }
    }

    /// The writes in flight in `region`, in the order of their start.
    pub(super) fn flights(&self, region: u64) -> &[RequestId] {
        self.busy.get(&region).map_or(&[], |busy| &busy.flights)
    }

    /// The first region of these that is behind.
    pub(super) fn next_behind(&self, of: Range<u64>) -> Option<u64> {
        if self.behind() == 0 {
            return None;
        }
        let mut at = self.behind.next_block(of.clone());
        while at < of.end {
            let region = self.map.next_not_synced(at..of.end)?;
            if !self.is_equal(region) {
                return Some(region);
            }
            at = self.behind.next_block(region + 1..of.end);
        }
        None
    }

    /// A guest write starts; `mirrored` if it goes to both sides.
    pub(super) fn write_starts(
        &mut self,
        id: RequestId,
        range: ByteRange,
        mirrored: bool,
    ) {
        // A discard of gigabytes is of tens of thousands of them.
        let mut late = 0..0;
        for region in self.of(range) {
            let stored = self.map.get(region);
            let equal = self.is_equal(region);
            self.unflushed.remove(region);
            self.uncover(region);
            let busy = self
                .busy
                .entry(region)
                .or_insert_with(|| Busy { flights: Vec::with_capacity(1), equal });
            busy.flights.push(id);
            if !mirrored && busy.equal {
                busy.equal = false;
                self.behind.add(region);
            }
            // Nothing is stored as synced while a write is in flight; and what a mirrored
            // write changes is not to be proved by reading it, nor was it never written.
            if stored == Stored::Synced || (mirrored && stored != Stored::Late) {
                if late.end != region {
                    let before = std::mem::replace(&mut late, region..region);
                    self.map.set_run(before, Stored::Late);
                }
                late.end = region + 1;
            }
        }
        self.map.set_run(late, Stored::Late);
    }

    /// A mirrored write will not (for certain) leave both sides equal: it is
    /// overdue, it failed, or the destination is no longer written.
    pub(super) fn write_spoils(&mut self, range: ByteRange) {
        for region in self.of(range) {
            if let Some(busy) = self.busy.get_mut(&region)
                && busy.equal
            {
                busy.equal = false;
                self.behind.add(region);
            }
        }
    }

    /// Both sides are done with a write.
    pub(super) fn write_lands(&mut self, id: RequestId, range: ByteRange) {
        for region in self.of(range) {
            let busy = self.busy.get_mut(&region).expect("a write in flight is known");
            busy.flights.retain(|flight| *flight != id);
            if busy.flights.is_empty() {
                if busy.equal {
                    self.unflushed.insert(region);
                }
                self.busy.remove(&region);
            }
        }
    }

    /// The destination now holds what the source holds. No write is in flight.
    pub(super) fn set_synced(&mut self, region: u64) {
        debug_assert!(!self.is_busy(region));
        if !self.is_equal(region) {
            self.unflushed.insert(region);
            self.behind.remove(region);
            self.caught_up += 1;
        }
    }

    /// Whether any region is equal that no flush covers.
    pub(super) fn any_unflushed(&self) -> bool {
        !self.unflushed.is_empty()
    }

    /// A flush of the destination begins. It covers the writes that have been answered,
    /// so all that is equal now and has none in flight.
    pub(super) fn flush_begins(&mut self) {
        self.unflushed.flush_begins();
    }

    /// The flush has succeeded: what it covers is durable.
    pub(super) fn flush_ends(&mut self) {
        for (&region, covered) in &mut self.marred {
            *covered |= self.unflushed.take_from_flush(region);
        }
        self.unflushed.flush_ends();
        self.store_some();
    }

    /// Has the map say some of what is durable and what it does not say yet.
    pub(super) fn store_some(&mut self) {
        let map = &mut self.map;
        self.unflushed.store_some(|run| map.set_run(run, Stored::Synced));
    }

    /// Whether the map says less than what is durable.
    pub(super) fn any_to_store(&self) -> bool {
        self.unflushed.is_any_covered()
    }

    /// Sectors of the region cannot be read, or all of them can again.
    pub(super) fn set_marred(&mut self, region: u64, is: bool) {
        if is {
            self.marred.entry(region).or_insert(false);
        } else if self.marred.remove(&region) == Some(true) {
            self.unflushed.insert(region); // The next flush has the map say so.
        }
    }

    /// More of the region can be read than was copied of it.
    pub(super) fn fall_behind(&mut self, region: u64) {
        match self.busy.get_mut(&region) {
            Some(busy) => {
                if std::mem::replace(&mut busy.equal, false) {
                    self.behind.add(region);
                }
            }
            None => self.set_late(region),
        }
    }

    /// What a flush has covered of a marred region is not so any more.
    fn uncover(&mut self, region: u64) {
        if let Some(covered) = self.marred.get_mut(&region) {
            *covered = false;
        }
    }

    /// What no flush covers is behind again. Gives the first region of those, and how many
    /// they are.
    pub(super) fn distrust_unflushed(&mut self) -> Option<(u64, u64)> {
        let (mut first, mut count) = (u64::MAX, 0);
        let behind = &mut self.behind;
        let mut lost = |region| {
            behind.add(region);
            first = first.min(region);
            count += 1;
        };
        self.unflushed.drain(|run| run.for_each(&mut lost));
        for (&region, busy) in &mut self.busy {
            if std::mem::replace(&mut busy.equal, false) {
                lost(region);
            }
        }
        (count > 0).then_some((first, count))
    }

    /// Nothing that was equal is believed any more, and with `everything` not even that a
    /// region was never written.
    pub(super) fn distrust(&mut self, everything: bool) {
        self.unflushed.clear();
        self.marred.values_mut().for_each(|covered| *covered = false);
        if everything {
            self.map.distrust();
        } else {
            self.map.replace_synced(Stored::Suspect);
        }
        for busy in self.busy.values_mut() {
            busy.equal = false;
        }
        self.behind.fill();
    }

    /// The destination may hold anything: the copier is about to write there, or
    /// a comparison found a difference. No write is in flight.
    pub(super) fn set_late(&mut self, region: u64) {
        debug_assert!(!self.is_busy(region));
        if self.is_equal(region) {
            self.behind.add(region);
        }
        self.unflushed.remove(region);
        self.uncover(region);
        if self.map.get(region) != Stored::Late {
            self.map.set(region, Stored::Late);
        }
    }
}
