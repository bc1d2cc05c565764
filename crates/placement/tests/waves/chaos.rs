//! The machine against any order of events, faults, wishes and crashes.
//!
//! The world knows what really became of each move. What must hold: at no time has a datastore
//! more moves, or more bytes coming, than it may have; nothing begins before what it waits
//! for, or on a workload that runs and is to be stopped; what is stopped is started again;
//! what begins is what a look at all moves finds (`plain`); every move ends exactly once, and
//! as it really did; and it ends.

use sterna_core::Nanos;
use sterna_placement::waves::{
    Action, Event, Fault, LEAST, MOST, Others, PlanRun, Running, Setup, Stage, Task, Wish,
};

use super::plain;
use super::random::Random;
use super::setups::{any, is_one_room, progress};

/// Steps of chaos before the world is left in peace.
const STEPS: u64 = 400;

/// And so many more until it must have ended.
const PEACE: u64 = 4000;

/// What a move really is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Real {
    /// The disk is where it was, and nothing is under way.
    Still,
    /// A migration is under way; it may have been told to end, or to stand still.
    UnderWay { cancelled: bool, paused: bool },
    /// The disk has moved.
    Moved,
}

struct World {
    random: Random,
    now: Nanos,
    run: PlanRun,
    real: Vec<Real>,
    /// Actions that are not carried out yet, and events that are not heard yet.
    actions: Vec<Action>,
    heard: Vec<Event>,
    /// By group: whether its workload stands still.
    down: Vec<bool>,
    /// By datastore: what others copy.
    others: Vec<Others>,
    /// Destinations that fail, and how.
    bad: Vec<Option<Fault>>,
    finished: u32,
    /// Whether moves may begin.
    open: bool,
    peace: bool,
}

impl World {
    fn new(setup: Setup, mut random: Random) -> World {
        let kinds =
            [None, None, Some(Fault::Full), Some(Fault::Destination), Some(Fault::Away)];
        let bad = setup.ends.iter().map(|_| kinds[random.below(5) as usize]).collect();
        let real = vec![Real::Still; setup.moves.len()];
        let down = vec![false; setup.groups.len()];
        let others = vec![Others::default(); setup.ends.len()];
        World {
            random,
            now: Nanos(0),
            run: PlanRun::new(setup),
            real,
            actions: Vec::new(),
            heard: Vec::new(),
            down,
            others,
            bad,
            finished: 0,
            open: true,
            peace: false,
        }
    }

    fn hear(&mut self, event: Event) {
        let before: Vec<Task> = self.run.tasks().to_vec();
        self.others_copy();
        if let Event::Open(open) = event {
            self.open = open;
        }
        let expected = match event {
            Event::WorkloadStopped(group, true) => {
                match self.run.workloads()[group].running {
                    Running::Stopping(at) => Some(at),
                    _ => None,
                }
            }
            _ => None,
        };
        let actions = self.run.step(self.now, event);
        self.check(&before, &actions);
        plain::check(&self.run, (&self.others, expected), self.now, self.open, &actions);
        self.actions.extend(actions);
    }

    /// Others begin to copy, or end.
    fn others_copy(&mut self) {
        if !self.random.one_in(10) {
            return;
        }
        for one in &mut self.others {
            let copies = self.random.below(4) as usize;
            *one = Others { copies, rate: copies as f64 * 30.0 };
        }
        self.run.beside(self.others.clone());
    }

    fn step(&mut self) {
        self.now = self.now.plus(Nanos::from_millis(self.random.below(20_000)));
        match self.random.below(10) {
            0..4 if !self.actions.is_empty() => self.carry_out(),
            4..6 if !self.heard.is_empty() => {
                let at = self.random.below(self.heard.len() as u64) as usize;
                let event = self.heard.remove(at);
                self.hear(event);
            }
            6..9 => self.something_happens(),
            _ if self.peace => self.hear(Event::Tick),
            _ if self.random.one_in(6) => self.crash(),
            _ if self.random.one_in(12) => self.hear(Event::Wish(Wish::Cancel)),
            _ => {
                let wish = [Wish::Run, Wish::Pause][self.random.below(2) as usize];
                let event = match self.random.below(3) {
                    0 if self.run.wish() != Wish::Cancel => Event::Wish(wish),
                    1 => Event::Open(self.random.one_in(2)),
                    _ => Event::Tick,
                };
                self.hear(event);
            }
        }
    }

