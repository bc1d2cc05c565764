//! A scenario's course: from change to change.
//!
//! Between two changes everything goes on as fast as it does (`solve`). A change is: a
//! copy begins or ends, a wave begins or ends, a window or a working time opens or
//! closes, an array fails or is back, or a minute is over (what a running machine
//! mirrors grows with its copy).
//!
//! **Invariants.** Bytes that were copied are the bytes of the images that were moved. A
//! copy that is interrupted goes on where it was. A machine that stands still for its
//! move works on when its wave has ended. The same scenario gives the same outcome.
//!
//! **Bounds.** A run is given up when a year has gone by, or when nothing moves any more
//! and nothing will change: that is in the outcome.

mod rates;

use std::collections::VecDeque;

use sterna_core::predict::Work;
use sterna_core::schedule::{Schedule, WEEK};

use super::account::Accounts;
use super::flows::Stage;
use super::outcome::{Foretold, Outcome, Phase, Sample};
use super::scenario::Scenario;
use super::solve::Waits;
use super::waves::{Past, Slots, Waiting, foretell};

/// How long a window is, and how often what a machine mirrors is looked at anew.
const WINDOW: f64 = 60.0;

/// What a machine mirrors grows with its copy, in so many steps.
const STEPS: f64 = 8.0;

/// No run is longer.
const YEAR: f64 = 366.0 * 86400.0;

/// What is less is done: bytes of a copy, and seconds until a change.
const CRUMB: f64 = 1e-6;

/// A machine on its way.
#[derive(Clone, Debug)]
struct Copy {
    one: Waiting,
    /// Which of its disks moves.
    disk: usize,
    disks: usize,
    /// Bytes of that disk's image, and those that are left.
    bytes: f64,
    left: f64,
    /// The part of its bytes that is written, and that is read.
    written: f64,
    read: f64,
    since: f64,
    work: Work,
    /// Bytes per second of the image.
    rate: f64,
    /// How far it was when what is mirrored was last looked at.
    mirrored: u32,
}

impl Copy {
    /// How far it is, in steps.
    fn step(&self) -> u32 {
        ((1.0 - self.left / self.bytes) * STEPS) as u32
    }
}

/// A scenario under way.
pub struct Run<'s> {
    scenario: &'s Scenario,
    stage: Stage,
    accounts: Accounts,
    waits: Waits,
    now: f64,
    /// The next wave, and whether it has begun.
    wave: usize,
    moving: bool,
    waiting: VecDeque<Waiting>,
    slots: Slots,
    copies: Vec<Copy>,
    past: Vec<Past>,
    /// Whether the rates have to be found anew.
    changed: bool,
    utilisation: Vec<f64>,
    phase: Phase,
    sample: Sample,
    sample_began: f64,
    outcome: Outcome,
}

impl<'s> Run<'s> {
    /// Runs a scenario to its end.
    pub fn whole(scenario: &'s Scenario) -> Outcome {
        let mut run = Run::new(scenario);
        run.begin("before");
        while run.step() {}
        run.end()
    }

