//! A plan under way, rule by rule.

use sterna_core::Nanos;
use sterna_core::place::waves::{
    Action, Event, Fault, Group, Run, Setup, Stage, TRIES, Wish,
};

use super::setups::{GIB, in_group, lasting, setup};

const NOW: Nanos = Nanos::from_secs(1000);

/// Two destinations that take any number of copies.
fn wide(moves: Vec<sterna_core::place::waves::Move>) -> Setup {
    setup(moves, &[Some(1e9), Some(1e9), Some(1e9)])
}

fn start(task: usize, to: usize) -> Action {
    Action::Start { task, to }
}

/// A plan whose moves have all begun that can.
fn begun(setup: Setup) -> Run {
    let mut run = Run::new(setup);
    for action in run.step(NOW, Event::Tick) {
        let Action::Start { task, .. } = action else { panic!("{action:?}") };
        assert_eq!(run.step(NOW, Event::Began(task)), []);
    }
    run
}

fn stage(run: &Run, at: usize) -> Stage {
    run.tasks()[at].stage
}

#[test]
fn moves_begin_and_end_and_then_the_plan_does() {
    let mut run = Run::new(wide(vec![lasting(60, 1), lasting(30, 2)]));
    assert_eq!(run.step(NOW, Event::Tick), [start(0, 1), start(1, 2)]);
    assert_eq!(run.step(NOW, Event::Tick), []);
    for at in [0, 1] {
        run.step(NOW, Event::Began(at));
    }
    assert_eq!(run.step(NOW, Event::Ended(1, true)), []);
    assert_eq!(run.step(NOW, Event::Ended(0, true)), [Action::Finish]);
    assert_eq!(run.step(NOW, Event::Tick), []);
    assert!(run.has_ended());
}

#[test]
fn what_may_pass_is_tried_again_later_each_time_and_then_fails() {
    let mut run = begun(wide(vec![lasting(60, 1)]));
    let mut now = NOW;
    let mut waits = Vec::new();
    for _ in 1..TRIES {
        assert_eq!(run.step(now, Event::Stands(0, Fault::Passing)), [Action::Cancel(0)]);
        let actions = run.step(now, Event::Ended(0, false));
        let [Action::Wake(at)] = actions[..] else { panic!("{actions:?}") };
        waits.push(at.since(now));
        now = at;
        assert_eq!(run.step(now, Event::Tick), [start(0, 1)]);
        run.step(now, Event::Began(0));
    }
    assert_eq!(waits, [10, 40].map(Nanos::from_secs));
    run.step(now, Event::Stands(0, Fault::Passing));
    assert_eq!(run.step(now, Event::Ended(0, false)), [Action::Finish]);
    assert_eq!(stage(&run, 0), Stage::Failed(Fault::Passing));
}

#[test]
fn a_destination_that_is_full_is_left_alone_and_its_moves_go_elsewhere() {
    let mut one = wide(vec![lasting(60, 1), lasting(50, 1), lasting(40, 1)]);
    one.at_once = Some(1);
    one.ends[2].room = 2 * GIB;
    let mut run = begun(one);
    let told = run.step(NOW, Event::Stands(0, Fault::Full));
    assert_eq!(told, [Action::Cancel(0)]);
    assert_eq!(run.closed()[1], Some(Fault::Full));
    assert_eq!(run.tasks().iter().map(|task| task.to).collect::<Vec<_>>(), [1, 2, 2]);
    // There is no room there for a third one.
    let told = run.step(NOW, Event::Ended(0, false));
    assert_eq!(stage(&run, 0), Stage::Failed(Fault::Full));
    assert_eq!(told, [start(1, 2)]);
}

#[test]
fn a_move_that_somebody_has_cancelled_is_not_begun_again() {
    let mut run = begun(wide(vec![lasting(60, 1)]));
    assert_eq!(run.step(NOW, Event::Ended(0, false)), [Action::Finish]);
    assert_eq!(stage(&run, 0), Stage::Failed(Fault::Lasting));
}

