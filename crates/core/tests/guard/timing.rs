//! A migration ends when it shall, if it can.

use sterna_core::Nanos;
use sterna_core::guard::{Guard, GuardAim, Remaining};

use crate::plant::{Course, Device, Load, Plant, Setup, Truth, WINDOW};
use crate::run::keep_97;

/// What came of a migration.
struct End {
    seconds: f64,
    kept: f64,
    /// What was said of it being late after so many seconds.
    said: Vec<Option<Nanos>>,
    would_keep: Option<f64>,
}

/// Moves so many bytes in `time` seconds, or whatever it takes.
fn migrate(setup: Setup, aim: GuardAim, bytes: f64, time: f64, seed: u64) -> End {
    let mut plant = Plant::new(setup, seed);
    let mut guard = Guard::new(aim);
    let mut allowance = Guard::FIRST;
    let mut sum = Truth::default();
    let (mut now, mut said, mut would_keep) = (0.0, Vec::new(), None);
    while sum.copied < bytes && now < 20.0 * time {
        let (measured, truth) = plant.window(allowance);
        sum.copied += truth.copied;
        sum.done += truth.done;
        sum.alone += truth.alone;
        now += WINDOW.as_secs_f64();
        let way = Remaining {
            bytes: (bytes - sum.copied).max(0.0) as u64,
            time: Some(Nanos(((time - now).max(0.0) * 1e9) as u64)),
        };
        allowance = guard.step(&measured.observation(), way);
        said.push(guard.late());
        would_keep = guard.in_time_would_keep().or(would_keep);
    }
    End { seconds: now, kept: sum.done / sum.alone, said, would_keep }
}

/// A disk of 400 MB/s with a guest that uses half of it.
fn setup(course: Course) -> Setup {
    Setup {
        device: Device { own: 0.0005, peak: 10_000.0, weight: 1.5, each: 0.0 },
        load: Load::Closed { depth: 5.0, pause: 0.0002 },
        course,
        wander: 0.01,
    }
}

const BURSTS: Course = Course::Bursts { on: 2.0, off: 3.0 };

#[test]
fn a_migration_ends_in_time_and_not_long_before() {
    for (course, mb) in [(Course::Steady, 3e9), (Course::Steady, 9e9), (BURSTS, 2e10)] {
        let end = migrate(setup(course), GuardAim::default(), mb, 100.0, 1);
        let seconds = end.seconds;
        assert!((60.0..=100.0).contains(&seconds), "{course:?}, {mb}: {seconds} s");
        let late = end.said.iter().flatten().count();
        assert_eq!(late, 0, "{course:?}, {mb}");
    }
}

#[test]
fn where_the_gaps_suffice_nothing_is_taken_from_the_guest() {
    let end = migrate(setup(BURSTS), GuardAim::default(), 1e10, 100.0, 1);
    assert!(end.seconds < 100.0);
    assert!(end.kept > 0.99, "kept {}", end.kept);
}

#[test]
fn a_device_that_is_too_slow_is_named_after_seconds_with_how_late_it_will_be() {
    let end = migrate(setup(Course::Steady), GuardAim::default(), 1e11, 100.0, 1);
    let said = end.said[100].expect("known after ten seconds").as_secs_f64();
    let late = end.seconds - 100.0;
    assert!((0.8..1.25).contains(&(said / late)), "said {said}, it was {late}");
}

#[test]
fn the_guest_comes_before_the_time_and_what_that_costs_is_said() {
    let end = migrate(setup(Course::Steady), keep_97(), 9e9, 100.0, 1);
    assert!(end.kept >= 0.97, "kept {}", end.kept);
    let late = end.seconds - 100.0;
    let said = end.said[300].expect("known after half a minute").as_secs_f64();
    assert!((0.6..1.6).contains(&(said / late)), "said {said}, it was {late}");
    let would = end.would_keep.expect("the marginal cost is known");
    assert!(would < 0.97, "in time it would have kept {would}");
}

#[test]
fn a_guard_with_time_to_spare_takes_less_than_it_may() {
    let end = migrate(setup(Course::Steady), keep_97(), 2e8, 100.0, 1);
    assert!((60.0..=100.0).contains(&end.seconds), "{} s", end.seconds);
    assert!(end.kept > 0.98, "kept {}", end.kept);
}
