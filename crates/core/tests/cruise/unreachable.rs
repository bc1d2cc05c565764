//! Targets that cannot be had.

use sterna_core::Nanos;
use sterna_core::guard::cruise::{CruiseControl, Hold, Outcome, RATE_MIN};
use sterna_core::qos::Goal;

use crate::{Device, World, allowed, cruise, e4, run};

#[test]
fn a_target_that_cannot_be_had_is_named_within_thirty_seconds() {
    let goal = Goal::Bytes(20_000_000);
    let (mut control, mut world) = (CruiseControl::new(cruise(goal)), e4());
    run(&mut control, &mut world, &mut Hold::default(), 30);
    let Outcome::Unreachable(reason) = control.outcome() else {
        panic!("{:?}", control.outcome())
    };
    assert!(reason.contains("at their floors"), "{reason}");
    assert!(reason.contains(" % of its target"), "{reason}");
}

#[test]
fn after_its_rest_an_unreachable_target_is_tried_again_from_the_start() {
    let goal = Goal::Bytes(20_000_000);
    let (mut control, mut world) = (CruiseControl::new(cruise(goal)), e4());
    let mut hold = Hold::default();
    run(&mut control, &mut world, &mut hold, 30);
    assert!(allowed(&hold) <= 2.0 * RATE_MIN, "{hold:?}");
    let mut periods = 0;
    while matches!(control.outcome(), Outcome::Unreachable(_)) {
        run(&mut control, &mut world, &mut hold, 1);
        periods += 1;
        assert!(periods <= 60, "it is not tried again");
    }
    assert_eq!(hold, Hold::default(), "the others are free for a period");
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
    let (mut world, mut hold) = (World { device, ..e4 }, Hold::default());
    for period in 0..30 {
        run(&mut control, &mut world, &mut hold, 1);
        assert_ne!(*control.outcome(), Outcome::Holding, "in period {period}");
    }
    assert!(matches!(control.outcome(), Outcome::Unreachable(_)));
}
