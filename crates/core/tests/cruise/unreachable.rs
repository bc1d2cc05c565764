//! Targets that cannot be had.

use sterna_core::Nanos;
use sterna_core::guard::cruise::{
    CruiseControl, CruiseHold, CruiseOutcome, Other, RATE_MIN,
};
use sterna_core::qos::policy::{Cruise, Fallback};
use sterna_core::qos::{ClassId, Goal, Limit};

use crate::{Device, MIB, World, allowed, cruise, e4, run, window};

#[test]
fn a_target_that_cannot_be_had_is_named_within_thirty_seconds() {
    let goal = Goal::Bytes(20_000_000);
    let (mut control, mut world) = (CruiseControl::new(cruise(goal)), e4());
    run(&mut control, &mut world, &mut CruiseHold::default(), 30);
    let CruiseOutcome::Unreachable(reason) = control.outcome() else {
        panic!("{:?}", control.outcome())
    };
    assert!(reason.contains("at their floors"), "{reason}");
    assert!(reason.contains(" % of its target"), "{reason}");
}

#[test]
fn after_its_rest_an_unreachable_target_is_tried_again_from_the_start() {
    let goal = Goal::Bytes(20_000_000);
    let (mut control, mut world) = (CruiseControl::new(cruise(goal)), e4());
    let mut hold = CruiseHold::default();
    run(&mut control, &mut world, &mut hold, 30);
    assert!(allowed(&hold) <= 2.0 * RATE_MIN, "{hold:?}");
    let mut periods = 0;
    while matches!(control.outcome(), CruiseOutcome::Unreachable(_)) {
        run(&mut control, &mut world, &mut hold, 1);
        periods += 1;
        assert!(periods <= 60, "it is not tried again");
    }
    assert_eq!(hold, CruiseHold::default(), "the others are free for a period");
    run(&mut control, &mut world, &mut hold, 1);
    assert!(allowed(&hold) > 8.0 * RATE_MIN, "cut to the floors at once: {hold:?}");
}

/// A log's writer: one request at a time, and pauses between them.
#[test]
fn a_response_time_that_the_device_misses_by_itself_is_not_said_to_hold() {
    let mut control = CruiseControl::new(cruise(Goal::Response(Nanos::from_millis(5))));
    let e4 = e4();
    let device =
        Device { own: 0.020, per_mib: 1e-6, outstanding: 1.0, asks: 30.0, ..e4.device };
    let (mut world, mut hold) = (World { device, ..e4 }, CruiseHold::default());
    for period in 0..30 {
        run(&mut control, &mut world, &mut hold, 1);
        assert_ne!(*control.outcome(), CruiseOutcome::Holding, "in period {period}");
    }
    let CruiseOutcome::Unreachable(reason) = control.outcome() else { panic!() };
    assert!(reason.ends_with("ms, target 5.0 ms"), "{reason}");
}

/// A target out of reach, with that as the fallback, and what the others are held to.
fn with_fallback(goal: Goal) -> (CruiseControl, CruiseHold) {
    let cruise = cruise(Goal::Bytes(20_000_000));
    let mut control =
        CruiseControl::new(Cruise { fallback: Fallback::Limit(goal), ..cruise });
    let mut hold = CruiseHold::default();
    run(&mut control, &mut e4(), &mut hold, 30);
    assert_eq!(control.fallback(), Some(Fallback::Limit(goal)));
    (control, hold)
}

#[test]
fn a_fallback_is_a_limit_in_the_metric_that_was_asked_for() {
    let is_each = |hold: CruiseHold, limit| {
        assert_eq!(hold.others.into_values().collect::<Vec<_>>(), [limit; 2]);
    };
    let (bytes, requests) = (Some(2 << 20), Some(100));
    let response = Some(Nanos::from_millis(20));
    let (_, hold) = with_fallback(Goal::Bytes(2 << 20));
    is_each(hold, Limit { bytes, ..Limit::default() });
    let (_, hold) = with_fallback(Goal::Requests(100));
    is_each(hold, Limit { requests, ..Limit::default() });
    let (_, hold) = with_fallback(Goal::Response(Nanos::from_millis(20)));
    is_each(hold, Limit { response, ..Limit::default() });
}

#[test]
fn a_fallback_ends_when_the_class_asks_for_nothing() {
    let (mut control, mut hold) = with_fallback(Goal::Bytes(2 << 20));
    assert!(!hold.others.is_empty());
    let mut world = e4();
    world.device.asks = 0.0;
    run(&mut control, &mut world, &mut hold, 3);
    assert_eq!(
        (control.outcome(), hold),
        (&CruiseOutcome::Holding, CruiseHold::default())
    );
}

/// One that keeps 8 requests of 64 KiB under way, and has 40 MiB/s reserved.
#[test]
fn a_fallback_in_another_metric_leaves_what_is_reserved_in_bytes() {
    let (size, floor) = (65536.0, 40.0 * MIB);
    let other =
        Other { class: ClassId(1), window: window(800.0, size, 0.010, 0.010), floor };
    let own = window(1.0, 8192.0, 0.010, 0.010);
    let held = |goal| {
        let (mut control, _) = with_fallback(goal);
        control.step(&own, std::slice::from_ref(&other)).others[&ClassId(1)]
    };
    let close = |rate: f64| (rate / floor - 1.0).abs() < 0.01;
    let requests = held(Goal::Requests(100)).requests.unwrap() as f64;
    assert!(close(requests * size), "{requests} IO/s");
    let response = held(Goal::Response(Nanos::from_millis(20))).response.unwrap();
    assert!(close(8.0 * size / response.as_secs_f64()), "{response:?}");
    let quick = Nanos::from_millis(5);
    assert_eq!(held(Goal::Response(quick)).response, Some(quick));
}
