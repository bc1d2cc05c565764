//! A timeline tells what was done in any span of the last day.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::measure::{Point, Spread, Timeline};

use super::world::{TICK, reads};
use crate::random::Random;

const SECOND: Nanos = Nanos::from_secs(1);

fn millis(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

/// The end of a tick.
fn tick(number: u64) -> Nanos {
    Nanos(TICK.0 * number)
}

/// A timeline of so many ticks with as many reads each as `reads_in` says.
fn steady(ticks: std::ops::Range<u64>, reads_in: impl Fn(u64) -> usize) -> Timeline {
    let mut timeline = Timeline::default();
    for number in ticks {
        let took = vec![millis(2); reads_in(number)];
        if !took.is_empty() {
            timeline.push(tick(number + 1), &reads(TICK, &took));
        }
    }
    timeline
}

#[test]
fn rates_are_of_the_span_that_was_asked_for() {
    // 100 reads per second in the first minute, 1000 in the second.
    let timeline = steady(0..1200, |number| if number < 600 { 10 } else { 100 });
    let now = tick(1200);
    for (span, iops) in [(1, 1000.0), (10, 1000.0), (60, 1000.0), (120, 550.0)] {
        let span = Nanos::from_secs(span);
        let summary = timeline.since(now, span).unwrap();
        assert!((summary.iops() / iops - 1.0).abs() < 0.001, "{span}: {summary:?}");
        assert_eq!(summary.span, span);
        assert_eq!(summary.read.response, Some(millis(2)));
        assert!((summary.outstanding() - iops * 0.002).abs() < 0.01);
    }
}

#[test]
fn what_lies_before_the_span_is_not_in_it_for_long() {
    let timeline = steady(0..600, |number| if number < 555 { 100 } else { 10 });
    // The last 4.5 s are of 100 ms windows, and exact.
    let summary = timeline.since(tick(600), millis(4500)).unwrap();
    assert_eq!((summary.read.operations, summary.span), (450, millis(4500)));
    // 5 s go by windows of a second, and say when the first of them began.
    let summary = timeline.since(tick(600), millis(5300)).unwrap();
    assert_eq!(summary.span, Nanos::from_secs(6));
    assert_eq!(summary.read.operations, 15 * 100 + 450);
}

#[test]
fn idle_time_counts_as_time() {
    // A second of work, nine idle, again and again.
    let timeline = steady(0..1000, |number| if number % 100 < 10 { 50 } else { 0 });
    let now = tick(1000);
    let summary = timeline.since(now, Nanos::from_secs(50)).unwrap();
    assert!((summary.iops() / 50.0 - 1.0).abs() < 0.01, "{}", summary.iops());
    let idle = timeline.since(now, Nanos::from_secs(3)).unwrap();
    assert_eq!((idle.iops(), idle.p99, idle.read.response), (0.0, None, None));
    assert_eq!(idle.span, Nanos::from_secs(3));
}

#[test]
fn nothing_is_known_of_before_the_first_window() {
    assert_eq!(Timeline::default().since(tick(5), SECOND), None);
    let timeline = steady(100..103, |_| 10);
    let summary = timeline.since(tick(103), SECOND).unwrap();
    assert_eq!((summary.span, summary.read.operations), (millis(300), 30));
    assert!((summary.iops() - 100.0).abs() < 0.001);
}

#[test]
fn an_hour_is_known_to_the_minute() {
    let timeline = steady(0..50_000, |_| 3);
    let now = tick(50_000);
    let hour = timeline.since(now, Nanos::from_secs(3600)).unwrap();
    let extra = hour.span.since(Nanos::from_secs(3600));
    assert!(hour.span >= Nanos::from_secs(3600) && extra <= Nanos::from_secs(60));
    assert!((hour.iops() - 30.0).abs() < 0.01, "{}", hour.iops());
}

#[test]
fn a_day_is_kept_and_no_more() {
    let mut timeline = Timeline::default();
    let ten = Nanos::from_secs(10);
    let window = reads(ten, &vec![millis(2); 300]);
    for number in 1..=11_000 {
        timeline.push(Nanos(ten.0 * number), &window);
    }
    let now = Nanos(ten.0 * 11_000);
    let day = timeline.since(now, Nanos::from_secs(100_000)).unwrap();
    let extra = day.span.since(Nanos::from_secs(86_400));
    assert!(day.span >= Nanos::from_secs(86_400) && extra <= Nanos::from_secs(900));
    assert!((day.iops() - 30.0).abs() < 0.01, "{}", day.iops());
    assert!(!timeline.is_over(now));
    assert!(timeline.is_over(now.plus(Nanos::from_secs(86_401))));
    const { assert!(Timeline::MEMORY_MAX <= 68 << 10) };
}

#[test]
fn a_quantile_over_several_windows_is_near_the_true_one() {
    for seed in 0..50 {
        let (mut random, mut timeline) = (Random::new(seed), Timeline::default());
        let (mut all, mut number) = (Spread::default(), 0);
        while number < 40 {
            // The load changes from window to window, as it does.
            let (load, count) = (1.0 + random.unit() * 4.0, 20 + seed as usize * 20);
            let took: Vec<Nanos> = (0..count)
                .map(|_| Nanos((4e5 * load * (0.6 * random.normal()).exp()) as u64))
                .collect();
            took.iter().for_each(|took| all.record(*took));
            number += 1;
            timeline.push(tick(number), &reads(TICK, &took));
        }
        let summary = timeline.since(tick(number), Nanos::from_secs(4)).unwrap();
        for (part, found, within) in [
            (0.5, summary.p50, 0.08),
            (0.95, summary.p95, 0.13),
            (0.99, summary.p99, 0.12),
        ] {
            let ratio = found.unwrap().0 as f64 / all.quantile(part).unwrap().0 as f64;
            assert!((ratio - 1.0).abs() < within, "seed {seed}, {part}: {ratio}");
        }
        let longest = summary.max.unwrap().0 as f64 / all.max().0 as f64;
        assert!((longest - 1.0).abs() < 1e-6, "{longest}");
    }
}

proptest! {
    #[test]
    fn no_request_is_lost_or_counted_twice(
        ticks in prop::collection::vec(prop::option::weighted(0.6, 1usize..5), 1..900),
        jitter in prop::collection::vec(90u64..110, 1..7),
        blur in prop::collection::vec(0u64..12, 1..5),
        span in 1u64..90,
    ) {
        let (mut timeline, mut now) = (Timeline::default(), Nanos(0));
        let mut pushed = Vec::new();
        for (at, count) in ticks.iter().enumerate() {
            let start = now;
            now = now.plus(millis(jitter[at % jitter.len()]));
            if let Some(count) = *count {
                // Who measured the span had a clock of its own.
                let span = now.since(start).plus(millis(blur[at % blur.len()]));
                timeline.push(now, &reads(span, &vec![millis(1); count]));
                pushed.push((start, now, count as u64));
            }
        }
        let Some(summary) = timeline.since(now, Nanos::from_secs(span)) else {
            prop_assert!(pushed.is_empty());
            return Ok(());
        };
        let from = Nanos(now.0 - summary.span.0);
        let expected: u64 =
            pushed.iter().filter(|one| one.1 > from).map(|one| one.2).sum();
        prop_assert_eq!(summary.read.operations, expected);
        // No more than one window of the row it was taken from is too much.
        prop_assert!(summary.span <= Nanos::from_secs(span).plus(Nanos::from_secs(10)));
    }

    #[test]
    fn a_quantile_lies_between_those_of_the_windows(
        windows in prop::collection::vec(
            prop::collection::vec(1u64..1_000_000, 1..60), 1..40),
    ) {
        let (mut timeline, mut number) = (Timeline::default(), 0);
        let (mut least, mut most) = (Nanos::MAX, Nanos(0));
        for window in &windows {
            number += 1;
            let took: Vec<Nanos> =
                window.iter().map(|micros| Nanos::from_micros(*micros)).collect();
            let window = reads(TICK, &took);
            let own = window.response.quantile(0.99).unwrap();
            (least, most) = (least.min(own), most.max(own));
            timeline.push(tick(number), &window);
        }
        let p99 = timeline.since(tick(number), tick(40)).unwrap().p99.unwrap();
        // Floats of 24 bits.
        let slack = Nanos(most.0 / 1_000_000);
        prop_assert!(p99.plus(slack) >= least && p99 <= most.plus(slack));
    }
}

/// A timeline of `seconds` in which each second had ten requests of 1 ms, but for the
/// second `slow`, in which they took 40 ms.
fn with_a_slow_second(seconds: u64, slow: u64) -> (Timeline, Nanos) {
    let mut timeline = Timeline::default();
    for number in 1..=seconds * 10 {
        let took = if (number - 1) / 10 == slow { millis(40) } else { millis(1) };
        timeline.push(tick(number), &reads(TICK, &[took]));
    }
    (timeline, tick(seconds * 10))
}

#[test]
fn a_chart_of_ten_minutes_has_every_second() {
    let (timeline, now) = with_a_slow_second(700, 300);
    let from = Nanos(now.0 - Nanos::from_secs(600).0);
    let points = timeline.points(from, now, 600);
    // The last second has not closed yet.
    assert_eq!(points.len(), 599);
    assert!(points.iter().all(|point| point.windows == 1));
    let late: Vec<&Point> =
        points.iter().filter(|it| it.did.p99 > Some(millis(30))).collect();
    assert_eq!(late.len(), 1, "{late:?}");
    assert_eq!(late[0].start, Nanos::from_secs(300));
    let follow = |pair: &[Point]| pair[0].end <= pair[1].start;
    assert!(points.windows(2).all(follow));
}

#[test]
fn the_percentile_of_several_windows_in_one_point_is_that_of_the_worst() {
    let (timeline, now) = with_a_slow_second(600, 300);
    let points = timeline.points(Nanos(0), now, 20);
    assert!(points.len() <= 21, "{}", points.len());
    let worst = points.iter().max_by_key(|point| point.did.p99).unwrap();
    assert!(worst.windows == 3 && worst.did.p99 >= Some(millis(39)), "{worst:?}");
    assert!(points.iter().all(|it| (it.did.iops() - 10.0).abs() < 1.5), "{points:?}");
}

#[test]
fn a_chart_of_a_day_has_all_that_was_done_once() {
    let mut timeline = Timeline::default();
    let ten = Nanos::from_secs(10);
    for number in 1..=8_000 {
        timeline.push(Nanos(ten.0 * number), &reads(ten, &vec![millis(2); 30]));
    }
    let now = Nanos(ten.0 * 8_000);
    let points = timeline.points(Nanos(0), now, 600);
    let sum: u64 = points.iter().map(|point| point.did.read.operations).sum();
    assert!((230_000..=240_000).contains(&sum), "{sum}");
    assert!(points.windows(2).all(|pair| pair[0].end <= pair[1].start));
    // Where windows of a minute are kept, points have them.
    let last = points.last().unwrap();
    assert!(last.end.since(last.start) < Nanos::from_secs(300), "{last:?}");
}

#[test]
fn a_pause_is_no_point() {
    let mut timeline = Timeline::default();
    for number in (1..=50).chain(1_000..=1_050) {
        timeline.push(tick(number), &reads(TICK, &[millis(1)]));
    }
    let points = timeline.points(Nanos(0), tick(1_050), 600);
    let pause =
        points.windows(2).any(|it| it[1].start.since(it[0].end) > Nanos::from_secs(90));
    assert!(pause, "{points:?}");
}

#[test]
fn an_even_chart_has_one_length_of_windows_from_its_first_point_to_its_last() {
    let (timeline, now) = with_a_slow_second(3_000, 2_900);
    let from = Nanos(now.0 - Nanos::from_secs(2_500).0);
    let points = timeline.even_points(from, now, 600);
    assert!((41..=43).contains(&points.len()), "a point a minute: {}", points.len());
    let (last, others) = points.split_last().unwrap();
    let minute = |it: &Point| it.end.since(it.start) == Nanos::from_secs(60);
    assert!(others.iter().all(|it| minute(it) && it.windows == 1), "{others:?}");
    assert!(last.end.since(last.start) <= Nanos::from_secs(60));
    assert!(
        now.since(last.end) <= Nanos::from_secs(11),
        "the open one is there: {last:?}"
    );
}

#[test]
fn an_even_chart_of_ten_minutes_has_every_second() {
    let (timeline, now) = with_a_slow_second(3_000, 2_900);
    let from = Nanos(now.0 - Nanos::from_secs(600).0);
    let points = timeline.even_points(from, now, 600);
    assert!((599..=600).contains(&points.len()), "{}", points.len());
    let late = points.iter().filter(|it| it.did.p99 > Some(millis(30))).count();
    assert_eq!(late, 1);
}

#[test]
fn an_even_chart_of_a_young_timeline_is_as_fine_as_it_can_be() {
    let (timeline, now) = with_a_slow_second(300, 200);
    let from = Nanos(0);
    let points = timeline.even_points(from, now.plus(Nanos::from_secs(3_300)), 600);
    assert!(points.iter().all(|it| it.end.since(it.start) <= Nanos::from_secs(10)));
    assert!(points.len() >= 30, "{}", points.len());
}
