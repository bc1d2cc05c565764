//! Workloads that are stopped for the moves of their group, and started afterwards.

use sterna_core::Nanos;
use sterna_placement::waves::{
    Action, Event, Fault, Group, PlanRun, Running, Setup, Stage, TRIES, Wish, order,
    rehearse,
};

use super::setups::{in_group, lasting, progress, setup};

const NOW: Nanos = Nanos::from_secs(1000);

fn hooked() -> Group {
    Group { stops: true, starts: true, ..Group::default() }
}

/// Moves to a destination that takes two at a time.
fn narrow(moves: Vec<sterna_placement::waves::Move>, groups: Vec<Group>) -> Setup {
    Setup { groups, ..setup(moves, &[None, None]) }
}

fn start(task: usize) -> Action {
    Action::Start { task, to: 1 }
}

fn running(run: &PlanRun, group: usize) -> Running {
    run.workloads()[group].running
}

/// A plan of a group with two moves whose workload is being stopped.
fn stopping() -> PlanRun {
    let moves = vec![in_group(0, 60, 1), in_group(0, 50, 1)];
    let mut run = PlanRun::new(narrow(moves, vec![hooked()]));
    assert_eq!(run.step(NOW, Event::Tick), [Action::StopWorkload(0)]);
    run
}

/// A plan of two such groups, one after the other; the first has moved and is being started.
fn one_of_two_moved() -> PlanRun {
    let moves = vec![in_group(0, 60, 1), in_group(1, 50, 1)];
    let after = Group { after: vec![0], ..hooked() };
    let mut run = PlanRun::new(narrow(moves, vec![hooked(), after]));
    run.step(NOW, Event::Tick);
    run.step(NOW, Event::WorkloadStopped(0, true));
    run.step(NOW, Event::Began(0));
    assert_eq!(run.step(NOW, Event::Ended(0, true)), [Action::StartWorkload(0)]);
    run
}

#[test]
fn a_workload_stops_before_the_first_move_and_starts_after_the_last() {
    let mut run = stopping();
    assert_eq!(run.step(NOW, Event::Tick), [], "it is stopped once");
    let told = run.step(NOW, Event::WorkloadStopped(0, true));
    assert_eq!(told, [start(0), start(1)]);
    for at in [0, 1] {
        assert_eq!(run.step(NOW, Event::Began(at)), []);
    }
    assert_eq!(run.step(NOW, Event::Ended(0, true)), []);
    assert_eq!(run.step(NOW, Event::Ended(1, false)), [Action::StartWorkload(0)]);
    assert!(!run.has_ended(), "what was stopped runs again first");
    assert_eq!(run.step(NOW, Event::WorkloadStarted(0, true)), [Action::Finish]);
    assert_eq!(run.step(NOW, Event::WorkloadStarted(0, true)), []);
}

#[test]
fn the_place_for_which_a_workload_stops_is_kept_for_it() {
    let moves = vec![in_group(0, 60, 1), lasting(50, 1), lasting(40, 1)];
    let mut run = PlanRun::new(narrow(moves, vec![hooked()]));
    let told = run.step(NOW, Event::Tick);
    assert_eq!(told, [Action::StopWorkload(0), start(1)], "two at a time");
    assert_eq!(run.step(NOW, Event::WorkloadStopped(0, true)), [start(0)]);
}

#[test]
fn no_other_move_takes_the_place_when_the_workload_has_stopped() {
    let moves = vec![lasting(90, 1), lasting(80, 1), in_group(0, 60, 1)];
    let mut run = PlanRun::new(narrow(moves, vec![hooked()]));
    assert_eq!(run.step(NOW, Event::Tick), [start(0), start(1)]);
    run.step(NOW, Event::Began(0));
    let told = run.step(NOW, Event::Refused(1, Fault::Passing));
    let [Action::StopWorkload(0), Action::Wake(later)] = told[..] else {
        panic!("{told:?}")
    };
    // The longer one may be tried again by then.
    let told = run.step(later, Event::WorkloadStopped(0, true));
    assert_eq!(told, [start(2)]);
}

#[test]
fn a_workload_runs_until_there_is_a_place_for_its_first_move() {
    let moves = vec![lasting(60, 1), lasting(50, 1), in_group(0, 40, 1)];
    let mut run = PlanRun::new(narrow(moves, vec![hooked()]));
    assert_eq!(run.step(NOW, Event::Tick), [start(0), start(1)]);
    assert_eq!(running(&run, 0), Running::Untouched);
    run.step(NOW, Event::Began(0));
    assert_eq!(run.step(NOW, Event::Ended(0, true)), [Action::StopWorkload(0)]);
}

#[test]
fn one_that_does_not_stop_is_started_and_its_moves_fail() {
    let moves = vec![in_group(0, 60, 1), in_group(1, 50, 1)];
    let after = Group { after: vec![0], ..Group::default() };
    let mut run = PlanRun::new(narrow(moves, vec![hooked(), after]));
    run.step(NOW, Event::Tick);
    let told = run.step(NOW, Event::WorkloadStopped(0, false));
    assert_eq!(told, [Action::StartWorkload(0)]);
    let stages: Vec<Stage> = run.tasks().iter().map(|task| task.stage).collect();
    assert_eq!(stages, [Stage::Failed(Fault::Lasting), Stage::Skipped(0)]);
    assert_eq!(run.step(NOW, Event::WorkloadStarted(0, true)), [Action::Finish]);
}

