//! Where each move of a plan is kept, so that a step looks at those alone that it may
//! concern: there may be tens of thousands.
//!
//! Moves that may begin are kept in *lanes*, by the datastores that they go from and to.
//! What tells the moves of a lane apart is what they copy: where there is no place for
//! the least of them there is none for any, and the lane is passed over.
//!
//! **Invariant.** When something is chosen, each move is where its task says: [`Queue::see`]
//! was told of each that has changed, and of all that wait when groups have.

use std::collections::{BTreeMap, BTreeSet};

use super::ready::Ready;
use super::setup::Setup;
use super::task::{Stage, Task};
use super::workload::{Running, Workload};

/// Where a move is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kept {
    /// Nowhere: it waits for other groups, or was not looked at yet.
    Aside,
    /// In the lane to this datastore.
    Lane(usize),
    /// With those that take a place.
    UnderWay,
    /// With the stalled ones.
    Stalled,
    /// Nowhere, and nothing will happen to it any more.
    Ended,
}

/// Moves that may begin, with the same ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lane {
    /// In the order in which they are looked at.
    pub(super) moves: BTreeSet<usize>,
    /// By what they copy: the bits of numbers above 0 are ordered as the numbers are.
    rates: BTreeSet<(u64, usize)>,
}

impl Lane {
    /// The move that copies least.
    pub(super) fn least(&self) -> Option<usize> {
        self.rates.first().map(|(_, at)| *at)
    }
}

/// All moves of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Queue {
    kept: Vec<Kept>,
    /// By source, then by destination; none is empty.
    pub(super) lanes: BTreeMap<usize, BTreeMap<usize, Lane>>,
    /// Those that take a place.
    pub(super) under_way: BTreeSet<usize>,
    /// The stalled ones.
    pub(super) stalled: BTreeSet<usize>,
    /// Those that wait, and are not to begin before some time.
    pub(super) tried: BTreeSet<usize>,
    /// How many have not ended.
    open: usize,
    pub(super) ready: Ready,
}

impl Queue {
    /// The moves are so far.
    pub(super) fn new(setup: &Setup, tasks: &[Task], workloads: &[Workload]) -> Queue {
        let mut queue = Queue {
            kept: vec![Kept::Aside; tasks.len()],
            lanes: BTreeMap::new(),
            under_way: BTreeSet::new(),
            stalled: BTreeSet::new(),
            tried: BTreeSet::new(),
            open: tasks.len(),
            ready: Ready::new(setup),
        };
        for (group, workload) in workloads.iter().enumerate() {
            match workload.running {
                Running::Stopping(_) => queue.ready.hold(group),
                Running::Started => queue.ready.workload_ended(group, true),
                Running::NotStarted => queue.ready.workload_ended(group, false),
                Running::Untouched | Running::Stopped | Running::Starting => {}
            }
        }
        for (at, task) in tasks.iter().enumerate() {
            queue.see(setup, at, task);
        }
        queue
    }

    /// Whether all have ended.
    pub(super) fn is_over(&self) -> bool {
        self.open == 0
    }

    /// A move is so now.
    pub(super) fn see(&mut self, setup: &Setup, at: usize, task: &Task) {
        if self.kept[at] == Kept::Ended {
            return;
        }
        self.take_out(setup, at);
        let group = setup.moves[at].group;
        self.kept[at] = match task.stage {
            Stage::Waiting if self.ready.may_begin(group) => {
                self.line_up(setup, at, task)
            }
            Stage::Waiting => Kept::Aside,
            Stage::Stalled(_) => {
                self.stalled.insert(at);
                Kept::Stalled
            }
            Stage::Starting | Stage::Running | Stage::Leaving(_) => {
                self.under_way.insert(at);
                Kept::UnderWay
            }
            Stage::Moved | Stage::Failed(_) | Stage::Skipped(_) | Stage::GivenUp => {
                self.open -= 1;
                self.ready.ended(group, task.stage == Stage::Moved);
                Kept::Ended
            }
        };
        if task.stage == Stage::Waiting && task.not_before.0 > 0 {
            self.tried.insert(at);
        }
    }

    fn line_up(&mut self, setup: &Setup, at: usize, task: &Task) -> Kept {
        let one = &setup.moves[at];
        let lane = self.lanes.entry(one.from).or_default().entry(task.to).or_default();
        lane.moves.insert(at);
        lane.rates.insert((one.rate.to_bits(), at));
        Kept::Lane(task.to)
    }

    /// A move is not where it was.
    fn take_out(&mut self, setup: &Setup, at: usize) {
        self.tried.remove(&at);
        self.under_way.remove(&at);
        self.stalled.remove(&at);
        let Kept::Lane(to) = self.kept[at] else { return };
        let one = &setup.moves[at];
        let Some(lanes) = self.lanes.get_mut(&one.from) else { return };
        let Some(lane) = lanes.get_mut(&to) else { return };
        lane.moves.remove(&at);
        lane.rates.remove(&(one.rate.to_bits(), at));
        if lane.moves.is_empty() {
            lanes.remove(&to);
        }
        if lanes.is_empty() {
            self.lanes.remove(&one.from);
        }
    }
}