    /// Carries out one action, whichever.
    fn carry_out(&mut self) {
        let at = self.random.below(self.actions.len() as u64) as usize;
        match self.actions.remove(at) {
            Action::Start { task, to } => {
                assert_eq!(self.real[task], Real::Still, "{task} is begun twice");
                let fault = self.bad[to].or_else(|| self.passing());
                let begins = fault.is_none() || self.random.one_in(2);
                if begins {
                    self.real[task] = Real::UnderWay { cancelled: false, paused: false };
                    self.heard.push(Event::Began(task));
                } else {
                    let fault = fault.expect("it does not begin");
                    self.heard.push(Event::Refused(task, fault));
                }
            }
            Action::Cancel(task) => {
                if let Real::UnderWay { cancelled, .. } = &mut self.real[task] {
                    *cancelled = true;
                }
            }
            Action::Pause(task) => self.tell(task, Wish::Pause),
            Action::Resume(task) => self.tell(task, Wish::Run),
            Action::StopWorkload(group) => {
                let done = self.peace || !self.random.one_in(4);
                // What fails may have done it all the same.
                self.down[group] = done || self.random.one_in(2);
                self.heard.push(Event::WorkloadStopped(group, done));
            }
            Action::StartWorkload(group) => {
                let done = self.peace || !self.random.one_in(3);
                self.down[group] &= !done;
                self.heard.push(Event::WorkloadStarted(group, done));
            }
            Action::Finish => self.finished += 1,
            Action::Wake(_) => {}
        }
    }

    /// A migration is to stand still, or to go on: if that is still wanted, and does not
    /// fail.
    fn tell(&mut self, task: usize, wish: Wish) {
        let fails = self.random.one_in(4);
        if let Real::UnderWay { paused, .. } = &mut self.real[task]
            && self.run.wish() == wish
            && !fails
        {
            *paused = wish == Wish::Pause;
        }
    }

    fn passing(&mut self) -> Option<Fault> {
        let faults = [
            Fault::Passing,
            Fault::Lasting,
            Fault::Source,
            Fault::Away,
            Fault::Unrecorded,
        ];
        let fault = faults[self.random.below(faults.len() as u64) as usize];
        (!self.peace && self.random.one_in(8)).then_some(fault)
    }

    /// A migration that is known to be under way ends, or cannot go on.
    fn something_happens(&mut self) {
        if self.real.is_empty() {
            return;
        }
        let task = self.random.below(self.real.len() as u64) as usize;
        let Task { to, stage, .. } = self.run.tasks()[task];
        let known =
            matches!(stage, Stage::Running | Stage::Stalled(_) | Stage::Leaving(_));
        let Real::UnderWay { cancelled, paused } = self.real[task] else { return };
        if !known {
            return;
        }
        if cancelled && !self.random.one_in(4) {
            self.real[task] = Real::Still;
            self.heard.push(Event::Ended(task, false));
        } else if paused {
            // How one is now is told at once: what was so before means nothing.
            self.hear(Event::Held(task));
        } else if let Some(fault) = self.bad[to].or_else(|| self.passing()) {
            let stuck = self.random.one_in(8);
            let event = if stuck { Event::Stuck } else { Event::Stalled };
            if !cancelled {
                self.heard.push(event(task, fault));
            }
        } else if self.random.one_in(3) {
            self.hear(Event::Goes(task));
        } else if !self.peace && self.random.one_in(20) {
            // Somebody cancels it by hand.
            self.real[task] = Real::Still;
            self.heard.push(Event::Ended(task, false));
        } else {
            self.real[task] = Real::Moved;
            self.heard.push(Event::Ended(task, true));
        }
    }

    /// What was not carried out is lost, and so is what was not heard; what is real stays.
    fn crash(&mut self) {
        let setup = self.run.setup().clone();
        let (run, again) = PlanRun::restore(setup, progress(&self.run));
        (self.run, self.open) = (run, true);
        self.run.beside(self.others.clone());
        self.actions = again;
        self.heard.clear();
        self.finished = 0;
        // What begins meanwhile was not being begun before.
        let stages: Vec<Stage> = self.run.tasks().iter().map(|task| task.stage).collect();
        for (task, stage) in stages.into_iter().enumerate() {
            match (stage, self.real[task]) {
                (Stage::Starting, Real::Still) => self.hear(Event::Lost(task)),
                (Stage::Starting, _) => self.hear(Event::Began(task)),
                (Stage::Running | Stage::Stalled(_) | Stage::Leaving(_), Real::Still) => {
                    self.heard.push(Event::Ended(task, false));
                }
                (Stage::Running | Stage::Stalled(_) | Stage::Leaving(_), Real::Moved) => {
                    self.heard.push(Event::Ended(task, true));
                }
                _ => {}
            }
        }
        self.hear(Event::Tick);
    }

