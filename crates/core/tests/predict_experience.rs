//! Which past move's guard says where the next one begins.

use sterna_core::Nanos;
use sterna_core::guard::{Experience, TrialExperience};
use sterna_core::mirror::CopyMode;
use sterna_core::predict::{
    Ends, Lesson, Move, Prediction, Speed, Terms, Work, experience,
};

const KEEP: Terms =
    Terms { limit: None, keep: Some(0.97), bounded: false, idle_only: false };

/// An application with so many requests under way, of a millisecond each.
fn work(outstanding: f64) -> Work {
    Work { outstanding, response: Nanos::from_millis(1), there: 1.0, writes: 0.0 }
}

/// What a guard has found out beside it, known by its rate.
fn known(outstanding: f64, rate: f64) -> Experience {
    let trials = Some(TrialExperience {
        mode: CopyMode::ShortChunks,
        rate,
        marginal_cost: 1e-9,
        slowing: 1e-9,
        noise: 0.02,
        iops: outstanding * 1000.0,
    });
    Experience { trials, latency: None }
}

fn lesson(ends: Ends, outstanding: f64, rate: f64) -> Lesson {
    Lesson {
        ends,
        rate: 50e6,
        bytes: 8 << 30,
        work: work(outstanding),
        terms: KEEP,
        kept: None,
        experienced: false,
        experience: Some(known(outstanding, rate)),
    }
}

/// The rate that the guard of a move beside 4 requests begins with.
fn begins_with(lessons: &[Lesson]) -> Option<f64> {
    experience(lessons, &work(4.0), &KEEP)?.trials.map(|it| it.rate)
}

#[test]
fn the_latest_of_those_that_are_alike_counts() {
    let lessons = [lesson(Ends::Both, 4.5, 1e6), lesson(Ends::Both, 4.0, 2e6)];
    assert_eq!(begins_with(&lessons), Some(1e6));
}

#[test]
fn one_that_went_the_same_way_counts_more_than_a_later_one() {
    let lessons = [lesson(Ends::Source, 4.0, 1e6), lesson(Ends::Both, 4.0, 2e6)];
    assert_eq!(begins_with(&lessons), Some(2e6));
    assert_eq!(begins_with(&lessons[..1]), Some(1e6));
}

#[test]
fn what_is_not_alike_says_nothing() {
    assert_eq!(begins_with(&[lesson(Ends::Destination, 4.0, 1e6)]), None);
    assert_eq!(begins_with(&[lesson(Ends::Both, 40.0, 1e6)]), None);
    let one = lesson(Ends::Both, 4.0, 1e6);
    let bounded = Terms { bounded: true, ..KEEP };
    assert_eq!(begins_with(&[Lesson { terms: bounded, ..one }]), None);
    assert_eq!(begins_with(&[Lesson { experience: None, ..one }]), None);
    let idle = Work { there: 0.0, ..work(0.0) };
    assert_eq!(experience(&[one], &idle, &KEEP), None);
}

#[test]
fn a_guard_that_ended_beside_another_load_than_it_is_known_by_says_nothing() {
    let one = lesson(Ends::Both, 4.0, 1e6);
    let ended = Some(known(16.0, 1e6));
    assert_eq!(begins_with(&[Lesson { experience: ended, ..one }]), None);
}

#[test]
fn a_move_whose_guard_knows_something_is_predicted_to_learn_less() {
    let with = [lesson(Ends::Both, 4.0, 40e6); 2];
    let without = with.map(|it| Lesson { experience: None, ..it });
    let bytes = 1 << 30;
    let took = |lessons: &[Lesson]| {
        let alone = Lesson {
            rate: 400e6,
            work: Work::default(),
            terms: Terms::default(),
            experience: None,
            ..with[0]
        };
        let lessons = [lessons, &[alone, alone]].concat();
        let speed = Speed::learned(&lessons).expect("moves that say something");
        let one = Move { bytes, compared: 0, work: work(4.0), terms: KEEP };
        Prediction::of(&one, &speed).likely.as_secs_f64()
    };
    let (with, without) = (took(&with), took(&without));
    assert!(with < without - 1.0, "{with:.1} s with, {without:.1} s without");
}
