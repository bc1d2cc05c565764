//! The published study of swap on flash, Fibre Channel and SATA.

use std::sync::LazyLock;

use sterna_core::memory::HOLD_MOST;
use sterna_sim::overcommit::{Course, Medium, Parameters, Published, Study, Way};

static STUDY: LazyLock<Study> =
    LazyLock::new(|| Study::run(Parameters::default(), 1, |_, _| {}));

fn course(medium: Medium, way: Way) -> &'static Course {
    STUDY.course(medium, way).expect("it is one of the study's")
}

/// The part of the orders of a guest that was never swapped out.
fn kept(medium: Medium, way: Way, until: usize) -> f64 {
    STUDY.kept(course(medium, way), 0, until)
}

#[test]
fn the_published_order_of_media_comes_of_seeks_and_turns() {
    for way in [Way::PageByPage, Way::Alone] {
        let [flash, fc, sata] = Medium::ALL.map(|medium| kept(medium, way, 120));
        assert!(flash > 0.7 && flash < 0.95, "{way}: {flash}");
        assert!(fc < 0.2 && sata < fc, "{way}: {fc}, {sata}");
    }
    // None of them was fitted to: they are near, and no more.
    for published in Published::all(120) {
        let ours = published.ours(&STUDY).expect("it was run");
        let off = ours / published.kept;
        assert!((0.1..2.0).contains(&off), "{published:?}: {ours}");
    }
}

#[test]
fn without_sterna_a_disk_hardly_recovers_within_two_minutes() {
    for medium in [Medium::Fc, Medium::Sata] {
        let course = course(medium, Way::PageByPage);
        let (first, last) = (course.mean(0, 10), course.mean(110, 120));
        assert!(last > first && last < 0.3 * STUDY.baseline.whole(), "{first}, {last}");
    }
}

#[test]
fn on_disks_sterna_brings_twice_the_orders_of_the_first_half_minute() {
    for medium in [Medium::Fc, Medium::Sata] {
        for way in [Way::Beside, Way::Held] {
            let (ours, alone) = (kept(medium, way, 30), kept(medium, Way::Alone, 30));
            assert!(ours > 2.0 * alone, "{medium}, {way}: {ours}, alone {alone}");
        }
    }
}

#[test]
fn sterna_brings_all_of_the_memory_back_and_reads_none_of_it_twice() {
    for (medium, way, course) in &STUDY.wakes {
        assert!(course.read <= STUDY.parameters.out, "{medium}, {way}: {course:?}");
        if let Some(wake) = course.wake {
            assert_eq!(course.read, STUDY.parameters.out, "{medium}, {way}");
            assert!(wake.all.is_some() && wake.failed == 0, "{medium}, {way}: {wake:?}");
        }
    }
}

#[test]
fn only_a_guest_that_may_be_held_is_and_only_where_it_pays() {
    for (medium, way, course) in &STUDY.wakes {
        let held = course.wake.map_or(0, |wake| wake.held.0);
        let may = *way == Way::Held && medium.is_disk();
        assert_eq!(held > 0, may, "{medium}, {way}: {held} ns");
        assert!(held <= HOLD_MOST.0, "{medium}, {way}: {held} ns");
    }
}

#[test]
fn sterna_sees_within_a_few_looks_that_a_guest_needs_its_memory() {
    for (medium, way, course) in &STUDY.wakes {
        let sees = matches!(way, Way::Beside | Way::Held);
        assert_eq!(course.seen.is_some(), sees, "{medium}, {way}");
        assert!(
            course.seen.is_none_or(|seen| seen <= 0.5),
            "{medium}, {way}: {course:?}"
        );
    }
}

#[test]
fn in_the_end_a_guest_is_as_fast_as_if_it_had_never_been_out() {
    for medium in Medium::ALL {
        let last = course(medium, Way::Held).mean(115, 120);
        let part = last / STUDY.baseline.whole();
        assert!((0.97..1.03).contains(&part), "{medium}: {part}");
    }
}

#[test]
fn the_same_seed_gives_the_same_study() {
    let small =
        Parameters { out: 64 << 20, seconds: 5, wakes: 1, ..Parameters::default() };
    let run = |seed| Study::run(small, seed, |_, _| {});
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
