//! The published study of a storage migration under a database.

use std::sync::LazyLock;

use sterna_core::Nanos;
use sterna_sim::svmotion::{
    Basis, Course, Disk, Extent, Load, Parameters, Published, Scene, Side, Study,
};

/// Enough of each disk, and a minute without a move: what is asserted is off by less
/// than a tenth, chance by less than a fiftieth.
const EXTENT: Extent = Extent::SAMPLE;

static STUDY: LazyLock<Study> =
    LazyLock::new(|| Study::run(Parameters::default(), EXTENT, 1, |_| {}));

fn course(from: Side, disk: Option<Disk>, load: Load) -> &'static Course {
    STUDY.course(Scene { from, disk, load }).expect("it is one of the study's")
}

fn seconds(from: Side, disk: Disk, load: Load) -> f64 {
    course(from, Some(disk), load).moved.expect("it has moved")
}

#[test]
fn every_published_figure_comes_out_within_a_tenth() {
    let figures = STUDY.published();
    assert_eq!(figures.len(), 20);
    for figure in figures {
        assert!(figure.holds(), "{figure:?}");
    }
}

#[test]
fn what_nothing_was_fitted_to_is_told_apart() {
    let figures = STUDY.published();
    let checks = figures.iter().filter(|figure| figure.basis == Basis::Check);
    let checks: Vec<&str> = checks.map(|figure| figure.what).collect();
    assert_eq!(
        checks,
        [
            "VM off, log: time",
            "high load, data: time",
            "low load, data: orders/s",
            "high load, index: orders/s",
            "high load: CPU",
        ]
    );
}

#[test]
fn what_a_move_costs_is_near_to_what_follows_from_the_published_figures() {
    for figure in STUDY.follows() {
        let Published::Value(published) = figure.published else { panic!("{figure:?}") };
        // In points: a fortieth of all orders, or a tenth of the time.
        let bound = if figure.what.ends_with("lost") { 2.5 } else { 10.0 };
        assert!((figure.ours - published).abs() < bound, "{figure:?}");
    }
}

#[test]
fn random_reads_slow_a_copy_down_and_the_copy_slows_them() {
    for disk in [Disk::Data, Disk::Index(0)] {
        let [off, low, high] =
            [Load::Off, Load::Low, Load::High].map(|load| seconds(Side::Old, disk, load));
        assert!(off < low && low < high, "{disk:?}: {off} {low} {high}");
    }
    let read = |disk| course(Side::Old, disk, Load::High).whole.data.mean_ms().unwrap();
    let (alone, moving) = (read(None), read(Some(Disk::Data)));
    assert!(moving > 1.5 * alone, "{alone} ms, then {moving} ms");
}

#[test]
fn a_logs_writes_are_mirrored_and_cost_its_move_little() {
    let log = course(Side::Old, Some(Disk::Log), Load::High);
    let alone = course(Side::Old, None, Load::High);
    let [with, without] = [log, alone].map(|it| it.whole.log.mean_ms().unwrap());
    // Both arrays acknowledge a cached write in a millisecond.
    assert!(with > without && with < without + 2.0, "{without} ms, then {with} ms");
    assert!(log.held_ms > 0.0 && log.held_ms < 100.0, "held for {} ms", log.held_ms);
}

#[test]
fn the_same_seed_gives_the_same_study() {
    let extent = Extent { bytes: 16 << 20, alone: Nanos::from_secs(1) };
    let run = |seed| Study::run(Parameters::default(), extent, seed, |_| {});
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
