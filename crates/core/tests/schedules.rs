//! Schedules, by what they promise: what is open when, for how long still, and that
//! what is shown can be read again.

use proptest::prelude::*;
use sterna_core::schedule::{
    DAY, Moment, ParseScheduleError, Schedule, WEEK, WINDOWS, Weekday,
};

fn schedule(text: &str) -> Schedule {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn at(weekday: Weekday, hour: u32, minute: u32) -> Moment {
    Moment::new(weekday, hour * 3600 + minute * 60)
}

use Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};

#[test]
fn a_window_over_midnight_belongs_to_the_day_it_begins_on() {
    let nights = schedule("Mon-Fri 22:00-06:00");
    assert!(nights.is_open(at(Monday, 22, 0)));
    assert!(nights.is_open(at(Saturday, 5, 59)));
    assert!(!nights.is_open(at(Saturday, 6, 0)));
    assert!(!nights.is_open(at(Saturday, 22, 0)));
    assert!(!nights.is_open(at(Monday, 5, 0)), "that night began on Sunday");
    assert!(schedule("Sun 22:00-06:00").is_open(at(Monday, 5, 0)), "over the week's end");
}

#[test]
fn days_without_hours_are_whole_or_wait_for_the_hours_that_follow() {
    let weekend = schedule("Sat,Sun");
    assert!(weekend.is_open(at(Saturday, 0, 0)) && weekend.is_open(at(Sunday, 23, 59)));
    assert!(!weekend.is_open(at(Monday, 0, 0)));
    let mornings = schedule("Mon,Wed 08:00-12:00");
    assert!(mornings.is_open(at(Monday, 9, 0)) && mornings.is_open(at(Wednesday, 9, 0)));
    assert!(!mornings.is_open(at(Monday, 13, 0)) && !mornings.is_open(at(Tuesday, 9, 0)));
}

#[test]
fn hours_without_days_are_those_of_the_days_before_or_of_every_day() {
    let shop = schedule("Mon-Tue 08:00-12:00, 14:00-18:00, Sat 10:00-12:00");
    assert!(shop.is_open(at(Tuesday, 15, 0)) && shop.is_open(at(Saturday, 11, 0)));
    assert!(!shop.is_open(at(Wednesday, 15, 0)) && !shop.is_open(at(Saturday, 15, 0)));
    let nights = schedule("22:00-06:00");
    assert!(Weekday::ALL.into_iter().all(|day| nights.is_open(at(day, 3, 0))));
}

#[test]
fn a_change_is_told_to_the_second() {
    let office = schedule("Mon 08:00-12:00, Wed-Thu 20:00-02:00");
    assert_eq!(office.until_change(at(Monday, 7, 59)), Some(60));
    assert_eq!(office.until_change(at(Monday, 8, 0)), Some(4 * 3600));
    assert_eq!(office.until_change(at(Monday, 12, 0)), Some(2 * DAY + 8 * 3600));
    assert_eq!(office.until_change(at(Friday, 1, 59)), Some(60));
    assert_eq!(schedule("Thu").until_change(at(Thursday, 0, 0)), Some(DAY));
    assert_eq!(schedule("Mon 08:00:30-09:00").until_change(at(Monday, 8, 0)), Some(30));
}

#[test]
fn windows_that_meet_are_one_and_no_change_is_between_them() {
    let long = schedule("Mon 08:00-12:00, 12:00-16:00, 15:00-18:00");
    assert_eq!(long.until_change(at(Monday, 9, 0)), Some(9 * 3600));
    assert_eq!(schedule("Mon-Sun").until_change(at(Monday, 9, 0)), None);
    assert_eq!(schedule("20:00-08:00, 08:00-20:00").until_change(at(Friday, 0, 0)), None);
}

#[test]
fn how_long_it_is_open_within_a_span_is_counted() {
    let nights = schedule("22:00-06:00");
    let hours = |schedule: &Schedule, now, span: u64| {
        schedule.open_within(now, span * 3600) as f64 / 3600.0
    };
    assert_eq!(hours(&nights, at(Monday, 20, 0), 2), 0.0, "it opens just then");
    assert_eq!(hours(&nights, at(Monday, 20, 0), 3), 1.0);
    assert_eq!(hours(&nights, at(Monday, 23, 0), 3), 3.0, "over midnight");
    assert_eq!(hours(&nights, at(Tuesday, 5, 30), 24), 8.0, "the end, and the beginning");
    assert_eq!(hours(&nights, at(Sunday, 23, 0), 12), 7.0, "over the week's end");
    assert_eq!(hours(&nights, at(Friday, 12, 0), 3 * 7 * 24), 3.0 * 7.0 * 8.0);
    let meeting = schedule("Mon 08:00-12:00, 12:00-16:00, 15:00-18:00");
    assert_eq!(hours(&meeting, at(Monday, 11, 0), 24), 7.0, "no second counts twice");
    assert_eq!(hours(&schedule("Mon-Sun"), at(Monday, 11, 0), 1000), 1000.0);
    assert_eq!(nights.open_within(at(Monday, 5, 59), 61), 60);
}

