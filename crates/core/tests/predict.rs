//! Predictions, by what they promise: what is learned from which moves, what a promise
//! costs, and how wide a range is.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::predict::{
    Ends, Lesson, Move, Prediction, PredictionOutcome, Scores, Share, Shown, Source,
    Speed, Terms, Weakest, Work,
};

const MIB: f64 = (1 << 20) as f64;
const GIB: u64 = 1 << 30;

/// A copy of a GiB at so many MiB/s, with nobody there.
fn lesson(ends: Ends, rate: f64) -> Lesson {
    let (work, terms) = (Work::default(), Terms::default());
    Lesson::plain(ends, rate * MIB, GIB, work, terms)
}

fn learned(lessons: &[Lesson]) -> Speed {
    Speed::learned(lessons).expect("lessons")
}

/// Somebody with so many requests of 5 ms under way.
fn work(outstanding: f64) -> Work {
    Work { outstanding, response: Nanos::from_millis(5), ..Work::default() }
}

fn keeping(keep: f64) -> Terms {
    Terms { keep: Some(keep), ..Terms::default() }
}

fn move_of(bytes: u64, work: Work, terms: Terms) -> Move {
    Move { bytes, compared: 0, work, terms }
}

fn secs(span: Nanos) -> f64 {
    span.as_secs_f64()
}

#[test]
fn an_idle_disk_moves_as_fast_as_those_before_it() {
    let speed = learned(&[100.0, 104.0, 96.0].map(|rate| lesson(Ends::Both, rate)));
    assert_eq!(speed.source, Source::Moves(3));
    let one = Prediction::of(&move_of(GIB, work(0.0), Terms::default()), &speed);
    assert!((9.5..=11.0).contains(&secs(one.likely)), "{one:?}");
    assert!(one.least < one.likely && one.likely < one.most, "{one:?}");
    assert_eq!((one.share, one.weakest), (1.0, Weakest::Storage));
    let verified = Move { compared: GIB, ..move_of(GIB, work(0.0), Terms::default()) };
    let verified = Prediction::of(&verified, &speed);
    assert!(secs(verified.likely) > 1.9 * secs(one.likely), "{verified:?}");
}

#[test]
fn a_comparison_reads_no_holes_where_both_images_know_them() {
    let speed = learned(&[lesson(Ends::Both, 100.0)]);
    let of = |compared, limit| {
        let terms = Terms { limit, ..Terms::default() };
        let one = Move { compared, ..move_of(GIB, work(0.0), terms) };
        (Prediction::of(&one, &speed), one.least())
    };
    // The operator's limit does not count them, but where one image cannot say.
    let mib = Some(1 << 20);
    let (full, least) = of(GIB, mib);
    assert_eq!(least, Some(Nanos::from_secs(2048)));
    assert!((2048.0..2049.0).contains(&secs(full.likely)), "{full:?}");
    let (thin, least) = of(4 * GIB, mib);
    assert_eq!(least, Some(Nanos::from_secs(2048)));
    assert!((2048.0..2049.0).contains(&secs(thin.likely)), "{thin:?}");
    assert!(secs(thin.most) > 5100.0, "{thin:?}");
    // Without one they take next to nothing, or what all else takes.
    let ((full, least), (thin, _)) = (of(GIB, None), of(4 * GIB, None));
    assert_eq!(least, None);
    let longer = secs(thin.likely) - secs(full.likely);
    assert!((0.2..0.6).contains(&longer), "{longer}");
    assert!(secs(thin.most) > secs(full.most) + 30.0, "{thin:?}");
}

#[test]
fn nothing_is_said_of_datastores_that_nothing_was_copied_between() {
    assert_eq!(Speed::learned(&[]), None);
    let empty = Lesson { bytes: 0, ..lesson(Ends::Both, 100.0) };
    assert_eq!(Speed::learned(&[empty, lesson(Ends::Both, 0.0)]), None);
}

#[test]
fn moves_with_other_ends_count_where_there_are_no_better_ones() {
    let (from, to) = (lesson(Ends::Source, 300.0), lesson(Ends::Destination, 80.0));
    let both = learned(&[from, to]);
    assert_eq!(both.source, Source::Ends);
    assert!((79.9..80.1).contains(&(both.likely / MIB)), "{both:?}");
    let one = learned(&[from]);
    assert!(one.source == Source::OneEnd && one.doubt > both.doubt, "{one:?}");
    let best = learned(&[from, to, lesson(Ends::Both, 60.0)]);
    assert_eq!(best.source, Source::Moves(1));
    assert!(best.likely < 61.0 * MIB, "{best:?}");
    let best = learned(&[from, to, lesson(Ends::Both, 60.0), lesson(Ends::Both, 62.0)]);
    assert!(best.doubt < both.doubt, "{best:?}");
}

