//! A plan under way: which moves may begin now, and what becomes of those that did.
//!
//! Whoever runs it makes what a step has changed durable ([`Run::tasks`],
//! [`Run::closed`], [`Run::wish`]) before it carries out the actions. After a crash it
//! restores the machine from that, says what became of the moves that were under way, and
//! gets the actions again that may have been lost ([`Run::restore`]).

use super::places::Places;
use super::setup::Setup;
use crate::Nanos;

/// How often a move is begun that fails for something that may pass.
pub const TRIES: u32 = 3;

/// How long it waits before it is tried again, and four times as long the next time: what
/// passes by itself is a restart of something, or a busy hour.
const BACK_OFF: Nanos = Nanos::from_secs(10);

/// Why a move did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The destination has no room.
    Full,
    /// The destination fails, or is gone.
    Destination,
    /// Something that may pass.
    Passing,
    /// Something that will not: the disk is gone, or somebody has cancelled the move.
    Lasting,
}

/// Where a move is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It waits for its turn.
    #[default]
    Waiting,
    /// It is being begun.
    Starting,
    /// It is under way.
    Running,
    /// It is being given up, for this reason.
    Leaving(Fault),
    /// The disk is where it should be.
    Moved,
    /// It is not, and will not be.
    Failed(Fault),
    /// It was not begun, as a disk of this group, which goes before it, has not moved.
    Skipped(usize),
    /// It was given up with the plan.
    GivenUp,
}

impl Stage {
    /// Whether nothing will happen any more.
    pub fn ended(self) -> bool {
        matches!(
            self,
            Stage::Moved | Stage::Failed(_) | Stage::Skipped(_) | Stage::GivenUp
        )
    }

    /// Whether it takes a place at its datastores.
    pub fn is_under_way(self) -> bool {
        matches!(self, Stage::Starting | Stage::Running | Stage::Leaving(_))
    }
}

/// A move, as far as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The datastore that it goes to now.
    pub to: usize,
    /// Where it is.
    pub stage: Stage,
    /// How often it has failed for something that may pass.
    pub tries: u32,
    /// It is not tried again before.
    pub not_before: Nanos,
}

/// What is wanted of the plan as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// It goes on.
    #[default]
    Run,
    /// It stands still, and so do the moves that are under way.
    Pause,
    /// It is given up; what has moved stays where it is.
    Cancel,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A move has begun.
    Began(usize),
    /// A move could not be begun.
    Refused(usize, Fault),
    /// A move that was being begun before a crash has not begun.
    Lost(usize),
    /// A move that is under way cannot go on by itself.
    Stands(usize, Fault),
    /// A move has ended: the disk has moved, or is where it was.
    Ended(usize, bool),
    /// What is wanted has changed.
    Wish(Wish),
    /// The hours in which moves may begin have come, or are over.
    Open(bool),
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin a move.
    Start {
        /// The move.
        task: usize,
        /// Where it goes.
        to: usize,
    },
    /// Give a move up that is under way.
    Cancel(usize),
    /// Have it stand still.
    Pause(usize),
    /// Have it go on.
    Resume(usize),
    /// Nothing happens before; come back then.
    Wake(Nanos),
    /// All have ended.
    Finish,
}

/// A plan under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    setup: Setup,
    tasks: Vec<Task>,
    closed: Vec<Option<Fault>>,
    wish: Wish,
    open: bool,
    finished: bool,
}

impl Run {
    /// One of which nothing has begun.
    pub fn new(setup: Setup) -> Run {
        let task = |to: usize| Task { to, ..Task::default() };
        let tasks = setup.moves.iter().map(|one| task(one.to)).collect();
        let closed = vec![None; setup.ends.len()];
        Run { setup, tasks, closed, wish: Wish::Run, open: true, finished: false }
    }

    /// One that was under way. Gives what may have been asked for in vain: what is being
    /// given up, and what should stand still.
    pub fn restore(
        setup: Setup,
        tasks: Vec<Task>,
        closed: Vec<Option<Fault>>,
        wish: Wish,
    ) -> (Run, Vec<Action>) {
        let run = Run { setup, tasks, closed, wish, open: true, finished: false };
        let again = run.tasks.iter().enumerate().filter_map(|(at, task)| {
            match (task.stage, wish) {
                (Stage::Leaving(_), _) => Some(Action::Cancel(at)),
                (Stage::Running, Wish::Pause) => Some(Action::Pause(at)),
                _ => None,
            }
        });
        let again = again.collect();
        (run, again)
    }

