//! Who drives plans: a thread that sleeps until a migration ends or stands still, or
//! something is asked of a plan, and then has each state machine hear of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sterna_api::{PlanState, Result};
use sterna_os::{clock, lock};
use sterna_placement::waves::{Action, Event, Fault, Running, Stage, Wish, Workload};
use sterna_runtime::tasks::Task;
use sterna_state::{Closed, PlanChanges, PlanRecord};

use super::control_request::ControlRequest;
use super::ends::was_cut_short;
use super::hooks::Hook;
use super::plan_run::run_of;
use super::{Heard, Live, State, words};
use crate::Planner;

/// How often plans that are under way are looked at, though nobody has rung: hours open
/// and close, and what could not be recorded or cancelled is tried again.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The same where no plan is under way.
const IDLE: Duration = Duration::from_secs(60);

/// Carries out plans.
pub fn driving(planner: &Arc<Planner>) -> Task {
    let drive = |planner: &Arc<Planner>| {
        let waits = planner.live_plans().iter().map(|plan| planner.drive(plan)).min();
        Ok(waits.unwrap_or(IDLE))
    };
    let sleeper = planner.plans.waker.sleeper();
    Task::when_due("plans", "carry out plans", LOOK_AGAIN, sleeper, planner, drive)
}

impl Planner {
    /// Takes up the plans that were under way. What was being begun has begun, or has
    /// not.
    pub fn resume_plans(self: &Arc<Self>) -> Result<()> {
        let mut open = self.storage.store.plans()?;
        open.retain(|plan| plan.state != PlanState::Planned && !plan.state.ended());
        for record in open {
            let id = record.id;
            let heard = self.look_up_begun(&record)?;
            let (run, again) = run_of(&record);
            let live = Arc::new(Live::new(record, run));
            *lock(&live.inbox) = heard;
            lock(&self.plans.live).insert(id, live.clone());
            tracing::info!(plan = id, "plan continues");
            self.carry_out(&live, again);
        }
        Ok(())
    }

    /// What became of the moves that were being begun.
    fn look_up_begun(&self, record: &PlanRecord) -> Result<Vec<Heard>> {
        let mut heard = Vec::new();
        for (at, one) in record.moves.iter().enumerate() {
            if one.course.stage != Stage::Starting {
                continue;
            }
            let to = &record.design.ends[one.course.to].name;
            let begun = self.storage.store.migration_after(one.disk, one.course.seen)?;
            let begun = begun.filter(|it| it.to.datastore == *to);
            heard.push(match begun.filter(|it| !was_cut_short(it)) {
                Some(it) => {
                    Heard { migration: Some(it.id), ..Heard::of(Event::Began(at)) }
                }
                None => Heard::of(Event::Lost(at)),
            });
        }
        Ok(heard)
    }

    /// Has a plan hear what there is; gives for how long nothing else need be done.
    fn drive(self: &Arc<Self>, live: &Arc<Live>) -> Duration {
        let others = self.others_of(live);
        let mut state = lock(&live.state);
        state.run.beside(others);
        let told = lock(&live.inbox).clone();
        let count = told.len();
        // Before anything begins it is known whether anything may.
        let mut heard: Vec<Heard> = self.hours(&state).into_iter().collect();
        heard.extend(told);
        heard.extend(self.look_at_moves(&mut state));
        heard.push(Heard::of(Event::Tick));
        match self.advance(&mut state, heard) {
            Ok(mut actions) => {
                lock(&live.inbox).drain(..count);
                state.stuck = None;
                actions.extend(state.late_to_leave());
                let wait = self.until_wake(&state);
                drop(state);
                self.carry_out(live, actions);
                wait
            }
            Err(error) => {
                tracing::error!(plan = live.id, %error, "a plan is stalled");
                state.stuck = Some(error.to_string());
                LOOK_AGAIN
            }
        }
    }

