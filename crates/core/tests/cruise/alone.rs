//! A class that nobody is beside, and who comes then.

use sterna_core::Nanos;
use sterna_core::guard::cruise::{CruiseControl, CruiseHold, CruiseOutcome, RATE_MIN};
use sterna_core::qos::Goal;

use crate::{Device, MIB, Neighbour, World, allowed, cruise, e4, run};

/// The class of E4 without its neighbours, which come later.
fn alone() -> World {
    World { neighbours: Vec::new(), ..e4() }
}

#[test]
fn a_class_that_is_alone_and_asks_for_less_keeps_nobody_down_who_comes() {
    let mut control = CruiseControl::new(cruise(Goal::Requests(1500)));
    let (mut world, mut hold) = (alone(), CruiseHold::default());
    world.device.asks = 100.0;
    for period in 0..100 {
        run(&mut control, &mut world, &mut hold, 1);
        assert_eq!(*control.outcome(), CruiseOutcome::Holding, "in period {period}");
        assert_eq!(hold, CruiseHold::default(), "in period {period}");
    }
    world.neighbours = e4().neighbours;
    for period in 0..100 {
        run(&mut control, &mut world, &mut hold, 1);
        assert!(allowed(&hold) > 20.0 * MIB, "in period {period}: {hold:?}");
    }
    assert!(allowed(&hold) > 60.0 * MIB, "{hold:?}");
}

#[test]
fn who_did_a_little_and_rests_is_not_held_for_a_class_that_asks_for_less() {
    let mut control = CruiseControl::new(cruise(Goal::Requests(1500)));
    let (mut world, mut hold) = (alone(), CruiseHold::default());
    world.device.asks = 100.0;
    world.neighbours = vec![Neighbour { does: 0.5 * MIB, floor: 0.0 }];
    run(&mut control, &mut world, &mut hold, 1);
    world.neighbours[0].does = 0.0;
    for period in 0..15 {
        run(&mut control, &mut world, &mut hold, 1);
        assert_eq!(*control.outcome(), CruiseOutcome::Holding, "in period {period}");
    }
    assert_eq!(hold, CruiseHold::default());
}

#[test]
fn who_comes_to_a_class_that_was_alone_yields_within_ten_seconds() {
    let target = 1000.0;
    let mut control = CruiseControl::new(cruise(Goal::Requests(target as u64)));
    let (mut world, mut hold) = (alone(), CruiseHold::default());
    run(&mut control, &mut world, &mut hold, 100);
    assert_eq!((control.outcome(), control.note()), (&CruiseOutcome::Holding, None));
    world.neighbours = e4().neighbours;
    let (windows, _) = run(&mut control, &mut world, &mut hold, 60);
    let speeds: Vec<f64> = windows.iter().map(|one| one.iops() / target).collect();
    assert!(speeds[10..].iter().all(|speed| *speed > 0.89), "{speeds:.2?}");
    assert!(allowed(&hold) > 4.0 * RATE_MIN, "{hold:?}");
}

#[test]
fn a_response_time_that_a_class_misses_all_alone_is_named() {
    let mut control = CruiseControl::new(cruise(Goal::Response(Nanos::from_millis(5))));
    let (mut world, mut hold) = (alone(), CruiseHold::default());
    world.device = Device { own: 0.020, outstanding: 1.0, ..world.device };
    run(&mut control, &mut world, &mut hold, 30);
    let CruiseOutcome::Unreachable(reason) = control.outcome() else {
        panic!("{:?}", control.outcome())
    };
    assert!(reason.contains("no other class sends requests"), "{reason}");
    world.device.own = 0.004;
    run(&mut control, &mut world, &mut hold, 1);
    assert_eq!(*control.outcome(), CruiseOutcome::Holding);
}
