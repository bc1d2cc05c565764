//! Repairs rules that must hold and do not: with as few bytes as will do, and without
//! pushing a datastore over a bound.
//!
//! Disks that are to be apart leave each other one by one, each for a datastore where it
//! breaks the rule less. Disks that are to be together come to one of the datastores that
//! takes all that are not there; if none does, they all stay, as half of them elsewhere
//! would help nobody.

use super::advise::{Advice, Refused, Why, nearest, step};
use super::bounds::Bounds;
use super::rule::Wish;
use super::search::better;
use super::world::{Because, Possible, World};

/// What must hold matters most.
const PRIORITY: u8 = 1;

/// What repairs a rule, and who stays although it is broken.
type Repair = (Vec<Possible>, Vec<Refused>);

/// The moves that repair what is broken, made in thought; and why the rest stays broken.
pub(super) fn repair_rules(world: &mut World<'_>, bounds: &Bounds) -> Advice {
    let mut advice = Advice::default();
    let inventory = world.inventory;
    for (at, rule) in inventory.rules.iter().enumerate().filter(|(_, it)| it.must()) {
        if !rule.is_broken(&world.at) {
            continue;
        }
        let slots = bounds.moves.saturating_sub(advice.moves.len());
        let (moves, refused) = match rule.wish {
            Wish::Apart => part(world, at, slots, bounds),
            Wish::Together => gather(world, at, slots, bounds),
        };
        for one in moves {
            let steps = advice.moves.last().map_or(0, |last| last.step + 1);
            let what = (steps, Why::Rule(at), PRIORITY);
            advice.moves.extend(step(world, (one.unit, one.to), what));
            world.make(one.unit, one.to);
        }
        advice.refused.extend(refused);
    }
    advice
}

/// The units of a rule that break it where they are, and may move.
fn breaking(world: &World<'_>, rule: usize) -> Vec<usize> {
    let one = &world.inventory.rules[rule];
    let breaks = |unit: &usize| {
        let its = world.units[*unit].disks.iter().any(|disk| one.disks.contains(disk));
        its && world.breaks(one, *unit, world.place(*unit)) > 0
    };
    let mut units: Vec<usize> =
        world.on.iter().flatten().copied().filter(breaks).collect();
    units.sort_unstable();
    units
}

/// Takes disks from each other, as far as that can be done.
fn part(world: &World<'_>, rule: usize, slots: usize, bounds: &Bounds) -> Repair {
    let mut world = world.clone();
    let one = &world.inventory.rules[rule];
    let try_it = |world: &World<'_>, unit: usize, to: usize| {
        let helps =
            world.breaks(one, unit, to) < world.breaks(one, unit, world.place(unit));
        let may = world.mends(unit, to, rule, bounds);
        may.and_then(|it| if helps { Ok(it) } else { Err(Because::Rule(rule)) })
    };
    let mut moves = Vec::new();
    while moves.len() < slots {
        let best = {
            let world = &world;
            let tries = breaking(world, rule).into_iter().flat_map(|unit| {
                let all = 0..world.datastores.len();
                let others = all.filter(move |to| *to != world.place(unit));
                others.filter_map(move |to| try_it(world, unit, to).ok())
            });
            tries.reduce(better)
        };
        let Some(best) = best else { break };
        world.make(best.unit, best.to);
        moves.push(best);
    }
    let left = if moves.len() < slots { breaking(&world, rule) } else { Vec::new() };
    let refused = left.into_iter().flat_map(|unit| {
        let nearest = nearest(&world, unit, |to| try_it(&world, unit, to).err());
        refusals(&world, rule, unit, nearest)
    });
    let refused = refused.collect();
    (moves, refused)
}

/// Brings disks together at one datastore; if no one takes all, says of each that would
/// have had to move why it stays.
fn gather(world: &World<'_>, rule: usize, slots: usize, bounds: &Bounds) -> Repair {
    let breaking = breaking(world, rule);
    let mut best: Option<(f64, Vec<Possible>)> = None;
    let mut stays: Vec<Option<(usize, Because)>> = vec![None; breaking.len()];
    for to in 0..world.datastores.len() {
        let (mut there, mut moves, mut bytes) = (world.clone(), Vec::new(), 0.0);
        let mut whole = true;
        for (at, unit) in breaking.iter().enumerate() {
            if there.place(*unit) == to {
                continue;
            }
            match there.mends(*unit, to, rule, bounds) {
                Ok(one) => {
                    there.make(one.unit, one.to);
                    bytes += 1.0 / one.worth;
                    moves.push(one);
                }
                Err(because) => {
                    whole = false;
                    let nearer =
                        |(_, it): (usize, Because)| it.nearness() < because.nearness();
                    if stays[at].is_none_or(nearer) {
                        stays[at] = Some((to, because));
                    }
                }
            }
        }
        // One in its cooldown, or that moves, is no unit of this list, and is somewhere else.
        let whole = whole && !world.inventory.rules[rule].is_broken(&there.at);
        if whole && moves.len() <= slots && best.as_ref().is_none_or(|it| bytes < it.0) {
            best = Some((bytes, moves));
        }
    }
    if let Some((_, moves)) = best {
        return (moves, Vec::new());
    }
    let refused = breaking.iter().zip(stays).flat_map(|(unit, stays)| {
        let nearest = stays.map(|(to, because)| match because {
            same @ Because::Pinned(_) => (None, same),
            because => (Some(to), because),
        });
        refusals(world, rule, *unit, nearest)
    });
    (Vec::new(), refused.collect())
}

/// A unit that breaks a rule and stays.
fn refusals(
    world: &World<'_>,
    rule: usize,
    unit: usize,
    nearest: Option<(Option<usize>, Because)>,
) -> Vec<Refused> {
    let Some((to, because)) = nearest else { return Vec::new() };
    let disks = &world.inventory.rules[rule].disks;
    let its = world.units[unit].disks.iter().filter(|disk| disks.contains(disk));
    let why = Why::Rule(rule);
    its.map(|disk| Refused { disk: *disk, why, to, because }).collect()
}
