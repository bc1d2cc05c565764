//! A plan under way: which moves may begin now, and what becomes of those that did.
//!
//! Whoever runs it makes what a step has changed durable ([`PlanRun::tasks`],
//! [`PlanRun::workloads`], [`PlanRun::closed`], [`PlanRun::wish`]) before it carries out the
//! actions. After a crash it restores the machine from that, says what became of the moves
//! that were under way, and gets the actions again that may have been lost
//! ([`PlanRun::restore`]).
//!
//! What becomes of moves that stand still is in `stalled`, of workloads in `workload`, and
//! which move starts next in `next_start`.

use super::event::{Action, Event, Wish};
use super::places::Others;
use super::queue::Queue;
use super::setup::Setup;
use super::stalled::{TRIES, Trouble, back_off};
use super::task::{Fault, Stage, Task};
use super::tasks::Tasks;
use super::workload::Workload;
use sterna_core::Nanos;

/// What is kept of a plan under way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// How far the moves are.
    pub tasks: Vec<Task>,
    /// By group: where its workload is.
    pub workloads: Vec<Workload>,
    /// The datastores that are left alone, and why.
    pub closed: Vec<Option<Fault>>,
    /// What is wanted of it.
    pub wish: Wish,
}

/// A plan under way.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRun {
    pub(super) setup: Setup,
    pub(super) tasks: Tasks,
    pub(super) closed: Vec<Option<Fault>>,
    /// By datastore: what is wrong with it for a while. The last one is that of the records.
    pub(super) troubles: Vec<Option<Trouble>>,
    pub(super) queue: Queue,
    pub(super) workloads: Vec<Workload>,
    /// By datastore: what copies of others take of it.
    pub(super) others: Vec<Others>,
    pub(super) wish: Wish,
    pub(super) open: bool,
    finished: bool,
}

impl PlanRun {
    /// One of which nothing has begun.
    pub fn new(setup: Setup) -> PlanRun {
        let task = |to: usize| Task { to, ..Task::default() };
        let tasks = setup.moves.iter().map(|one| task(one.to)).collect();
        let closed = vec![None; setup.ends.len()];
        let workloads = vec![Workload::default(); setup.groups.len()];
        PlanRun::of(setup, Progress { tasks, workloads, closed, wish: Wish::Run })
    }

    fn of(setup: Setup, progress: Progress) -> PlanRun {
        let Progress { tasks, workloads, closed, wish } = progress;
        let troubles = vec![None; setup.ends.len() + 1];
        let queue = Queue::new(&setup, &tasks, &workloads);
        PlanRun {
            tasks: Tasks::new(tasks),
            closed,
            troubles,
            queue,
            workloads,
            others: vec![Others::default(); setup.ends.len()],
            wish,
            open: true,
            finished: false,
            setup,
        }
    }

    /// One that was under way. Gives what may have been asked for in vain: what is being
    /// given up, and what should stand still, or go on again.
    pub fn restore(setup: Setup, progress: Progress) -> (PlanRun, Vec<Action>) {
        let wish = progress.wish;
        let run = PlanRun::of(setup, progress);
        let again = run.tasks().iter().enumerate().filter_map(|(at, task)| {
            match (task.stage, wish) {
                (Stage::Leaving(_), _) => Some(Action::Cancel(at)),
                (Stage::Running, Wish::Pause) => Some(Action::Pause(at)),
                (Stage::Running, Wish::Run) if task.held => Some(Action::Resume(at)),
                _ => None,
            }
        });
        let again = again.chain(run.workloads_again()).collect();
        (run, again)
    }

    /// What is to be done.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// How far the moves are.
    pub fn tasks(&self) -> &[Task] {
        self.tasks.all()
    }

    /// The datastores that are left alone, and why.
    pub fn closed(&self) -> &[Option<Fault>] {
        &self.closed
    }

    /// What is wanted of it.
    pub fn wish(&self) -> Wish {
        self.wish
    }

    /// Takes note of what copies of others take, by datastore. It is seen anew each time,
    /// so nothing of it need be kept.
    pub fn beside(&mut self, others: Vec<Others>) {
        self.others = others;
    }

    /// Whether all have ended, and no workload is to be started any more.
    pub fn has_ended(&self) -> bool {
        self.queue.is_over() && self.workloads_are_settled()
    }

