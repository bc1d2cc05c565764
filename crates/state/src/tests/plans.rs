//! Plans, and how far they are.

use sterna_api::{PlanState, Tile};
use sterna_placement::waves::{Fault, Running, Stage};

use super::*;
use crate::examples::plan_of_two;

#[test]
fn a_plan_is_kept_with_all_of_its_moves() {
    let (dir, store) = fresh();
    let made = plan_of_two();
    let id = store.add_plan(made.clone()).unwrap();
    drop(store);
    let kept = open(&dir).plans().unwrap();
    assert_eq!(kept, [PlanRecord { id, ..made }]);
}

#[test]
fn a_plan_is_removed_with_all_of_its_parts_and_its_number_is_not_given_again() {
    let (_dir, store) = fresh();
    let [first, last] = [(); 2].map(|()| store.add_plan(plan_of_two()).unwrap());
    store.remove_plan(last).unwrap();
    assert_eq!(store.plan(last).unwrap(), None);
    assert_eq!(store.plans().unwrap(), [PlanRecord { id: first, ..plan_of_two() }]);
    assert!(store.add_plan(plan_of_two()).unwrap() > last);
}

#[test]
fn what_a_step_changes_is_recorded_and_the_rest_stays() {
    let (_dir, store) = fresh();
    let id = store.add_plan(plan_of_two()).unwrap();
    let mut now = PlanRecord { id, ..plan_of_two() };
    now.state = PlanState::Running;
    now.started = Some(9);
    let (fault, why) = (Fault::Destination, "it is gone".to_owned());
    now.closed[1] = Some(Closed { fault, why });
    now.moves[1].course = Course {
        stage: Stage::Stalled(Fault::Away),
        standing: Some("migration 3: it is lost".into()),
        held: true,
        migration: Some(3),
        took_s: Some(1.5),
        ..now.moves[1].course.clone()
    };
    let moves = vec![(1, now.moves[1].course.clone())];
    store.set_plan(&now, PlanChanges { moves, ..PlanChanges::default() }).unwrap();
    assert_eq!(store.plans().unwrap(), [now]);
}

#[test]
fn how_far_a_workload_is_is_recorded_and_the_others_were_left_alone() {
    let (_dir, store) = fresh();
    let tile = |name: &str| Tile {
        name: name.into(),
        disks: vec![name.into()],
        after: None,
        together: false,
        stop: Some(vec!["/bin/stop".into(), name.into()]),
        start: None,
    };
    let mut now = plan_of_two();
    now.design.tiles = vec![tile("a"), tile("b")];
    now.workloads = vec![WorkloadCourse::default(); 2];
    now.id = store.add_plan(now.clone()).unwrap();
    assert_eq!(store.plans().unwrap(), [now.clone()]);
    for running in [Running::Stopping(1), Running::NotStarted] {
        now.workloads[1] = WorkloadCourse {
            running,
            tries: 2,
            stopped: Some(9),
            started: None,
            problem: Some("it hangs".into()),
        };
        let workloads = vec![(1, now.workloads[1].clone())];
        let changes = PlanChanges { workloads, ..PlanChanges::default() };
        store.set_plan(&now, changes).unwrap();
        assert_eq!(store.plan(now.id).unwrap(), Some(now.clone()));
    }
}

#[test]
fn a_plan_that_has_left_something_down_is_found_for_a_while() {
    let (_dir, store) = fresh();
    let id = store.add_plan(plan_of_two()).unwrap();
    let over = PlanRecord { id, ended: Some(1_000), ..plan_of_two() };
    let down = |running| {
        let course = WorkloadCourse { running, ..WorkloadCourse::default() };
        PlanChanges { workloads: vec![(0, course)], ..PlanChanges::default() }
    };
    let found = || store.plans_left_down(1_000).unwrap().len();
    store.set_plan(&over, down(Running::Started)).unwrap();
    assert_eq!(found(), 0);
    store.set_plan(&over, down(Running::NotStarted)).unwrap();
    assert_eq!(found(), 1);
    assert_eq!(store.plans_left_down(1_001).unwrap().len(), 0, "it was long ago");
    let under_way = PlanRecord { ended: None, ..over };
    store.set_plan(&under_way, PlanChanges::default()).unwrap();
    assert_eq!(found(), 0, "it is told of by itself");
}
