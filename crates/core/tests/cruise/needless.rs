//! What the others lose for a target, and need not: where it was met all the while, but
//! for a moment in which the device stood still.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::guard::cruise::{CruiseControl, CruiseHold, CruiseOutcome};
use sterna_core::qos::{Goal, Limit};

use crate::{Device, MIB, Neighbour, World, allowed, cruise, mean_ms, run};

/// What the neighbour does beside it, in MiB/s.
const DOES: f64 = 1334.0;

/// A database that asks for 1000 pages a second of a device that takes 0.1 ms for each,
/// and hardly more beside a neighbour.
fn fast() -> World {
    let device = Device {
        own: 0.0001,
        per_mib: 0.00003 / DOES,
        shared: None,
        outstanding: 1.0,
        size: 8192.0,
        asks: 1000.0,
    };
    let neighbours = vec![Neighbour { does: DOES * MIB, floor: 0.0 }];
    World { device, neighbours, noise: 0.03, seed: 1 }
}

/// The device is so many times slower for a while, and the neighbour gets that much less.
fn blip(
    control: &mut CruiseControl,
    world: &mut World,
    hold: &mut CruiseHold,
    (times, periods): (f64, usize),
) {
    let usual = (world.device, world.neighbours.clone());
    world.device.own *= times;
    world.neighbours[0].does /= times;
    run(control, world, hold, periods);
    (world.device, world.neighbours) = usual;
}

/// What the neighbour could do in so many periods, and did not, in periods of it.
fn lost(
    control: &mut CruiseControl,
    world: &mut World,
    hold: &mut CruiseHold,
    periods: usize,
) -> f64 {
    let mut lost = 0.0;
    for _ in 0..periods {
        lost += 1.0 - (allowed(hold) / MIB / DOES).min(1.0);
        run(control, world, hold, 1);
    }
    lost
}

#[test]
fn a_moment_in_which_the_device_stood_still_holds_nobody_for_long() {
    for goal in [Goal::Response(Nanos::from_millis(1)), Goal::Requests(900)] {
        for (times, periods) in [(20.0, 1), (50.0, 2), (100.0, 3), (200.0, 6)] {
            let (mut control, mut world) = (CruiseControl::new(cruise(goal)), fast());
            let mut hold = CruiseHold::default();
            run(&mut control, &mut world, &mut hold, 60);
            assert_eq!(hold, CruiseHold::default(), "{goal}: nobody has to yield");
            blip(&mut control, &mut world, &mut hold, (times, periods));
            let lost = lost(&mut control, &mut world, &mut hold, 120);
            assert!(lost < 20.0, "{goal}, {times} for {periods}: {lost:.1} s of work");
            assert_eq!(hold, CruiseHold::default(), "{goal}, {times} for {periods}");
            assert_eq!(*control.outcome(), CruiseOutcome::Holding);
        }
    }
}

#[test]
fn moments_now_and_then_cost_no_more_than_each_alone() {
    let goal = Goal::Response(Nanos::from_millis(1));
    let (mut control, mut world) = (CruiseControl::new(cruise(goal)), fast());
    let mut hold = CruiseHold::default();
    for number in 0..10 {
        blip(&mut control, &mut world, &mut hold, (50.0, 2));
        let lost = lost(&mut control, &mut world, &mut hold, 60);
        assert!(lost < 20.0, "moment {number}: {lost:.1} s of work");
    }
}

#[test]
fn a_class_with_a_response_time_is_never_delayed_itself() {
    let goal = Goal::Response(Nanos::from_millis(1));
    let (mut control, mut world) = (CruiseControl::new(cruise(goal)), fast());
    let mut hold = CruiseHold::default();
    blip(&mut control, &mut world, &mut hold, (100.0, 3));
    for period in 0..60 {
        assert!(hold.own.is_none(), "in period {period}: {hold:?}");
        let (windows, _) = run(&mut control, &mut world, &mut hold, 1);
        let mean = mean_ms(&windows[0]);
        assert!(mean < 0.2, "in period {period}: {mean:.2} ms");
    }
}

