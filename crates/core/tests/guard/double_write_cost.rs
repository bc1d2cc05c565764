//! A log whose writes go now to both images, and now to one.

use sterna_core::Nanos;
use sterna_core::guard::{Guard, GuardStatus, Observation, Remaining, Unreachable};
use sterna_core::measure::Window;

use crate::plant::WINDOW;
use crate::random::Random;
use crate::run::keep_97;

/// Windows in which it goes round once: half of it has been copied.
const ROUND: u64 = 20;

/// A log, and the device of both images.
struct Log {
    /// The part of the IO/s that writing to both images costs.
    cost: f64,
    /// The part of its requests that are reads.
    reads: f64,
    /// By what part windows differ by chance, and how far the device wanders in minutes.
    noise: f64,
    wander: f64,
}

const STEADY: Log = Log { cost: 0.0, reads: 0.0, noise: 0.1, wander: 0.5 };

impl Log {
    /// Beside it for so many seconds; how the guard stands then.
    fn stands_after(&self, seconds: u64, seed: u64) -> GuardStatus {
        let mut guard = Guard::new(keep_97());
        self.show(&mut guard, seconds, seed);
        guard.status()
    }

    fn show(&self, guard: &mut Guard, seconds: u64, seed: u64) {
        let mut random = Random::new(seed);
        for number in 0..seconds * 10 {
            let to_both = number % ROUND >= ROUND / 2;
            let cost = if to_both { self.cost } else { 0.0 };
            let wander = 1.0 + self.wander * (number as f64 / 400.0).sin();
            let noise = 1.0 + self.noise * (2.0 * random.unit() - 1.0);
            let answers = (800.0 * wander * noise * (1.0 - cost)) as u64;
            let reads = (answers as f64 * self.reads) as u64;
            let mut guest = Window { span: WINDOW, in_flight: 16, ..Window::default() };
            let took = Nanos(16 * WINDOW.0 / answers);
            for request in 0..answers {
                let side =
                    if request < reads { &mut guest.read } else { &mut guest.write };
                side.record(8192, took, Nanos(0), took);
            }
            let seen = Observation {
                guest: &guest,
                // So little that it does not matter, in whichever turn.
                copied: 1 << 16,
                idle: Nanos(0),
                mirror_wait: Nanos(0),
                mirrored_writes: if to_both { answers - reads } else { 0 },
                idle_processors: Some(1.0),
            };
            guard.step(&seen, Remaining::default());
        }
    }
}

#[test]
fn that_the_source_is_slower_for_writes_to_both_images_is_named() {
    for seed in 0..200 {
        let log = Log { cost: 0.3, ..STEADY };
        let status = log.stands_after(90, seed);
        let GuardStatus::Unreachable(Unreachable::MirrorCosts { loss }) = status else {
            panic!("seed {seed}: {status}");
        };
        // Half of its writes cost three tenths.
        assert!((0.10..0.16).contains(&loss), "seed {seed}: {loss}");
    }
}

#[test]
fn what_may_be_chance_is_not_named() {
    for seed in 0..200 {
        for reads in [0.0, 0.05] {
            let status = Log { reads, ..STEADY }.stands_after(90, seed);
            let named = matches!(status, GuardStatus::Unreachable(_));
            assert!(!named, "seed {seed}, {reads}: {status}");
        }
    }
}

#[test]
fn of_an_application_that_reads_as_well_nothing_is_told() {
    // It may be slower for what it reads.
    let status = Log { cost: 0.3, reads: 0.3, ..STEADY }.stands_after(90, 1);
    assert!(!matches!(status, GuardStatus::Unreachable(_)), "{status}");
}

#[test]
fn what_a_log_showed_is_not_held_against_what_comes_after_it() {
    let mut guard = Guard::new(keep_97());
    Log { cost: 0.3, ..STEADY }.show(&mut guard, 90, 1);
    let named = |guard: &Guard| matches!(guard.status(), GuardStatus::Unreachable(_));
    assert!(named(&guard), "{}", guard.status());
    Log { reads: 0.4, ..STEADY }.show(&mut guard, 10, 1);
    assert!(!named(&guard), "{}", guard.status());
}
