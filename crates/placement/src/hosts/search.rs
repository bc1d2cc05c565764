//! The best move from each host that evens loads out, kept up to date while moves are made.
//!
//! A move changes two hosts, and what it brings depends on its own two alone. So only
//! what leaves one of them is looked for anew, and what leaves hosts of VMs that a rule
//! ties to the one that moved; to all others, these two may be better than what they had.
//! What was to go to one of the two may not be as good any more, but nothing from that
//! host is better than it was: so it is looked for anew only when it comes to be the best
//! of all. Where one host is the best for all others, that spares looking at everything
//! for each move.

use super::Goal;
use super::bounds::Bounds;
use super::world::{Possible, World};

/// So many of the hosts with the highest loads, and with the lowest, are looked at for
/// VMs that could change places: each pair takes as long as all their pairs of VMs.
const EXTREMES: usize = 4;

/// The best move from a host.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Best {
    possible: Option<Possible>,
    /// It is that; else nothing from there is better.
    exact: bool,
}

/// The best moves, by the host that is left.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Search {
    best: Vec<Best>,
    all: Vec<usize>,
}

impl Search {
    /// Looks at everything.
    pub(super) fn of(world: &World<'_>, bounds: &Bounds) -> Search {
        let all: Vec<usize> = (0..world.on.len()).collect();
        let best = |from: &usize| {
            let possible = best_of(world, *from, &all, bounds);
            Best { possible, exact: true }
        };
        Search { best: all.iter().map(best).collect(), all }
    }

    /// The best of all.
    pub(super) fn best(
        &mut self,
        world: &World<'_>,
        bounds: &Bounds,
    ) -> Option<Possible> {
        loop {
            let possible = |from: usize| Some((self.best[from].possible?, from));
            let all = (0..self.best.len()).filter_map(possible);
            let best =
                all.reduce(
                    |one, other| {
                        if better(one.0, other.0) == one.0 { one } else { other }
                    },
                );
            let (possible, from) = best?;
            if self.best[from].exact {
                return Some(possible);
            }
            let possible = best_of(world, from, &self.all, bounds);
            self.best[from] = Best { possible, exact: true };
        }
    }

    /// A move was made from one host to the other, of this VM and perhaps of another.
    pub(super) fn follow(
        &mut self,
        world: &World<'_>,
        made: &Possible,
        from: usize,
        bounds: &Bounds,
    ) {
        let two = [from, made.to];
        let tied = |vm: &usize| {
            let rules = world.rules[*vm].iter();
            rules
                .flat_map(|rule| &world.inventory.rules[*rule].vms)
                .map(|vm| world.at[*vm])
        };
        let moved = [Some(made.vm), made.back];
        let tied: Vec<usize> = moved.iter().flatten().flat_map(tied).collect();
        for (host, best) in self.best.iter_mut().enumerate() {
            if two.contains(&host) || tied.contains(&host) {
                let possible = best_of(world, host, &self.all, bounds);
                *best = Best { possible, exact: true };
                continue;
            }
            let old = best.possible;
            let was_to = old.is_some_and(|old| two.contains(&old.to));
            let new = best_of(world, host, &two, bounds);
            best.possible = old.iter().chain(&new).copied().reduce(better);
            best.exact = if was_to { best.possible == new } else { best.exact };
        }
        debug_assert_eq!(
            self.clone().best(world, bounds),
            Search::of(world, bounds).best(world, bounds),
            "what was kept"
        );
    }
}

/// The best move from a host to one of these.
fn best_of(
    world: &World<'_>,
    from: usize,
    to: &[usize],
    bounds: &Bounds,
) -> Option<Possible> {
    let others = || to.iter().filter(|to| **to != from);
    let moves = |vm: &usize| {
        let vm = *vm;
        others()
            .filter_map(move |to| world.consider(vm, *to, None, Goal::Even, bounds).ok())
    };
    world.on[from].iter().flat_map(moves).reduce(better)
}

/// The best two VMs to change places, one on a host with a high load and one on a host
/// with a low one.
pub(super) fn best_exchange(world: &World<'_>, bounds: &Bounds) -> Option<Possible> {
    let mut hosts: Vec<usize> = (0..world.on.len()).collect();
    let load = |host: usize| world.load(host).cpu + world.load(host).memory;
    hosts.sort_by(|one, other| load(*other).total_cmp(&load(*one)));
    let high = hosts.iter().take(EXTREMES);
    let pairs = high
        .flat_map(|from| hosts.iter().rev().take(EXTREMES).map(move |to| (*from, *to)));
    let exchanges = pairs.filter(|(from, to)| from != to).flat_map(|(from, to)| {
        let backs = move |vm: usize| world.on[to].iter().map(move |back| (vm, to, *back));
        world.on[from].iter().copied().flat_map(backs)
    });
    exchanges
        .filter_map(|(vm, to, back)| {
            world.consider(vm, to, Some(back), Goal::Even, bounds).ok()
        })
        .reduce(better)
}

/// The better of two. It is always the same one, in whichever order they come.
pub(super) fn better(one: Possible, other: Possible) -> Possible {
    let by = one.per_byte.total_cmp(&other.per_byte);
    let by = by.then(one.brings.total_cmp(&other.brings));
    let by = by.then((other.vm, other.to, other.back).cmp(&(one.vm, one.to, one.back)));
    if by.is_ge() { one } else { other }
}
