//! A device's line is found in ordinary traffic, or it is said that it is not.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::measure::{Line, LqFit, LqLine, Traffic, Window};

use crate::random::Random;

const SECOND: Nanos = Nanos::from_secs(1);

/// A second with so many requests outstanding that each took this long.
fn second(outstanding: f64, latency: f64) -> Window {
    let operations = (outstanding * 1e9 / latency) as u64;
    let sum = Nanos((operations as f64 * latency) as u64);
    let read = Traffic { operations, response: sum, service: sum, ..Traffic::default() };
    Window { span: SECOND, read, ..Window::default() }
}

/// A device that is asked for a while, at loads that wander.
struct Device {
    unloaded: f64,
    slope: f64,
    /// The deviation of a second's latency, as a part of it.
    noise: f64,
    /// The part of the seconds in which something else keeps it busy.
    spoiled: f64,
}

impl Device {
    fn learn(&self, seed: u64, seconds: u64, loads: (f64, f64)) -> (LqLine, Nanos) {
        let (mut line, mut random) = (LqLine::default(), Random::new(seed));
        let mut now = Nanos(0);
        for _ in 0..seconds {
            now = now.plus(SECOND);
            let q = loads.0 * (loads.1 / loads.0).powf(random.unit());
            let mut latency = (self.unloaded + self.slope * q)
                * (1.0 + self.noise * random.normal()).max(0.2);
            if random.unit() < self.spoiled {
                latency *= 2.0 + 20.0 * random.unit();
            }
            line.add(now, &second(q, latency));
        }
        (line, now)
    }
}

fn expect_line(line: &LqLine, now: Nanos) -> Line {
    match line.fit(now) {
        LqFit::Line(line) => line,
        other => panic!("no line: {other:?}"),
    }
}

#[test]
fn a_line_is_found_through_noise() {
    let device = Device { unloaded: 4e6, slope: 5e5, noise: 0.1, spoiled: 0.0 };
    for seed in 0..200 {
        let (line, now) = device.learn(seed, 300, (1.0, 64.0));
        let line = expect_line(&line, now);
        let off = (line.slope - device.slope).abs();
        assert!(off < 0.25 * device.slope, "seed {seed}: {line:?}");
        assert!(off < 3.0 * line.slope_error, "seed {seed}: {line:?}");
        let unloaded = line.unloaded.0 as f64 / device.unloaded;
        assert!((0.8..1.2).contains(&unloaded), "seed {seed}: {line:?}");
        assert!((line.peak() / 2000.0 - 1.0).abs() < 0.35, "seed {seed}: {line:?}");
        assert!(line.seen.0 < 1.5 && line.seen.1 > 40.0, "{line:?}");
    }
}

#[test]
fn seconds_in_which_something_else_was_going_on_do_little_harm() {
    let device = Device { unloaded: 2e6, slope: 1e6, noise: 0.05, spoiled: 0.15 };
    for seed in 0..200 {
        let (line, now) = device.learn(seed, 400, (1.0, 32.0));
        let line = expect_line(&line, now);
        let ratio = line.slope / device.slope;
        assert!((0.75..1.35).contains(&ratio), "seed {seed}: {ratio} {line:?}");
    }
}

#[test]
fn one_load_is_no_line() {
    let device = Device { unloaded: 4e6, slope: 5e5, noise: 0.1, spoiled: 0.0 };
    for seed in 0..100 {
        let (line, now) = device.learn(seed, 300, (8.0, 9.0));
        assert!(matches!(line.fit(now), LqFit::NoVariation { .. }), "seed {seed}");
    }
}

#[test]
fn what_is_slower_though_nobody_waits_for_anybody_is_no_line() {
    let device = Device { unloaded: 1e5, slope: 2.2e6, noise: 0.1, spoiled: 0.0 };
    for seed in 0..100 {
        let (line, now) = device.learn(seed, 300, (0.03, 0.73));
        assert!(matches!(line.fit(now), LqFit::NoVariation { .. }), "seed {seed}");
    }
}

