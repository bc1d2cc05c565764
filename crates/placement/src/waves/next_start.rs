//! Which move starts next: of the moves that may begin, the first in their order for which
//! there is a place. The machine looks for it in the lanes of the queue.

use super::event::{Action, Wish};
use super::places::Places;
use super::queue::Lane;
use super::run::PlanRun;
use super::task::Stage;
use sterna_core::Nanos;

impl PlanRun {
    /// What those take that are under way, or will be when their workload has stopped.
    pub(super) fn places(&self) -> Places {
        let mut places = Places::beside(&self.others);
        for at in &self.queue.under_way {
            places.take(&self.setup.moves[*at], self.tasks[*at].to);
        }
        for at in self.expected() {
            places.take(&self.setup.moves[at], self.tasks[at].to);
        }
        places
    }

    /// Has moves begin, each time the first in their order for which there is a place.
    pub(super) fn begin(
        &mut self,
        now: Nanos,
        places: &mut Places,
        actions: &mut Vec<Action>,
    ) {
        while let Some(at) = self.first_with_a_place(now, places) {
            let to = self.tasks[at].to;
            places.take(&self.setup.moves[at], to);
            if self.waits_for_workload(at, actions) {
                continue;
            }
            self.tasks[at].stage = Stage::Starting;
            self.queue.see(&self.setup, at, &self.tasks[at]);
            actions.push(Action::Start { task: at, to });
        }
    }

    /// Has a move begin whose workload has just stopped for it, before others take the place
    /// that was kept.
    pub(super) fn begin_expected(
        &mut self,
        at: usize,
        now: Nanos,
        actions: &mut Vec<Action>,
    ) {
        let waits = self.tasks()[at].stage == Stage::Waiting;
        let may_begin = self.not_before(at).is_some_and(|it| it <= now);
        let to = self.tasks()[at].to;
        let has_place = self.places().has_place(&self.setup, &self.setup.moves[at], to);
        if self.wish == Wish::Run && self.open && waits && may_begin && has_place {
            self.tasks[at].stage = Stage::Starting;
            actions.push(Action::Start { task: at, to });
        }
    }

    fn first_with_a_place(&self, now: Nanos, places: &Places) -> Option<usize> {
        let has_place = |at: usize| {
            places.has_place(&self.setup, &self.setup.moves[at], self.tasks[at].to)
        };
        let may_begin =
            |at: usize| has_place(at) && self.not_before(at).is_some_and(|it| it <= now);
        let sources = self.queue.lanes.iter();
        let sources = sources.filter(|(from, _)| places.is_open(&self.setup, **from));
        let lanes = sources.flat_map(|(_, lanes)| lanes.values());
        let lanes = lanes.filter(|lane| lane.least().is_some_and(has_place));
        let first = |lane: &Lane| lane.moves.iter().copied().find(|at| may_begin(*at));
        lanes.filter_map(first).min()
    }

    /// When a move that waits, or stands still, may be tried.
    fn not_before(&self, at: usize) -> Option<Nanos> {
        let (one, task) = (&self.setup.moves[at], &self.tasks[at]);
        let held = || [one.from, task.to, self.records()].map(|it| self.held_until(it));
        match task.stage {
            Stage::Waiting => {
                let held = held().into_iter().flatten().max().unwrap_or_default();
                Some(task.not_before.max(held))
            }
            Stage::Stalled(_) => Some(task.not_before),
            _ => None,
        }
    }

    /// When something is tried next that cannot be now.
    pub(super) fn next_try(&self, now: Nanos) -> Option<Nanos> {
        let is_held = |end: usize| self.held_until(end).is_some_and(|it| it > now);
        let first = |moves: &mut dyn Iterator<Item = usize>| {
            let times = moves.filter_map(|at| self.not_before(at));
            times.filter(|it| *it > now).min()
        };
        // Where a datastore is waited for, or records are, any move may wait for that.
        if (0..=self.records()).any(is_held) {
            return first(&mut (0..self.tasks().len()));
        }
        first(&mut self.queue.tried.union(&self.queue.stalled).copied())
    }
}