    /// What is to be done.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// How far the moves are.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The datastores that are left alone, and why.
    pub fn closed(&self) -> &[Option<Fault>] {
        &self.closed
    }

    /// What is wanted of it.
    pub fn wish(&self) -> Wish {
        self.wish
    }

    /// Whether all have ended.
    pub fn has_ended(&self) -> bool {
        self.tasks.iter().all(|task| task.stage.ended())
    }

    /// Something has happened. What does not fit to where a move is has been overtaken by
    /// something else, and means nothing.
    pub fn step(&mut self, now: Nanos, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Began(at) if self.is(at, Stage::Starting) => {
                self.began(at, &mut actions);
            }
            Event::Lost(at) if self.is(at, Stage::Starting) => {
                self.tasks[at].stage = self.idle();
            }
            Event::Refused(at, fault) if self.is(at, Stage::Starting) => {
                self.missed(at, fault, now);
            }
            Event::Stands(at, fault) if self.is(at, Stage::Running) => {
                self.tasks[at].stage = Stage::Leaving(fault);
                self.close(self.tasks[at].to, fault);
                actions.push(Action::Cancel(at));
            }
            Event::Ended(at, moved) => self.ended(at, moved, now),
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

    /// What a move is that is not under way any more.
    fn idle(&self) -> Stage {
        if self.wish == Wish::Cancel { Stage::GivenUp } else { Stage::Waiting }
    }

    fn began(&mut self, at: usize, actions: &mut Vec<Action>) {
        self.tasks[at].stage = Stage::Running;
        match self.wish {
            Wish::Run => {}
            Wish::Pause => actions.push(Action::Pause(at)),
            Wish::Cancel => {
                self.tasks[at].stage = Stage::Leaving(Fault::Lasting);
                actions.push(Action::Cancel(at));
            }
        }
    }

    fn ended(&mut self, at: usize, moved: bool, now: Nanos) {
        match self.tasks[at].stage {
            stage if stage.ended() => {}
            _ if moved => self.tasks[at].stage = Stage::Moved,
            Stage::Leaving(fault) => self.missed(at, fault, now),
            // Somebody else has given it up.
            Stage::Running => self.missed(at, Fault::Lasting, now),
            _ => {}
        }
    }

    /// A move has not come to its end.
    fn missed(&mut self, at: usize, fault: Fault, now: Nanos) {
        let to = self.tasks[at].to;
        if self.wish == Wish::Cancel {
            self.tasks[at].stage = Stage::GivenUp;
            return;
        }
        match fault {
            Fault::Lasting => self.tasks[at].stage = Stage::Failed(fault),
            Fault::Passing => {
                let task = &mut self.tasks[at];
                task.tries += 1;
                task.stage = match task.tries {
                    TRIES.. => Stage::Failed(fault),
                    _ => Stage::Waiting,
                };
                let wait = BACK_OFF.0.saturating_mul(4_u64.pow(task.tries - 1));
                task.not_before = now.plus(Nanos(wait));
            }
            Fault::Full | Fault::Destination => {
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
    fn close(&mut self, to: usize, fault: Fault) {
        if !matches!(fault, Fault::Full | Fault::Destination) || self.closed[to].is_some()
        {
            return;
        }
        self.closed[to] = Some(fault);
        for at in 0..self.tasks.len() {
            if self.tasks[at].to == to && self.is(at, Stage::Waiting) {
                self.elsewhere(at, fault);
            }
        }
    }

    /// Sends a move that waits to the datastore with the most room left, if one has enough.
    fn elsewhere(&mut self, at: usize, fault: Fault) {
        let left: Vec<u64> =
            (0..self.setup.ends.len()).map(|to| self.room_left(at, to)).collect();
        let one = &self.setup.moves[at];
        let best = (0..left.len())
            .filter(|to| *to != one.from && self.closed[*to].is_none())
            .filter(|to| self.setup.ends[*to].takes && left[*to] >= self.needs(at, *to))
            .max_by_key(|to| (left[*to], std::cmp::Reverse(*to)));
        let task = &mut self.tasks[at];
        match best {
            Some(to) => task.to = to,
            None => task.stage = Stage::Failed(fault),
        }
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
        let others = self.tasks.iter().enumerate();
        let mut others = others
            .filter(|(other, task)| *other != at && task.to == to && !gone(task.stage))
            .map(|(other, _)| self.needs(other, to))
            .peekable();
        match self.setup.ends[to].single && others.peek().is_some() {
            true => 0,
            false => self.setup.ends[to].room.saturating_sub(others.sum()),
        }
    }

    fn wants(&mut self, wish: Wish, actions: &mut Vec<Action>) {
        let was = std::mem::replace(&mut self.wish, wish);
        for at in 0..self.tasks.len() {
            match (self.tasks[at].stage, wish) {
                (Stage::Running, Wish::Pause) => actions.push(Action::Pause(at)),
                (Stage::Running, Wish::Run) if was == Wish::Pause => {
                    actions.push(Action::Resume(at));
                }
                (Stage::Running, Wish::Cancel) => {
                    self.tasks[at].stage = Stage::Leaving(Fault::Lasting);
                    actions.push(Action::Cancel(at));
                }
                (Stage::Waiting, Wish::Cancel) => self.tasks[at].stage = Stage::GivenUp,
                _ => {}
            }
        }
    }

    /// Has begin what can.
    fn go_on(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.skip();
        if self.wish == Wish::Run && self.open {
            self.begin(now, actions);
        }
        if self.has_ended() && !self.finished {
            self.finished = true;
            actions.push(Action::Finish);
        }
    }

    fn begin(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let ready = self.groups_that_may_begin();
        let mut places = Places::empty(&self.setup);
        for (one, task) in self.setup.moves.iter().zip(&self.tasks) {
            if task.stage.is_under_way() {
                places.take(one, task.to);
            }
        }
        let mut wake: Option<Nanos> = None;
        for at in 0..self.tasks.len() {
            let (one, task) = (&self.setup.moves[at], &mut self.tasks[at]);
            if task.stage != Stage::Waiting || !one.group.is_none_or(|group| ready[group])
            {
                continue;
            }
            if task.not_before > now {
                wake = Some(wake.map_or(task.not_before, |it| it.min(task.not_before)));
            } else if places.has_place(&self.setup, one, task.to) {
                places.take(one, task.to);
                task.stage = Stage::Starting;
                actions.push(Action::Start { task: at, to: task.to });
            }
        }
        actions.extend(wake.map(Action::Wake));
    }

    /// By group, whether all that go before it have moved.
    fn groups_that_may_begin(&self) -> Vec<bool> {
        let moved = self.by_group(|stage| stage == Stage::Moved);
        let groups = self.setup.groups.iter();
        groups.map(|group| group.after.iter().all(|before| moved[*before])).collect()
    }

    /// By group, whether all of its moves are so, and those of all groups before it: one
    /// of a group that has none to make waits for those all the same.
    fn by_group(&self, is: impl Fn(Stage) -> bool) -> Vec<bool> {
        let mut all = vec![true; self.setup.groups.len()];
        for (one, task) in self.setup.moves.iter().zip(&self.tasks) {
            if let Some(group) = one.group {
                all[group] &= is(task.stage);
            }
        }
        for _ in 0..all.len() {
            for (at, group) in self.setup.groups.iter().enumerate() {
                all[at] &= group.after.iter().all(|before| all[*before]);
            }
        }
        all
    }

    /// Skips what waits for a group that will not have moved.
    fn skip(&mut self) {
        let failed = |stage: Stage| stage.ended() && stage != Stage::Moved;
        // What is skipped makes others be skipped: once for each group is enough.
        for _ in 0..=self.setup.groups.len() {
            let whole = self.by_group(|stage| !failed(stage));
            let mut skipped = false;
            for at in 0..self.tasks.len() {
                let Some(group) = self.setup.moves[at].group else { continue };
                let before = self.setup.groups[group].after.iter();
                let missing = before.copied().find(|before| !whole[*before]);
                if let Some(missing) = missing.filter(|_| self.is(at, Stage::Waiting)) {
                    self.tasks[at].stage = Stage::Skipped(missing);
                    skipped = true;
                }
            }
            if !skipped {
                return;
            }
        }
    }
}
