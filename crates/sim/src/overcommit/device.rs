//! The swap device: an array, and who waits for which of its reads.

use std::collections::BTreeMap;
use std::ops::Range;

use sterna_core::Nanos;
use sterna_core::array::{Array, Completion, Kind, Model, Request};
use sterna_core::memory::{GRANULE, TierSpeed};

use super::guest::PAGE;

/// What Sterna reads in order to measure a tier, and in which pieces (`tier_file` of the service).
const IN_ORDER: u64 = 64 << 20;
const PIECE: u64 = 1 << 20;

/// Granules that it reads at random places.
const AT_RANDOM: u64 = 64;

/// How far each of these is from the one before, as a part of the device: the golden section, so
/// that no two are near.
const APART: f64 = 0.618_033_988_75;

/// A swap device.
pub(super) struct Device {
    array: Array,
    reads: BTreeMap<u64, Range<u64>>,
    next_id: u64,
    done: Vec<Completion>,
}

impl Device {
    /// One that has nothing to do.
    pub(super) fn new(model: Model, seed: u64) -> Device {
        let array = Array::new(model, seed);
        Device { array, reads: BTreeMap::new(), next_id: 0, done: Vec::new() }
    }

    /// Begins to read slots.
    pub(super) fn read(&mut self, now: Nanos, slots: Range<u64>) {
        self.next_id += 1;
        let id = self.next_id;
        let (offset, bytes) = (slots.start * PAGE, (slots.end - slots.start) * PAGE);
        let request = Request { id, lun: 0, kind: Kind::Read, offset, bytes };
        self.array.submit(now, request);
        self.reads.insert(id, slots);
    }

    /// When something happens next.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.array.next_event()
    }

    /// The slots that have been read by now.
    pub(super) fn advance(&mut self, now: Nanos) -> Vec<Range<u64>> {
        self.array.advance(now, &mut self.done);
        let done = self.done.drain(..);
        done.filter_map(|it| self.reads.remove(&it.id)).collect()
    }
}

/// What Sterna measures of a device of which so many bytes are used, when it becomes a tier.
pub(super) fn speed(model: &Model, bytes: u64, seed: u64) -> TierSpeed {
    let mut array = Array::new(model.clone(), seed);
    let mut now = Nanos(0);
    let mut read = |offset: u64, bytes: u64| {
        let began = now;
        let request = Request { id: offset, lun: 0, kind: Kind::Read, offset, bytes };
        array.submit(now, request);
        let mut done = Vec::new();
        while done.is_empty()
            && let Some(next) = array.next_event()
        {
            now = next;
            array.advance(now, &mut done);
        }
        now.since(began)
    };
    let in_order = (0..IN_ORDER / PIECE).map(|at| read(at * PIECE, PIECE));
    let took = in_order.fold(Nanos(0), Nanos::plus);
    let granules = (bytes / GRANULE).max(1);
    let step = ((granules as f64 * APART) as u64).max(1);
    let places = (1..=AT_RANDOM).map(|at| at * step % granules * GRANULE);
    let mut times: Vec<Nanos> = places.map(|place| read(place, GRANULE)).collect();
    times.sort_unstable();
    TierSpeed {
        access: times[times.len() / 2],
        sequential: IN_ORDER as f64 / took.as_secs_f64().max(1e-6),
    }
}