    fn until_wake(&self, state: &State) -> Duration {
        let wake = state.wake.map(|at| Duration::from(at.since(self.plan_clock())));
        wake.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN)
    }

    /// Has the state machine hear this, and records what it has changed; gives what is to
    /// be done. If it cannot be recorded, nothing was heard.
    pub(super) fn advance(
        &self,
        state: &mut State,
        heard: Vec<Heard>,
    ) -> Result<Vec<Action>> {
        let now = self.plan_clock();
        let mut next = state.clone();
        let (mut actions, mut blamed) = (Vec::new(), HashMap::new());
        for one in heard {
            next.note(&one, &mut blamed);
            actions.extend(next.run.step(now, one.event));
        }
        next.wake = actions.iter().rev().find_map(|action| match action {
            Action::Wake(at) => Some(*at),
            _ => None,
        });
        next.follow(&blamed);
        if actions.iter().any(|action| matches!(action, Action::Start { .. })) {
            next.begins(&actions, self.storage.store.last_migration()?);
        }
        if next.record != state.record {
            self.storage
                .store
                .set_plan(&next.record, changes(&state.record, &next.record))?;
        }
        *state = next;
        Ok(actions)
    }

    /// Does what a state machine asks for.
    pub(super) fn carry_out(self: &Arc<Self>, live: &Arc<Live>, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Start { task, to } => self.begin_move(live, task, to),
                Action::Cancel(task) => self.send(live, task, ControlRequest::Cancel),
                Action::Pause(task) => self.send(live, task, ControlRequest::Pause),
                Action::Resume(task) => self.send(live, task, ControlRequest::Resume),
                Action::StopWorkload(group) => self.run_hook(live, group, Hook::Stop),
                Action::StartWorkload(group) => self.run_hook(live, group, Hook::Start),
                Action::Wake(_) => {}
                Action::Finish => {
                    lock(&self.plans.live).remove(&live.id);
                    let state = lock(&live.state).record.state;
                    tracing::info!(plan = live.id, %state, "plan ended");
                }
            }
        }
    }
}

impl State {
    /// Takes note of what the state machine hears. `blamed` gets what is wrong with
    /// datastores.
    fn note(&mut self, heard: &Heard, blamed: &mut HashMap<usize, String>) {
        let at = match heard.event {
            Event::Began(at)
            | Event::Refused(at, _)
            | Event::Lost(at)
            | Event::Goes(at)
            | Event::Held(at)
            | Event::Stalled(at, _)
            | Event::Stuck(at, _)
            | Event::Ended(at, _) => at,
            Event::WorkloadStopped(group, _) | Event::WorkloadStarted(group, _) => {
                let workload = self.record.workloads.get_mut(group);
                if let (Some(it), Some(problem)) = (workload, &heard.problem) {
                    it.problem = Some(problem.clone());
                }
                return;
            }
            Event::Wish(_) | Event::Open(_) | Event::Tick => return,
        };
        let task = self.run.tasks()[at];
        let course = &mut self.record.moves[at].course;
        course.migration = heard.migration.or(course.migration);
        course.took_s = heard.took_s.or(course.took_s);
        let Some(problem) = &heard.problem else {
            course.standing = None;
            return;
        };
        let waits = matches!(
            heard.event,
            Event::Refused(_, Fault::Away | Fault::Source | Fault::Unrecorded)
                | Event::Stalled(..)
        );
        course.standing = waits.then(|| problem.clone());
        if !waits {
            course.problem = Some(problem.clone());
        }
        if let Event::Refused(_, fault)
        | Event::Stalled(_, fault)
        | Event::Stuck(_, fault) = heard.event
            && matches!(fault, Fault::Full | Fault::Destination | Fault::Away)
        {
            blamed.insert(task.to, problem.clone());
        }
    }

    /// Brings the record up to where the state machine is.
    fn follow(&mut self, blamed: &HashMap<usize, String>) {
        for (end, fault) in self.run.closed().iter().enumerate() {
            let (Some(fault), None) = (*fault, &self.record.closed[end]) else {
                continue;
            };
            let why = blamed.get(&end).cloned().unwrap_or_default();
            tracing::warn!(
                plan = self.record.id,
                datastore = self.record.design.ends[end].name,
                why,
                "a datastore is left alone"
            );
            self.record.closed[end] = Some(Closed { fault, why });
        }
        for at in 0..self.record.moves.len() {
            self.follow_move(at);
        }
        for tile in 0..self.record.workloads.len() {
            self.follow_workload(tile);
        }
        self.follow_plan();
    }