#[test]
fn what_waits_for_a_group_waits_for_its_workload_to_be_back() {
    let mut run = one_of_two_moved();
    let told = run.step(NOW, Event::WorkloadStarted(0, true));
    assert_eq!(told, [Action::StopWorkload(1)]);
}

#[test]
fn one_that_does_not_start_is_tried_again_and_then_nobody_else_is_taken_down() {
    let mut run = one_of_two_moved();
    let (mut now, mut waits) = (NOW, Vec::new());
    for _ in 1..TRIES {
        let told = run.step(now, Event::WorkloadStarted(0, false));
        let [Action::Wake(at)] = told[..] else { panic!("{told:?}") };
        waits.push(at.since(now));
        now = at;
        assert_eq!(run.step(now, Event::Tick), [Action::StartWorkload(0)]);
    }
    assert_eq!(waits, [10, 40].map(Nanos::from_secs));
    assert_eq!(run.step(now, Event::WorkloadStarted(0, false)), [Action::Finish]);
    assert_eq!(running(&run, 0), Running::NotStarted);
    assert_eq!(run.tasks()[1].stage, Stage::Skipped(0));
    assert_eq!(running(&run, 1), Running::Untouched);
}

#[test]
fn a_plan_that_is_given_up_starts_what_it_has_stopped() {
    let mut run = stopping();
    assert_eq!(run.step(NOW, Event::Wish(Wish::Cancel)), [], "it is just being stopped");
    let told = run.step(NOW, Event::WorkloadStopped(0, false));
    assert_eq!(told, [Action::StartWorkload(0)]);
    let mut run = stopping();
    run.step(NOW, Event::WorkloadStopped(0, true));
    for at in [0, 1] {
        run.step(NOW, Event::Began(at));
    }
    let told = run.step(NOW, Event::Wish(Wish::Cancel));
    assert_eq!(told, [Action::Cancel(0), Action::Cancel(1)]);
    assert_eq!(run.step(NOW, Event::Ended(0, false)), []);
    assert_eq!(run.step(NOW, Event::Ended(1, false)), [Action::StartWorkload(0)]);
    assert_eq!(run.step(NOW, Event::WorkloadStarted(0, true)), [Action::Finish]);
}

#[test]
fn a_plan_that_is_paused_leaves_stopped_what_is() {
    let mut run = stopping();
    assert_eq!(run.step(NOW, Event::Wish(Wish::Pause)), []);
    assert_eq!(run.step(NOW, Event::WorkloadStopped(0, true)), []);
    let told = run.step(NOW, Event::Wish(Wish::Run));
    assert_eq!(told, [start(0), start(1)]);
}

#[test]
fn after_a_crash_what_was_being_done_is_done_again() {
    let mut run = stopping();
    let restored = |run: &PlanRun| PlanRun::restore(run.setup().clone(), progress(run));
    let (mut again, told) = restored(&run);
    assert_eq!(told, [Action::StopWorkload(0)]);
    assert_eq!(again.step(NOW, Event::Tick), [], "not before it has stopped");
    run.step(NOW, Event::WorkloadStopped(0, true));
    let (mut again, told) = restored(&run);
    assert_eq!(told, []);
    for at in [0, 1] {
        again.step(NOW, Event::Began(at));
        again.step(NOW, Event::Ended(at, true));
    }
    assert_eq!(running(&again, 0), Running::Starting);
    let (mut again, told) = restored(&again);
    assert_eq!(told, [Action::StartWorkload(0)]);
    assert_eq!(again.step(NOW, Event::WorkloadStarted(0, true)), [Action::Finish]);
}

#[test]
fn one_that_can_only_be_started_or_only_be_stopped_is() {
    let only = |stops, starts| {
        let group = Group { stops, starts, ..Group::default() };
        PlanRun::new(narrow(vec![in_group(0, 60, 1)], vec![group]))
    };
    let mut run = only(false, true);
    assert_eq!(run.step(NOW, Event::Tick), [start(0)]);
    run.step(NOW, Event::Began(0));
    assert_eq!(run.step(NOW, Event::Ended(0, true)), [Action::StartWorkload(0)]);
    let mut run = only(true, false);
    assert_eq!(run.step(NOW, Event::Tick), [Action::StopWorkload(0)]);
    run.step(NOW, Event::WorkloadStopped(0, true));
    run.step(NOW, Event::Began(0));
    assert_eq!(run.step(NOW, Event::Ended(0, true)), [Action::Finish]);
}

#[test]
fn moves_whose_workload_stands_still_meanwhile_follow_one_another() {
    let moves =
        vec![lasting(50, 1), in_group(0, 20, 1), lasting(30, 1), in_group(0, 60, 1)];
    assert_eq!(order(&moves, &[hooked()]), [3, 1, 0, 2]);
    assert_eq!(order(&moves, &[Group::default()]), [3, 0, 2, 1]);
    // What workloads take to stop and to start nobody knows.
    let moves = vec![in_group(0, 60, 1)];
    let told = rehearse(&PlanRun::new(narrow(moves, vec![hooked()])), &[]);
    assert_eq!(told.ends, Nanos::from_secs(60));
}
