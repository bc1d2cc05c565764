//! A plan under way, rule by rule.

use sterna_core::Nanos;
use sterna_placement::waves::{
    AWAY_MOST, Action, Event, Fault, Group, Others, PlanRun, Progress, STEADY, Setup,
    Stage, TRIES, Task, Wish,
};

use super::setups::{GIB, in_group, lasting, progress, setup};

const NOW: Nanos = Nanos::from_secs(1000);

/// Two destinations that take any number of copies.
fn wide(moves: Vec<sterna_placement::waves::Move>) -> Setup {
    setup(moves, &[Some(1e9), Some(1e9), Some(1e9)])
}

fn start(task: usize, to: usize) -> Action {
    Action::Start { task, to }
}

/// A plan whose moves have all begun that can.
fn begun(setup: Setup) -> PlanRun {
    let mut run = PlanRun::new(setup);
    for action in run.step(NOW, Event::Tick) {
        let Action::Start { task, .. } = action else { panic!("{action:?}") };
        assert_eq!(run.step(NOW, Event::Began(task)), []);
    }
    run
}

/// A plan as it is after a crash.
fn restored(run: &PlanRun, tasks: Vec<Task>, wish: Wish) -> (PlanRun, Vec<Action>) {
    let progress = Progress { tasks, wish, ..progress(run) };
    PlanRun::restore(run.setup().clone(), progress)
}

fn stage(run: &PlanRun, at: usize) -> Stage {
    run.tasks()[at].stage
}