#[test]
fn schedules_are_shown_as_they_are_written() {
    for text in [
        "Mon-Fri 22:00-06:00",
        "22:00-06:00",
        "Sat-Sun",
        "Mon,Wed,Fri-Sun 08:00-12:00",
        "Mon 08:00-12:00, Wed-Thu 20:00-02:00",
        "20:00-24:00, Sat-Sun",
        "Sat-Sun 00:00-24:00, Mon 08:00:30-09:00",
        "Mon-Sun",
    ] {
        assert_eq!(schedule(text).to_string(), text);
    }
    assert_eq!(schedule(" saturday ,SUN 8:00-9:30").to_string(), "Sat-Sun 08:00-09:30");
    assert_eq!(schedule("Sat-Mon").to_string(), "Mon,Sat-Sun");
    assert_eq!(schedule("22:00-00:00"), schedule("22:00-24:00"));
}

#[test]
fn what_is_wrong_is_named() {
    let error = |text: &str| text.parse::<Schedule>().unwrap_err();
    assert_eq!(error("  "), ParseScheduleError::Empty);
    assert_eq!(error("Mo 08:00-12:00"), ParseScheduleError::Day("Mo".into()));
    assert_eq!(error("Mon-"), ParseScheduleError::Day("Mon-".into()));
    for hours in ["8-12", "25:00-26:00", "08:60-09:00", "24:00-06:00", "08:00-24:01"] {
        assert_eq!(error(hours), ParseScheduleError::Hours(hours.into()));
    }
    assert_eq!(error("08:00-08:00"), ParseScheduleError::NoTime("08:00-08:00".into()));
    assert_eq!(error("Mon,,Tue"), ParseScheduleError::Part(String::new()));
    let part = "Mon 08:00 - 12:00";
    assert_eq!(error(part), ParseScheduleError::Part(part.into()));
    let many = vec!["Mon 08:00-09:00"; WINDOWS + 1].join(",");
    assert_eq!(error(&many), ParseScheduleError::TooLong);
}

/// A schedule, written in any of the ways.
fn any_text() -> impl Strategy<Value = String> {
    let day = || (0..7usize).prop_map(|day| Weekday::ALL[day].to_string());
    let days = prop_oneof![day(), (day(), day()).prop_map(|(a, b)| format!("{a}-{b}"))];
    let clock = || (0..24u32, 0..60u32, 0..3u32);
    let hours = (clock(), clock()).prop_filter_map("no time", |(from, until)| {
        let text = |(hour, minute, second)| format!("{hour:02}:{minute:02}:{second:02}");
        (from != until).then(|| format!("{}-{}", text(from), text(until)))
    });
    let part = prop_oneof![
        days.clone(),
        hours.clone(),
        (days, hours).prop_map(|(days, hours)| format!("{days} {hours}")),
    ];
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.join(","))
}

fn any_moment() -> impl Strategy<Value = Moment> {
    (0..WEEK).prop_map(|second| at(Monday, 0, 0).after(second))
}

proptest! {
    #[test]
    fn what_is_shown_is_read_as_the_same(text in any_text()) {
        let one = schedule(&text);
        prop_assert_eq!(schedule(&one.to_string()), one);
    }

    #[test]
    fn nothing_changes_before_the_change_and_all_does_at_it(
        text in any_text(),
        now in any_moment(),
        part in 0..1000u32,
    ) {
        let one = schedule(&text);
        let open = one.is_open(now);
        match one.until_change(now) {
            Some(seconds) => {
                prop_assert!((1..=WEEK).contains(&seconds));
                prop_assert_ne!(one.is_open(now.after(seconds)), open);
                let before = u64::from(seconds) * u64::from(part) / 1000;
                let between = now.after(before as u32);
                prop_assert_eq!(one.is_open(between), open);
                // The change before is the same for all until the next.
                let since = one.since_change(now).unwrap();
                prop_assert_eq!(one.since_change(between), Some(since + before as u32));
                prop_assert_eq!(one.since_change(now.after(seconds)), Some(0));
            }
            None => prop_assert!(open && one.is_open(now.after(part * 600))),
        }
    }

    #[test]
    fn what_is_open_within_a_span_is_what_is_so_between_changes(
        text in any_text(),
        now in any_moment(),
        span in 0..3 * WEEK,
    ) {
        let one = schedule(&text);
        let (mut at, mut left, mut open) = (now, span, 0);
        while left > 0 {
            let step = one.until_change(at).unwrap_or(left).min(left);
            open += if one.is_open(at) { u64::from(step) } else { 0 };
            (at, left) = (at.after(step), left - step);
        }
        prop_assert_eq!(one.open_within(now, span.into()), open);
    }

    #[test]
    fn what_is_open_together_is_so_at_an_opening(
        one in any_text(),
        other in any_text(),
        now in any_moment(),
    ) {
        let (one, other) = (schedule(&one), schedule(&other));
        let both = |now| one.is_open(now) && other.is_open(now);
        if both(now) {
            let at_an_opening = one.openings().chain(other.openings()).any(both);
            prop_assert!(at_an_opening);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,40}") {
        if let Ok(one) = text.parse::<Schedule>() {
            prop_assert_eq!(schedule(&one.to_string()), one);
        }
    }
}
