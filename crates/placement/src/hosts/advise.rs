//! Goes through what is to be put right, and says what should move, and what should not.

use super::Goal;
use super::amounts::{Amounts, Resource};
use super::bounds::{Bounds, priority};
use super::explain::{Refused, refusals};
use super::imbalance::Imbalance;
use super::inventory::Inventory;
use super::search::{Search, best_exchange, better};
use super::step::Worth;
use super::world::{Possible, World};

/// What must be done at any cost.
const MUST: u8 = 1;

/// A host that has too little for its VMs.
const RELIEVE: u8 = 2;

/// What somebody wants.
const SHOULD: u8 = 3;

/// A move that is recommended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recommended {
    /// The VM.
    pub vm: usize,
    /// The host that it should leave.
    pub from: usize,
    /// The one that it should go to.
    pub to: usize,
    /// The VM there that should come back in its place.
    pub back: Option<usize>,
    /// What it puts right.
    pub goal: Goal,
    /// How much it matters: 1 is the most, 5 the least.
    pub priority: u8,
    /// What it brings and costs.
    pub worth: Worth,
    /// The loads of both hosts, with the moves before this one made, and with this one,
    /// too.
    pub loads: [[Amounts; 2]; 2],
    /// How much all loads differ, the same.
    pub imbalance: [Imbalance; 2],
}

/// What should be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// In the order in which they should be made.
    pub moves: Vec<Recommended>,
    /// Of the VMs where something is still not right then, why they stay.
    pub refused: Vec<Refused>,
}

/// Recommends moves, and says why others are not.
///
/// It takes time in proportion to all VMs times all hosts, and for each move to the VMs
/// of a few hosts times all hosts.
pub fn advise(inventory: &Inventory, bounds: &Bounds) -> Advice {
    let mut world = World::of(inventory);
    let mut search = None;
    let mut moves = Vec::new();
    while moves.len() < bounds.moves {
        let before = world.imbalance();
        let even = || evens(&world, &before, &mut search, bounds);
        let Some((goal, priority, best)) = repairs(&world, bounds).or_else(even) else {
            break;
        };
        let from = world.at[best.vm];
        let loads = |world: &World<'_>| [from, best.to].map(|host| world.load(host));
        let was = loads(&world);
        world.make(&best);
        if let Some(search) = &mut search {
            search.follow(&world, &best, from, bounds);
        }
        moves.push(Recommended {
            vm: best.vm,
            from,
            to: best.to,
            back: best.back,
            goal,
            priority,
            worth: best.worth,
            loads: [was, loads(&world)],
            imbalance: [before, world.imbalance()],
        });
    }
    let refused = refusals(&world, bounds);
    Advice { moves, refused }
}

/// The most urgent thing that can be put right, but for loads that differ.
fn repairs(world: &World<'_>, bounds: &Bounds) -> Option<(Goal, u8, Possible)> {
    let aims = [
        (MUST, rules(world, true)),
        (RELIEVE, overfull(world)),
        (SHOULD, rules(world, false)),
    ];
    let asked = aims.into_iter().filter(|(priority, _)| *priority <= bounds.threshold);
    for (priority, goals) in asked {
        for (goal, vms) in goals {
            let best = best_for(world, &vms, goal, bounds);
            if let Some(best) = best {
                return Some((goal, priority, best));
            }
        }
    }
    None
}

/// Rules of a kind that do not hold, with the VMs that could change that.
pub(super) fn rules(world: &World<'_>, must: bool) -> Vec<(Goal, Vec<usize>)> {
    let all = world.inventory.rules.iter().enumerate();
    let broken = all.filter(|(at, rule)| rule.must == must && world.broken(*at) > 0);
    let goal = |at| if must { Goal::Must(at) } else { Goal::Should(at) };
    let here = |vm: &usize| world.on[world.at[*vm]].contains(vm);
    broken
        .map(|(at, rule)| (goal(at), rule.vms.iter().copied().filter(here).collect()))
        .collect()
}

/// Hosts with loads above 1, the highest first, with their VMs. Memory comes before
/// processors: who lacks it swaps.
pub(super) fn overfull(world: &World<'_>) -> Vec<(Goal, Vec<usize>)> {
    let mut goals = Vec::new();
    for resource in [Resource::Memory, Resource::Cpu] {
        let load = |host: usize| world.load(host).get(resource);
        let all = 0..world.on.len();
        let mut hosts: Vec<usize> = all.filter(|host| load(*host) > 1.0 + 1e-6).collect();
        hosts.sort_by(|one, other| load(*other).total_cmp(&load(*one)));
        let goal = |host: usize| (Goal::Relieve(resource), world.on[host].clone());
        goals.extend(hosts.into_iter().map(goal));
    }
    goals
}

fn best_for(
    world: &World<'_>,
    vms: &[usize],
    goal: Goal,
    bounds: &Bounds,
) -> Option<Possible> {
    let to = |vm: &usize| {
        let vm = *vm;
        let hosts = 0..world.on.len();
        hosts.filter_map(move |to| world.consider(vm, to, None, goal, bounds).ok())
    };
    vms.iter().flat_map(to).reduce(better)
}

/// The best move that evens loads out, if that is asked for.
fn evens(
    world: &World<'_>,
    now: &Imbalance,
    search: &mut Option<Search>,
    bounds: &Bounds,
) -> Option<(Goal, u8, Possible)> {
    let priority = asked(now, bounds)?;
    let search = search.get_or_insert_with(|| Search::of(world, bounds));
    let best = search.best(world, bounds);
    let best = best.or_else(|| best_exchange(world, bounds))?;
    Some((Goal::Even, priority, best))
}

/// How much it matters that loads differ, if that is as much as the threshold asks for.
pub(super) fn asked(now: &Imbalance, bounds: &Bounds) -> Option<u8> {
    priority(now.deviation).filter(|priority| *priority <= bounds.threshold)
}
