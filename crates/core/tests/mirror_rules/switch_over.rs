//! The switch-over and its undoing.

use sterna_core::mirror::{
    Action, Commit, Config, Control, Event, FLUSH_TIMEOUT, HOLD_BUDGET, Job, JobKind,
    JobOutcome, MirrorEnd, Notice, PATIENCE, PauseReason, Phase, RequestId, RequestKind,
    Stored,
};
use sterna_core::{ByteRange, Nanos};

use crate::bench::{Bench, REGION, answer, destination, source};

#[test]
fn a_switch_over_holds_requests_and_hands_them_to_the_destination() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    assert_eq!(bench.write(1, 0), []);
    bench.after(Nanos::from_millis(3));
    let moved = Action::Moved(RequestId(1));
    assert_eq!(
        bench.tell(Event::Committed(Commit::Durable)),
        [moved, Action::Ended(MirrorEnd::Completed)]
    );
    assert_eq!(bench.mirror.progress().held, Some(Nanos::from_millis(3)));
}

#[test]
fn a_switch_over_past_its_budget_is_undone_and_tried_again() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::Flushed(Ok(())));
    bench.tell(Event::Prepared(Some(Nanos(0))));
    bench.write(1, 0);
    bench.after(HOLD_BUDGET).tell(Event::Tick);
    let undone = Action::Notice(Notice::SwitchOverUndone { held: HOLD_BUDGET });
    assert_eq!(bench.asked, [undone, source(1), destination(1)]);
    let progress = bench.mirror.progress();
    assert_eq!((progress.undone, progress.eta), (1, None), "nobody knows when it fits");
    // The flush that was under way must be answered before the next attempt.
    bench.source_done(1);
    bench.destination_done(1);
    assert_eq!(bench.tell(Event::Flushed(Ok(()))), []);
    bench.after(Nanos::from_secs(5)).tell(Event::Tick);
    assert_eq!(bench.asked, [Action::FlushDestination]);
}

#[test]
fn the_commit_waits_for_a_flush_of_the_source_that_began_after_the_last_copy() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.source_flushes = false;
    assert!(bench.tell(Event::Tick).ends_with(&[Action::FlushSource]));
    assert_eq!(bench.tell(Event::SourceFlushed(true)), [Action::FlushDestination]);
    assert_eq!(bench.tell(Event::Flushed(Ok(()))), [Action::Prepare]);
    // A write that the destination takes too late is copied: the source's cache may have
    // dropped it before.
    bench.copied_late(1);
    assert_eq!(bench.tell(Event::Prepared(Some(Nanos(0)))), [Action::FlushSource]);
    assert_eq!(bench.tell(Event::SourceFlushed(true)), [Action::FlushDestination]);
    assert_eq!(bench.tell(Event::Flushed(Ok(()))), [Action::Prepare]);
    bench.tell(Event::Prepared(Some(Nanos(0))));
    assert!(bench.mirror.holding());
}

#[test]
fn what_is_copied_while_the_source_is_flushed_is_flushed_again() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.source_flushes = false;
    assert!(bench.tell(Event::Tick).ends_with(&[Action::FlushSource]));
    bench.copied_late(1);
    assert_eq!(bench.tell(Event::SourceFlushed(true)), [Action::FlushDestination]);
    assert_eq!(bench.tell(Event::Flushed(Ok(()))), [Action::FlushSource]);
}

#[test]
fn a_guest_whose_writes_are_late_at_each_flush_of_the_source_gets_more_patience() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::Flushed(Ok(())));
    let is_prepared = |bench: &Bench| bench.asked.contains(&Action::Prepare);
    let mut asked = 0;
    while is_prepared(&bench) {
        asked += 1;
        bench.copied_late(asked);
        bench.tell(Event::Prepared(Some(Nanos(0))));
        if bench.asked.contains(&Action::FlushDestination) {
            bench.tell(Event::Flushed(Ok(())));
        }
        assert!(!bench.mirror.holding() && asked < 50, "{:?}", bench.asked);
    }
    let raised =
        |action: &Action| matches!(action, Action::Notice(Notice::PatienceRaised(_)));
    assert!(bench.asked.iter().any(raised), "{:?}", bench.asked);
    assert_eq!(asked, 4);
}

