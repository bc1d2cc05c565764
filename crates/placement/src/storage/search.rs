//! The best move from each datastore that is over a bound, kept up to date while moves are
//! made.
//!
//! A move changes two datastores, and those that have their room from where these have it.
//! So only what leaves one of them, or was to go to one, is looked for anew; to all others,
//! these may be better than what they had.

use super::Over;
use super::bounds::Bounds;
use super::world::{Possible, World};

/// The best moves, by the datastore that is left.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Search {
    over: Over,
    /// The datastores that are to be relieved.
    asked: Vec<bool>,
    best: Vec<Option<Possible>>,
}

impl Search {
    /// Looks at everything that is on the datastores that are asked about.
    pub(super) fn of(
        world: &World<'_>,
        over: Over,
        asked: Vec<bool>,
        bounds: &Bounds,
    ) -> Search {
        let all: Vec<usize> = (0..world.datastores.len()).collect();
        let best = |from: &usize| {
            best_of(world, *from, &all, over, bounds).filter(|_| asked[*from])
        };
        Search { over, best: all.iter().map(best).collect(), asked }
    }

    /// Whether a datastore is to be relieved.
    pub(super) fn is_asked(&self, datastore: usize) -> bool {
        self.asked[datastore]
    }

    /// The best of all.
    pub(super) fn best(&self) -> Option<Possible> {
        self.best.iter().flatten().copied().reduce(better)
    }

    /// A move between these two was made.
    pub(super) fn follow(&mut self, world: &World<'_>, two: [usize; 2], bounds: &Bounds) {
        let mates = two.into_iter().flat_map(|at| world.inventory.mates(at));
        let changed: Vec<usize> = two.into_iter().chain(mates).collect();
        let all: Vec<usize> = (0..world.datastores.len()).collect();
        for (from, best) in self.best.iter_mut().enumerate() {
            if !self.asked[from] {
                continue;
            }
            let was_to = best.as_ref().is_some_and(|best| changed.contains(&best.to));
            *best = if was_to || changed.contains(&from) {
                best_of(world, from, &all, self.over, bounds)
            } else {
                let new = best_of(world, from, &changed, self.over, bounds);
                best.iter().chain(&new).copied().reduce(better)
            };
        }
        debug_assert_eq!(
            *self,
            Search::of(world, self.over, self.asked.clone(), bounds),
            "what was kept"
        );
    }
}

/// The best move from a datastore to one of these; nothing if it is within its bound.
fn best_of(
    world: &World<'_>,
    from: usize,
    to: &[usize],
    over: Over,
    bounds: &Bounds,
) -> Option<Possible> {
    if !world.datastores[from].is_over(over, bounds) {
        return None;
    }
    let others = || to.iter().filter(|to| **to != from);
    let moves = |unit: &usize| {
        let unit = *unit;
        others().filter_map(move |to| world.consider(unit, *to, over, bounds).ok())
    };
    world.on[from].iter().flat_map(moves).reduce(better)
}

/// The better of two. It is always the same one, in whichever order they come.
pub(super) fn better(one: Possible, other: Possible) -> Possible {
    let by = other.bends.cmp(&one.bends);
    let by = by.then(one.worth.total_cmp(&other.worth));
    let by = by.then(one.brings.total_cmp(&other.brings));
    let by = by.then((other.unit, other.to).cmp(&(one.unit, one.to)));
    if by.is_ge() { one } else { other }
}
