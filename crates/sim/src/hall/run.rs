//! A hall's course: from minute to minute, with DRS and without.
//!
//! What machines ask for changes with the minute, which hosts there are when one fails or
//! is back. Between that, both halls go on by themselves.

use sterna_core::Nanos;

use super::load::Load;
use super::outcome::Outcome;
use super::scenario::Scenario;
use super::world::World;

/// What machines ask for changes so often.
const MINUTE: Nanos = Nanos::from_secs(60);

/// Results are told in so many periods at most: what fits a screen. Each is some whole
/// hours.
const PERIODS: u64 = 24;

/// So many samples are taken in a period.
const SAMPLES: u64 = 12;

const HOUR: Nanos = Nanos::from_secs(3600);

/// Runs a hall with DRS, and at the same loads without it.
///
/// It takes time in proportion to the minutes times the machines; while loads differ, each
/// round of DRS as long as `placement::hosts::advise`.
pub fn run(scenario: &Scenario) -> Outcome {
    let mut run = Run::new(scenario);
    while run.now < scenario.length {
        run.goes_on();
    }
    let [with, without] = run.worlds.map(World::end);
    Outcome { with, without }
}

struct Run<'s> {
    scenario: &'s Scenario,
    now: Nanos,
    load: Load<'s>,
    /// With DRS, and without.
    worlds: [World<'s>; 2],
    /// How long a period is.
    period: Nanos,
}

impl<'s> Run<'s> {
    fn new(scenario: &'s Scenario) -> Run<'s> {
        let hours = scenario.length.0.div_ceil(HOUR.0).div_ceil(PERIODS).max(1);
        Run {
            scenario,
            now: Nanos(0),
            load: Load::new(scenario),
            worlds: [true, false].map(|drs| World::new(scenario, drs)),
            period: Nanos(hours * HOUR.0),
        }
    }

    /// Until the next minute, or until a host fails or is back.
    fn goes_on(&mut self) {
        let (now, load) = (self.now, &mut self.load);
        if now.0.is_multiple_of(MINUTE.0) {
            load.minute(now);
        }
        let failures = &self.scenario.failures;
        let up =
            |host: usize| !failures.iter().any(|it| it.host == host && it.holds(now));
        let up: Vec<bool> = (0..self.scenario.hosts.len()).map(up).collect();
        load.entitle(&up);
        let minute = Nanos((now.0 / MINUTE.0 + 1) * MINUTE.0);
        let edges = failures.iter().flat_map(|it| [Some(it.at), it.back]).flatten();
        let until = edges.filter(|at| *at > now).fold(minute, Nanos::min);
        let until = until.min(self.scenario.length);
        for world in &mut self.worlds {
            world.hosts_are(&up, load);
            if now.0.is_multiple_of(self.period.0) {
                world.period_begins(load);
            }
            world.pass(until, load);
            if until.0.is_multiple_of(self.period.0 / SAMPLES) {
                world.sample(load);
            }
            // Before it is another minute's load.
            if until.0.is_multiple_of(self.period.0) || until == self.scenario.length {
                world.period_ends(load);
            }
        }
        self.now = until;
    }
}
