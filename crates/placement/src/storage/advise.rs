//! Goes through what is over its bounds, and says what should move, and what should not.

use super::Over;
use super::bounds::Bounds;
use super::inventory::Inventory;
use super::loaded::Loaded;
use super::needless::{Chosen, Selection};
use super::rule_repair::repair_rules;
use super::search::Search;
use super::world::{Because, World};
use sterna_core::Nanos;

/// What a datastore would be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// The part of its room that is taken.
    pub taken: f64,
    /// Of the response times, the 95th percentile; nothing if it is not known.
    pub latency: Option<Nanos>,
}

/// Why a disk should move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The datastore that it is on is over this bound.
    Over(Over),
    /// This rule is broken.
    Rule(usize),
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
    /// What for.
    pub why: Why,
    /// How much it matters: 1 is the most, 5 the least.
    pub priority: u8,
    /// Its step. Moves of one step are of disks that must be together: they make sense
    /// only with each other.
    pub step: usize,
    /// Source and destination, with the steps before this one made.
    pub before: [Side; 2],
    /// Source and destination, with this one made, too.
    pub after: [Side; 2],
}

/// A disk that stays where it is, although something is wrong there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused {
    /// The disk.
    pub disk: usize,
    /// What is wrong.
    pub why: Why,
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
    /// Of the disks on datastores that are over a bound even then, and of those that break
    /// rules, why they stay.
    pub refused: Vec<Refused>,
}

impl Advice {
    /// The first moves that may be begun now, if there is room for so many more. Steps go
    /// as a whole; one that is larger than that goes when nothing else moves. None goes
    /// where another one has to leave before it, or where one of those that move already
    /// does: they leave these datastores. What shares the room of one counts as it.
    pub fn at_once(
        &self,
        inventory: &Inventory,
        slots: usize,
        left: &[usize],
    ) -> &[Recommended] {
        let mut until = 0;
        for step in self.moves.chunk_by(|one, other| one.step == other.step) {
            let begun = &self.moves[..until];
            let fits = until + step.len() <= slots;
            let alone = until == 0 && left.is_empty() && slots > 0;
            let waits = |one: &Recommended| {
                let mut room = inventory.mates(one.to).chain([one.to]);
                room.any(|at| left.contains(&at) || begun.iter().any(|it| it.from == at))
            };
            if !(fits || alone) || step.iter().any(waits) {
                break;
            }
            until += step.len();
        }
        &self.moves[..until]
    }
}

/// Recommends moves, and says why others are not.
///
/// It takes time in proportion to the disks on datastores that are over a bound and to all
/// datastores, and for each move to those disks.
pub fn advise(inventory: &Inventory, bounds: &Bounds) -> Advice {
    advise_where(inventory, bounds, |_, _| true)
}

/// The same, but of the datastores that are over a bound only those are relieved that are
/// `asked` about.
pub fn advise_where(
    inventory: &Inventory,
    bounds: &Bounds,
    asked: impl Fn(usize, Over) -> bool,
) -> Advice {
    let mut repaired = World::of(inventory);
    let mut advice = repair_rules(&mut repaired, bounds);
    let mended_by = advice.moves.len();
    let asked = [Over::Space, Over::Latency].map(|over| {
        let all = 0..repaired.datastores.len();
        (over, all.map(|at| asked(at, over)).collect::<Vec<bool>>())
    });
    let mut selection = Selection::of(repaired);
    let searches = loop {
        let of = |(over, asked): &(Over, Vec<bool>)| {
            (*over, Search::of(&selection.after, *over, asked.clone(), bounds))
        };
        let searches =
            search(asked.each_ref().map(of), &mut selection, mended_by, bounds);
        if !selection.take_back(bounds) {
            break searches;
        }
    };
    say(&mut advice, &selection, bounds);
    for (over, search) in &searches {
        advice.refused.extend(refused(&selection.after, *over, search, bounds));
    }
    advice
}