#[test]
fn a_device_that_is_never_busy_has_no_known_peak() {
    let device = Device { unloaded: 1e5, slope: 0.0, noise: 0.1, spoiled: 0.0 };
    let mut flat = 0;
    for seed in 0..200 {
        let (line, now) = device.learn(seed, 300, (0.3, 16.0));
        match line.fit(now) {
            LqFit::Flat { latency, .. } => {
                flat += 1;
                assert!((8e4..1.2e5).contains(&(latency.0 as f64)), "seed {seed}");
            }
            // Once in a while noise looks like a slope; then a tiny one.
            LqFit::Line(line) => assert!(line.slope < 2e3, "seed {seed}: {line:?}"),
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(flat > 190, "{flat} of 200");
}

#[test]
fn what_a_device_has_done_is_known_whatever_its_line_is() {
    let mut line = LqLine::default();
    assert_eq!(line.most(SECOND), None);
    // 0.1 ms each, however many are outstanding.
    for at in 1..=60u64 {
        line.add(Nanos::from_secs(at), &second((at % 16 + 1) as f64, 1e5));
    }
    let now = Nanos::from_secs(60);
    assert!(matches!(line.fit(now), LqFit::Flat { .. }), "{:?}", line.fit(now));
    let most = line.most(now).unwrap();
    assert!((most / 160_000.0 - 1.0).abs() < 1e-3, "{most}");
    // Until it is forgotten.
    assert_eq!(line.most(Nanos::from_secs(2 * 3600)), None);
}

/// Clients that keep a rate, whatever the latency is.
fn at_rates(
    seed: u64,
    rates: (f64, f64),
    latency: impl Fn(f64) -> f64,
    noise: f64,
) -> (LqLine, Nanos) {
    let (mut line, mut random, mut now) =
        (LqLine::default(), Random::new(seed), Nanos(0));
    for _ in 0..400 {
        now = now.plus(SECOND);
        let rate = rates.0 + (rates.1 - rates.0) * random.unit();
        let latency = latency(rate) * (noise * random.normal()).exp();
        line.add(now, &second(rate * latency / 1e9, latency));
    }
    (line, now)
}

#[test]
fn a_rate_that_is_kept_is_not_taken_for_the_most_there_can_be() {
    for seed in 0..200 {
        // 1000 requests per second, each of which takes a millisecond, more or less.
        let (line, now) = at_rates(seed, (990.0, 1010.0), |_| 1e6, 0.4);
        let found = line.fit(now);
        assert!(!matches!(found, LqFit::Line(_)), "seed {seed}: {found:?}");
    }
    let mut lines = 0;
    for seed in 0..200 {
        // Any rate, and the device does not care.
        let (line, now) = at_rates(seed, (500.0, 8000.0), |_| 1e6, 0.3);
        lines += usize::from(matches!(line.fit(now), LqFit::Line(_)));
    }
    assert!(lines < 4, "{lines} of 200");
}

#[test]
fn the_line_is_found_by_rates_as_well_as_by_depths() {
    // 1 ms unloaded, 2000 requests per second at most.
    let latency = |rate: f64| 1e6 / (1.0 - rate / 2000.0);
    for seed in 0..200 {
        let (line, now) = at_rates(seed, (200.0, 1900.0), latency, 0.15);
        let line = expect_line(&line, now);
        let ratio = line.peak() / 2000.0;
        assert!((0.8..1.25).contains(&ratio), "seed {seed}: {ratio} {line:?}");
    }
}

#[test]
fn few_points_are_no_line() {
    let mut line = LqLine::default();
    assert_eq!(line.fit(SECOND), LqFit::TooFew { points: 0 });
    for at in 1..=8u64 {
        let now = Nanos::from_secs(at * 10);
        line.add(now, &second(at as f64, 1e6 + 1e5 * at as f64));
    }
    assert_eq!(line.fit(Nanos::from_secs(80)), LqFit::TooFew { points: 8 });
    // A second with hardly a request says nothing at all.
    line.add(Nanos::from_secs(90), &second(0.01, 1e6));
    assert_eq!(line.fit(Nanos::from_secs(90)), LqFit::TooFew { points: 8 });
}

#[test]
fn a_device_that_has_changed_is_learned_anew() {
    let before = Device { unloaded: 1e6, slope: 1e5, noise: 0.05, spoiled: 0.0 };
    let (mut line, mut now) = before.learn(1, 600, (1.0, 64.0));
    let mut random = Random::new(2);
    for _ in 0..600 {
        now = now.plus(SECOND);
        let q = 64f64.powf(random.unit());
        line.add(now, &second(q, 3e6 + 4e5 * q));
    }
    let slope = expect_line(&line, now).slope;
    assert!((slope / 4e5 - 1.0).abs() < 0.05, "{slope}");
    // What nothing was added to for hours is forgotten.
    let later = now.plus(Nanos::from_secs(3 * 3600));
    assert_eq!(line.fit(later), LqFit::TooFew { points: 0 });
}

proptest! {
    #[test]
    fn any_traffic_gives_an_answer_of_numbers(
        seconds in prop::collection::vec((0.0f64..1e4, 1.0f64..1e11), 0..200),
    ) {
        let (mut line, mut now) = (LqLine::default(), Nanos(0));
        for (q, latency) in seconds {
            now = now.plus(SECOND);
            line.add(now, &second(q, latency));
        }
        if let LqFit::Line(line) = line.fit(now) {
            prop_assert!(line.slope > 0.0 && line.slope.is_finite());
            prop_assert!(line.slope_error.is_finite() && line.peak().is_finite());
            prop_assert!(line.at(line.seen.1) >= line.unloaded);
        }
    }
}