/// Its requests wait for 5 ms for its own limit, and take a tenth of one.
#[test]
fn what_a_class_waits_for_its_own_limit_is_not_laid_at_the_others_door() {
    let goal = Goal::Response(Nanos::from_millis(1));
    let (mut control, mut world) = (CruiseControl::new(cruise(goal)), fast());
    let limit = Limit { requests: Some(400), ..Limit::default() };
    control.limit_own(limit, None);
    world.device.outstanding = 2.0;
    let mut hold = CruiseHold::default();
    for period in 0..60 {
        let others = hold.others.clone();
        let (own, others) = world.period(&CruiseHold { own: limit, others });
        assert!(mean_ms(&own) > 4.0, "it waits");
        hold = control.step(&own, &others);
        assert_eq!(hold, CruiseHold::default(), "in period {period}");
        assert_eq!(*control.outcome(), CruiseOutcome::Holding, "in period {period}");
    }
}

/// Up to 500 MiB/s of the others cost nothing, and past that a request takes 10 ms.
#[test]
fn a_device_that_is_full_all_at_once_is_found_full_seldom() {
    let goal = Goal::Response(Nanos::from_millis(1));
    let (mut control, mut world) = (CruiseControl::new(cruise(goal)), fast());
    let (mut hold, usual) = (CruiseHold::default(), world.device.own);
    let (mut missed, mut got) = (0, 0.0);
    for period in 0..1800 {
        let does = allowed(&hold).min(DOES * MIB) / MIB;
        world.device.own = if does > 500.0 { 0.010 } else { usual };
        let (windows, _) = run(&mut control, &mut world, &mut hold, 1);
        if period >= 10 {
            missed += u32::from(mean_ms(&windows[0]) > 1.0);
            got += does / 1790.0;
        }
    }
    assert!(missed <= 30, "missed in {missed} seconds of half an hour");
    assert!(got > 400.0, "the others had {got:.0} MiB/s");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the device and the others are like: from the tenth period on the time is
    /// kept, and the others have what leaves the class a fifth to spare, at least.
    #[test]
    fn a_response_time_is_kept_and_the_others_have_what_it_leaves(
        own_ms in 0.1f64..20.0,
        loaded in 2.0f64..20.0,
        part in 0.3f64..0.7,
        outstanding in 1.0f64..64.0,
        does in prop::collection::vec(20.0f64..400.0, 1..5),
        noise in prop::sample::select(vec![0.0, 0.01, 0.03]),
        seed in any::<u64>(),
    ) {
        let all: f64 = does.iter().sum();
        let own = own_ms / 1000.0;
        let per_mib = own * (loaded - 1.0) / all;
        let device =
            Device { own, per_mib, shared: None, outstanding, size: 8192.0, asks: f64::MAX };
        let neighbours =
            does.iter().map(|does| Neighbour { does: does * MIB, floor: 0.0 }).collect();
        let mut world = World { device, neighbours, noise, seed };
        let target = own / part;
        // What they can have at least, and more than their floors.
        let leaves = (target / 1.2 - own) / per_mib;
        prop_assume!(leaves > 2.0 * does.len() as f64 && leaves < all / 1.5);
        let mut control =
            CruiseControl::new(cruise(Goal::Response(Nanos((target * 1e9) as u64))));
        let (windows, sums) = run(&mut control, &mut world, &mut CruiseHold::default(), 200);
        let means: Vec<f64> =
            windows.iter().map(|one| mean_ms(one) / 1000.0 / target).collect();
        let slow = means[10..].iter().filter(|mean| **mean > 1.12).count();
        prop_assert!(slow <= if noise > 0.0 { 6 } else { 0 }, "{slow}: {:.2?}", &means[..20]);
        // Where nobody is held they have all.
        let has = |sum: &f64| if *sum > 0.0 { sum / MIB } else { all };
        let has = sums[60..].iter().map(has).sum::<f64>() / (sums.len() - 60) as f64;
        prop_assert!(has > 0.8 * leaves, "{has:.1} of {leaves:.1} MiB/s: {:.1?}", &means[..20]);
    }
}
