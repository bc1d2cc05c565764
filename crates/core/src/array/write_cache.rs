//! The write cache: what was acknowledged and is not on the spindles yet.
//!
//! Writes are taken as long as there is room, stripe by stripe; what overlaps or
//! adjoins within an element becomes one span (the hull of both). A stripe is
//! destaged when it is whole, when it has waited for its rest long enough, or when
//! the cache is half full. Its room is free when the last operation of its destaging
//! has ended.

use std::collections::{BTreeMap, BTreeSet};

use crate::{IdMap, Nanos};

use super::raid::{ELEMENT, Element, Stripe};

/// How long a stripe waits for the rest of itself: many times what a client with
/// sequential writes needs to fill it, and nothing against how long a cache lasts.
const LINGER: Nanos = Nanos::from_millis(100);

/// Past this part of the capacity nothing lingers.
const HASTE: f64 = 0.5;

/// Past this part destaging is as urgent as reading: below it, a burst of reads
/// still finds the spindles free.
const PRESSED: f64 = 0.8;

/// What of a stripe is to be written.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    /// By the element's number: from where to where in it.
    pub(super) spans: BTreeMap<u64, (u64, u64)>,
    pub(super) bytes: u64,
    since: Nanos,
}

/// The write cache.
#[derive(Clone, Debug)]
pub(super) struct WriteCache {
    capacity: u64,
    /// Dirty, or being destaged.
    used: u64,
    stripes: IdMap<Stripe, Dirty>,
    by_age: BTreeSet<(Nanos, Stripe)>,
    whole: BTreeSet<Stripe>,
}

impl WriteCache {
    pub(super) fn new(capacity: u64) -> WriteCache {
        let (stripes, by_age) = (IdMap::default(), BTreeSet::new());
        WriteCache { capacity, used: 0, stripes, by_age, whole: BTreeSet::new() }
    }

    /// Whether the array has one.
    pub(super) fn exists(&self) -> bool {
        self.capacity > 0
    }

    /// Whether a write of so many bytes can be taken; the first into an empty cache
    /// always, however large.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.used == 0 || self.used + bytes <= self.capacity
    }

    /// Whether destaging is as urgent as reading.
    pub(super) fn is_pressed(&self) -> bool {
        self.used as f64 > self.capacity as f64 * PRESSED
    }

    /// Bytes that are not on the spindles yet.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Takes a part of an element. `whole` is what a whole stripe has, in bytes.
    pub(super) fn add(
        &mut self,
        now: Nanos,
        stripe: Stripe,
        whole: u64,
        number: u64,
        span: (u64, u64),
    ) {
        let by_age = &mut self.by_age;
        let dirty = self.stripes.entry(stripe).or_insert_with(|| {
            by_age.insert((now, stripe));
            Dirty { since: now, ..Dirty::default() }
        });
        let old = dirty.spans.entry(number).or_insert((span.0, span.0));
        let before = old.1 - old.0;
        *old = (old.0.min(span.0), old.1.max(span.1));
        let grown = old.1 - old.0 - before;
        dirty.bytes += grown;
        self.used += grown;
        if dirty.bytes == whole {
            self.whole.insert(stripe);
        }
    }

    /// Whether a part of an element is still here.
    pub(super) fn holds(
        &self,
        stripe: Stripe,
        element: Element,
        span: (u64, u64),
    ) -> bool {
        let dirty = self.stripes.get(&stripe);
        let found = dirty.and_then(|dirty| dirty.spans.get(&element.number));
        found.is_some_and(|found| found.0 <= span.0 && span.1 <= found.1)
    }

    /// The next stripe to destage, if one should be by now: whole ones first, in
    /// the order of their places; then the oldest. The bytes stay counted until
    /// they are `free`d.
    pub(super) fn next(&mut self, now: Nanos) -> Option<(Stripe, Dirty)> {
        let stripe = match self.whole.first() {
            Some(stripe) => *stripe,
            None if self.due()? <= now => self.by_age.first()?.1,
            None => return None,
        };
        let dirty = self.stripes.remove(&stripe)?;
        self.by_age.remove(&(dirty.since, stripe));
        self.whole.remove(&stripe);
        Some((stripe, dirty))
    }

    /// From when on there is something to destage.
    pub(super) fn due(&self) -> Option<Nanos> {
        let (since, _) = self.by_age.first()?;
        let haste = self.used as f64 > self.capacity as f64 * HASTE;
        Some(if haste { *since } else { since.plus(LINGER) })
    }

    /// So many bytes are on the spindles.
    pub(super) fn free(&mut self, bytes: u64) {
        self.used -= bytes;
    }
}

impl Dirty {
    /// Whether a span is its whole element.
    pub(super) fn is_whole(&self, elements: u64) -> bool {
        self.bytes == elements * ELEMENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripe(row: u64) -> Stripe {
        Stripe { lun: 0, row, group: 0 }
    }

    #[test]
    fn a_whole_stripe_goes_first_and_a_part_of_one_waits_for_its_rest() {
        let mut cache = WriteCache::new(1 << 30);
        cache.add(Nanos(0), stripe(0), 2 * ELEMENT, 0, (0, ELEMENT));
        cache.add(Nanos(1), stripe(1), 2 * ELEMENT, 2, (0, ELEMENT));
        assert!(cache.next(Nanos(1)).is_none());
        cache.add(Nanos(2), stripe(1), 2 * ELEMENT, 3, (0, ELEMENT));
        let (first, dirty) = cache.next(Nanos(2)).unwrap();
        assert!(first == stripe(1) && dirty.is_whole(2));
        assert_eq!(cache.due(), Some(LINGER));
        assert_eq!(cache.next(LINGER).unwrap().0, stripe(0));
        assert_eq!((cache.due(), cache.used()), (None, 3 * ELEMENT));
    }

    #[test]
    fn what_is_written_again_takes_no_more_room() {
        let mut cache = WriteCache::new(1 << 20);
        for _ in 0..3 {
            cache.add(Nanos(0), stripe(0), ELEMENT, 0, (4096, 8192));
        }
        assert_eq!(cache.used(), 4096);
        cache.add(Nanos(0), stripe(0), ELEMENT, 0, (8192, 12288));
        assert_eq!(cache.used(), 8192);
        let element = Element { lun: 0, number: 0 };
        assert!(cache.holds(stripe(0), element, (4096, 12288)));
        assert!(!cache.holds(stripe(0), element, (0, 12288)));
    }

    #[test]
    fn a_cache_that_fills_up_is_in_haste_and_then_full() {
        let mut cache = WriteCache::new(10 * ELEMENT);
        for row in 0..9 {
            assert!(cache.has_room(ELEMENT));
            cache.add(Nanos(row), stripe(row), 2 * ELEMENT, 2 * row, (0, ELEMENT));
        }
        assert!(cache.is_pressed() && cache.due() == Some(Nanos(0)));
        assert!(!cache.has_room(2 * ELEMENT));
        let (_, dirty) = cache.next(Nanos(9)).unwrap();
        cache.free(dirty.bytes);
        assert!(cache.has_room(2 * ELEMENT));
    }
}