    /// Something has happened. What does not fit to where a move is has been overtaken by
    /// something else, and means nothing.
    pub fn step(&mut self, now: Nanos, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Began(at) if self.is(at, Stage::Starting) => {
                self.tasks[at].since = now;
                self.goes(at, now, &mut actions);
            }
            Event::Lost(at) if self.is(at, Stage::Starting) => {
                self.tasks[at].stage = self.idle();
            }
            Event::Refused(at, fault) if self.is(at, Stage::Starting) => {
                self.refused(at, fault, now);
            }
            Event::Goes(at) if self.goes_on(at) => self.goes(at, now, &mut actions),
            Event::Held(at) if self.goes_on(at) => self.is_held(at, &mut actions),
            // What was heard before means nothing new.
            Event::Stalled(at, fault) if self.is(at, Stage::Stalled(fault)) => {}
            Event::Stalled(at, fault) if self.goes_on(at) => {
                self.stalls(at, fault, now, &mut actions);
            }
            Event::Stuck(at, fault) if self.goes_on(at) => {
                self.leave(at, fault, &mut actions);
            }
            Event::Ended(at, moved) => self.ended(at, moved, now),
            Event::WorkloadStopped(group, done) => {
                self.workload_stopped(group, done, now, &mut actions);
            }
            Event::WorkloadStarted(group, done) => {
                self.workload_started(group, done, now);
            }
            Event::Wish(wish) => self.wants(wish, &mut actions),
            Event::Open(open) => self.open = open,
            _ => {}
        }
        self.go_on(now, &mut actions);
        actions
    }

    fn is(&self, at: usize, stage: Stage) -> bool {
        self.tasks[at].stage == stage
    }

    /// Whether a move has begun and is not being given up.
    fn goes_on(&self, at: usize) -> bool {
        matches!(self.tasks[at].stage, Stage::Running | Stage::Stalled(_))
    }

    /// Whether it is given up as a whole.
    pub(super) fn is_given_up_as_a_whole(&self) -> bool {
        self.wish == Wish::Cancel
    }

    /// Whether a destination is left alone as it fails, or was away for too long.
    pub(super) fn is_given_up(&self, to: usize) -> bool {
        matches!(self.closed[to], Some(Fault::Destination | Fault::Away))
    }

    /// What a move is that is not under way any more.
    fn idle(&self) -> Stage {
        if self.wish == Wish::Cancel { Stage::GivenUp } else { Stage::Waiting }
    }

    /// A move goes on, and so it should, or not.
    fn goes(&mut self, at: usize, now: Nanos, actions: &mut Vec<Action>) {
        let task = &mut self.tasks[at];
        if matches!(task.stage, Stage::Stalled(_)) {
            task.since = now;
        }
        task.stage = Stage::Running;
        task.held = self.wish == Wish::Pause;
        match self.wish {
            Wish::Run => {}
            Wish::Pause => actions.push(Action::Pause(at)),
            Wish::Cancel => self.leave(at, Fault::Lasting, actions),
        }
    }

    /// A move stands still because that was asked for: by the plan, or by somebody else.
    fn is_held(&mut self, at: usize, actions: &mut Vec<Action>) {
        self.tasks[at].stage = Stage::Running;
        if self.wish == Wish::Run && self.tasks[at].held {
            actions.push(Action::Resume(at));
        }
    }

    /// Gives a move up that is under way.
    pub(super) fn leave(&mut self, at: usize, fault: Fault, actions: &mut Vec<Action>) {
        self.tasks[at].stage = Stage::Leaving(fault);
        self.close(self.tasks[at].to, fault);
        actions.push(Action::Cancel(at));
    }

    fn ended(&mut self, at: usize, moved: bool, now: Nanos) {
        match self.tasks[at].stage {
            stage if stage.ended() => {}
            _ if moved => self.tasks[at].stage = Stage::Moved,
            Stage::Leaving(fault) => self.missed(at, fault, now),
            // Somebody else has given it up.
            Stage::Running | Stage::Stalled(_) => self.missed(at, Fault::Lasting, now),
            _ => {}
        }
    }

    /// A move has not come to its end.
    pub(super) fn missed(&mut self, at: usize, fault: Fault, now: Nanos) {
        let to = self.tasks[at].to;
        if self.wish == Wish::Cancel {
            self.tasks[at].stage = Stage::GivenUp;
            return;
        }
        match fault {
            Fault::Lasting | Fault::Source => {
                self.tasks[at].stage = Stage::Failed(fault);
            }
            Fault::Unrecorded | Fault::Passing => {
                let task = &mut self.tasks[at];
                task.tries += 1;
                task.stage = match task.tries {
                    TRIES.. => Stage::Failed(fault),
                    _ => Stage::Waiting,
                };
                task.not_before = now.plus(back_off(task.tries));
                if self.is(at, Stage::Waiting) && self.closed[to].is_some() {
                    self.elsewhere(at, fault);
                }
            }
            Fault::Full | Fault::Destination | Fault::Away => {
                self.tasks[at].stage = Stage::Waiting;
                self.close(to, fault);
                // It was closed before, and this one was under way then.
                if self.is(at, Stage::Waiting) && self.tasks[at].to == to {
                    self.elsewhere(at, fault);
                }
            }
        }
    }

    /// A destination is left alone: what waits for it goes elsewhere.
    pub(super) fn close(&mut self, to: usize, fault: Fault) {
        if !fault.is_of_destination() || self.closed[to].is_some() {
            return;
        }
        self.closed[to] = Some(fault);
        for at in 0..self.tasks().len() {
            if self.tasks[at].to == to && self.is(at, Stage::Waiting) {
                self.elsewhere(at, fault);
            }
        }
    }

    /// Sends a move that waits elsewhere, if there is room for it.
    fn elsewhere(&mut self, at: usize, fault: Fault) {
        let place = self.other_place(at);
        let task = &mut self.tasks[at];
        match place {
            // What others did to it is no fault of this one.
            Some(to) => (task.to, task.tries) = (to, 0),
            None => task.stage = Stage::Failed(fault),
        }
    }

    /// Of the datastores that are not left alone, the one with the most room left, if one
    /// has enough for a move. Of a room that is full it is all the same by which way.
    pub(super) fn other_place(&self, at: usize) -> Option<usize> {
        let left: Vec<u64> =
            (0..self.setup.ends.len()).map(|to| self.room_left(at, to)).collect();
        let one = &self.setup.moves[at];
        let is_full = |to: usize| {
            let ends = self.closed.iter().enumerate();
            let mut full = ends.filter(|(_, fault)| **fault == Some(Fault::Full));
            full.any(|(end, _)| self.setup.is_one_room(end, to))
        };
        (0..left.len())
            .filter(|to| *to != one.from && self.closed[*to].is_none() && !is_full(*to))
            .filter(|to| self.setup.ends[*to].takes && left[*to] >= self.needs(at, *to))
            .max_by_key(|to| (left[*to], std::cmp::Reverse(*to)))
    }

    /// What a move needs at a datastore.
    fn needs(&self, at: usize, to: usize) -> u64 {
        let one = &self.setup.moves[at];
        if self.setup.ends[to].single { one.size } else { one.needs }
    }

    /// What a datastore has left besides a move: what is there, or may yet come, counts.
    fn room_left(&self, at: usize, to: usize) -> u64 {
        let gone = |stage| {
            matches!(stage, Stage::Failed(_) | Stage::Skipped(_) | Stage::GivenUp)
        };
        let others = self.tasks().iter().enumerate();
        let mut others = others
            .filter(|(other, task)| *other != at && !gone(task.stage))
            .filter(|(_, task)| self.setup.is_one_room(task.to, to))
            .map(|(other, task)| self.needs(other, task.to))
            .peekable();
        match self.setup.ends[to].single && others.peek().is_some() {
            true => 0,
            false => self.setup.ends[to].room.saturating_sub(others.sum()),
        }
    }

    fn wants(&mut self, wish: Wish, actions: &mut Vec<Action>) {
        let was = std::mem::replace(&mut self.wish, wish);
        for at in 0..self.tasks().len() {
            match (self.tasks[at].stage, wish) {
                (Stage::Running, Wish::Pause) => {
                    self.tasks[at].held = true;
                    actions.push(Action::Pause(at));
                }
                // It is asked for until it goes, whoever has had it stand still.
                (Stage::Running, Wish::Run) if was == Wish::Pause => {
                    self.tasks[at].held = true;
                    actions.push(Action::Resume(at));
                }
                // Whoever says so may have put things right.
                (Stage::Stalled(_), Wish::Run) => self.tasks[at].not_before = Nanos(0),
                (Stage::Running | Stage::Stalled(_), Wish::Cancel) => {
                    self.leave(at, Fault::Lasting, actions);
                }
                (Stage::Waiting, Wish::Cancel) => self.tasks[at].stage = Stage::GivenUp,
                _ => {}
            }
        }
    }

    /// Has go on and begin what can.
    fn go_on(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.catch_up();
        self.start_workloads(now, actions);
        // A group that has moved lets others begin.
        self.catch_up();
        if self.wish == Wish::Run {
            let mut places = self.places();
            self.go_on_from_there(now, &mut places, actions);
            if self.open {
                self.begin(now, &mut places, actions);
            }
        }
        let next_try = (self.wish == Wish::Run).then(|| self.next_try(now)).flatten();
        let next = next_try.into_iter().chain(self.next_start()).min();
        actions.extend(next.map(Action::Wake));
        if self.has_ended() && !self.finished {
            self.finished = true;
            actions.push(Action::Finish);
        }
    }

    /// Has the queue see what has changed, and skips what waits for a group that will not
    /// have moved. What is skipped makes others be skipped: a round for each group at most.
    fn catch_up(&mut self) {
        loop {
            for at in self.tasks.take_changed() {
                self.queue.see(&self.setup, at, &self.tasks[at]);
            }
            if !self.queue.ready.look_again(&self.setup) {
                return;
            }
            for at in 0..self.tasks().len() {
                if !self.is(at, Stage::Waiting) {
                    continue;
                }
                match self.queue.ready.missing(self.setup.moves[at].group) {
                    Some(missing) => self.tasks[at].stage = Stage::Skipped(missing),
                    None => self.queue.see(&self.setup, at, &self.tasks[at]),
                }
            }
        }
    }
}
