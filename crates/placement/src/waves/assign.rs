//! Which disk goes where.
//!
//! The largest come first, as they have the least choice; a group that is to stay together is
//! one piece, and if one of its disks stays where it is, all do. Each goes, of the datastores
//! that have room for it below the bound, to the one that answers quickest with it, where that
//! is known of all of them and the disk asks for something; else to the emptiest. So loads
//! spread by what devices can do, and idle disks by room. A datastore that is one disk's gets
//! the largest that fits: whoever names it wants it to be used.

use std::cmp::Reverse;

use super::inventory::{Disk, Inventory, Pinned, Takes};
use sterna_core::Nanos;
use sterna_core::measure::LqFit;
use sterna_core::room::share_room;

/// A disk with fewer requests under way, on average, does not care where it is.
const IDLE: f64 = 0.01;

/// A line is taken to go on as far as so many times the most that was seen.
const BEYOND: f64 = 2.0;

/// Why a disk goes to a datastore.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// With it, requests there take so long, and elsewhere longer.
    Quickest(Nanos),
    /// With it, this part of the room there is taken, and elsewhere more.
    Emptiest(f64),
    /// All that it may go to have their room from one place, of which this part is taken then.
    SameRoom(f64),
    /// It is the only one that it may go to and that has room.
    Only,
    /// It has all of it.
    Alone,
}

/// Why a disk goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Because {
    /// It stays, whatever there is elsewhere.
    Pinned(Pinned),
    /// No datastore takes disks.
    NoDestination,
    /// At the datastore with the most room, this part would be taken.
    Full {
        /// The datastore.
        to: usize,
        /// The part.
        taken: f64,
    },
    /// What would have room for one disk alone is smaller than it.
    TooLarge,
    /// There is no room for all of its group on one datastore.
    Apart,
    /// This disk stays, and both are of a group that is to be together.
    Beside(usize),
}

/// Where a disk goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assigned {
    /// The disk.
    pub disk: usize,
    /// The datastore.
    pub to: usize,
    /// Why there.
    pub why: Why,
}

/// A disk that goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused {
    /// The disk.
    pub disk: usize,
    /// Why.
    pub because: Because,
}

/// Each disk of an inventory, in exactly one of the two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    /// Those that go somewhere.
    pub assigned: Vec<Assigned>,
    /// Those that do not.
    pub refused: Vec<Refused>,
}

/// Disks that go to the same place.
struct Piece {
    disks: Vec<usize>,
    needs: u64,
    /// What a device that holds one disk would have to hold.
    size: u64,
    outstanding: f64,
    is_group: bool,
}

/// Finds a datastore for each disk; of each, so much of the room may be taken in the end
/// (above 0 and at most 1).
pub fn assign(inventory: &Inventory, bound: f64) -> Assignment {
    let mut assignment = Assignment::default();
    let mut scene = Scene::of(inventory, bound);
    for disk in 0..inventory.disks.len() {
        if let Some(because) = stays(inventory, disk) {
            assignment.refused.push(Refused { disk, because });
        }
    }
    for piece in pieces(inventory) {
        match scene.best(&piece) {
            Ok((to, why)) => {
                scene.put(&piece, to);
                let goes =
                    piece.disks.iter().map(|disk| Assigned { disk: *disk, to, why });
                assignment.assigned.extend(goes);
            }
            Err(because) => {
                let stays =
                    piece.disks.iter().map(|disk| Refused { disk: *disk, because });
                assignment.refused.extend(stays);
            }
        }
    }
    assignment.assigned.sort_by_key(|one| one.disk);
    assignment.refused.sort_by_key(|one| one.disk);
    assignment
}

/// The group with which a disk stays together.
fn together(inventory: &Inventory, disk: &Disk) -> Option<usize> {
    disk.group.filter(|group| inventory.groups[*group].together)
}

/// Why a disk stays, whatever there is elsewhere.
fn stays(inventory: &Inventory, disk: usize) -> Option<Because> {
    let one = &inventory.disks[disk];
    if let Some(pinned) = one.pinned {
        return Some(Because::Pinned(pinned));
    }
    let group = together(inventory, one)?;
    let is_pinned = |other: &Disk| {
        other.pinned.is_some() && together(inventory, other) == Some(group)
    };
    inventory.disks.iter().position(is_pinned).map(Because::Beside)
}

/// What does not stay, the largest first.
fn pieces(inventory: &Inventory) -> Vec<Piece> {
    let free = |disk: &usize| stays(inventory, *disk).is_none();
    let mut sets: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
    for disk in (0..inventory.disks.len()).filter(free) {
        let group = together(inventory, &inventory.disks[disk]);
        let known = sets.iter_mut().find(|(of, _)| group.is_some() && *of == group);
        match known {
            Some((_, disks)) => disks.push(disk),
            None => sets.push((group, vec![disk])),
        }
    }
    let piece = |(_, disks): (Option<usize>, Vec<usize>)| {
        let those = || disks.iter().map(|disk| &inventory.disks[*disk]);
        Piece {
            needs: those().map(|disk| disk.needs).sum(),
            size: those().map(|disk| disk.size).sum(),
            outstanding: those().map(|disk| disk.outstanding).sum(),
            is_group: disks.len() > 1,
            disks,
        }
    };
    let mut pieces: Vec<Piece> = sets.into_iter().map(piece).collect();
    pieces.sort_by_key(|piece| (Reverse(piece.needs), piece.disks[0]));
    pieces
}

