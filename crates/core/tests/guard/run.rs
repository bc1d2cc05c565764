//! A guard beside a plant, window by window, and what came of it.

use sterna_core::guard::{Experience, Guard, GuardAim, GuardStatus, Remaining};
use sterna_core::measure::Spread;

use crate::plant::{Course, Device, Load, Plant, Setup, Truth};
use crate::random::Random;

/// Windows in a second.
pub(crate) const SECOND: usize = 10;

/// What happened.
pub(crate) struct Record {
    pub(crate) truth: Vec<Truth>,
    /// Response times, second by second.
    pub(crate) responses: Vec<Spread>,
    /// How it stood at the end of each second.
    pub(crate) statuses: Vec<GuardStatus>,
    /// What a copy that knows everything would have copied.
    pub(crate) ideal: f64,
    /// What the guard has found out.
    pub(crate) experience: Experience,
}

pub(crate) fn keep_97() -> GuardAim {
    GuardAim { keep: Some(0.97), ..GuardAim::default() }
}

/// Runs a guard for so many seconds.
pub(crate) fn run(setup: Setup, aim: GuardAim, seconds: usize, seed: u64) -> Record {
    run_guard(Guard::new(aim), setup, seconds, seed)
}

/// The same with a guard that may know something.
pub(crate) fn run_guard(
    mut guard: Guard,
    setup: Setup,
    seconds: usize,
    seed: u64,
) -> Record {
    let mut plant = Plant::new(setup, seed);
    let mut allowance = Guard::FIRST;
    let mut record = Record {
        truth: Vec::new(),
        responses: Vec::new(),
        statuses: Vec::new(),
        ideal: 0.0,
        experience: Experience::default(),
    };
    for second in 0..seconds {
        let mut responses = Spread::default();
        for _ in 0..SECOND {
            record.ideal += plant.affordable(0.03) / SECOND as f64;
            let (measured, truth) = plant.window(allowance);
            allowance = guard.step(&measured.observation(), Remaining::default());
            assert_eq!(allowance.idle, None, "a gap is the copier's, second {second}");
            responses.merge(measured.response());
            record.truth.push(truth);
        }
        record.responses.push(responses);
        record.statuses.push(guard.status());
    }
    record.experience = guard.experience();
    record
}

impl Record {
    /// The part of its requests that the guest got done in these seconds.
    pub(crate) fn kept(&self, seconds: std::ops::Range<usize>) -> f64 {
        let truth = &self.truth[seconds.start * SECOND..seconds.end * SECOND];
        let done: f64 = truth.iter().map(|it| it.done).sum();
        let alone: f64 = truth.iter().map(|it| it.alone).sum();
        if alone > 0.0 { done / alone } else { 1.0 }
    }

    pub(crate) fn copied(&self) -> f64 {
        self.truth.iter().map(|it| it.copied).sum()
    }

    pub(crate) fn seconds(&self) -> usize {
        self.statuses.len()
    }
}

/// Any device and any guest that it can serve.
pub(crate) fn any(random: &mut Random) -> Setup {
    let own = random.between(0.0001, 0.006);
    let peak = random.between(1.2, 30.0) / own;
    let device = Device { own, peak, weight: random.between(0.3, 4.0), each: 0.0 };
    let load = if random.unit() < 0.6 {
        let pause =
            if random.unit() < 0.4 { 0.0 } else { own * random.between(0.2, 10.0) };
        Load::Closed { depth: random.between(1.0, 40.0).round(), pause }
    } else {
        Load::Open { rate: peak * (0.05 + 0.8 * random.unit()) }
    };
    let wander = random.between(0.001, 0.05);
    Setup { device, load, course: Course::Steady, wander }
}

/// The same on a device to which a chunk's length may make a difference.
pub(crate) fn any_length(random: &mut Random) -> Setup {
    let mut setup = any(random);
    setup.device.each = random.unit();
    setup
}

/// Runs so many cases, prints the seed of each that fails, and fails if those are more
/// than `outside` of a hundred. `STERNA_GUARD_SEED` runs one seed,
/// `STERNA_GUARD_CASES` so many.
pub(crate) fn cases(
    name: &str,
    count: u64,
    outside: f64,
    case: impl Fn(&mut Random, u64) -> Result<(), String>,
) {
    let from_env = |key: &str| std::env::var(key).ok().and_then(|it| it.parse().ok());
    let seeds = match from_env("STERNA_GUARD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_env("STERNA_GUARD_CASES").unwrap_or(count),
    };
    let all = seeds.end - seeds.start;
    let mut failed: u32 = 0;
    for seed in seeds {
        if let Err(why) = case(&mut Random::new(seed), seed) {
            eprintln!("{name}: STERNA_GUARD_SEED={seed}: {why}");
            failed += 1;
        }
    }
    let part = f64::from(failed) * 100.0 / all as f64;
    println!("{name}: {failed} of {all}");
    assert!(part <= outside, "{name}: {failed} of {all} cases");
}
