//! Takes back moves that other moves have made needless.
//!
//! Moves are chosen one by one, each as if it were the last. So a small disk may leave a
//! datastore that is too full, then a large one, and the large one alone would have done;
//! or a quiet disk leaves a slow datastore for one that a busy disk follows it to, and
//! would have fared better had it stayed. Such a move copies bytes for nothing, and its
//! disk would be sent back the next time.
//!
//! **Rule.** With all others made, a move for room is taken back if its disk fits where it
//! was and pushes nobody over a bound there; one for response times if its disk would pay
//! its way back. Never if that would make a rule more broken, nor if another move would have
//! no room without it, or not be worth it. Moves that repair rules stay.
//!
//! What has become free may let others move; so the search goes on after that. It takes
//! time in proportion to all disks for each move that may be taken back.

use std::collections::BTreeSet;

use super::Over;
use super::bounds::Bounds;
use super::world::World;

/// A move of the search: of this unit, to this datastore, as its own was over this bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Chosen {
    pub(super) unit: usize,
    pub(super) to: usize,
    pub(super) over: Over,
}

/// The moves of a search, in their order, and the world that they lead to.
#[derive(Clone, Debug)]
pub(super) struct Selection<'i> {
    /// Before the first of them.
    pub(super) before: World<'i>,
    pub(super) chosen: Vec<Chosen>,
    /// After the last.
    pub(super) after: World<'i>,
    /// The units of which a move was taken back. Another one of them stands, so that there
    /// is an end to it.
    taken_back: BTreeSet<usize>,
}

impl<'i> Selection<'i> {
    /// Nothing was chosen yet.
    pub(super) fn of(before: World<'i>) -> Selection<'i> {
        let after = before.clone();
        Selection { before, chosen: Vec::new(), after, taken_back: BTreeSet::new() }
    }

    /// Makes a move, in thought.
    pub(super) fn choose(&mut self, one: Chosen) {
        self.after.make(one.unit, one.to);
        self.chosen.push(one);
    }

    /// Takes back what is needless with all the others made, and says whether there was
    /// anything.
    pub(super) fn take_back(&mut self, bounds: &Bounds) -> bool {
        let (mut at, mut any) = (0, false);
        while let Some(one) = self.chosen.get(at).copied() {
            let may = !self.taken_back.contains(&one.unit);
            match may && is_needless(&self.before, &self.after, one, bounds) {
                true if self.go_without(at, bounds) => {
                    self.taken_back.insert(one.unit);
                    // One that was worth it beside this one may not be without it.
                    (at, any) = (0, true);
                }
                _ => at += 1,
            }
        }
        any
    }

    /// Leaves a move out, and says whether the others are worth it without it.
    fn go_without(&mut self, at: usize, bounds: &Bounds) -> bool {
        let (mut world, mut chosen) = (self.before.clone(), self.chosen.clone());
        chosen.remove(at);
        for one in &chosen {
            if world.consider(one.unit, one.to, one.over, bounds).is_err() {
                return false;
            }
            world.make(one.unit, one.to);
        }
        (self.chosen, self.after) = (chosen, world);
        true
    }
}

/// Whether the disks of a move had better stay where they were before it.
fn is_needless(
    before: &World<'_>,
    after: &World<'_>,
    one: Chosen,
    bounds: &Bounds,
) -> bool {
    let from = before.place(one.unit);
    let back = match one.over {
        Over::Space => after.returns(one.unit, from, bounds),
        Over::Latency => {
            after.consider(one.unit, from, one.over, bounds).map(|it| it.bends)
        }
    };
    back == Ok(0)
}
