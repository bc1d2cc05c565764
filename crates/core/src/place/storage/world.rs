//! Where everything would be, and which moves would do good there and no harm.

use super::Over;
use super::bounds::Bounds;
use super::inventory::{Disk, Inventory, Pinned};
use super::loaded::Loaded;
use crate::Nanos;

/// What a move costs besides its bytes, in bytes.
const LEAST_BYTES: f64 = (64 << 20) as f64;

/// Why a disk does not go to a datastore.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Because {
    /// It stays, whatever there is elsewhere.
    Pinned(Pinned),
    /// The disk asks for too little to matter.
    Idle,
    /// No more disks can be there, or the datastore does not answer.
    Closed,
    /// So large a part of the room there would be taken.
    Full(f64),
    /// The room there is not so much emptier: this part is taken now.
    AsFull(f64),
    /// Disks come and go there, so what it can do is not seen yet.
    Settling,
    /// What the device that it would leave does with less load is not known.
    SourceUnknown,
    /// What the device there does with such a load is not known.
    DestinationUnknown,
    /// Of the response times there, the percentile would be so long.
    Slow(Nanos),
    /// Both together would wait no less.
    NoGain,
}

impl Because {
    /// How near it came to a move: of the reasons, the highest says most.
    pub(super) fn nearness(&self) -> u8 {
        match self {
            Because::Closed => 0,
            Because::Full(_) => 1,
            Because::AsFull(_) => 2,
            Because::Settling => 3,
            Because::DestinationUnknown => 4,
            Because::Slow(_) => 5,
            Because::NoGain => 6,
            // These are the same for all datastores.
            Because::SourceUnknown | Because::Idle | Because::Pinned(_) => 7,
        }
    }
}

/// A move that may be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Possible {
    pub(super) disk: usize,
    pub(super) to: usize,
    /// What it brings for each byte that it copies.
    pub(super) worth: f64,
    /// What it brings: it tells apart what is worth the same.
    pub(super) brings: f64,
}

/// Datastores and disks, with moves that were made in thought.
#[derive(Clone, Debug)]
pub(super) struct World<'i> {
    pub(super) inventory: &'i Inventory,
    pub(super) datastores: Vec<Loaded<'i>>,
    /// Where each disk is.
    pub(super) at: Vec<usize>,
    /// The disks on each datastore, but for those that have moved in thought: these move
    /// no more.
    pub(super) on: Vec<Vec<usize>>,
}

/// A datastore's two states, or those of two.
type Both<'i> = [Loaded<'i>; 2];

impl<'i> World<'i> {
    /// As it is.
    pub(super) fn of(inventory: &'i Inventory) -> World<'i> {
        let mut on: Vec<Vec<usize>> = vec![Vec::new(); inventory.datastores.len()];
        for (at, disk) in inventory.disks.iter().enumerate() {
            on[disk.datastore].push(at);
        }
        let load = |(datastore, disks): (_, &Vec<usize>)| {
            Loaded::of(datastore, disks.iter().map(|disk| &inventory.disks[*disk]))
        };
        World {
            inventory,
            datastores: inventory.datastores.iter().zip(&on).map(load).collect(),
            at: inventory.disks.iter().map(|disk| disk.datastore).collect(),
            on,
        }
    }

    /// The source and the destination of a move: now, and when it is made.
    pub(super) fn sides(&self, disk: usize, to: usize) -> (Both<'i>, Both<'i>) {
        let one = &self.inventory.disks[disk];
        let before = [self.at[disk], to].map(|at| self.datastores[at]);
        let [source, destination] = before;
        (before, [source.without(one), destination.spread_as(source).with(one)])
    }

    /// Makes a move, in thought.
    pub(super) fn make(&mut self, disk: usize, to: usize) {
        let (_, [source, destination]) = self.sides(disk, to);
        let from = std::mem::replace(&mut self.at[disk], to);
        self.datastores[from] = source;
        self.datastores[to] = destination;
        self.on[from].retain(|other| *other != disk);
    }

    /// Whether a disk should go there as its datastore is over a bound.
    pub(super) fn consider(
        &self,
        disk: usize,
        to: usize,
        over: Over,
        bounds: &Bounds,
    ) -> Result<Possible, Because> {
        let one = &self.inventory.disks[disk];
        if let Some(pinned) = one.pinned {
            return Err(Because::Pinned(pinned));
        }
        let there = self.datastores[to].datastore;
        if !there.takes_disks || there.capacity == 0 {
            return Err(Because::Closed);
        }
        let (before, after) = self.sides(disk, to);
        if after[1].taken() > bounds.space {
            return Err(Because::Full(after[1].taken()));
        }
        let brings = match over {
            Over::Space => room(one, before, after, bounds)?,
            Over::Latency => time(one, before, after, bounds)?,
        };
        let bytes = one.taken as f64 + LEAST_BYTES;
        Ok(Possible { disk, to, worth: brings / bytes, brings })
    }
}

/// What a move brings to a datastore that is too full: bytes.
fn room(
    one: &Disk,
    before: Both<'_>,
    after: Both<'_>,
    bounds: &Bounds,
) -> Result<f64, Because> {
    let there = before[1].taken();
    if before[0].taken() - there < bounds.difference {
        return Err(Because::AsFull(there));
    }
    if !one.is_idle() {
        is_settled(&before[1])?;
        let slow = after[1].latency().ok_or(Because::DestinationUnknown)?;
        keeps_bound(slow, before, bounds)?;
    }
    let size = before[0].datastore.capacity as f64;
    let too_much = (before[0].taken() - bounds.space) * size;
    let brings = too_much.min(one.taken as f64);
    if brings > 0.0 { Ok(brings) } else { Err(Because::NoGain) }
}

/// What a move brings to a datastore that is too slow: the part of each second that
/// requests wait less.
fn time(
    one: &Disk,
    before: Both<'_>,
    after: Both<'_>,
    bounds: &Bounds,
) -> Result<f64, Because> {
    if one.is_idle() {
        return Err(Because::Idle);
    }
    before.iter().try_for_each(is_settled)?;
    let was = before[0].latency().filter(|_| before[0].is_known());
    let was = was.ok_or(Because::SourceUnknown)?;
    let slow = after[1].latency().ok_or(Because::DestinationUnknown)?;
    keeps_bound(slow, before, bounds)?;
    if slow > was * (1.0 - bounds.gain) {
        return Err(Because::Slow(nanos(slow)));
    }
    let waits = |both: Both<'_>| both.iter().map(Loaded::waits).sum::<f64>();
    let brings = waits(before) - waits(after);
    if brings > 0.0 { Ok(brings) } else { Err(Because::NoGain) }
}

fn is_settled(loaded: &Loaded<'_>) -> Result<(), Because> {
    if loaded.datastore.settling { Err(Because::Settling) } else { Ok(()) }
}

/// A datastore that keeps the bound goes on keeping it; and to one that does not, nobody
/// goes who is better off.
fn keeps_bound(slow: f64, before: Both<'_>, bounds: &Bounds) -> Result<(), Because> {
    let [was, kept] = [before[0].latency(), before[1].latency()];
    let bound = bounds.latency.0 as f64;
    let is_kept = kept.is_none_or(|kept| kept <= bound);
    let harms = slow > bound && (is_kept || was.is_none_or(|was| slow > was));
    if harms { Err(Because::Slow(nanos(slow))) } else { Ok(()) }
}

/// So many nanoseconds; what no clock counts is the longest span there is.
fn nanos(count: f64) -> Nanos {
    Nanos(count.max(0.0) as u64)
}
