//! Moves that begin at another time, by what applications did in the last week.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::predict::{
    Ends, Hour, Lesson, Move, Prediction, Speed, Terms, Week, Work,
};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
/// A midnight.
const NOW: u64 = 20_000 * DAY;

/// Copies that have done 100 MiB/s.
fn speed() -> Speed {
    let (work, terms) = (Work::default(), Terms::default());
    let (rate, bytes) = (f64::from(100 << 20), 1 << 40);
    let lesson = Lesson::plain(Ends::Both, rate, bytes, work, terms);
    Speed::learned(&[lesson; 9]).expect("lessons")
}

fn busy() -> Work {
    Work { outstanding: 8.0, response: Nanos::from_millis(5), there: 1.0, writes: 0.0 }
}

/// A week in which somebody works from 8 to 20 but for the weekend (the last two days).
fn office() -> Week {
    let hours = (1..=168).map(|ago| {
        let at = NOW - ago * HOUR;
        let works = (8..20).contains(&(at % DAY / HOUR)) && ago > 48;
        Hour { at, work: if works { busy() } else { Work::default() } }
    });
    Week::new(hours.collect())
}

fn kept(bytes: u64) -> Move {
    let terms = Terms { keep: Some(0.97), ..Terms::default() };
    Move { bytes, compared: 0, work: busy(), terms }
}

fn secs(one: &Prediction) -> f64 {
    one.likely.as_secs_f64()
}

#[test]
fn a_move_at_night_is_as_short_as_nights_are_quiet() {
    let (week, one) = (office(), kept(10 << 30));
    let noon = week.predict(&one, &speed(), NOW + 12 * HOUR).expect("a noon was seen");
    let night = week.predict(&one, &speed(), NOW + 22 * HOUR).expect("a night was seen");
    assert!((102.0..104.0).contains(&secs(&night)), "{night:?}");
    assert!(secs(&noon) > 20.0 * secs(&night), "{noon:?}");
    assert!(noon.least < noon.likely && noon.likely < noon.most, "{noon:?}");
}

#[test]
fn a_move_that_begins_in_the_evening_speeds_up_when_everybody_goes() {
    let (week, one) = (office(), kept(40 << 30));
    let evening = week.predict(&one, &speed(), NOW + 19 * HOUR).expect("it was seen");
    let all_busy = Prediction::of(&one, &speed());
    // The rest of the hour brings little, and then it goes as at night.
    assert!((3700.0..4200.0).contains(&secs(&evening)), "{evening:?}");
    assert!(secs(&all_busy) > 3.0 * secs(&evening), "{all_busy:?}");
}

#[test]
fn the_same_day_of_the_week_counts_more_than_other_days() {
    let week = office();
    // In five days it is Saturday: the last one was quiet, at noon too.
    assert_eq!(week.work(NOW + 5 * DAY + 12 * HOUR), Some(Work::default()));
    assert_eq!(week.work(NOW + 12 * HOUR), Some(busy()));
    // Of one day only, another day at that hour is all that is known.
    let one = Week::new(vec![Hour { at: NOW - 12 * HOUR, work: busy() }]);
    assert_eq!(one.work(NOW + 12 * HOUR), Some(busy()));
    assert_eq!(one.work(NOW + 13 * HOUR), None);
    assert_eq!(one.work(NOW + 100 * DAY + 12 * HOUR), Some(busy()), "weeks go round");
}

#[test]
fn the_best_hour_is_the_one_in_which_the_move_is_over_soonest() {
    let (week, one) = (office(), kept(10 << 30));
    let noon = NOW + 12 * HOUR;
    let (at, best) = week.best(&one, &speed(), noon).expect("a week was seen");
    assert_eq!((at - NOW) / HOUR, 20, "when everybody goes");
    assert!(best.likely < Prediction::of(&one, &speed()).likely);
    assert_eq!(Week::default().best(&one, &speed(), noon), None);
}

#[test]
fn what_an_application_keeps_is_what_was_promised_or_what_turns_leave() {
    let of = |terms: Terms, outstanding: f64| {
        let work = Work { outstanding, ..busy() };
        Prediction::of(&Move { work, terms, ..kept(1 << 30) }, &speed()).kept
    };
    assert_eq!(of(Terms::default(), 0.0), 1.0);
    let unguarded = of(Terms::default(), 8.0);
    // 4 MiB at 100 MiB/s are 40 ms, and then it has 5.
    assert!((unguarded - 5.0 / 45.0).abs() < 1e-9, "{unguarded}");
    assert_eq!(of(kept(0).terms, 8.0), 0.97);
    assert_eq!(of(Terms { idle_only: true, ..Terms::default() }, 8.0), 1.0);
    let slowly = of(Terms { limit: Some(10 << 20), ..Terms::default() }, 8.0);
    assert!(unguarded < slowly && slowly < 1.0, "{slowly}");
}

proptest! {
    /// Where every hour is like now, a move takes as long whenever it begins; and a range
    /// holds the likely time whatever the week was like.
    #[test]
    fn hours_that_are_alike_change_nothing(
        bytes in 1u64..(1 << 42),
        outstanding in 0.0..32.0f64,
        at in 0u64..168 * HOUR,
        keep in prop::option::of(0.5..0.99f64),
        verify in any::<bool>(),
    ) {
        let work = Work { outstanding, ..busy() };
        let hours = (1..=168).map(|ago| Hour { at: NOW - ago * HOUR, work }).collect();
        let terms = Terms { keep, ..Terms::default() };
        // With half as many holes.
        let compared = if verify { bytes + bytes / 2 } else { 0 };
        let one = Move { bytes, compared, work, terms };
        let now = Prediction::of(&one, &speed());
        let then = Week::new(hours).predict(&one, &speed(), NOW + at).expect("it was seen");
        let ratio = secs(&then) / secs(&now);
        prop_assert!((ratio - 1.0).abs() < 1e-6, "{then:?} and {now:?}");
        prop_assert!(then.least <= then.likely && then.likely <= then.most);
        prop_assert_eq!(then.kept, now.kept);
    }
}
