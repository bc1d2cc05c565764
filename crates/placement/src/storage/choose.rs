//! Where a new disk should be: initial placement.
//!
//! **Rule.** Of the datastores that take it, the one whose nearest bound is farthest. How
//! near a bound is, is the part of it that is used up: of the room, what is taken there
//! with the whole of the new disk, and with all that the disks that are there may still
//! come to take; of the response times, what they are. So ten thin disks that are made one
//! after the other do not all go to the same place, and none goes where requests wait.
//!
//! Datastores of one file system are asked for its room one after the other, and somebody writes
//! meanwhile. The least that any of them said counts for all, so that such a difference does not
//! choose.
//!
//! Nothing is known of what a new disk will ask for, so nothing is predicted of it.

use super::Over;
use super::advise::{Side, side};
use super::bounds::Bounds;
use super::inventory::{Datastore, Inventory};
use super::loaded::Loaded;
use super::world::{Because, World};
use sterna_core::Nanos;

/// A disk that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewDisk {
    /// Its size, in bytes: what it may come to take.
    pub size: u64,
}

/// Where a new disk should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The datastore; nothing if none takes it.
    pub to: Option<usize>,
    /// All datastores, in their order: what they would be like with all of it written; or
    /// why they do not take it.
    pub all: Vec<Result<Chance, Because>>,
}

/// A datastore that would take a new disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    /// What it would be like.
    pub side: Side,
    /// The bound that is nearest then.
    pub nearest: Over,
    /// The part of that bound that is used up; more than 1 if all that was promised is more
    /// than there is.
    pub used: f64,
}

/// Chooses a datastore for a new disk.
pub fn choose(inventory: &Inventory, bounds: &Bounds, new: NewDisk) -> Choice {
    let world = World::of(inventory);
    let mut promised = vec![0_u64; inventory.datastores.len()];
    for disk in &inventory.disks {
        let sum = &mut promised[disk.datastore];
        *sum = sum.saturating_add(disk.promised);
    }
    let of_room = |at: usize| {
        let all = inventory.mates(at).chain([at]);
        all.fold(0_u64, |sum, one| sum.saturating_add(promised[one]))
    };
    let all: Vec<Result<Chance, Because>> = world
        .datastores
        .iter()
        .enumerate()
        .map(|(at, one)| {
            chance(one, with_least_free(inventory, at), of_room(at), bounds, new)
        })
        .collect();
    let chances = all.iter().enumerate();
    let chances = chances.filter_map(|(at, one)| Some((at, one.as_ref().ok()?)));
    // Those of one room are as near their bounds; so disks spread by what is on each.
    let best = chances.min_by(|(one, its), (other, others)| {
        let by = its.used.total_cmp(&others.used);
        by.then(promised[*one].cmp(&promised[*other]))
    });
    Choice { to: best.map(|(at, _)| at), all }
}

/// A datastore with the least free room that it or another of its room was said to have.
fn with_least_free(inventory: &Inventory, at: usize) -> Datastore {
    let one = inventory.datastores[at];
    let mates = inventory.mates(at).map(|mate| inventory.datastores[mate]);
    // A quota is one datastore's own.
    let alike = mates.filter(|mate| mate.capacity == one.capacity);
    Datastore { free: alike.map(|mate| mate.free).fold(one.free, u64::min), ..one }
}

fn chance(
    one: &Loaded<'_>,
    there: Datastore,
    promised: u64,
    bounds: &Bounds,
    new: NewDisk,
) -> Result<Chance, Because> {
    if !there.takes_disks || there.capacity == 0 {
        return Err(Because::Closed);
    }
    let taken = there.taken(new.size as f64);
    if taken > bounds.space {
        return Err(Because::Full(taken));
    }
    if one.is_over(Over::Latency, bounds) {
        return Err(Because::Slow(Nanos(one.latency().unwrap_or_default() as u64)));
    }
    let room = there.taken(new.size as f64 + promised as f64) / bounds.space;
    let time = one.latency().unwrap_or_default() / (bounds.latency.0 as f64).max(1.0);
    let (nearest, used) =
        if time > room { (Over::Latency, time) } else { (Over::Space, room) };
    Ok(Chance { side: Side { taken, ..side(one) }, nearest, used })
}
