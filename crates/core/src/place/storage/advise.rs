//! Goes through what is over its bounds, and says what should move, and what should not.

use super::Over;
use super::bounds::Bounds;
use super::inventory::Inventory;
use super::loaded::Loaded;
use super::search::Search;
use super::world::{Because, World};
use crate::Nanos;

/// What a datastore would be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// The part of its room that is taken.
    pub taken: f64,
    /// Of the response times, the 95th percentile; nothing if it is not known.
    pub latency: Option<Nanos>,
}

/// A move that is recommended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recommended {
    /// The disk.
    pub disk: usize,
    /// The datastore that it should leave.
    pub from: usize,
    /// The one that it should go to.
    pub to: usize,
    /// What the datastore that it leaves is over.
    pub over: Over,
    /// How much it matters: 1 is the most, 5 the least.
    pub priority: u8,
    /// Source and destination, with the moves before this one made.
    pub before: [Side; 2],
    /// Source and destination, with this one made, too.
    pub after: [Side; 2],
}

/// A disk that stays on a datastore that is over a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused {
    /// The disk.
    pub disk: usize,
    /// What the datastore that it is on is over.
    pub over: Over,
    /// The datastore that came nearest; nothing if there is no other, or it is all the same
    /// which.
    pub to: Option<usize>,
    /// Why it does not go there.
    pub because: Because,
}

/// What should be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// In the order in which they should be made.
    pub moves: Vec<Recommended>,
    /// Of the disks on datastores that are over a bound even then, why they stay.
    pub refused: Vec<Refused>,
}

/// Recommends moves, and says why others are not.
///
/// It takes time in proportion to the disks on datastores that are over a bound and to all
/// datastores, and for each move to those disks.
pub fn advise(inventory: &Inventory, bounds: &Bounds) -> Advice {
    let mut world = World::of(inventory);
    let mut searches =
        [Over::Space, Over::Latency].map(|over| (over, Search::of(&world, over, bounds)));
    let mut moves = Vec::new();
    while moves.len() < bounds.moves {
        let mut bests =
            searches.iter().filter_map(|(over, it)| Some((*over, it.best()?)));
        let Some((over, best)) = bests.next() else { break };
        let from = world.at[best.disk];
        let (before, after) = world.sides(best.disk, best.to);
        moves.push(Recommended {
            disk: best.disk,
            from,
            to: best.to,
            over,
            priority: priority(&before[0], over, bounds),
            before: before.each_ref().map(side),
            after: after.each_ref().map(side),
        });
        world.make(best.disk, best.to);
        for (_, search) in &mut searches {
            search.follow(&world, [from, best.to], bounds);
        }
    }
    let refused = searches.map(|(over, _)| refused(&world, over, bounds)).concat();
    Advice { moves, refused }
}

/// The disks that cannot leave a datastore that is over this bound.
fn refused(world: &World<'_>, over: Over, bounds: &Bounds) -> Vec<Refused> {
    let datastores = world.datastores.iter().enumerate();
    let those = datastores.filter(|(_, one)| one.is_over(over, bounds));
    let disks = those.flat_map(|(from, _)| world.on[from].iter().copied());
    disks.filter_map(|disk| refusal(world, disk, over, bounds)).collect()
}

/// Why a disk stays; nothing if it could go somewhere.
fn refusal(
    world: &World<'_>,
    disk: usize,
    over: Over,
    bounds: &Bounds,
) -> Option<Refused> {
    let others = (0..world.datastores.len()).filter(|to| *to != world.at[disk]);
    let mut nearest: Option<(usize, Because)> = None;
    for to in others {
        let because = world.consider(disk, to, over, bounds).err()?;
        if nearest.is_none_or(|(_, it)| it.nearness() < because.nearness()) {
            nearest = Some((to, because));
        }
    }
    let (to, because) = match nearest {
        None => (None, Because::Closed),
        Some((_, same @ (Because::Pinned(_) | Because::Idle))) => (None, same),
        Some((_, same @ Because::SourceUnknown)) => (None, same),
        Some((to, because)) => (Some(to), because),
    };
    Some(Refused { disk, over, to, because })
}

/// What is known of a datastore.
fn side(loaded: &Loaded<'_>) -> Side {
    let latency = loaded.latency().map(|it| Nanos(it.max(0.0) as u64));
    Side { taken: loaded.taken(), latency }
}

/// How far a datastore is over its bound. 1 is kept for what must be done at any cost.
fn priority(source: &Loaded<'_>, over: Over, bounds: &Bounds) -> u8 {
    let times = match over {
        // Of what was left to spare, how much is gone: all of it is twice.
        Over::Space => {
            1.0 + (source.taken() - bounds.space) / (1.0 - bounds.space).max(1e-9)
        }
        Over::Latency => {
            source.latency().unwrap_or_default() / (bounds.latency.0 as f64).max(1.0)
        }
    };
    match times {
        2.0.. => 2,
        1.5.. => 3,
        1.2.. => 4,
        _ => 5,
    }
}
