//! Where everything would be, and which moves would do good there and no harm.

use super::Over;
use super::bounds::Bounds;
use super::inventory::{Disk, Inventory, Pinned};
use super::loaded::Loaded;
use super::rule::Rule;
use super::unit::Unit;
use sterna_core::Nanos;

/// What a move costs besides its bytes, in bytes.
const LEAST_BYTES: f64 = (64 << 20) as f64;

/// A datastore that is over its bound for response times by less than this counts as one
/// that keeps it, where others would come to it: what is measured is not that exact.
const HARDLY: f64 = 1.1;

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
    /// What the device that it would leave does with less load is not known, and another
    /// disk leaves it already.
    SourceUnknown,
    /// What the device there does with such a load is not known.
    DestinationUnknown,
    /// Of the response times there, the percentile would be so long.
    Slow(Nanos),
    /// Both together would wait no less.
    NoGain,
    /// It would break this rule, which must hold.
    Rule(usize),
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
            Because::Rule(_) => 7,
            // These are the same for all datastores.
            Because::SourceUnknown | Because::Idle | Because::Pinned(_) => 8,
        }
    }
}

/// A move that may be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Possible {
    pub(super) unit: usize,
    pub(super) to: usize,
    /// How many rules that should hold it makes more broken.
    pub(super) bends: usize,
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
    /// What moves as one.
    pub(super) units: Vec<Unit>,
    /// The units on each datastore, but for those that have moved in thought: these move
    /// no more.
    pub(super) on: Vec<Vec<usize>>,
    /// The rules of each disk.
    rules: Vec<Vec<usize>>,
}

/// A datastore's two states, or those of two.
pub(super) type Both<'i> = [Loaded<'i>; 2];