/// Makes the best moves in thought, one by one, until there is none left, or there are as
/// many as may be with those that repair rules. A larger step is made if it is the only one.
fn search(
    mut searches: [(Over, Search); 2],
    selection: &mut Selection<'_>,
    mended_by: usize,
    bounds: &Bounds,
) -> [(Over, Search); 2] {
    loop {
        let mut bests =
            searches.iter().filter_map(|(over, it)| Some((*over, it.best()?)));
        let Some((over, best)) = bests.next() else { break };
        let size = |unit: usize| selection.after.units[unit].disks.len();
        let chosen: usize = selection.chosen.iter().map(|one| size(one.unit)).sum();
        let moves = mended_by + chosen;
        let is_larger = moves + size(best.unit) > bounds.moves;
        if moves >= bounds.moves || (moves > 0 && is_larger) {
            break;
        }
        let from = selection.after.place(best.unit);
        selection.choose(Chosen { unit: best.unit, to: best.to, over });
        for (_, search) in &mut searches {
            search.follow(&selection.after, [from, best.to], bounds);
        }
    }
    searches
}

/// Adds what was chosen, as steps.
fn say(advice: &mut Advice, selection: &Selection<'_>, bounds: &Bounds) {
    let steps = advice.moves.last().map_or(0, |last| last.step + 1);
    let mut world = selection.before.clone();
    for (at, one) in selection.chosen.iter().enumerate() {
        let source = &world.datastores[world.place(one.unit)];
        let priority = priority(source, one.over, bounds);
        let what = (steps + at, Why::Over(one.over), priority);
        advice.moves.extend(step(&world, (one.unit, one.to), what));
        world.make(one.unit, one.to);
    }
}

/// The moves of a unit to a datastore, as a step.
pub(super) fn step(
    world: &World<'_>,
    (unit, to): (usize, usize),
    (step, why, priority): (usize, Why, u8),
) -> Vec<Recommended> {
    let (before, after) = world.sides(unit, to);
    let from = world.place(unit);
    let disks = world.units[unit].disks.iter();
    let one = |disk: &usize| Recommended {
        disk: *disk,
        from,
        to,
        why,
        priority,
        step,
        before: before.each_ref().map(side),
        after: after.each_ref().map(side),
    };
    disks.map(one).collect()
}

/// The disks that cannot leave a datastore that is over this bound.
fn refused(
    world: &World<'_>,
    over: Over,
    search: &Search,
    bounds: &Bounds,
) -> Vec<Refused> {
    let datastores = world.datastores.iter().enumerate();
    let those =
        datastores.filter(|(at, one)| one.is_over(over, bounds) && search.is_asked(*at));
    let units = those.flat_map(|(from, _)| world.on[from].iter().copied());
    let refusals = units.flat_map(|unit| {
        let consider = |to: usize| world.consider(unit, to, over, bounds).err();
        let nearest = nearest(world, unit, consider);
        let of = move |(to, because): (Option<usize>, Because)| {
            let disks = world.units[unit].disks.iter();
            let why = Why::Over(over);
            disks.map(move |disk| Refused { disk: *disk, why, to, because })
        };
        nearest.into_iter().flat_map(of)
    });
    refusals.collect()
}

/// Why a unit stays, and where it could have gone that came nearest; nothing if it could
/// go somewhere.
pub(super) fn nearest(
    world: &World<'_>,
    unit: usize,
    consider: impl Fn(usize) -> Option<Because>,
) -> Option<(Option<usize>, Because)> {
    let others = (0..world.datastores.len()).filter(|to| *to != world.place(unit));
    let mut nearest: Option<(usize, Because)> = None;
    for to in others {
        let because = consider(to)?;
        if nearest.is_none_or(|(_, it)| it.nearness() < because.nearness()) {
            nearest = Some((to, because));
        }
    }
    Some(match nearest {
        None => (None, Because::Closed),
        Some((_, same @ (Because::Pinned(_) | Because::Idle))) => (None, same),
        Some((_, same @ Because::SourceUnknown)) => (None, same),
        Some((to, because)) => (Some(to), because),
    })
}

/// What is known of a datastore.
pub(super) fn side(loaded: &Loaded<'_>) -> Side {
    let latency = loaded.latency().map(|it| Nanos(it.max(0.0) as u64));
    Side { taken: loaded.taken(), latency }
}

/// How far a datastore is over its bound. 1 is kept for rules that must hold.
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