#[test]
fn a_source_that_does_not_flush_pauses_the_move() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.source_flushes = false;
    bench.tell(Event::Tick);
    let deadline = bench.mirror.deadline().expect("a deadline");
    assert_eq!(deadline, bench.now.plus(FLUSH_TIMEOUT));
    bench.after(FLUSH_TIMEOUT).tell(Event::Tick);
    let phase = bench.mirror.progress().phase;
    assert_eq!(phase, Phase::Paused(PauseReason::SourceTimedOut(FLUSH_TIMEOUT)));
    // It goes on when the source has answered.
    bench.tell(Event::Control(Control::Resume));
    assert!(!bench.asked.contains(&Action::FlushSource), "one is under way");
    bench.tell(Event::SourceFlushed(true));
    assert!(bench.asked.contains(&Action::FlushSource), "{:?}", bench.asked);
}

#[test]
fn a_switch_over_keeps_the_time_of_its_commit_free() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::Flushed(Ok(())));
    let store = Nanos::from_millis(30);
    bench.after(store).tell(Event::Prepared(Some(store)));
    assert!(bench.mirror.holding());
    bench.after(Nanos(HOLD_BUDGET.0 - store.0 - 1)).tell(Event::Tick);
    assert!(bench.mirror.holding(), "the commit still fits");
    bench.after(Nanos(1)).tell(Event::Tick);
    assert!(!bench.mirror.holding(), "the commit would no longer fit");
}

#[test]
fn a_seal_that_comes_too_late_is_taken_back() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_seal();
    bench.after(HOLD_BUDGET).tell(Event::Tick);
    assert!(!bench.mirror.holding());
    assert_eq!(bench.tell(Event::Sealed(Ok(()))), [Action::Unseal]);
}

#[test]
fn a_seal_that_leaves_no_time_for_the_commit_is_taken_back() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_seal();
    bench.after(HOLD_BUDGET);
    let asked = bench.tell(Event::Sealed(Ok(())));
    assert!(asked.contains(&Action::Unseal) && !asked.contains(&Action::Commit));
    assert!(!bench.mirror.holding());
}

#[test]
fn a_guest_whose_write_waited_in_a_switch_over_that_was_undone_leaves_as_any_other() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.write(1, 0);
    assert_eq!(bench.write(2, 0), [], "it waits for the one that it overlaps");
    bench.tell(Event::Flushed(Ok(())));
    bench.tell(Event::Prepared(Some(Nanos(0))));
    assert!(bench.mirror.holding());
    bench.after(HOLD_BUDGET).tell(Event::Tick);
    assert!(!bench.mirror.holding());
    for id in [1, 2] {
        bench.source_done(id);
        bench.destination_done(id);
    }
    let idle = bench.mirror.progress().guest_idle;
    bench.after(Nanos::from_secs(10)).tell(Event::Tick);
    let idle = bench.mirror.progress().guest_idle.since(idle);
    assert!(idle > Nanos::from_secs(9), "of ten seconds it was idle for {idle}");
}

#[test]
fn a_guest_whose_request_is_held_is_there() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.after(Nanos::from_secs(10));
    bench.reach_commit();
    bench.write(1, 0);
    let idle = bench.mirror.progress().guest_idle;
    bench.after(Nanos::from_secs(10)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().guest_idle, idle);
}

#[test]
fn a_commit_that_was_asked_for_is_never_undone() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    bench.after(HOLD_BUDGET).tell(Event::Tick);
    assert_eq!(bench.tell(Event::Control(Control::Cancel)), []);
    assert_eq!(bench.tell(Event::Control(Control::Pause)), []);
    assert!(bench.mirror.holding());
    assert_eq!(
        bench.tell(Event::Committed(Commit::Durable)),
        [Action::Ended(MirrorEnd::Completed)]
    );
}

#[test]
fn a_commit_that_failed_gives_the_guest_back_to_the_source() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    bench.write(1, 0);
    bench.tell(Event::Committed(Commit::Failed));
    assert!(bench.asked.contains(&Action::Unseal) && bench.asked.contains(&source(1)));
    assert_eq!(bench.mirror.progress().phase, Phase::Paused(PauseReason::StateStore));
}

