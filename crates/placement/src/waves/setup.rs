//! What is to be done: the moves of a plan, and what holds them back.

use std::cmp::Reverse;

use sterna_core::Nanos;
use sterna_core::room::share_room;

/// The moves of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    /// In the order in which they are looked at when one more can begin ([`order`]).
    pub moves: Vec<Move>,
    /// The datastores.
    pub ends: Vec<End>,
    /// Groups of moves; no circle among them.
    pub groups: Vec<Group>,
    /// No more than so many at once, if somebody says so; at least one.
    pub at_once: Option<usize>,
}

/// A move of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// The datastore that the disk leaves.
    pub from: usize,
    /// The one that it is to go to.
    pub to: usize,
    /// The disk's size, in bytes.
    pub size: u64,
    /// What it may need there, in bytes.
    pub needs: u64,
    /// The group that it belongs to.
    pub group: Option<usize>,
    /// What it takes if no other move of the plan is under way.
    pub time: Nanos,
    /// What it copies then, in bytes per second.
    pub rate: f64,
}

/// A datastore, as moves have it at one of their ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// Whether moves may go there.
    pub takes: bool,
    /// What they may fill, in bytes.
    pub room: u64,
    /// Datastores with the same number have this room together. Nothing if it is its own.
    pub shared_room: Option<u64>,
    /// Whether all of it is one disk's.
    pub single: bool,
    /// What the copies from and to it come to together, in bytes per second; nothing if
    /// that is not known.
    pub speed: Option<f64>,
}

impl Setup {
    /// Whether what goes to the one takes room of the other.
    pub(super) fn is_one_room(&self, one: usize, other: usize) -> bool {
        let room = |at: usize| self.ends[at].shared_room;
        one == other || share_room(room(one), room(other))
    }
}

/// A set of disks that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The groups all of whose disks must have moved before one of this one begins.
    pub after: Vec<usize>,
    /// Whether its disks are to be on one datastore.
    pub together: bool,
    /// Whether its workload can be stopped before the first of its moves.
    pub stops: bool,
    /// Whether its workload can be started when they have ended.
    pub starts: bool,
}

impl Group {
    /// Whether its workload stands still while its disks move.
    pub(super) fn is_hooked(&self) -> bool {
        self.stops || self.starts
    }
}

/// How many groups must have moved before each, one after another; nothing if some wait
/// for each other.
pub fn depths(groups: &[Group]) -> Option<Vec<usize>> {
    let mut depths = vec![0; groups.len()];
    // Without a circle, each round settles one group of the longest chain at least.
    for _ in 0..=groups.len() {
        let next: Vec<usize> = groups
            .iter()
            .map(|group| {
                let before = group.after.iter().map(|one| depths[*one] + 1);
                before.max().unwrap_or(0)
            })
            .collect();
        if next == depths {
            return Some(depths);
        }
        depths = next;
    }
    None
}

/// The order in which moves are looked at: those of groups that go first, then the
/// longest. Groups that wait for each other are taken to go first. Those of a group whose
/// workload stands still meanwhile follow one another, from where its longest is.
pub fn order(moves: &[Move], groups: &[Group]) -> Vec<usize> {
    let depths = depths(groups).unwrap_or_else(|| vec![0; groups.len()]);
    let mut longest = vec![Nanos(0); groups.len()];
    for one in moves {
        let Some(group) = one.group else { continue };
        longest[group] = longest[group].max(one.time);
    }
    let key = |at: &usize| {
        let one = &moves[*at];
        let depth = one.group.map_or(0, |group| depths[group]);
        let hooked = one.group.filter(|group| groups[*group].is_hooked());
        let leads = hooked.map_or(one.time, |group| longest[group]);
        (depth, Reverse(leads), hooked, Reverse(one.time), *at)
    };
    let mut order: Vec<usize> = (0..moves.len()).collect();
    order.sort_by_key(key);
    order
}