    fn check(&self, before: &[Task], actions: &[Action]) {
        let setup = self.run.setup();
        for (was, is) in before.iter().zip(self.run.tasks()) {
            assert!(!was.stage.ended() || was == is, "it ended before: {was:?} {is:?}");
        }
        self.check_room(setup);
        self.check_workloads(setup, actions);
        let under_way =
            self.run.tasks().iter().filter(|task| task.stage.takes_a_place()).count();
        let starts = actions.iter().any(|one| matches!(one, Action::Start { .. }));
        if !starts {
            return;
        }
        assert_eq!(self.run.wish(), Wish::Run, "it begins though it should not");
        assert!(under_way <= setup.at_once.unwrap_or(usize::MAX), "{under_way} at once");
        for end in 0..setup.ends.len() {
            self.check_places(setup, end, actions);
        }
        for action in actions {
            let Action::Start { task, .. } = action else { continue };
            let Some(group) = setup.moves[*task].group else { continue };
            for (one, task) in setup.moves.iter().zip(self.run.tasks()) {
                let goes_before =
                    one.group.is_some_and(|it| setup.groups[group].after.contains(&it));
                assert!(!goes_before || task.stage == Stage::Moved, "too early");
            }
        }
    }

    /// What begins finds its workload stopped, and what is started finds no move that may
    /// still be under way.
    fn check_workloads(&self, setup: &Setup, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Start { task, .. } => {
                    let stops =
                        setup.moves[*task].group.filter(|it| setup.groups[*it].stops);
                    assert!(
                        stops.is_none_or(|it| self.down[it]),
                        "{task} begins too early"
                    );
                }
                Action::StartWorkload(group) => {
                    let tasks = setup.moves.iter().zip(self.run.tasks());
                    let mut mine = tasks.filter(|(one, _)| one.group == Some(*group));
                    assert!(
                        mine.all(|(_, task)| task.stage.ended()),
                        "{group} is started"
                    );
                }
                _ => {}
            }
        }
    }

    /// In the end each workload runs that the plan has stopped and could start.
    fn check_running(&self) {
        let groups = self.run.setup().groups.iter().zip(&self.down).enumerate();
        for (at, (group, down)) in groups {
            let running = self.run.workloads()[at].running;
            match running {
                Running::Untouched => assert!(!down, "nobody has stopped it"),
                Running::Started => assert!(!down || !group.starts, "it is down"),
                Running::NotStarted => assert!(group.starts),
                _ => panic!("group {at} is left {running:?}"),
            }
        }
    }

    /// Where one begins, there is a place for all that are there.
    fn check_places(&self, setup: &Setup, end: usize, actions: &[Action]) {
        let touches = |task: usize| {
            setup.moves[task].from == end || self.run.tasks()[task].to == end
        };
        let begins = actions
            .iter()
            .any(|action| matches!(action, Action::Start { task, .. } if touches(*task)));
        if !begins {
            return;
        }
        // Beside others one is let in all the same: `plain` knows which.
        if self.others[end].copies > 0 {
            return;
        }
        let there = (0..setup.moves.len()).filter(|task| {
            touches(*task) && self.run.tasks()[*task].stage.takes_a_place()
        });
        let (count, rate) = there.fold((0, 0.0), |(count, rate), task| {
            (count + 1, rate + setup.moves[task].rate)
        });
        let fits = setup.ends[end].speed.is_some_and(|speed| rate <= speed + 1e-6);
        assert!(count <= LEAST || (count <= MOST && fits), "{count} at {end}: {rate}");
    }

    fn check_room(&self, setup: &Setup) {
        for (end, one) in setup.ends.iter().enumerate() {
            let gone = |stage| {
                matches!(stage, Stage::Failed(_) | Stage::Skipped(_) | Stage::GivenUp)
            };
            let there = self.run.tasks().iter().zip(&setup.moves);
            let there: Vec<u64> = there
                .filter(|(task, _)| !gone(task.stage))
                .filter(|(task, _)| is_one_room(&setup.ends, task.to, end))
                .map(|(_, one)| one.needs)
                .collect();
            let sum: u64 = there.iter().sum();
            assert!(sum <= one.room, "{sum} at {end} with {}", one.room);
            assert!(!one.single || there.len() <= 1, "{} at {end}", there.len());
        }
    }

    fn live(mut self) {
        for _ in 0..STEPS {
            self.step();
        }
        self.peace = true;
        if self.run.wish() == Wish::Pause {
            self.hear(Event::Wish(Wish::Run));
        }
        self.hear(Event::Open(true));
        for _ in 0..PEACE {
            if self.run.has_ended() && self.actions.is_empty() && self.heard.is_empty() {
                break;
            }
            self.step();
        }
        assert!(self.run.has_ended(), "it does not end: {:?}", self.run.tasks());
        self.hear(Event::Tick);
        while !self.actions.is_empty() {
            self.carry_out();
        }
        assert_eq!(self.finished, 1, "its end is said once");
        self.check_running();
        for (task, real) in self.run.tasks().iter().zip(&self.real) {
            let moved = task.stage == Stage::Moved;
            assert_eq!(moved, *real == Real::Moved, "{task:?} is really {real:?}");
            assert!(!matches!(real, Real::UnderWay { .. }), "{task:?} is under way");
        }
    }
}

#[test]
fn whatever_happens_each_move_ends_once_and_as_it_did_and_no_bound_is_broken() {
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let setup = any(&mut random, 16);
        println!("seed {seed}");
        World::new(setup, random).live();
    }
}
