//! Tests: what runs, what is woken, and what is left behind.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use sterna_api::{Error, TaskState};
use sterna_os::wake::Waker;

use super::{Task, Tasks, feed};

/// Longer than any test waits.
const NEVER: Duration = Duration::from_secs(3600);
/// How long a test waits for what should come at once.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_task_is_done_again_and_again_until_what_it_is_for_is_gone() {
    let (tasks, whole) = (Tasks::default(), Arc::new(7));
    let (says, runs) = mpsc::channel();
    let run = move |of: &Arc<i32>| says.send(**of).map_err(Error::internal);
    let task = Task::every("count", "count", Duration::from_millis(1), &whole, run);
    tasks.start(task).unwrap();
    for _ in 0..3 {
        assert_eq!(runs.recv_timeout(SOON), Ok(7));
    }
    drop(whole);
    // Its end closes the channel.
    while runs.recv_timeout(SOON).is_ok() {}
    assert_eq!(runs.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

#[test]
fn a_task_that_sleeps_is_woken_and_no_wake_up_is_lost() {
    let (tasks, whole) = (Tasks::default(), Arc::new(()));
    let waker = Waker::default();
    let (says, runs) = mpsc::channel();
    let run = move |_: &Arc<()>| {
        says.send(()).map_err(Error::internal)?;
        Ok(NEVER)
    };
    let task = Task::when_due("wait", "wait", NEVER, waker.sleeper(), &whole, run);
    tasks.start(task).unwrap();
    for _ in 0..3 {
        runs.recv_timeout(SOON).unwrap();
        waker.wake();
    }
    assert_eq!(tasks.stop(SOON), [""; 0]);
}

#[test]
fn a_task_gets_what_it_is_given_and_a_full_queue_says_so() {
    let (tasks, whole) = (Tasks::default(), Arc::new(()));
    let (feed, fed) = feed(1);
    assert!(feed.give(1));
    assert!(!feed.give(2), "there is room for one");
    let (says, items) = mpsc::channel();
    let run = move |_: &Arc<()>, item: i32| says.send(item).expect("the test waits");
    tasks.start(Task::for_each("eat", "eat", fed, &whole, run)).unwrap();
    assert_eq!(items.recv_timeout(SOON), Ok(1));
    assert!(feed.give(3));
    assert_eq!(items.recv_timeout(SOON), Ok(3));
    assert_eq!(tasks.stop(SOON), [""; 0]);
    assert!(feed.give(4), "a task that has ended takes all");
}

#[test]
fn a_failure_is_shown_and_the_task_goes_on() {
    let (tasks, whole) = (Tasks::default(), Arc::new(()));
    let waker = Waker::default();
    let (says, runs) = mpsc::channel();
    let mut failures = ["storage hangs"].into_iter();
    let run = move |_: &Arc<()>| {
        says.send(()).map_err(Error::internal)?;
        failures.next().map_or(Ok(NEVER), |what| Err(Error::unavailable(what)))
    };
    let again = Duration::from_millis(1);
    let task = Task::when_due("fail", "look", again, waker.sleeper(), &whole, run);
    tasks.start(task).unwrap();
    runs.recv_timeout(SOON).unwrap();
    runs.recv_timeout(SOON).unwrap();
    // The second run is over when the third has begun.
    waker.wake();
    runs.recv_timeout(SOON).unwrap();
    let [shown] = &tasks.list()[..] else { panic!("one task") };
    assert_eq!((shown.name.as_str(), shown.failed.as_ref()), ("fail", None));
    assert!(shown.runs >= 3 && shown.took_ms.is_some(), "{shown:?}");
}

#[test]
fn a_run_that_hangs_is_shown_and_left_behind_at_the_end() {
    let (tasks, whole) = (Tasks::default(), Arc::new(()));
    let (begins, begun) = mpsc::channel();
    let (_hangs, hang) = mpsc::channel::<()>();
    let run = move |_: &Arc<()>| {
        begins.send(()).map_err(Error::internal)?;
        hang.recv().map_err(Error::internal)
    };
    let hanging = Task::every("hangs", "hang", NEVER, &whole, run).after(Duration::ZERO);
    tasks.start(hanging).unwrap();
    let run = |_: &Arc<()>| Ok(());
    tasks.start(Task::every("sleeps", "sleep", NEVER, &whole, run)).unwrap();
    begun.recv_timeout(SOON).unwrap();
    let states: Vec<TaskState> = tasks.list().into_iter().map(|it| it.state).collect();
    assert_eq!(states, [TaskState::Running, TaskState::Waiting]);
    assert_eq!(tasks.stop(Duration::from_millis(50)), ["hangs"]);
}