/// The datastores with what was put there in thought.
struct Scene<'i> {
    inventory: &'i Inventory,
    bound: f64,
    /// Bytes that came, there or to another one with the same room.
    more: Vec<u64>,
    outstanding: Vec<f64>,
    /// Whether it takes no more, being one disk's.
    occupied: Vec<bool>,
}

impl<'i> Scene<'i> {
    fn of(inventory: &'i Inventory, bound: f64) -> Scene<'i> {
        let all = &inventory.datastores;
        Scene {
            inventory,
            bound,
            more: vec![0; all.len()],
            outstanding: all.iter().map(|one| one.outstanding).collect(),
            occupied: vec![false; all.len()],
        }
    }

    fn put(&mut self, piece: &Piece, to: usize) {
        let room = |at: usize| self.inventory.datastores[at].shared_room;
        for (at, more) in self.more.iter_mut().enumerate() {
            if at == to || share_room(room(at), room(to)) {
                *more += piece.needs;
            }
        }
        self.outstanding[to] += piece.outstanding;
        self.occupied[to] = self.inventory.datastores[to].takes == Takes::One;
    }

    /// The best place for a piece, or why there is none.
    fn best(&self, piece: &Piece) -> Result<(usize, Why), Because> {
        let from = |to: usize| {
            piece.disks.iter().any(|disk| self.inventory.disks[*disk].from == to)
        };
        let open: Vec<usize> = (0..self.inventory.datastores.len())
            .filter(|to| self.inventory.datastores[*to].takes != Takes::Nothing)
            .filter(|to| !self.occupied[*to] && !from(*to))
            .collect();
        let fit: Vec<usize> =
            open.iter().copied().filter(|to| self.fits(piece, *to)).collect();
        if fit.is_empty() {
            return Err(self.refusal(piece, &open));
        }
        let emptiest = |a: &usize, b: &usize| {
            self.taken(piece, *a).total_cmp(&self.taken(piece, *b)).then(a.cmp(b))
        };
        let latencies: Option<Vec<(usize, Nanos)>> =
            fit.iter().map(|to| Some((*to, self.latency(piece, *to)?))).collect();
        let is_idle = piece.outstanding < IDLE;
        let (to, why) = match latencies.filter(|_| !is_idle) {
            Some(all) => {
                let quickest = |a: &(usize, Nanos), b: &(usize, Nanos)| {
                    a.1.cmp(&b.1).then_with(|| emptiest(&a.0, &b.0))
                };
                let best = all.into_iter().min_by(quickest);
                let (to, latency) = best.expect("one fits");
                (to, Why::Quickest(latency))
            }
            None => {
                let to = fit.iter().copied().min_by(emptiest).expect("one fits");
                let taken = self.taken(piece, to);
                let room = |to: usize| self.inventory.datastores[to].shared_room;
                match fit.iter().all(|other| share_room(room(*other), room(to))) {
                    true => (to, Why::SameRoom(taken)),
                    false => (to, Why::Emptiest(taken)),
                }
            }
        };
        Ok(match self.inventory.datastores[to].takes {
            Takes::One => (to, Why::Alone),
            _ if fit.len() == 1 => (to, Why::Only),
            _ => (to, why),
        })
    }

    fn fits(&self, piece: &Piece, to: usize) -> bool {
        let there = &self.inventory.datastores[to];
        match there.takes {
            Takes::Nothing => false,
            Takes::One => !piece.is_group && piece.size <= there.capacity,
            Takes::Any => {
                self.more[to].saturating_add(piece.needs) <= there.free
                    && self.taken(piece, to) <= self.bound
            }
        }
    }

    /// The part of the room that is taken with a piece there. What is one disk's comes
    /// before what others want, too.
    fn taken(&self, piece: &Piece, to: usize) -> f64 {
        let there = &self.inventory.datastores[to];
        if there.takes == Takes::One {
            return 0.0;
        }
        let used = there.capacity.saturating_sub(there.free) as f64;
        let more = self.more[to].saturating_add(piece.needs) as f64;
        (used + more) / (there.capacity as f64).max(1.0)
    }

    /// What a request there takes with a piece there, if that is known.
    fn latency(&self, piece: &Piece, to: usize) -> Option<Nanos> {
        let outstanding = self.outstanding[to] + piece.outstanding;
        match self.inventory.datastores[to].device {
            LqFit::Line(line) => {
                let latency = line.unloaded.0 as f64 + line.slope * outstanding;
                let is_known = outstanding <= line.seen.1 * BEYOND;
                is_known.then_some(Nanos(latency as u64))
            }
            LqFit::Flat { seen, latency } => (outstanding <= seen.1).then_some(latency),
            LqFit::TooFew { .. } | LqFit::NoVariation { .. } => None,
        }
    }

    /// Why a piece fits nowhere.
    fn refusal(&self, piece: &Piece, open: &[usize]) -> Because {
        let shared = |to: &&usize| self.inventory.datastores[**to].takes == Takes::Any;
        let least = |a: &&usize, b: &&usize| {
            self.taken(piece, **a).total_cmp(&self.taken(piece, **b)).then(a.cmp(b))
        };
        match open.iter().filter(shared).min_by(least) {
            _ if open.is_empty() => Because::NoDestination,
            _ if piece.is_group => Because::Apart,
            Some(to) => Because::Full { to: *to, taken: self.taken(piece, *to) },
            None => Because::TooLarge,
        }
    }
}
