//! Which machine of a wave moves when: in order, as far as host and datastores allow.

use std::collections::VecDeque;

use sterna_core::predict::{Ends, Lesson, Move, Prediction, Speed, Terms, Work};

use super::outcome::Foretold;
use super::scenario::Scenario;

/// Lessons that are looked at, the latest: what is older counts for next to nothing.
const LESSONS: usize = 40;

/// A move that has ended, as predictions learn from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) rate: f64,
    pub(super) bytes: u64,
    pub(super) work: Work,
    pub(super) limit: Option<f64>,
}

/// How many moves there are at each host and datastore.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    hosts: Vec<u32>,
    datastores: Vec<u32>,
}

impl Slots {
    pub(super) fn new(scenario: &Scenario) -> Slots {
        Slots {
            hosts: vec![0; scenario.hosts as usize],
            datastores: vec![0; scenario.datastores.len()],
        }
    }

    /// Takes the next that may move out of those who wait.
    pub(super) fn next(
        &mut self,
        scenario: &Scenario,
        waiting: &mut VecDeque<Waiting>,
    ) -> Option<Waiting> {
        if self.hosts.iter().all(|used| *used >= scenario.host_copies) {
            return None;
        }
        let free = |at: usize| self.datastores[at] < scenario.datastores[at].copies;
        let may = |it: &Waiting| {
            let host = self.hosts[it.host] < scenario.host_copies;
            host && free(it.from) && free(it.to)
        };
        let place = waiting.iter().position(may)?;
        let one = waiting.remove(place)?;
        self.change(&one, |used| *used += 1);
        Some(one)
    }

    pub(super) fn free(&mut self, one: &Waiting) {
        self.change(one, |used| *used -= 1);
    }

    fn change(&mut self, one: &Waiting, change: impl Fn(&mut u32)) {
        change(&mut self.hosts[one.host]);
        change(&mut self.datastores[one.from]);
        if one.to != one.from {
            change(&mut self.datastores[one.to]);
        }
    }
}

/// A machine that is to be moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) vm: usize,
    pub(super) host: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// What `core` predicts of a wave by the moves that there were: each move by itself, and
/// all of them one after the other as there is room.
pub(super) fn foretell(
    scenario: &Scenario,
    past: &[Past],
    waiting: &VecDeque<Waiting>,
    limit: Option<f64>,
    work: impl Fn(usize) -> (u64, Work),
) -> Option<Foretold> {
    let kind = |at: usize| &scenario.datastores[at].kind;
    let terms = |limit: Option<f64>| Terms {
        limit: limit.map(|it| it as u64),
        ..Terms::default()
    };
    let mut moves = Vec::new();
    for one in waiting {
        let lesson = |it: &Past| {
            let ends =
                match (kind(it.from) == kind(one.from), kind(it.to) == kind(one.to)) {
                    (true, true) => Ends::Both,
                    (true, false) => Ends::Source,
                    (false, true) => Ends::Destination,
                    (false, false) => return None,
                };
            let (rate, bytes, work) = (it.rate, it.bytes, it.work);
            let terms = terms(it.limit);
            Some(Lesson::plain(ends, rate, bytes, work, terms))
        };
        let lessons: Vec<Lesson> =
            past.iter().rev().filter_map(lesson).take(LESSONS).collect();
        let (bytes, work) = work(one.vm);
        let one = Move { bytes, compared: 0, work, terms: terms(limit) };
        let it = Prediction::of(&one, &Speed::learned(&lessons)?);
        moves.push([it.least, it.likely, it.most].map(|it| it.as_secs_f64()));
    }
    let of = |which: usize| {
        let spans: Vec<f64> = moves.iter().map(|it| it[which]).collect();
        one_after_the_other(scenario, waiting, &spans)
    };
    Some(Foretold { least: of(0), likely: of(1), most: of(2) })
}

/// How long moves take that take so long each, with as many at once as there may be.
fn one_after_the_other(
    scenario: &Scenario,
    waiting: &VecDeque<Waiting>,
    spans: &[f64],
) -> f64 {
    let span: std::collections::BTreeMap<usize, f64> =
        waiting.iter().zip(spans).map(|(one, span)| (one.vm, *span)).collect();
    let mut waiting = waiting.clone();
    let mut slots = Slots::new(scenario);
    let mut now = 0.0;
    let mut moving: Vec<(f64, Waiting)> = Vec::new();
    loop {
        while let Some(one) = slots.next(scenario, &mut waiting) {
            moving.push((now + span[&one.vm], one));
        }
        let ends = moving.iter().map(|(end, _)| *end);
        let Some(first) = ends.reduce(f64::min) else { return now };
        now = first;
        moving.retain(|(end, one)| {
            if *end <= now {
                slots.free(one);
            }
            *end > now
        });
    }
}
