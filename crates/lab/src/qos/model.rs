//! The experiment in virtual time, at the paper's size: the same phases, and the same
//! judge, on modelled spindles.
//!
//! What decides is what decides in the daemon: `core` resolves the policy in force at
//! the second of the week, and its loop and its scheduler do the rest. Two things are
//! simpler than there. Everything is put in force at the end of a window, and an
//! unreachable target is watched to the end of its phase.
//!
//! Fitted to the paper's 2000 IO/s and 14 MB/s alone, and 300 and 2 beside the others,
//! are what is in flight and the size of the database's requests ([`clients`]).

use anyhow::Context;
use sterna_api::CruisePhase;
use sterna_core::Nanos;
use sterna_core::guard::cruise::CruiseOutcome as Target;
use sterna_core::qos::policy::{
    Aim, Cruise, Plan as Policies, Policy, PolicyId, resolve,
};
use sterna_core::qos::{SHARES, Terms};
use sterna_core::schedule::{Moment, Weekday};
use sterna_report::Report;
use sterna_sim::{Access, Client, Controller, Cruising, Load, Orders, Plan, Seen, World};

use super::account::{Facing, report};
use super::plan::{BEFORE_OPENING, Phase, Step};
use super::run::{Named, Outcome, Stretch, band, hours, said, words};
use super::wish::Wish;
use crate::record::{Mark, Sample, Track};

/// The paper's spindles.
const ARRAY: &str = "e4-fc";

/// How long a window is, as in the experiment on a real clock.
const TICK: Nanos = Nanos::from_millis(250);

/// When it begins, on the clock of the schedules.
fn begin() -> Moment {
    Moment::new(Weekday::Monday, 0)
}

/// The applications. 16 requests of 7 KiB in flight give the paper's database its 2000
/// IO/s and 14 MB/s; a backup with 72, beside a load generator as in the experiment on a
/// real clock, leaves it 300 and 2. How the requests divide into reads and writes, and
/// the sizes of the others', are assumed.
fn clients(from: Nanos, until: Nanos) -> Vec<Client> {
    let client = |name: &str, outstanding, bytes, read_percent, random| {
        let access = Access { bytes, read_percent, random, size: 100 << 30 };
        Client::new(name, Load::Closed { outstanding }, access)
    };
    let beside = |client: Client| client.starting(from).ending(until);
    vec![
        client("oltp", 16, 7 << 10, 80, true),
        beside(client("backup", 72, 256 << 10, 100, false)),
        beside(client("stress", 32, 32 << 10, 50, true)),
    ]
}

/// Runs it, and tells it.
pub(super) fn run(phases: &[Phase], seed: u64) -> anyhow::Result<Report> {
    let starts = |wanted: Step| {
        let before = phases.iter().take_while(|phase| phase.step != wanted);
        moment(before.map(|phase| phase.seconds).sum())
    };
    let plan = Plan {
        seed,
        period: TICK,
        span: moment(phases.iter().map(|phase| phase.seconds).sum()),
        arrays: vec![ARRAY.parse().context("cannot read the array")?],
        clients: clients(starts(Step::Contention), starts(Step::AloneAgain)),
        faults: Vec::new(),
        noise: 0.0,
    };
    let facing = Facing { parameters: parameters(&plan), machine: machine() };
    let mut director = Director::new(phases, &plan.clients);
    World::run(plan, &mut director);
    director.end();
    Ok(report(&director.outcome, facing))
}

fn moment(seconds: f64) -> Nanos {
    // Phases are whole windows, so that none begins within one.
    let ticks = (seconds * 1e9 / TICK.0 as f64).round() as u64;
    Nanos(ticks * TICK.0)
}

fn parameters(plan: &Plan) -> Vec<(String, String)> {
    let mut pairs = vec![("array".to_owned(), ARRAY.to_owned())];
    pairs.extend(plan.clients.iter().map(|client| {
        let Access { bytes, read_percent, random, .. } = client.access;
        let order = if random { "random" } else { "sequential" };
        let Load::Closed { outstanding } = client.load else { return Default::default() };
        let size = sterna_core::Bytes(bytes);
        let words =
            format!("{order}, {size}, {read_percent} % reads, {outstanding} under way");
        (client.name.clone(), words)
    }));
    pairs.push(("seed".to_owned(), plan.seed.to_string()));
    pairs
}

fn machine() -> Vec<(String, String)> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let clock = "virtual time: the figures do not depend on this machine".to_owned();
    vec![("clock".into(), clock), ("Sterna".into(), version)]
}

/// Goes through the phases, as the windows of the world end.
struct Director<'p> {
    phases: &'p [Phase],
    /// The phase that is next.
    next: usize,
    /// When the one under way ends.
    ends: Nanos,
    /// What is asked for, and the loop if it is a target.
    policy: Option<Policy>,
    cruising: Option<Cruising>,
    said: CruisePhase,
    outcome: Outcome,
}

