//! A plan in virtual time: when each move would begin and end.
//!
//! It is the machine that carries plans out ([`PlanRun`]) that is run, with moves that take
//! what they are predicted to take and do not fail. Time in which nothing may be copied
//! is not counted, nor what workloads take to stop and to start.

use super::event::{Action, Event, Wish};
use super::places::{Others, Places};
use super::run::PlanRun;
use super::task::Stage;
use sterna_core::Nanos;

/// A move, as it would be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rehearsed {
    /// When it begins, from now.
    pub begins: Nanos,
    /// When it ends, from now.
    pub ends: Nanos,
    /// Its wave, from 1; 0 if it is under way already.
    pub wave: u32,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rehearsal {
    /// By move; nothing of those that have ended already.
    pub moves: Vec<Option<Rehearsed>>,
    /// When the last one ends, from now.
    pub ends: Nanos,
}

/// A move that is under way in virtual time.
struct UnderWay {
    at: usize,
    /// What is left, in seconds of a move that is alone.
    left: f64,
}

/// Runs a plan from where it is. `left` is what those that are under way still take if
/// they are alone; where nothing is said, all that they were predicted to take.
pub fn rehearse(run: &PlanRun, left: &[Option<Nanos>]) -> Rehearsal {
    let mut run = run.clone();
    // When those end that are not its own, nobody knows.
    run.beside(vec![Others::default(); run.setup().ends.len()]);
    let time = |at: usize| run.setup().moves[at].time;
    let left = |at: usize| left.get(at).copied().flatten().unwrap_or(time(at));
    let mut under_way = Vec::new();
    let mut moves = vec![None; run.tasks().len()];
    for (at, task) in run.tasks().iter().enumerate() {
        if task.stage.is_under_way() {
            under_way.push(UnderWay { at, left: left(at).as_secs_f64() });
            moves[at] = Some(Rehearsed::default());
        }
    }
    let last = Last::new(&run);
    let mut stage = Virtual { now: 0.0, under_way, moves, last };
    // Those that were just being begun have begun.
    let starting =
        (0..run.tasks().len()).filter(|at| run.tasks()[*at].stage == Stage::Starting);
    for at in starting.collect::<Vec<_>>() {
        stage.hear(&mut run, Event::Began(at));
    }
    for action in run.workloads_again().collect::<Vec<_>>() {
        stage.carry_out(&mut run, action);
    }
    stage.hear(&mut run, Event::Open(true));
    stage.hear(&mut run, Event::Wish(Wish::Run));
    while let Some(at) = stage.next_end(&run) {
        stage.hear(&mut run, Event::Ended(at, true));
    }
    let ends = stage.moves.iter().flatten().map(|one| one.ends).max();
    Rehearsal { moves: stage.moves, ends: ends.unwrap_or_default() }
}

/// The last waves of which a move has ended.
struct Last {
    of_all: u32,
    /// By datastore: of moves from there, and to there.
    at: Vec<u32>,
    /// By group.
    of: Vec<u32>,
}

impl Last {
    fn new(run: &PlanRun) -> Last {
        let setup = run.setup();
        let (ends, groups) = (setup.ends.len(), setup.groups.len());
        Last { of_all: 0, at: vec![0; ends], of: vec![0; groups] }
    }

    /// A move of a wave has ended.
    fn note(&mut self, run: &PlanRun, at: usize, wave: u32) {
        let one = &run.setup().moves[at];
        self.of_all = wave.max(self.of_all);
        for end in [one.from, run.tasks()[at].to] {
            self.at[end] = wave.max(self.at[end]);
        }
        if let Some(group) = one.group {
            self.of[group] = wave.max(self.of[group]);
        }
    }
}

struct Virtual {
    /// Seconds from the beginning.
    now: f64,
    under_way: Vec<UnderWay>,
    moves: Vec<Option<Rehearsed>>,
    last: Last,
}

impl Virtual {
    fn clock(&self) -> Nanos {
        Nanos((self.now * 1e9) as u64)
    }

    /// The machine hears something, and what it asks for is done at once.
    fn hear(&mut self, run: &mut PlanRun, event: Event) {
        // What waits to be tried again is not waited for: its time has come.
        for action in run.step(Nanos::MAX, event) {
            self.carry_out(run, action);
        }
    }

    fn carry_out(&mut self, run: &mut PlanRun, action: Action) {
        match action {
            Action::Start { task, .. } => self.begin(run, task),
            // How long programs take that others wrote, nobody knows.
            Action::StopWorkload(group) => {
                self.hear(run, Event::WorkloadStopped(group, true));
            }
            Action::StartWorkload(group) => {
                self.hear(run, Event::WorkloadStarted(group, true));
            }
            _ => {}
        }
    }

    fn begin(&mut self, run: &mut PlanRun, task: usize) {
        let wave = 1 + self.wave_before(run, task);
        let begins = self.clock();
        self.moves[task] = Some(Rehearsed { begins, wave, ..Rehearsed::default() });
        let left = run.setup().moves[task].time.as_secs_f64();
        self.under_way.push(UnderWay { at: task, left });
        self.hear(run, Event::Began(task));
    }

    /// The last wave of those that a move may have waited for: they have ended by now.
    fn wave_before(&self, run: &PlanRun, at: usize) -> u32 {
        let setup = run.setup();
        if setup.at_once.is_some() {
            return self.last.of_all;
        }
        let one = &setup.moves[at];
        let ends = [one.from, run.tasks()[at].to].map(|end| self.last.at[end]);
        let before = one.group.map(|mine| &setup.groups[mine].after);
        let before = before.into_iter().flatten().map(|group| self.last.of[*group]);
        ends.into_iter().chain(before).max().unwrap_or_default()
    }

    /// Lets time pass until the next move ends, and gives that one.
    fn next_end(&mut self, run: &PlanRun) -> Option<usize> {
        let setup = run.setup();
        let mut places = Places::empty(setup);
        for one in &self.under_way {
            places.take(&setup.moves[one.at], run.tasks()[one.at].to);
        }
        let part = |one: &UnderWay| {
            places.part(setup, &setup.moves[one.at], run.tasks()[one.at].to)
        };
        let times: Vec<f64> =
            self.under_way.iter().map(|one| one.left / part(one)).collect();
        let first = (0..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b]))?;
        let passes = times[first];
        let parts: Vec<f64> = self.under_way.iter().map(part).collect();
        for (one, part) in self.under_way.iter_mut().zip(parts) {
            one.left = (one.left - passes * part).max(0.0);
        }
        self.now += passes;
        let at = self.under_way.remove(first).at;
        let ends = self.clock();
        if let Some(one) = &mut self.moves[at] {
            one.ends = ends;
            self.last.note(run, at, one.wave);
        }
        Some(at)
    }
}
