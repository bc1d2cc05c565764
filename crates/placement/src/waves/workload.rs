//! The workload on the disks of a group: it is stopped before the first of them moves, and
//! started again when the last move has ended, by programs of whoever runs it.
//!
//! **Rule.** It is stopped when the first of its group's moves has a place, which is kept
//! for that move meanwhile: nobody stands still for others' copies. Nothing of the group
//! begins before it has stopped. When all moves of the group have ended, however they did,
//! it is started, and only then has the group moved: groups that wait for it take down
//! nothing before it is back.
//!
//! **Failures.**
//!
//! - One that does not stop may have done so in part: its moves fail, and it is started.
//! - One that does not start is tried again, later each time, [`TRIES`] times; then those
//!   that wait for its group are skipped, as what broke one start may break the next.
//! - After a crash whatever was being done is done again: programs must stand that.
//!
//! A plan that is paused leaves stopped whatever has moves left; one that is given up starts
//! it.

use super::event::Action;
use super::run::PlanRun;
use super::stalled::{TRIES, back_off};
use super::task::{Fault, Stage};
use sterna_core::Nanos;

/// Where a workload is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Running {
    /// It was left alone so far; always so if nobody can stop or start it.
    #[default]
    Untouched,
    /// It is being stopped for this move.
    Stopping(usize),
    /// It has stopped, or was to.
    Stopped,
    /// It is being started.
    Starting,
    /// It has started again.
    Started,
    /// It has not, however often it was tried.
    NotStarted,
}

impl Running {
    /// Whether nothing is left to be done for it.
    pub fn is_settled(self) -> bool {
        matches!(self, Running::Untouched | Running::Started | Running::NotStarted)
    }
}

/// The workload of a group, as far as the plan has to do with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Where it is.
    pub running: Running,
    /// How often it did not start.
    pub tries: u32,
    /// It is not tried again before.
    pub not_before: Nanos,
}

impl PlanRun {
    /// By group: where its workload is.
    pub fn workloads(&self) -> &[Workload] {
        &self.workloads
    }

    /// What has to be asked for again after a crash.
    pub(super) fn workloads_again(&self) -> impl Iterator<Item = Action> {
        self.workloads.iter().enumerate().filter_map(|(group, it)| match it.running {
            Running::Stopping(_) => Some(Action::StopWorkload(group)),
            Running::Starting => Some(Action::StartWorkload(group)),
            _ => None,
        })
    }

    /// Whether nothing is left to be done for any.
    pub(super) fn workloads_are_settled(&self) -> bool {
        self.workloads.iter().all(|it| it.running.is_settled())
    }

    /// A move has a place; says whether it waits for its workload to stop.
    pub(super) fn waits_for_workload(
        &mut self,
        at: usize,
        actions: &mut Vec<Action>,
    ) -> bool {
        let Some(group) = self.setup.moves[at].group else { return false };
        let (it, workload) = (&self.setup.groups[group], &mut self.workloads[group]);
        if !it.is_hooked() || workload.running != Running::Untouched {
            return false;
        }
        if !it.stops {
            workload.running = Running::Stopped;
            return false;
        }
        workload.running = Running::Stopping(at);
        actions.push(Action::StopWorkload(group));
        self.queue.ready.hold(group);
        for at in self.waiting_of(group) {
            self.queue.see(&self.setup, at, &self.tasks[at]);
        }
        true
    }

    /// The moves that have a place for when their workload has stopped.
    pub fn expected(&self) -> impl Iterator<Item = usize> {
        let waiting = |at: &usize| self.tasks[*at].stage == Stage::Waiting;
        let stopping = self.workloads.iter().filter_map(|it| match it.running {
            Running::Stopping(at) => Some(at),
            _ => None,
        });
        stopping.filter(waiting)
    }

    /// A workload has stopped, or has not.
    pub(super) fn workload_stopped(
        &mut self,
        group: usize,
        done: bool,
        now: Nanos,
        actions: &mut Vec<Action>,
    ) {
        let Running::Stopping(first) = self.workloads[group].running else { return };
        self.workloads[group].running = Running::Stopped;
        self.queue.ready.release(group);
        if done {
            self.begin_expected(first, now, actions);
            return;
        }
        for at in self.waiting_of(group) {
            self.tasks[at].stage = Stage::Failed(Fault::Lasting);
        }
    }

    /// A workload has started, or has not.
    pub(super) fn workload_started(&mut self, group: usize, done: bool, now: Nanos) {
        let workload = &mut self.workloads[group];
        if workload.running != Running::Starting {
            return;
        }
        if !done {
            workload.tries += 1;
            workload.not_before = now.plus(back_off(workload.tries));
        }
        workload.running = match workload.tries {
            _ if done => Running::Started,
            TRIES.. => Running::NotStarted,
            _ => Running::Stopped,
        };
        if workload.running.is_settled() {
            self.queue.ready.workload_ended(group, done);
        }
    }

    /// Has those start whose moves have all ended.
    pub(super) fn start_workloads(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        for group in 0..self.workloads.len() {
            if !self.is_to_start(group) || self.workloads[group].not_before > now {
                continue;
            }
            if self.setup.groups[group].starts {
                self.workloads[group].running = Running::Starting;
                actions.push(Action::StartWorkload(group));
            } else {
                self.workloads[group].running = Running::Started;
                self.queue.ready.workload_ended(group, true);
            }
        }
    }

    /// When the next one is tried again.
    pub(super) fn next_start(&self) -> Option<Nanos> {
        let left = (0..self.workloads.len()).filter(|group| self.is_to_start(*group));
        left.map(|group| self.workloads[group].not_before).min()
    }

    fn is_to_start(&self, group: usize) -> bool {
        let running = self.workloads[group].running;
        running == Running::Stopped && self.queue.ready.has_ended(group)
    }

    /// The moves of a group that have not begun.
    fn waiting_of(&self, group: usize) -> Vec<usize> {
        let all = self.setup.moves.iter().zip(self.tasks()).enumerate();
        let waiting = all.filter(|(_, (one, task))| {
            one.group == Some(group) && task.stage == Stage::Waiting
        });
        waiting.map(|(at, _)| at).collect()
    }
}