#[test]
fn moves_begin_and_end_and_then_the_plan_does() {
    let mut run = PlanRun::new(wide(vec![lasting(60, 1), lasting(30, 2)]));
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
fn what_may_pass_goes_on_from_where_it_is_later_each_time_and_then_fails() {
    let mut run = begun(wide(vec![lasting(60, 1)]));
    let mut now = NOW;
    let mut waits = Vec::new();
    for _ in 1..TRIES {
        let actions = run.step(now, Event::Stalled(0, Fault::Passing));
        let [Action::Wake(at)] = actions[..] else { panic!("{actions:?}") };
        waits.push(at.since(now));
        now = at;
        assert_eq!(run.step(now, Event::Tick), [Action::Resume(0)]);
        assert_eq!(run.step(now, Event::Goes(0)), []);
    }
    assert_eq!(waits, [10, 40].map(Nanos::from_secs));
    assert_eq!(run.step(now, Event::Stalled(0, Fault::Passing)), [Action::Cancel(0)]);
    assert_eq!(run.step(now, Event::Ended(0, false)), [Action::Finish]);
    assert_eq!(stage(&run, 0), Stage::Failed(Fault::Passing));
}

#[test]
fn what_has_gone_on_for_a_while_counts_anew() {
    let mut run = begun(wide(vec![lasting(60, 1)]));
    let mut now = NOW;
    for _ in 0..3 * TRIES {
        run.step(now, Event::Stalled(0, Fault::Passing));
        now = now.plus(Nanos::from_secs(10));
        assert_eq!(run.step(now, Event::Tick), [Action::Resume(0)]);
        run.step(now, Event::Goes(0));
        now = now.plus(STEADY).plus(Nanos(1));
    }
    assert_eq!(stage(&run, 0), Stage::Running);
}

#[test]
fn what_cannot_go_on_is_begun_anew() {
    let mut run = begun(wide(vec![lasting(60, 1)]));
    assert_eq!(run.step(NOW, Event::Stuck(0, Fault::Passing)), [Action::Cancel(0)]);
    let actions = run.step(NOW, Event::Ended(0, false));
    let [Action::Wake(at)] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(run.step(at, Event::Tick), [start(0, 1)]);
}

#[test]
fn a_datastore_that_is_away_makes_its_moves_wait_and_is_left_alone_after_an_hour() {
    let mut one = wide(vec![lasting(60, 1), lasting(50, 1)]);
    one.at_once = Some(1);
    let mut run = begun(one);
    let mut now = NOW;
    let told = loop {
        let actions = run.step(now, Event::Stalled(0, Fault::Away));
        let [Action::Wake(at)] = actions[..] else { break actions };
        assert_eq!(stage(&run, 0), Stage::Stalled(Fault::Away));
        assert_eq!(run.waits_for(1, now), Some(1), "nothing begins there");
        let waits = Nanos::from_secs(10)..=Nanos::from_secs(60);
        assert!(waits.contains(&at.since(now)), "{}", at.since(now));
        // What it has heard already means nothing new.
        assert_eq!(run.step(now, Event::Stalled(0, Fault::Away)), [Action::Wake(at)]);
        now = at;
        assert_eq!(run.step(now, Event::Tick), [Action::Resume(0)]);
    };
    assert_eq!(told, [Action::Cancel(0)]);
    let waited = now.since(NOW);
    let latest = AWAY_MOST.plus(Nanos::from_secs(60));
    assert!((AWAY_MOST..=latest).contains(&waited), "{waited}");
    assert_eq!(run.closed()[1], Some(Fault::Away));
    assert_eq!(run.step(now, Event::Ended(0, false)), [start(0, 2)]);
    assert_eq!(run.tasks()[1].to, 2);
}

#[test]
fn a_datastore_that_was_back_is_waited_for_as_long_again() {
    let mut run = begun(wide(vec![lasting(60, 1)]));
    let mut now = NOW;
    for _ in 0..20 {
        run.step(now, Event::Stalled(0, Fault::Away));
        now = now.plus(Nanos::from_secs(10));
        assert_eq!(run.step(now, Event::Tick), [Action::Resume(0)]);
        run.step(now, Event::Goes(0));
        now = now.plus(Nanos::from_secs(600));
    }
    assert!(now.since(NOW) > AWAY_MOST);
    assert_eq!((stage(&run, 0), run.closed()[1]), (Stage::Running, None));
}

#[test]
fn what_cannot_begin_as_a_datastore_is_away_waits_and_then_goes_elsewhere() {
    let mut run = PlanRun::new(wide(vec![lasting(60, 1)]));
    let mut now = NOW;
    assert_eq!(run.step(now, Event::Tick), [start(0, 1)]);
    let told = loop {
        let actions = run.step(now, Event::Refused(0, Fault::Away));
        let [Action::Wake(at)] = actions[..] else { break actions };
        assert_eq!(stage(&run, 0), Stage::Waiting);
        now = at;
        assert_eq!(run.step(now, Event::Tick), [start(0, 1)]);
    };
    assert!(now.since(NOW) >= AWAY_MOST);
    assert_eq!(told, [start(0, 2)]);
    // The datastore that it leaves is waited for just as long.
    let mut run = PlanRun::new(wide(vec![lasting(60, 1)]));
    run.step(NOW, Event::Tick);
    run.step(NOW, Event::Refused(0, Fault::Source));
    assert_eq!((stage(&run, 0), run.waits_for(0, NOW)), (Stage::Waiting, Some(0)));
}

#[test]
fn while_nothing_can_be_recorded_no_move_begins_and_no_datastore_is_left_alone() {
    let mut one = wide(vec![lasting(60, 1), lasting(50, 1)]);
    one.at_once = Some(1);
    let mut run = PlanRun::new(one);
    let mut now = NOW;
    assert_eq!(run.step(now, Event::Tick), [start(0, 1)]);
    while now.since(NOW) < Nanos::from_secs(3000) {
        let actions = run.step(now, Event::Refused(0, Fault::Unrecorded));
        let [Action::Wake(at)] = actions[..] else { panic!("{actions:?}") };
        assert!([0, 1].iter().all(|at| run.waits_for_records(*at, now)));
        now = at;
        assert_eq!(run.step(now, Event::Tick), [start(0, 1)]);
    }
    // In a pause it does not begin.
    let told = run.step(now, Event::Refused(0, Fault::Unrecorded));
    let [Action::Wake(at)] = told[..] else { panic!("{told:?}") };
    run.step(now, Event::Wish(Wish::Pause));
    assert_eq!(run.step(at, Event::Tick), []);
    assert_eq!(run.step(at, Event::Wish(Wish::Run)), [start(0, 1)]);
    assert_eq!(run.closed(), [None, None, None]);
    run.step(at, Event::Began(0));
    assert_eq!(stage(&run, 0), Stage::Running);
}

#[test]
fn a_destination_that_is_full_is_left_alone_and_its_moves_go_elsewhere() {
    let mut one = wide(vec![lasting(60, 1), lasting(50, 1), lasting(40, 1)]);
    one.at_once = Some(1);
    let mut run = begun(one);
    assert_eq!(run.step(NOW, Event::Stalled(0, Fault::Full)), [Action::Cancel(0)]);
    assert_eq!(run.closed()[1], Some(Fault::Full));
    assert_eq!(run.tasks().iter().map(|task| task.to).collect::<Vec<_>>(), [1, 2, 2]);
    assert_eq!(run.step(NOW, Event::Ended(0, false)), [start(0, 2)]);
}

#[test]
fn a_room_that_two_datastores_share_is_full_for_both() {
    let mut one = wide(vec![lasting(60, 1)]);
    (one.ends[1].shared_room, one.ends[2].shared_room) = (Some(7), Some(7));
    let mut run = begun(one.clone());
    // It keeps what it has copied, and waits, instead of going to where as little is left.
    let told = run.step(NOW, Event::Stalled(0, Fault::Full));
    assert!(matches!(told[..], [Action::Wake(_)]), "{told:?}");
    assert_eq!(stage(&run, 0), Stage::Stalled(Fault::Full));
}

#[test]
fn what_goes_elsewhere_takes_a_shared_room_once() {
    let mut one = wide(vec![lasting(60, 3), lasting(50, 3)]);
    one.at_once = Some(1);
    one.ends.push(one.ends[1]);
    for end in &mut one.ends[1..3] {
        (end.room, end.shared_room) = (one.moves[0].needs, Some(7));
    }
    let mut run = begun(one);
    let told = run.step(NOW, Event::Stuck(0, Fault::Destination));
    assert_eq!(told, [Action::Cancel(0)]);
    assert!([1, 2].contains(&run.tasks()[1].to), "{:?}", run.tasks());
    // The other one has no room left, though nothing was to go to it.
    run.step(NOW, Event::Ended(0, false));
    assert_eq!(stage(&run, 0), Stage::Failed(Fault::Destination));
}

#[test]
fn what_has_copied_to_a_full_destination_and_finds_no_other_waits_for_room() {
    let mut one = wide(vec![lasting(60, 1), lasting(50, 1), lasting(40, 1)]);
    one.at_once = Some(1);
    one.ends[2].room = 2 * GIB;
    let mut run = begun(one);
    let again = NOW.plus(Nanos::from_secs(10));
    let told = run.step(NOW, Event::Stalled(0, Fault::Full));
    // It copies nothing, so another one has its place.
    assert_eq!(told, [start(1, 2), Action::Wake(again)]);
    assert_eq!(stage(&run, 0), Stage::Stalled(Fault::Full));
    run.step(NOW, Event::Began(1));
    run.step(NOW, Event::Ended(1, true));
    run.step(NOW, Event::Began(2));
    assert_eq!(run.step(again, Event::Ended(2, true)), [Action::Resume(0)]);
    assert_eq!(run.step(again, Event::Ended(0, true)), [Action::Finish]);
    assert_eq!(stage(&run, 0), Stage::Moved);
}

#[test]
fn a_destination_that_fails_is_tried_a_few_times_before_it_is_left_alone() {
    let mut run = begun(wide(vec![lasting(60, 1)]));
    let mut now = NOW;
    for _ in 1..TRIES {
        let actions = run.step(now, Event::Stalled(0, Fault::Destination));
        let [Action::Wake(at)] = actions[..] else { panic!("{actions:?}") };
        now = at;
        assert_eq!(run.step(now, Event::Tick), [Action::Resume(0)]);
    }
    let told = run.step(now, Event::Stalled(0, Fault::Destination));
    assert_eq!(
        (told, run.closed()[1]),
        (vec![Action::Cancel(0)], Some(Fault::Destination))
    );
    // One that keeps not what is written is not tried again.
    let mut run = begun(wide(vec![lasting(60, 1)]));
    let told = run.step(NOW, Event::Stuck(0, Fault::Destination));
    assert_eq!(
        (told, run.closed()[1]),
        (vec![Action::Cancel(0)], Some(Fault::Destination))
    );
}

#[test]
fn whoever_lets_a_plan_go_on_has_what_stands_still_tried_at_once() {
    let mut run = begun(wide(vec![lasting(60, 1)]));
    run.step(NOW, Event::Stalled(0, Fault::Away));
    assert_eq!(run.step(NOW, Event::Wish(Wish::Run)), [Action::Resume(0)]);
    run.step(NOW, Event::Stalled(0, Fault::Away));
    let later = NOW.plus(Nanos::from_secs(9000));
    run.step(NOW, Event::Wish(Wish::Pause));
    assert_eq!(run.step(later, Event::Tick), [], "the plan stands still");
    // Its datastore is back, and it goes on by itself: not before its plan does.
    assert_eq!(run.step(later, Event::Goes(0)), [Action::Pause(0)]);
    assert_eq!(run.step(later, Event::Wish(Wish::Run)), [Action::Resume(0)]);
}

#[test]
fn the_last_wish_wins_and_is_asked_for_until_it_is_so() {
    let mut run = begun(wide(vec![lasting(60, 1)]));
    assert_eq!(run.step(NOW, Event::Wish(Wish::Pause)), [Action::Pause(0)]);
    assert_eq!(run.step(NOW, Event::Goes(0)), [Action::Pause(0)], "that had failed");
    assert_eq!(run.step(NOW, Event::Wish(Wish::Run)), [Action::Resume(0)]);
    let tasks = run.tasks().to_vec();
    assert_eq!(run.step(NOW, Event::Held(0)), [Action::Resume(0)], "it came too late");
    assert_eq!(run.step(NOW, Event::Goes(0)), []);
    // Somebody else has it stand still: it stays so.
    assert_eq!(run.step(NOW, Event::Held(0)), []);
    // What is asked for survives a crash.
    let (_, told) = restored(&run, tasks, Wish::Run);
    assert_eq!(told, [Action::Resume(0)]);
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
        Group { after: vec![0], ..Group::default() },
        Group { after: vec![1], ..Group::default() },
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
    let mut run =
        PlanRun::new(wide(vec![lasting(60, 1), lasting(50, 1), lasting(40, 1)]));
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
    let mut run = PlanRun::new(wide(vec![lasting(60, 1)]));
    assert_eq!(run.step(NOW, Event::Open(false)), []);
    assert_eq!(run.step(NOW, Event::Tick), []);
    assert_eq!(run.step(NOW, Event::Open(true)), [start(0, 1)]);
}

#[test]
fn after_a_crash_it_goes_on_with_what_became_of_its_moves() {
    let run = begun(wide(vec![lasting(60, 1), lasting(50, 1)]));
    let mut tasks = run.tasks().to_vec();
    tasks[1].stage = Stage::Starting;
    let restored = |wish| restored(&run, tasks.clone(), wish);
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

#[test]
fn copies_of_others_take_places_but_never_all() {
    let moves = vec![lasting(60, 1), lasting(50, 1), lasting(40, 2)];
    let mut run = PlanRun::new(setup(moves, &[None, None, None]));
    let busy = |copies| Others { copies, rate: copies as f64 * 100.0 };
    run.beside(vec![busy(2), busy(2), busy(0)]);
    assert_eq!(run.step(NOW, Event::Tick), [start(0, 1)], "one is always let in");
    assert_eq!(run.step(NOW, Event::Began(0)), []);
    run.beside(vec![busy(0), busy(2), busy(0)]);
    assert_eq!(run.step(NOW, Event::Tick), [start(2, 2)], "there is nobody there");
    run.step(NOW, Event::Began(2));
    run.step(NOW, Event::Ended(2, true));
    run.beside(vec![busy(0); 3]);
    assert_eq!(run.step(NOW, Event::Tick), [start(1, 1)]);
}