impl<'p> Director<'p> {
    fn new(phases: &'p [Phase], clients: &[Client]) -> Director<'p> {
        let track = |it: &Client| Track { name: it.name.clone(), samples: Vec::new() };
        let mut outcome = Outcome::default();
        outcome.record.tracks = clients.iter().map(track).collect();
        let mut director = Director {
            phases,
            next: 0,
            ends: Nanos(0),
            policy: None,
            cruising: None,
            said: CruisePhase::NotStarted,
            outcome,
        };
        director.begin(Nanos(0));
        director
    }

    /// The next phase begins.
    fn begin(&mut self, now: Nanos) {
        let Some(&Phase { step, seconds }) = self.phases.get(self.next) else { return };
        let from = now.as_secs_f64();
        let alone = self.outcome.stretches.first();
        let alone = alone.map_or(&[][..], |alone| {
            self.outcome.record.tracks[0].between(alone.calm(), alone.until)
        });
        let wish = Wish::published(step, alone);
        self.note(now, words(step, wish));
        self.next += 1;
        self.ends = moment(from + seconds);
        (self.policy, self.cruising) = (None, None);
        let mut opening = None;
        let schedule = (step == Step::Schedule).then(|| {
            // Schedules go by whole seconds.
            let (from, before) = (from.floor(), f64::from(BEFORE_OPENING));
            let open = ((seconds - before) / 2.0).round();
            opening = Some((from + before, from + before + open));
            hours(&week(now).to_string(), BEFORE_OPENING, open as u32)
        });
        self.ask(wish, schedule.flatten().as_deref());
        let until = from;
        let stretch = Stretch { step, from, until, wish, opening, named: None };
        self.outcome.stretches.push(stretch);
    }

    fn ask(&mut self, wish: Option<Wish>, schedule: Option<&str>) {
        let Some(aim) = wish.and_then(|wish| Aim::try_from(wish.aim()).ok()) else {
            return;
        };
        let schedule = schedule.and_then(|schedule| schedule.parse().ok());
        self.said = CruisePhase::NotStarted;
        self.policy = Some(Policy { id: PolicyId::NEW, aim, schedule });
    }

    fn note(&mut self, now: Nanos, text: String) {
        self.outcome.record.marks.push(Mark { at: now.as_secs_f64(), text });
    }

    /// What becomes of the target is noted when it changes.
    fn listen(&mut self, now: Nanos) {
        let Some(cruising) = &self.cruising else { return };
        let (phase, reason) = match cruising.outcome() {
            Target::Holding => (CruisePhase::Holding, ""),
            Target::Converging => (CruisePhase::Converging, ""),
            Target::Unreachable(reason) => (CruisePhase::Unreachable, reason.as_str()),
        };
        if self.said == phase {
            return;
        }
        self.said = phase;
        let (text, reason) = (said(phase, reason), reason.to_owned());
        self.note(now, text);
        if phase == CruisePhase::Unreachable
            && let Some(stretch) = self.outcome.stretches.last_mut()
        {
            let at = now.as_secs_f64();
            stretch.named.get_or_insert(Named { at, reason });
        }
    }

    /// What the policy in force comes to.
    fn resolve(&self, now: Nanos) -> (Terms, Option<Cruise>) {
        let policies = self.policy.iter().cloned().collect();
        let plan = Policies { reservation: None, shares: SHARES, policies };
        let resolution = resolve(&plan, week(now));
        (resolution.terms, resolution.cruise.map(|(_, cruise)| cruise))
    }

    /// The terms of all from now on.
    fn terms(&mut self, now: Nanos, seen: Seen<'_>) -> Vec<(usize, Terms)> {
        let (terms, cruise) = self.resolve(now);
        match (&mut self.cruising, cruise) {
            (Some(cruising), Some(_)) => cruising.look(seen).unwrap_or_default(),
            // It has seen nothing yet.
            (None, Some(cruise)) => {
                self.cruising = Some(Cruising::new(0, cruise));
                alone(terms, seen)
            }
            (_, None) => alone(terms, seen),
        }
    }

    /// Ends the phase under way.
    fn end(&mut self) {
        let Some(stretch) = self.outcome.stretches.last() else { return };
        let band = stretch.wish.map(|wish| band(wish, stretch));
        self.outcome.record.bands.extend(band);
    }
}

impl Controller for Director<'_> {
    fn step(&mut self, now: Nanos, seen: Seen<'_>) -> Orders {
        let tracks = self.outcome.record.tracks.iter_mut().zip(seen.clients);
        tracks.for_each(|(track, window)| {
            track.samples.push(Sample::of(now.as_secs_f64(), window));
        });
        if let Some(stretch) = self.outcome.stretches.last_mut() {
            stretch.until = now.as_secs_f64();
        }
        if now >= self.ends && self.next < self.phases.len() {
            self.end();
            self.begin(now);
        }
        let terms = self.terms(now, seen);
        self.listen(now);
        Orders { terms, windows: Vec::new() }
    }
}

/// The database on these terms, and the others on none.
fn alone(terms: Terms, seen: Seen<'_>) -> Vec<(usize, Terms)> {
    let others = (1..seen.clients.len()).map(|client| (client, Terms::default()));
    [(0, terms)].into_iter().chain(others).collect()
}

/// A moment on the clock of the schedules.
fn week(now: Nanos) -> Moment {
    begin().after((now.0 / 1_000_000_000) as u32)
}