#[test]
fn one_move_is_a_guess_and_the_less_it_says_the_wider_its_range() {
    let range = |lessons: &[Lesson]| {
        let speed = learned(lessons);
        let one = Prediction::of(&move_of(GIB, work(0.0), Terms::default()), &speed);
        (speed.source.is_guess(), secs(one.most) / secs(one.least))
    };
    let one = lesson(Ends::Both, 100.0);
    let (guess, plain) = range(&[one]);
    assert!(guess && plain > 4.0, "{plain}");
    // Of a short one, beside somebody who had most of the source, hardly anything is known.
    let thin = Lesson { work: work(4.0), bytes: 4 << 20, ..one };
    let (guess, thin) = range(&[thin]);
    assert!(guess && thin > 4.0 * plain, "{thin}");
    let (guess, two) = range(&[one, one]);
    assert!(!guess && two < plain, "{two}");
    assert!(range(&[lesson(Ends::Source, 100.0)]).0);
}

#[test]
fn an_application_that_seldom_waits_for_its_storage_is_not_said_to_lose_all_it_does() {
    let speed = learned(&[lesson(Ends::Both, 73.0), lesson(Ends::Both, 73.0)]);
    for outstanding in [0.1, 0.2, 0.4] {
        let work = Work {
            outstanding,
            response: Nanos::from_micros(130),
            there: 1.0,
            writes: 0.0,
        };
        let one = Prediction::of(&move_of(GIB, work, Terms::default()), &speed);
        assert!(one.kept >= 1.0 - outstanding, "{outstanding}: {}", one.kept);
        // And it keeps what it kept before.
        let kept = Lesson { work, kept: Some(0.998), ..lesson(Ends::Both, 800.0) };
        let speed = learned(&[kept, kept, lesson(Ends::Both, 73.0)]);
        let again = Prediction::of(&move_of(GIB, work, Terms::default()), &speed);
        assert!(again.kept > 0.9, "{outstanding}: {}", again.kept);
    }
}

#[test]
fn before_the_first_move_what_devices_have_shown_is_a_guess() {
    // A flash device that does 20 000 pages, and a disk that does 150.
    let flash = Shown { peak: 20_000.0, size: 8192.0 };
    let disk = Shown { peak: 150.0, size: 8192.0 };
    let speed = |from, to| Speed::guessed(from, to).expect("something is known");
    let fast = speed(Some(flash), Some(flash));
    assert!((500.0..3000.0).contains(&(fast.likely / MIB)), "{fast:?}");
    let slow = speed(Some(flash), Some(disk));
    assert!((4.0..100.0).contains(&(slow.likely / MIB)), "{slow:?}");
    assert!(slow.read > 10.0 * slow.likely, "the source is not the disk: {slow:?}");
    let one = speed(None, Some(disk));
    assert!(one.doubt > slow.doubt && one.source.is_guess(), "{one:?}");
    assert_eq!(Speed::guessed(None, None), None);
    let nothing = Shown { peak: 0.0, size: 0.0 };
    assert_eq!(Speed::guessed(Some(nothing), None), None);
}

#[test]
fn an_end_that_lets_only_so_much_through_is_no_faster_for_what_others_did() {
    let quick = learned(&[lesson(Ends::Source, 300.0)]);
    let shaped = quick.clone().at_most(40.0 * MIB);
    assert_eq!((shaped.likely, shaped.read), (40.0 * MIB, 40.0 * MIB));
    assert_eq!((shaped.source, shaped.doubt), (quick.source, quick.doubt));
    assert_eq!(quick.clone().at_most(400.0 * MIB), quick);
}

#[test]
fn moves_that_differ_make_the_range_wider_and_late_ones_count_more() {
    let alike = learned(&[100.0; 8].map(|rate| lesson(Ends::Both, rate)));
    let apart: Vec<Lesson> =
        (0..8).map(|n| lesson(Ends::Both, [50.0, 200.0][n % 2])).collect();
    let apart = learned(&apart);
    assert!(apart.doubt > 2.0 * alike.doubt, "{} and {}", apart.doubt, alike.doubt);
    // The latest is the first.
    let slower: Vec<Lesson> =
        (0..32).map(|n| lesson(Ends::Both, if n < 16 { 50.0 } else { 200.0 })).collect();
    assert!(learned(&slower).likely < 75.0 * MIB, "{:?}", learned(&slower));
}

