//! How fast a datastore fills up.

use sterna_core::Nanos;
use sterna_core::measure::Filling;

const GIB: u64 = 1 << 30;

/// A datastore that is looked at each minute.
fn seen(minutes: u64, free: impl Fn(u64) -> u64) -> Filling {
    let mut filling = Filling::default();
    for minute in 0..=minutes {
        filling.see(Nanos::from_secs(minute * 60), free(minute));
    }
    filling
}

#[test]
fn what_fills_up_evenly_says_when_it_is_full() {
    let trend = seen(60, |minute| (100 - minute) * GIB).trend().unwrap();
    assert_eq!(trend.over, Nanos::from_secs(3600));
    assert!((trend.bytes_per_second * 60.0 / GIB as f64 - 1.0).abs() < 0.01, "{trend:?}");
    let full = trend.full_in.unwrap().as_secs_f64();
    assert!((full / 60.0 - 40.0).abs() < 0.5, "{full}");
}

#[test]
fn a_disk_that_is_made_is_no_trend() {
    let trend = seen(60, |minute| if minute < 45 { 90 * GIB } else { 50 * GIB });
    let trend = trend.trend().unwrap();
    assert_eq!((trend.bytes_per_second, trend.full_in), (0.0, None));
}

#[test]
fn images_that_are_made_in_the_first_minutes_are_no_trend() {
    let made = |minute: u64| {
        40 * GIB + [8, 5, 3].iter().take(minute as usize).sum::<u64>() * GIB
    };
    let trend = seen(12, |minute| 100 * GIB - made(minute) - minute).trend().unwrap();
    assert!(trend.bytes_per_second < 1.0 && trend.full_in.is_none(), "{trend:?}");
}

#[test]
fn what_grows_in_bursts_has_a_trend() {
    let trend = seen(180, |minute| (200 - minute / 10 * 5) * GIB).trend().unwrap();
    let per_minute = trend.bytes_per_second * 60.0 / GIB as f64;
    assert!((0.4..0.6).contains(&per_minute), "{per_minute}");
}

#[test]
fn nothing_is_said_of_a_few_minutes_or_of_what_empties() {
    assert_eq!(seen(9, |minute| (100 - minute) * GIB).trend(), None);
    assert_eq!(Filling::default().trend(), None);
    let trend = seen(60, |minute| (100 + minute) * GIB).trend().unwrap();
    assert!(trend.bytes_per_second < 0.0 && trend.full_in.is_none(), "{trend:?}");
}

#[test]
fn six_hours_are_kept() {
    let trend = seen(1_000, |minute| (2_000 - minute) * GIB).trend().unwrap();
    assert_eq!(trend.over, Nanos::from_secs(359 * 60));
}