impl<'i> World<'i> {
    /// As it is.
    pub(super) fn of(inventory: &'i Inventory) -> World<'i> {
        let units = Unit::all(inventory);
        let mut on: Vec<Vec<usize>> = vec![Vec::new(); inventory.datastores.len()];
        for (at, unit) in units.iter().enumerate() {
            on[unit.sum.datastore].push(at);
        }
        let load = |(datastore, there): (_, &Vec<usize>)| {
            Loaded::of(datastore, there.iter().map(|unit| &units[*unit].sum))
        };
        let datastores = inventory.datastores.iter().zip(&on).map(load).collect();
        let mut rules = vec![Vec::new(); inventory.disks.len()];
        for (at, rule) in inventory.rules.iter().enumerate() {
            rule.disks.iter().for_each(|disk| rules[*disk].push(at));
        }
        World {
            inventory,
            datastores,
            at: inventory.disks.iter().map(|disk| disk.datastore).collect(),
            units,
            on,
            rules,
        }
    }

    /// Where a unit is.
    pub(super) fn place(&self, unit: usize) -> usize {
        self.at[self.units[unit].disks[0]]
    }

    /// The source and the destination of a move: now, and when it is made.
    pub(super) fn sides(&self, unit: usize, to: usize) -> (Both<'i>, Both<'i>) {
        let one = &self.units[unit].sum;
        let before = [self.place(unit), to].map(|at| self.datastores[at]);
        let [source, destination] = before;
        (before, [source.without(one), destination.spread_as(source).with(one)])
    }

    /// Makes a move, in thought.
    pub(super) fn make(&mut self, unit: usize, to: usize) {
        let (_, [source, destination]) = self.sides(unit, to);
        let from = self.place(unit);
        for disk in &self.units[unit].disks {
            self.at[*disk] = to;
        }
        self.datastores[from] = source;
        self.datastores[to] = destination;
        let one = &self.units[unit].sum;
        for (at, bytes) in [(from, -(one.taken as f64)), (to, one.needs as f64)] {
            for mate in self.inventory.mates(at) {
                self.datastores[mate] = self.datastores[mate].take(bytes);
            }
        }
        self.on[from].retain(|other| *other != unit);
    }

    /// Whether a unit should go there as its datastore is over a bound.
    pub(super) fn consider(
        &self,
        unit: usize,
        to: usize,
        over: Over,
        bounds: &Bounds,
    ) -> Result<Possible, Because> {
        let one = &self.units[unit].sum;
        let (before, after) = self.fits(unit, to, bounds)?;
        let brings = match over {
            Over::Space => room(one, before, after, bounds)?,
            Over::Latency => time(one, before, after, bounds)?,
        };
        let bends = self.bends(unit, to, None)?;
        let bytes = one.taken as f64 + LEAST_BYTES;
        Ok(Possible { unit, to, bends, worth: brings / bytes, brings })
    }

    /// Whether a unit may go there to repair this rule. What is not known of a device does
    /// not stand against a rule that must hold.
    pub(super) fn mends(
        &self,
        unit: usize,
        to: usize,
        rule: usize,
        bounds: &Bounds,
    ) -> Result<Possible, Because> {
        let one = &self.units[unit].sum;
        let (before, after) = self.fits(unit, to, bounds)?;
        if !one.is_idle()
            && let Some(slow) = after[1].latency()
        {
            keeps_bound(slow, before, bounds)?;
        }
        let bends = self.bends(unit, to, Some(rule))?;
        let bytes = one.taken as f64 + LEAST_BYTES;
        Ok(Possible { unit, to, bends, worth: 1.0 / bytes, brings: 1.0 })
    }

    /// Whether a unit may go back there, if it need not be where it is: how many rules that
    /// should hold that makes more broken.
    pub(super) fn returns(
        &self,
        unit: usize,
        to: usize,
        bounds: &Bounds,
    ) -> Result<usize, Because> {
        let (before, after) = self.fits(unit, to, bounds)?;
        if !self.units[unit].sum.is_idle() {
            let slow = after[1].latency().ok_or(Because::DestinationUnknown)?;
            keeps_bound(slow, before, bounds)?;
        }
        self.bends(unit, to, None)
    }

    /// The two sides of a move that there is room for.
    fn fits(
        &self,
        unit: usize,
        to: usize,
        bounds: &Bounds,
    ) -> Result<(Both<'i>, Both<'i>), Because> {
        if let Some(pinned) = self.units[unit].sum.pinned {
            return Err(Because::Pinned(pinned));
        }
        let there = self.datastores[to].datastore;
        if !there.takes_disks || there.capacity == 0 {
            return Err(Because::Closed);
        }
        let (before, after) = self.sides(unit, to);
        if after[1].taken() > bounds.space {
            return Err(Because::Full(after[1].taken()));
        }
        Ok((before, after))
    }

    /// How many rules that should hold a move makes more broken; refused if it makes one
    /// that must. The one that it is made for does not count.
    fn bends(
        &self,
        unit: usize,
        to: usize,
        repaired: Option<usize>,
    ) -> Result<usize, Because> {
        let from = self.place(unit);
        let mut bends = 0;
        let rules = self.units[unit].disks.iter().flat_map(|disk| &self.rules[*disk]);
        for at in rules.copied().filter(|rule| Some(*rule) != repaired) {
            let rule = &self.inventory.rules[at];
            if self.breaks(rule, unit, to) <= self.breaks(rule, unit, from) {
                continue;
            }
            if rule.must() {
                return Err(Because::Rule(at));
            }
            bends += 1;
        }
        Ok(bends)
    }

    /// How many pairs would break a rule, were a unit there.
    pub(super) fn breaks(&self, rule: &Rule, unit: usize, there: usize) -> usize {
        let own = &self.units[unit].disks;
        let its = own.iter().filter(|disk| rule.disks.contains(disk)).count();
        let others = rule.disks.iter().copied().filter(|disk| !own.contains(disk));
        its * rule.breaks(others, there, &self.at)
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
    let was = before[0].latency().filter(|_| before[0].may_be_left());
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
    let is_kept = kept.is_none_or(|kept| kept <= bound * HARDLY);
    let harms = slow > bound && (is_kept || was.is_none_or(|was| slow > was));
    if harms { Err(Because::Slow(nanos(slow))) } else { Ok(()) }
}

/// So many nanoseconds; what no clock counts is the longest span there is.
fn nanos(count: f64) -> Nanos {
    Nanos(count.max(0.0) as u64)
}