#[test]
fn what_an_application_keeps_is_what_the_copy_has_not() {
    let both = (100.0 * MIB, 100.0 * MIB);
    let share = |work, terms| Share::of(&work, &terms, both).likely;
    // All the time there, with no time to lose: it may lose 3 parts of 100, of which a
    // guard aims at 85.
    assert!((share(work(1.0), keeping(0.97)) - 0.0255).abs() < 1e-9);
    // Two requests a second lose nothing by taking twice as long. In a turn the copy has
    // as much of the source as that takes, and turns have nine tenths of the time.
    let seldom = Work { outstanding: 0.01, there: 0.2, ..work(0.0) };
    let turns = 0.8 + 0.2 * 0.9 * (1.0 - 1.0 / 1.85);
    assert!((share(seldom, keeping(0.97)) - turns).abs() < 1e-9);
    // Writes do not wait for what is read.
    let log = Work {
        outstanding: 1.0,
        response: Nanos::from_millis(1),
        there: 1.0,
        writes: 1.0,
    };
    assert!((share(log, keeping(0.97)) - 0.9).abs() < 1e-9);
    // 4 MiB at 100 MiB/s are 40 ms, and then somebody has 5 ms.
    let turns = share(work(1.0), Terms::default());
    assert!((turns - 40.0 / 45.0).abs() < 1e-9, "{turns}");
    let idle_only = Terms { idle_only: true, ..Terms::default() };
    assert!(share(work(8.0), idle_only) < 0.01);
    assert!((share(work(0.25), idle_only) - 0.75).abs() < 1e-9);
    let bounded = Terms { bounded: true, ..Terms::default() };
    let p99 = share(work(1.0), bounded);
    assert!(share(work(8.0), idle_only) < p99 && p99 < turns, "{p99}");
}

#[test]
fn what_a_source_can_do_beyond_the_copy_is_the_applications() {
    let terms = Terms::default();
    let slow_destination = |read| {
        let share = Share::of(&work(4.0), &terms, (100.0 * MIB, read * MIB));
        share.likely
    };
    assert!(slow_destination(100.0) < 0.9);
    // 4 MiB at 400 MiB/s are 10 ms: two thirds of the time, and so of 400 MiB/s.
    assert_eq!(slow_destination(400.0), 1.0);
    // It is known from a copy to somewhere faster.
    let learned = learned(&[lesson(Ends::Both, 100.0), lesson(Ends::Source, 400.0)]);
    assert!((learned.likely / MIB - 100.0).abs() < 0.1, "{learned:?}");
    assert!((learned.read / MIB - 400.0).abs() < 0.1, "{learned:?}");
    let beside = Lesson { work: work(4.0), ..lesson(Ends::Source, 900.0) };
    let by_chance = Speed::learned(&[lesson(Ends::Both, 100.0), beside]).expect("one");
    assert!(by_chance.read >= by_chance.likely, "{by_chance:?}");
}

#[test]
fn a_move_takes_as_long_as_the_last_ones_beside_the_same_application() {
    let (alone, reads) = (lesson(Ends::Both, 100.0), work(4.0));
    let held = |rate| Lesson { work: reads, ..lesson(Ends::Both, rate) };
    let took = |lessons: &[Lesson], work| {
        secs(
            Prediction::of(&move_of(GIB, work, Terms::default()), &learned(lessons))
                .likely,
        )
    };
    let before = took(&[alone], reads);
    let slow = took(&[held(20.0), held(20.0), held(20.0), alone], reads);
    // What was seen three times is nearly believed.
    assert!((35.0..=51.3).contains(&slow) && before < 20.0, "{before} and {slow}");
    // It says nothing of another application, and nothing of nobody.
    let (other, alone_now) = (work(0.1), work(0.0));
    for work in [other, alone_now] {
        let (one, all) = (took(&[alone], work), took(&[held(20.0), alone], work));
        assert!((all / one - 1.0).abs() < 0.1, "{work:?}: {one} and {all}");
    }
}

#[test]
fn what_holds_a_copy_back_most_is_named() {
    let speed = learned(&[lesson(Ends::Both, 100.0)]);
    let weakest =
        |work, terms| Prediction::of(&move_of(GIB, work, terms), &speed).weakest;
    assert_eq!(weakest(work(0.0), keeping(0.97)), Weakest::Storage);
    assert_eq!(weakest(work(4.0), keeping(0.97)), Weakest::Promise);
    let slow = Work {
        outstanding: 30.0,
        response: Nanos::from_millis(200),
        there: 1.0,
        writes: 0.0,
    };
    assert_eq!(weakest(slow, Terms::default()), Weakest::Application);
    let limited = Terms { limit: Some(10 << 20), ..Terms::default() };
    assert_eq!(weakest(work(0.0), limited), Weakest::Limit);
    let one = Prediction::of(&move_of(GIB, work(0.0), limited), &speed);
    assert!((102.0..103.0).contains(&secs(one.likely)), "{one:?}");
}

