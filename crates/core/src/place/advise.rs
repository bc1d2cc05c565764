//! Goes through what is over its bounds, and says what should move, and what should not.

use super::Over;
use super::bounds::Bounds;
use super::inventory::Inventory;
use super::loaded::Loaded;
use super::world::{Because, Possible, World};
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
/// It takes time in proportion to the moves that it recommends, to the disks on
/// datastores that are over a bound, and to the datastores.
pub fn advise(inventory: &Inventory, bounds: &Bounds) -> Advice {
    let mut world = World::of(inventory);
    let mut advice = Advice::default();
    loop {
        let [space, latency] =
            [Over::Space, Over::Latency].map(|over| Look::at(&world, over, bounds));
        let room = space.best.map(|best| (Over::Space, best));
        let best = room.or(latency.best.map(|best| (Over::Latency, best)));
        let Some((over, best)) = best.filter(|_| advice.moves.len() < bounds.moves) else {
            advice.refused = [space.refused, latency.refused].concat();
            return advice;
        };
        let (before, after) = world.sides(best.disk, best.to);
        advice.moves.push(Recommended {
            disk: best.disk,
            from: world.at[best.disk],
            to: best.to,
            over,
            priority: priority(&before[0], over, bounds),
            before: before.each_ref().map(side),
            after: after.each_ref().map(side),
        });
        world.make(best.disk, best.to);
    }
}

/// What there is to do about one of the bounds.
#[derive(Debug, Default)]
struct Look {
    best: Option<Possible>,
    refused: Vec<Refused>,
}

impl Look {
    fn at(world: &World<'_>, over: Over, bounds: &Bounds) -> Look {
        let those: Vec<bool> =
            world.datastores.iter().map(|it| it.is_over(over, bounds)).collect();
        let mut look = Look::default();
        let candidates = (0..world.at.len()).filter(|disk| !world.moved[*disk]);
        for disk in candidates.filter(|disk| those[world.at[*disk]]) {
            let others = (0..those.len()).filter(|to| *to != world.at[disk]);
            let (mut possible, mut nearest) = (false, None);
            for to in others {
                match world.consider(disk, to, over, bounds) {
                    Ok(one) => {
                        possible = true;
                        look.offer(one);
                    }
                    Err(because) => {
                        let nearer = |(_, it): &(usize, Because)| {
                            it.nearness() < because.nearness()
                        };
                        if nearest.as_ref().is_none_or(nearer) {
                            nearest = Some((to, because));
                        }
                    }
                }
            }
            if !possible {
                look.refuse(disk, over, nearest);
            }
        }
        look
    }

    fn offer(&mut self, one: Possible) {
        let better = |best: &Possible| {
            let by = one.worth.total_cmp(&best.worth);
            by.then(one.brings.total_cmp(&best.brings)).is_gt()
        };
        if self.best.as_ref().is_none_or(better) {
            self.best = Some(one);
        }
    }

    fn refuse(&mut self, disk: usize, over: Over, nearest: Option<(usize, Because)>) {
        let (to, because) = match nearest {
            None => (None, Because::Closed),
            Some((_, same @ (Because::Pinned(_) | Because::Idle))) => (None, same),
            Some((_, same @ Because::SourceUnknown)) => (None, same),
            Some((to, because)) => (Some(to), because),
        };
        self.refused.push(Refused { disk, over, to, because });
    }
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