    /// Brings a move up to where the state machine is.
    fn follow_move(&mut self, at: usize) {
        let task = self.run.tasks()[at];
        let was = &self.record.moves[at].course;
        let was_so = (was.to, was.stage, was.tries, was.held);
        if (task.to, task.stage, task.tries, task.held) == was_so {
            return;
        }
        let mut course = was.clone();
        (course.to, course.stage, course.tries) = (task.to, task.stage, task.tries);
        course.held = task.held;
        let is_given_up = matches!(task.stage, Stage::Leaving(_)) || task.stage.ended();
        if is_given_up && let Some(why) = course.standing.take() {
            course.problem = Some(why);
        }
        if task.to != was.to {
            course.problem = Some(words::left_alone(&self.record, was.to));
        }
        if task.stage != was.stage {
            match task.stage {
                Stage::Moved => course.problem = None,
                Stage::Failed(Fault::Full | Fault::Destination | Fault::Away) => {
                    course.problem = Some(words::nowhere(&self.record, was.to));
                }
                // Nothing else fails before it begins as lastingly.
                Stage::Failed(Fault::Lasting) if was_so.1 == Stage::Waiting => {
                    course.problem = words::not_stopped(&self.record, at);
                }
                Stage::Skipped(group) => {
                    course.problem = Some(words::skipped(&self.record, group));
                }
                _ => {}
            }
            if task.stage.ended() {
                course.ended = Some(clock::now());
            }
        }
        self.record.moves[at].course = course;
    }

    /// Brings a workload up to where the state machine is.
    fn follow_workload(&mut self, tile: usize) {
        let (is, was) = (self.run.workloads()[tile], &mut self.record.workloads[tile]);
        // Of one that others start nobody here knows when, or whether.
        let is_ours = self.record.design.tiles[tile].start.is_some();
        if was.running == Running::Untouched && is.running != Running::Untouched {
            was.stopped = Some(clock::now());
        }
        if is_ours && is.running == Running::Started && was.running != Running::Started {
            was.started = Some(clock::now());
            was.problem = None;
        }
        (was.running, was.tries) = (is.running, is.tries);
    }

    /// Takes note of the moves that are to begin. (One whose destination has failed may
    /// begin anew in the same breath, so its stage does not tell.)
    fn begins(&mut self, actions: &[Action], last_migration: u64) {
        for action in actions {
            let Action::Start { task, .. } = action else { continue };
            let course = &mut self.record.moves[*task].course;
            course.attempts += 1;
            course.seen = last_migration;
            course.migration = None;
            course.began = Some(clock::now());
        }
    }

    fn follow_plan(&mut self) {
        if !self.run.has_ended() {
            self.record.state = match self.run.wish() {
                Wish::Run => PlanState::Running,
                Wish::Pause => PlanState::Paused,
                Wish::Cancel => PlanState::Cancelling,
            };
            return;
        }
        let moved = self.run.tasks().iter().all(|task| task.stage == Stage::Moved);
        let is_down = |it: &Workload| it.running == Running::NotStarted;
        let is_well = moved && !self.run.workloads().iter().any(is_down);
        self.record.state = match self.run.wish() {
            _ if is_well => PlanState::Completed,
            Wish::Cancel => PlanState::Cancelled,
            Wish::Run | Wish::Pause => PlanState::Incomplete,
        };
        self.record.ended.get_or_insert_with(clock::now);
    }
}

/// What of a plan's parts is not as it was.
fn changes(old: &PlanRecord, new: &PlanRecord) -> PlanChanges {
    let moves = new.moves.iter().zip(&old.moves).enumerate();
    let moves = moves.filter(|(_, (new, old))| new.course != old.course);
    let workloads = new.workloads.iter().zip(&old.workloads).enumerate();
    let workloads = workloads.filter(|(_, (new, old))| new != old);
    PlanChanges {
        moves: moves.map(|(at, (new, _))| (at, new.course.clone())).collect(),
        workloads: workloads.map(|(tile, (new, _))| (tile, new.clone())).collect(),
    }
}