    fn new(scenario: &'s Scenario) -> Run<'s> {
        Run {
            stage: Stage::new(scenario),
            accounts: Accounts::new(scenario),
            waits: Waits::default(),
            now: 0.0,
            wave: 0,
            moving: false,
            waiting: VecDeque::new(),
            slots: Slots::new(scenario),
            copies: Vec::new(),
            past: Vec::new(),
            changed: true,
            utilisation: Vec::new(),
            phase: Phase::default(),
            sample: Sample::default(),
            sample_began: 0.0,
            outcome: Outcome::default(),
            scenario,
        }
    }

    /// Goes on to the next change; says whether there is more.
    fn step(&mut self) -> bool {
        self.arrays_fail();
        loop {
            self.waves_begin();
            let moved = self.moving;
            self.copies_begin();
            // The next wave begins when one ends.
            if !moved || self.moving {
                break;
            }
        }
        if self.changed {
            self.settle();
        }
        let done = !self.moving && self.wave == self.scenario.waves.len();
        if done && self.now >= self.scenario.length {
            return false;
        }
        if self.now >= YEAR || self.is_stuck() {
            return false;
        }
        let edge = self.edges().fold(f64::INFINITY, f64::min);
        let until = self.next_change().min(edge);
        self.pass(until - self.now);
        self.now = until;
        self.changed |= until >= edge;
        self.copies_end();
        if self.now - self.sample_began >= WINDOW - CRUMB {
            self.window_ends();
        }
        true
    }

    /// Whether nothing moves, and nothing will change that.
    fn is_stuck(&self) -> bool {
        let stands = self.moving && self.copies.iter().all(|it| it.rate <= 0.0);
        stands && self.now >= self.scenario.length && self.edges().next().is_none()
    }

    /// Moments at which something changes by itself.
    fn edges(&self) -> impl Iterator<Item = f64> {
        let scenario = self.scenario;
        let (now, moving) = (self.now, self.moving);
        let failures = scenario.failures.iter().flat_map(|it| [it.at, it.at + it.lasts]);
        let wave = scenario.waves.get(self.wave);
        let begins = wave.filter(|_| !moving).map(|it| it.at);
        let window = wave.filter(|_| moving).and_then(|it| it.window.as_ref());
        let busy = scenario.profiles.iter().filter_map(|it| it.busy.as_ref());
        let schedules = busy.chain(window);
        let changes = schedules.filter_map(move |it| {
            let second = now.floor();
            let until = it.until_change(moment(scenario, second))?;
            Some(second + f64::from(until))
        });
        let edges = failures.chain(begins).chain(changes);
        edges.filter(move |at| *at > now + CRUMB)
    }

    /// When a copy ends, or the window.
    fn next_change(&self) -> f64 {
        let window = self.sample_began + WINDOW;
        let ends = self.copies.iter().filter(|it| it.rate > 0.0);
        let ends = ends.map(|it| self.now + it.left / it.rate);
        let length = Some(self.scenario.length).filter(|at| *at > self.now + CRUMB);
        ends.chain(length).fold(window, f64::min)
    }

    fn arrays_fail(&mut self) {
        for (array, pool) in self.stage.pools.iter_mut().enumerate() {
            let now = self.now;
            let of =
                self.scenario.failures.iter().filter(|it| {
                    it.array == array && it.at <= now && now < it.at + it.lasts
                });
            let (mut slower, mut down) = (1.0_f64, false);
            for failure in of {
                match failure.slower {
                    Some(times) => slower = slower.max(times),
                    None => down = true,
                }
            }
            if (slower, down) != (pool.slower, pool.down) {
                let name = &self.scenario.arrays[array].name;
                let what = match (down, slower > 1.0) {
                    (true, _) => format!("{name} does not answer"),
                    (_, true) => {
                        format!("{name}: its spindles take {slower} times as long")
                    }
                    (false, false) => format!("{name} is as it was"),
                };
                self.outcome.events.push((now, what));
                (pool.slower, pool.down) = (slower, down);
                self.changed = true;
            }
        }
    }

    fn waves_begin(&mut self) {
        let scenario = self.scenario;
        let Some(wave) = scenario.waves.get(self.wave) else { return };
        if self.moving || self.now < wave.at {
            return;
        }
        self.phase_ends();
        self.begin(&wave.name);
        self.phase.wave = Some(self.wave);
        if self.wave == 0 && !scenario.waiting_work {
            for later in &scenario.waves[1..] {
                later.moves.iter().for_each(|(vm, _)| self.accounts.work(*vm, false));
            }
        }
        self.waiting = wave
            .moves
            .iter()
            .map(|&(vm, to)| {
                let from = self.accounts.place(vm, 0);
                Waiting { vm, host: scenario.vms[vm].host, from, to }
            })
            .filter(|it| it.from != it.to)
            .collect();
        if wave.stopped {
            wave.moves.iter().for_each(|(vm, _)| self.accounts.work(*vm, false));
        }
        let work =
            |vm: usize| (scenario.profiles[scenario.vms[vm].profile].size, self.work(vm));
        let open = foretell(scenario, &self.past, &self.waiting, wave.limit, work);
        let stretched = |seconds| self.stretched(wave.window.as_ref(), seconds);
        self.phase.predicted = open.map(|it| Foretold {
            least: stretched(it.least),
            likely: stretched(it.likely),
            most: stretched(it.most),
        });
        self.outcome.events.push((self.now, format!("{} begins", wave.name)));
        (self.moving, self.changed) = (true, true);
    }

    /// How long it takes until a window was open for so many seconds.
    fn stretched(&self, window: Option<&Schedule>, seconds: f64) -> f64 {
        let (mut left, mut at) = (seconds, 0.0);
        let Some(window) = window else { return seconds };
        while at < YEAR {
            let now = moment(self.scenario, (self.now + at).floor());
            let (open, until) = (window.is_open(now), window.until_change(now));
            let until = until.map_or(YEAR, f64::from);
            if open && left <= until {
                return at + left;
            }
            left -= if open { until } else { 0.0 };
            at += until;
        }
        at
    }

    /// What a machine does, as predictions want to know it.
    fn work(&self, vm: usize) -> Work {
        let (profile, at) = (self.scenario.vms[vm].profile, self.accounts.place(vm, 0));
        if !self.accounts.works(vm) {
            return Work::default();
        }
        let found = self.accounts.classes().find(|(p, d, _)| (*p, *d) == (profile, at));
        let Some((_, _, class)) = found else { return Work::default() };
        let disks = f64::from(self.scenario.profiles[profile].disks);
        let outstanding = class.rate * class.response * disks;
        let response = sterna_core::Nanos((class.response * 1e9) as u64);
        Work { outstanding, response, there: 1.0, writes: 0.0 }
    }

    fn copies_begin(&mut self) {
        let scenario = self.scenario;
        while let Some(one) = self.slots.next(scenario, &mut self.waiting) {
            let profile = &scenario.profiles[scenario.vms[one.vm].profile];
            let chunk = self.stage.chunk();
            let filled = self.accounts.written(one.vm, profile, chunk);
            let part = |thin: bool| if thin { filled } else { 1.0 };
            let bytes = profile.size as f64 / f64::from(profile.disks);
            self.copies.push(Copy {
                disk: 0,
                disks: profile.disks as usize,
                bytes,
                left: bytes,
                written: part(scenario.datastores[one.to].thin),
                read: part(scenario.datastores[one.from].thin),
                since: self.now,
                work: self.work(one.vm),
                rate: 0.0,
                mirrored: 0,
                one,
            });
            self.changed = true;
        }
        if self.moving && self.copies.is_empty() && self.waiting.is_empty() {
            self.wave_ends();
        }
    }

    fn wave_ends(&mut self) {
        let wave = &self.scenario.waves[self.wave];
        self.outcome.events.push((self.now, format!("{} ends", wave.name)));
        wave.moves.iter().for_each(|(vm, _)| self.accounts.work(*vm, true));
        self.phase_ends();
        self.wave += 1;
        let last = self.wave == self.scenario.waves.len();
        self.begin(if last { "after" } else { "between" });
        (self.moving, self.changed) = (false, true);
    }

    /// 1 while a schedule is open, else what is left then.
    fn part(&self, schedule: Option<&Schedule>, closed: f64) -> f64 {
        let now = moment(self.scenario, (self.now + CRUMB).floor());
        match schedule {
            Some(schedule) if !schedule.is_open(now) => closed,
            _ => 1.0,
        }
    }

    /// So many seconds go by.
    fn pass(&mut self, seconds: f64) {
        self.accounts.pass(seconds);
        for copy in &mut self.copies {
            let bytes = (copy.rate * seconds).min(copy.left);
            copy.left -= bytes;
            self.phase.copied += bytes;
            self.phase.written += bytes * copy.written;
            self.sample.copied += bytes;
        }
        let busy = &mut self.phase.busy;
        busy.resize(self.utilisation.len(), 0.0);
        self.sample.busy.resize(self.utilisation.len(), 0.0);
        for (at, part) in self.utilisation.iter().enumerate() {
            busy[at] += part * seconds;
            self.sample.busy[at] += part * seconds;
        }
        for (_, _, class) in self.accounts.classes() {
            let disks = f64::from(class.disks) * seconds;
            self.sample.iops += class.rate * disks;
            self.sample.response += class.rate * disks * class.response;
            self.sample.wanted += class.wanted * disks;
        }
    }

    fn copies_end(&mut self) {
        let mut number = 0;
        while number < self.copies.len() {
            let copy = &mut self.copies[number];
            if copy.left > copy.rate * CRUMB + CRUMB {
                number += 1;
                continue;
            }
            let (vm, disk) = (copy.one.vm, copy.disk);
            self.accounts.moved(vm, disk, copy.one.to);
            self.phase.disks += 1;
            copy.disk += 1;
            copy.left = copy.bytes;
            if copy.disk < copy.disks {
                // Of a machine that stands still, the next disk is as this one.
                self.changed |= self.accounts.works(vm);
                number += 1;
                continue;
            }
            let copy = self.copies.swap_remove(number);
            self.vm_moved(&copy);
        }
    }

    fn vm_moved(&mut self, copy: &Copy) {
        let seconds = self.now - copy.since;
        let bytes = copy.bytes * copy.disks as f64;
        self.phase.moved += 1;
        self.phase.longest = self.phase.longest.max(seconds);
        self.phase.shortest = self.phase.shortest.min(seconds);
        let limit = self.scenario.waves.get(self.wave).and_then(|it| it.limit);
        self.past.push(Past {
            from: copy.one.from,
            to: copy.one.to,
            rate: bytes / seconds.max(CRUMB),
            bytes: bytes as u64,
            work: copy.work,
            limit,
        });
        self.slots.free(&copy.one);
        self.changed = true;
    }

    fn window_ends(&mut self) {
        let seconds = self.now - self.sample_began;
        let mut sample = std::mem::take(&mut self.sample);
        sample.response /= sample.iops.max(CRUMB);
        for value in [&mut sample.copied, &mut sample.iops, &mut sample.wanted] {
            *value /= seconds;
        }
        sample.busy.iter_mut().for_each(|busy| *busy /= seconds);
        (sample.at, sample.moving) = (self.now, self.copies.len());
        self.outcome.samples.push(sample);
        self.sample_began = self.now;
        for copy in &mut self.copies {
            let step = copy.step();
            self.changed |= self.accounts.works(copy.one.vm) && step != copy.mirrored;
            copy.mirrored = step;
        }
    }

    fn begin(&mut self, name: &str) {
        let (name, from) = (name.to_owned(), self.now);
        self.phase = Phase { name, from, shortest: f64::INFINITY, ..Phase::default() };
    }

    fn phase_ends(&mut self) {
        let mut phase = std::mem::take(&mut self.phase);
        phase.until = self.now;
        self.accounts.tell(&mut phase);
        let seconds = phase.seconds();
        phase.busy.iter_mut().for_each(|busy| *busy /= seconds.max(CRUMB));
        if phase.moved == 0 {
            phase.shortest = 0.0;
        }
        if seconds > 0.0 {
            self.outcome.phases.push(phase);
        }
    }

    fn end(mut self) -> Outcome {
        self.outcome.stuck = self.copies.len() + self.waiting.len();
        if self.now - self.sample_began > CRUMB {
            self.window_ends();
        }
        self.phase_ends();
        self.outcome
    }
}

/// The second of the week, so many seconds after the beginning.
fn moment(scenario: &Scenario, seconds: f64) -> sterna_core::schedule::Moment {
    scenario.starts.after((seconds % f64::from(WEEK)) as u32)
}
