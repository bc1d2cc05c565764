//! The published move of 250 machines.

use std::sync::LazyLock;

use sterna_sim::fluid::nas250::{ASSUMED, Basis, FITTED, Study, scenario};

static STUDY: LazyLock<Study> = LazyLock::new(Study::run);

#[test]
fn every_published_time_comes_out_within_15_percent() {
    let figures = STUDY.figures();
    assert_eq!(figures.len(), 5);
    for figure in figures {
        assert!(figure.holds(), "{figure:?}: off by {:+.1} %", 100.0 * figure.off());
    }
}

#[test]
fn three_of_the_five_are_checks_and_only_two_numbers_are_fitted() {
    let checks = STUDY.figures().into_iter().filter(|it| it.basis == Basis::Check);
    let checks: Vec<String> = checks.map(|it| it.what).collect();
    assert_eq!(checks, ["wave 1", "wave 3", "wave 4"]);
    assert_eq!(FITTED.len(), 2);
    assert!(ASSUMED.iter().all(|it| !it.is_empty()));
}

#[test]
fn the_fitted_numbers_are_those_of_the_scenario() {
    let scenario = scenario();
    assert_eq!(FITTED[0].value, format!("{}ms", scenario.copier.fixed * 1e3));
    assert_eq!(FITTED[1].value, scenario.arrays[0].width.unwrap().to_string());
}

#[test]
fn the_scenario_has_the_published_size() {
    let scenario = scenario();
    assert_eq!((scenario.vms.len(), scenario.bytes() >> 30), (250, 16_000));
    let iops: f64 =
        scenario.vms.iter().map(|vm| scenario.profiles[vm.profile].iops).sum();
    assert_eq!((iops, scenario.arrays[0].model.spindles()), (6250.0, 104));
}

#[test]
fn every_machine_at_work_holds_its_target() {
    for phase in &STUDY.waves.phases {
        assert_eq!(phase.held, phase.working, "{}", phase.name);
        assert!(phase.least.is_some_and(|least| least >= 0.99), "{phase:?}");
    }
    let working: Vec<usize> = STUDY.waves.phases.iter().map(|it| it.working).collect();
    assert_eq!(working, [250, 225, 175, 175, 175, 250]);
}

#[test]
fn later_waves_are_predicted_by_the_moves_before_them() {
    let of = |wave| STUDY.waves.wave(wave).expect("it ran");
    assert_eq!(of(0).predicted, None);
    for wave in 1..4 {
        let (told, took) = (of(wave).predicted.expect("it was"), of(wave).seconds());
        assert!((told.least..=told.most).contains(&took), "{wave}: {told:?}, {took} s");
    }
}

#[test]
fn if_waiting_machines_stood_still_later_waves_would_not_be_quicker() {
    let idle = STUDY.if_idle();
    assert!(idle[3].ours > idle[1].ours, "{idle:?}");
    assert!(idle.iter().any(|figure| !figure.holds()), "{idle:?}");
}