#[test]
fn what_changes_nothing_is_never_held() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    let range = ByteRange::new(0, 4096);
    bench.tell(Event::Flushed(Ok(())));
    bench.arrive(1, RequestKind::Read, range);
    bench.tell(Event::Prepared(Some(Nanos(0))));
    assert!(bench.mirror.holding());
    assert_eq!(
        bench.tell(Event::Flushed(Ok(()))),
        [Action::Seal],
        "no read is waited for"
    );
    assert_eq!(bench.arrive(2, RequestKind::Read, range), [source(2)]);
    assert_eq!(bench.write(3, 0), []);
    bench.tell(Event::Sealed(Ok(())));
    let flush = ByteRange::new(0, 0);
    assert_eq!(bench.arrive(4, RequestKind::Flush, flush), [source(4)]);
    bench.after(Nanos::from_secs(4));
    assert_eq!(bench.arrive(5, RequestKind::Read, range), [source(5)]);
    assert_eq!(bench.source_done(5), [answer(5)]);
    let moved = Action::Moved(RequestId(3));
    let ended = Action::Ended(MirrorEnd::Completed);
    assert_eq!(bench.tell(Event::Committed(Commit::Durable)), [moved, ended]);
    // Those that are still at the source are answered from there.
    assert!(!bench.mirror.is_idle());
    for id in [1, 2, 4] {
        assert_eq!(bench.source_done(id), [answer(id)]);
    }
    assert!(bench.mirror.is_idle());
    let moved = [Action::Moved(RequestId(6))];
    assert_eq!(bench.arrive(6, RequestKind::Read, range), moved);
}

#[test]
fn a_state_that_is_slow_does_not_count_where_the_record_is_quick() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::Flushed(Ok(())));
    let quick = Nanos::from_millis(1);
    bench.after(Nanos::from_secs(4)).tell(Event::Prepared(Some(quick)));
    assert!(bench.mirror.holding());
}

#[test]
fn a_flush_that_is_never_answered_pauses_once_and_asks_for_no_more_time() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.after(Nanos::from_secs(120)).tell(Event::Tick);
    let phase = bench.mirror.progress().phase;
    assert!(matches!(phase, Phase::Paused(PauseReason::DestinationTimedOut(_))));
    assert_eq!(bench.mirror.deadline(), None);
    bench.tell(Event::Control(Control::Cancel));
    assert_eq!(bench.mirror.deadline(), None);
}

/// A fully synced mirror that has verified all, at the flush ahead of its switch-over.
fn verified() -> Bench {
    let config = Config { size: 2 * REGION, verify: true, ..Bench::config() };
    let mut bench = Bench::with(Stored::Synced, config);
    bench.tell(Event::Tick);
    while let Some(job) = bench.jobs().pop() {
        assert_eq!(job.kind, JobKind::Compare);
        let outcome = JobOutcome::Compared { differing: vec![], read: job.range.len };
        bench.tell(Event::JobDone { job: job.id, outcome });
    }
    assert_eq!(bench.asked.last(), Some(&Action::FlushDestination));
    bench
}

/// A write is late, and what it wrote is copied.
fn is_late_and_copied(bench: &mut Bench) {
    bench.write(1, 0);
    bench.source_done(1);
    bench.after(PATIENCE).tell(Event::Tick);
    bench.destination_done(1);
    let [job] = bench.jobs()[..] else { panic!("it was late: {:?}", bench.asked) };
    bench.copied(job);
}

fn copied_anew_in_the_flush_ahead() -> Bench {
    let mut bench = verified();
    is_late_and_copied(&mut bench);
    bench
}

#[test]
fn what_was_copied_in_the_flush_ahead_is_compared_before_anything_is_prepared() {
    let mut bench = copied_anew_in_the_flush_ahead();
    let [job] = bench.jobs()[..] else { panic!("it is compared: {:?}", bench.asked) };
    assert_eq!(job.kind, JobKind::Compare);
    bench.tell(Event::Flushed(Ok(())));
    assert!(!bench.asked.contains(&Action::Prepare), "it is not compared yet");
    let differing = vec![job.range];
    let outcome = JobOutcome::Compared { differing, read: job.range.len };
    bench.tell(Event::JobDone { job: job.id, outcome });
    assert!(bench.jobs().iter().all(|job| job.kind != JobKind::Compare), "copied again");
}