#[test]
fn nothing_takes_longer_than_a_year() {
    let speed = learned(&[Lesson { rate: 1e-9, ..lesson(Ends::Both, 1.0) }]);
    let one = Prediction::of(&move_of(u64::MAX, work(9.0), keeping(1.0)), &speed);
    assert_eq!((one.likely, one.most), (one.most, one.likely));
}

#[test]
fn how_right_predictions_were_is_counted() {
    let range = (80.0, 125.0);
    let took = |took| PredictionOutcome { likely: 100.0, range, took, kept: None };
    let scores = Scores::of(&[took(105.0), took(90.0), took(200.0)]);
    assert_eq!((scores.count, scores.within), (3, 2));
    assert!((scores.median_error - 0.1).abs() < 1e-9, "{scores:?}");
    assert_eq!(Scores::of(&[]), Scores::default());
    let nothing =
        PredictionOutcome { likely: 0.0, range: (0.0, 0.0), took: 3.0, kept: None };
    assert_eq!(Scores::of(&[nothing]).count, 0);
}

#[test]
fn what_the_application_kept_is_held_against_what_was_said_of_it() {
    let range = (80.0, 125.0);
    let kept = |told, kept| PredictionOutcome {
        likely: 100.0,
        range,
        took: 100.0,
        kept: Some((told, kept)),
    };
    let alone = PredictionOutcome { kept: None, ..kept(0.0, 0.0) };
    // One asked for more in the end than in the beginning: it lost nothing.
    let scores = Scores::of(&[kept(0.97, 0.95), kept(0.5, 0.8), kept(1.0, 1.4), alone]);
    assert_eq!((scores.count, scores.beside), (4, 3));
    assert!((scores.kept_error - 0.02).abs() < 1e-9, "{scores:?}");
}

proptest! {
    /// A move beside whatever application, under whatever promise, that takes what was
    /// predicted, changes no prediction of such a move.
    #[test]
    fn a_lesson_that_was_foreseen_teaches_nothing_new(
        speed in 1.0..5000.0f64,
        outstanding in 0.0..64.0f64,
        response in 10_000u64..50_000_000,
        writes in 0.0..=1.0f64,
        keep in prop::option::of(0.5..0.999f64),
        idle_only in any::<bool>(),
    ) {
        let work = Work { outstanding, response: Nanos(response), there: 0.0, writes };
        let idle_only = idle_only && keep.is_none();
        let terms = Terms { keep, idle_only, ..Terms::default() };
        let alone = lesson(Ends::Both, speed);
        // So large that its beginning and end do not count.
        let one = move_of(1 << 50, work, terms);
        let told = secs(Prediction::of(&one, &learned(&[alone])).likely);
        let rate = one.bytes as f64 / told;
        let foreseen = Lesson { rate, bytes: one.bytes, work, terms, ..alone };
        let again = secs(Prediction::of(&one, &learned(&[foreseen, alone])).likely);
        prop_assert!((again / told - 1.0).abs() < 0.01, "{again} and {told}");
    }

    /// Whatever is asked, the range holds the likely time, and more work or a stricter
    /// promise never makes a move shorter.
    #[test]
    fn more_to_do_takes_no_less(
        rates in prop::collection::vec(1.0..2000.0f64, 1..20),
        bytes in 1u64..(1 << 44),
        outstanding in 0.0..64.0f64,
        keep in 0.5..0.99f64,
    ) {
        let lessons: Vec<Lesson> =
            rates.iter().map(|rate| lesson(Ends::Both, *rate)).collect();
        let speed = learned(&lessons);
        let of = |bytes, outstanding, terms| {
            Prediction::of(&move_of(bytes, work(outstanding), terms), &speed)
        };
        let one = of(bytes, outstanding, keeping(keep));
        prop_assert!(one.least <= one.likely && one.likely <= one.most);
        // But for rounding.
        let no_less = |other: Prediction| secs(one.likely) <= secs(other.likely) * (1.0 + 1e-9);
        prop_assert!(no_less(of(bytes * 2, outstanding, keeping(keep))));
        prop_assert!(no_less(of(bytes, outstanding + 1.0, keeping(keep))));
        prop_assert!(no_less(of(bytes, outstanding, keeping(keep + 0.01))));
        prop_assert!(of(bytes, outstanding, Terms::default()).likely <= one.likely);
    }
}