#[test]
fn what_fails_stops_only_what_waits_for_it() {
    let groups = vec![
        Group::default(),
        Group { after: vec![0], together: false },
        Group { after: vec![1], together: false },
    ];
    let moves =
        vec![in_group(0, 60, 1), in_group(1, 50, 1), in_group(2, 40, 1), lasting(30, 2)];
    let mut run = begun(Setup { groups, ..wide(moves) });
    assert_eq!(stage(&run, 1), Stage::Waiting);
    assert_eq!(run.step(NOW, Event::Ended(0, false)), []);
    let stages: Vec<Stage> = run.tasks().iter().map(|task| task.stage).collect();
    let expected = [
        Stage::Failed(Fault::Lasting),
        Stage::Skipped(0),
        Stage::Skipped(1),
        Stage::Running,
    ];
    assert_eq!(stages, expected);
    assert_eq!(run.step(NOW, Event::Ended(3, true)), [Action::Finish]);
}

#[test]
fn a_pause_holds_what_is_under_way_and_what_just_begins() {
    let mut run = Run::new(wide(vec![lasting(60, 1), lasting(50, 1), lasting(40, 1)]));
    run.step(NOW, Event::Tick);
    run.step(NOW, Event::Began(0));
    assert_eq!(run.step(NOW, Event::Wish(Wish::Pause)), [Action::Pause(0)]);
    assert_eq!(run.step(NOW, Event::Began(1)), [Action::Pause(1)]);
    assert_eq!(run.step(NOW, Event::Refused(2, Fault::Passing)), []);
    let later = NOW.plus(Nanos::from_secs(3600));
    assert_eq!(run.step(later, Event::Tick), []);
    let told = run.step(later, Event::Wish(Wish::Run));
    assert_eq!(told, [Action::Resume(0), Action::Resume(1), start(2, 1)]);
}

#[test]
fn a_plan_that_is_given_up_leaves_what_has_moved_and_cancels_the_rest() {
    let mut one = wide(vec![lasting(60, 1), lasting(50, 1), lasting(40, 1)]);
    one.at_once = Some(2);
    let mut run = begun(one);
    run.step(NOW, Event::Ended(0, true));
    run.step(NOW, Event::Began(2));
    let told = run.step(NOW, Event::Wish(Wish::Cancel));
    assert_eq!(told, [Action::Cancel(1), Action::Cancel(2)]);
    // One was too quick for that.
    run.step(NOW, Event::Ended(1, true));
    assert_eq!(run.step(NOW, Event::Ended(2, false)), [Action::Finish]);
    let stages: Vec<Stage> = run.tasks().iter().map(|task| task.stage).collect();
    assert_eq!(stages, [Stage::Moved, Stage::Moved, Stage::GivenUp]);
}

#[test]
fn outside_its_hours_nothing_begins() {
    let mut run = Run::new(wide(vec![lasting(60, 1)]));
    assert_eq!(run.step(NOW, Event::Open(false)), []);
    assert_eq!(run.step(NOW, Event::Tick), []);
    assert_eq!(run.step(NOW, Event::Open(true)), [start(0, 1)]);
}

#[test]
fn after_a_crash_it_goes_on_with_what_became_of_its_moves() {
    let run = begun(wide(vec![lasting(60, 1), lasting(50, 1)]));
    let mut tasks = run.tasks().to_vec();
    tasks[1].stage = Stage::Starting;
    let restored =
        |wish| Run::restore(run.setup().clone(), tasks.clone(), vec![None; 3], wish);
    let (mut again, told) = restored(Wish::Run);
    assert_eq!(told, []);
    assert_eq!(again.step(NOW, Event::Lost(1)), [start(1, 1)]);
    let (mut again, told) = restored(Wish::Pause);
    assert_eq!(told, [Action::Pause(0)]);
    assert_eq!(again.step(NOW, Event::Began(1)), [Action::Pause(1)]);
    let (mut again, _) = restored(Wish::Cancel);
    assert_eq!(again.step(NOW, Event::Lost(1)), []);
    assert_eq!(stage(&again, 1), Stage::GivenUp);
}