#[test]
fn what_was_copied_while_it_was_prepared_is_compared_before_the_guest_is_held() {
    let mut bench = verified();
    assert_eq!(bench.tell(Event::Flushed(Ok(()))), [Action::Prepare]);
    is_late_and_copied(&mut bench);
    let [job] = bench.jobs()[..] else { panic!("it is compared: {:?}", bench.asked) };
    bench.tell(Event::Prepared(Some(Nanos(0))));
    assert!(!bench.mirror.holding(), "it is not compared yet");
    let outcome = JobOutcome::Compared { differing: vec![], read: job.range.len };
    bench.tell(Event::JobDone { job: job.id, outcome });
    bench.after(Nanos::from_secs(5)).tell(Event::Tick);
    bench.reach_commit();
}

#[test]
fn a_sector_that_went_bad_in_the_flush_ahead_is_not_left_behind_unasked() {
    let mut bench = copied_anew_in_the_flush_ahead();
    let [job] = bench.jobs()[..] else { panic!("it is compared: {:?}", bench.asked) };
    let failed = |job: Job| {
        let outcome = JobOutcome::SourceFailed(5);
        Event::JobDone { job: job.id, outcome }
    };
    bench.tell(failed(job));
    bench.tell(Event::Flushed(Ok(())));
    assert!(!bench.asked.contains(&Action::Prepare), "it is being looked for");
}

#[test]
fn a_state_that_does_not_answer_is_not_taken_for_a_destination_that_does_not() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::Flushed(Ok(())));
    let paused = Phase::Paused(PauseReason::StateStore);
    assert!(bench.mirror.deadline().is_some(), "it is not waited for without end");
    bench.after(Nanos::from_secs(120)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, paused);
    // Nor after the switch-over was undone, while the answer is still awaited.
    bench.tell(Event::Control(Control::Resume));
    bench.after(Nanos::from_secs(120)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, paused);
    assert_eq!(bench.tell(Event::Prepared(Some(Nanos(0)))), []);
    bench.tell(Event::Control(Control::Resume));
    bench.reach_commit();
}

#[test]
fn a_cancel_during_a_commit_that_fails_is_not_forgotten() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    bench.tell(Event::Control(Control::Cancel));
    bench.tell(Event::Committed(Commit::Failed));
    assert!(bench.asked.contains(&Action::Ended(MirrorEnd::Cancelled)));
}

/// For so many seconds the state store takes one for each answer.
fn with_a_slow_store(bench: &mut Bench, seconds: u64) {
    let until = bench.now.plus(Nanos::from_secs(seconds));
    while bench.now < until {
        if bench.asked.contains(&Action::FlushDestination) {
            bench.tell(Event::Flushed(Ok(())));
            let took = Nanos::from_secs(1);
            bench.after(took).tell(Event::Prepared(Some(took)));
            assert!(!bench.mirror.holding(), "it was not quick enough to hold the guest");
        }
        bench.after(Nanos::from_secs(1)).tell(Event::Tick);
    }
}

#[test]
fn a_state_store_that_is_slow_for_minutes_holds_nobody_and_ends_no_mirroring() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    with_a_slow_store(&mut bench, 600);
    assert_eq!(bench.mirror.progress().phase, Phase::SwitchingOver);
    assert_eq!(bench.write(1, 0), [source(1), destination(1)]);
    bench.source_done(1);
    bench.destination_done(1);
    // What is quick again at last is enough.
    while !bench.asked.contains(&Action::Prepare) {
        bench.after(Nanos::from_secs(1)).tell(Event::Tick);
        if bench.asked.contains(&Action::FlushDestination) {
            bench.tell(Event::Flushed(Ok(())));
        }
    }
    bench.tell(Event::Prepared(Some(Nanos(0))));
    assert!(bench.mirror.holding());
}

#[test]
fn a_switch_over_that_never_fits_is_given_to_a_person() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    with_a_slow_store(&mut bench, 3600);
    let reason = PauseReason::SwitchOverTooLong { budget: HOLD_BUDGET };
    assert_eq!(bench.mirror.progress().phase, Phase::Paused(reason));
}
