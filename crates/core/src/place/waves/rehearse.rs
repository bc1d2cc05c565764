//! A plan in virtual time: when each move would begin and end.
//!
//! It is the machine that carries plans out ([`Run`]) that is run, with moves that take
//! what they are predicted to take and do not fail. Time in which nothing may be copied
//! is not counted.

use super::event::{Action, Event, Wish};
use super::places::Places;
use super::run::Run;
use super::task::Stage;
use crate::Nanos;

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
pub fn rehearse(run: &Run, left: &[Option<Nanos>]) -> Rehearsal {
    let mut run = run.clone();
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
    let mut stage = Virtual { now: 0.0, under_way, moves };
    // Those that were just being begun have begun.
    let starting =
        (0..run.tasks().len()).filter(|at| run.tasks()[*at].stage == Stage::Starting);
    for at in starting.collect::<Vec<_>>() {
        stage.hear(&mut run, Event::Began(at));
    }
    stage.hear(&mut run, Event::Open(true));
    stage.hear(&mut run, Event::Wish(Wish::Run));
    while let Some(at) = stage.next_end(&run) {
        stage.hear(&mut run, Event::Ended(at, true));
    }
    let ends = stage.moves.iter().flatten().map(|one| one.ends).max();
    Rehearsal { moves: stage.moves, ends: ends.unwrap_or_default() }
}

struct Virtual {
    /// Seconds from the beginning.
    now: f64,
    under_way: Vec<UnderWay>,
    moves: Vec<Option<Rehearsed>>,
}

impl Virtual {
    fn clock(&self) -> Nanos {
        Nanos((self.now * 1e9) as u64)
    }

    /// The machine hears something, and what it asks for is done at once.
    fn hear(&mut self, run: &mut Run, event: Event) {
        // What waits to be tried again is not waited for: its time has come.
        let actions = run.step(Nanos::MAX, event);
        for action in actions {
            let Action::Start { task, .. } = action else { continue };
            let wave = 1 + self.wave_before(run, task);
            let begins = self.clock();
            self.moves[task] = Some(Rehearsed { begins, wave, ..Rehearsed::default() });
            let left = run.setup().moves[task].time.as_secs_f64();
            self.under_way.push(UnderWay { at: task, left });
            self.hear(run, Event::Began(task));
        }
    }

    /// The last wave of those that a move may have waited for: they have ended by now.
    fn wave_before(&self, run: &Run, at: usize) -> u32 {
        let setup = run.setup();
        let ends = |at: usize| [setup.moves[at].from, run.tasks()[at].to];
        let mine = ends(at);
        let before = |group: usize| {
            let after = setup.moves[at].group.map(|mine| &setup.groups[mine].after);
            after.is_some_and(|after| after.contains(&group))
        };
        let waited_for = |other: usize| {
            setup.at_once.is_some()
                || ends(other).iter().any(|end| mine.contains(end))
                || setup.moves[other].group.is_some_and(before)
        };
        let ended = (0..self.moves.len())
            .filter(|other| *other != at && run.tasks()[*other].stage == Stage::Moved)
            .filter(|other| waited_for(*other));
        ended.filter_map(|other| self.moves[other].map(|one| one.wave)).max().unwrap_or(0)
    }

    /// Lets time pass until the next move ends, and gives that one.
    fn next_end(&mut self, run: &Run) -> Option<usize> {
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
        }
        Some(at)
    }
}
