//! Errors of the source that the guest hears when an attempt to switch over is decided.

use sterna_core::Nanos;
use sterna_core::mirror::{
    Action, Commit, Control, Event, MirrorEnd, PauseReason, Phase, RequestId, Stored,
};

use crate::bench::{Bench, answer};

/// A mirror that begins to switch over: the source is being flushed.
fn begins() -> Bench {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.source_flushes = false;
    assert!(bench.tell(Event::Tick).ends_with(&[Action::FlushSource]));
    bench
}

/// A write that the source refuses.
fn refused(bench: &mut Bench, id: u64, region: u64) -> Vec<Action> {
    bench.write(id, region);
    let mut asked =
        bench.tell(Event::SourceDone { id: RequestId(id), ok: false }).to_vec();
    asked.extend(bench.destination_done(id).iter().cloned());
    asked
}

#[test]
fn a_guest_that_a_full_source_refuses_hears_it_after_the_switch_over() {
    let mut bench = begins();
    let asked = refused(&mut bench, 1, 3);
    assert!(!asked.contains(&answer(1)), "{asked:?}");
    // What it left is copied, and then both sides are flushed again.
    let job = *crate::bench::jobs(&asked).last().expect("the region is copied");
    bench.tell(Event::SourceFlushed(true));
    bench.copied(job);
    assert!(bench.asked.contains(&Action::FlushSource), "{:?}", bench.asked);
    bench.tell(Event::SourceFlushed(true));
    bench.reach_commit();
    assert_eq!(
        bench.tell(Event::Committed(Commit::Durable)),
        [answer(1), Action::Ended(MirrorEnd::Completed)]
    );
    assert!(bench.mirror.is_idle());
}

#[test]
fn outside_of_a_switch_over_an_error_is_told_at_once() {
    let mut bench = Bench::almost_done();
    assert!(refused(&mut bench, 1, 3).contains(&answer(1)));
}

#[test]
fn an_error_waits_for_two_seconds_and_the_next_one_for_none() {
    let mut bench = begins();
    refused(&mut bench, 1, 3);
    let two = Nanos::from_secs(2);
    assert!(bench.mirror.deadline().is_some_and(|at| at <= bench.now.plus(two)));
    assert!(bench.after(two).tell(Event::Tick).contains(&answer(1)));
    assert!(refused(&mut bench, 2, 4).contains(&answer(2)));
}

#[test]
fn a_move_that_is_paused_or_cancelled_keeps_no_error_back() {
    for control in [Control::Pause, Control::Cancel] {
        let mut bench = begins();
        refused(&mut bench, 1, 3);
        assert!(bench.tell(Event::Control(control)).contains(&answer(1)), "{control:?}");
        bench.write(2, 4);
        let asked = bench.tell(Event::SourceDone { id: RequestId(2), ok: false });
        assert!(asked.contains(&answer(2)), "{control:?}");
    }
}

#[test]
fn a_move_that_errors_keep_from_its_end_says_so() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    let mut id = 0;
    // Each time that an attempt may end, a write fails that was let through before.
    for _ in 0..1000 {
        if let Phase::Paused(reason) = bench.mirror.progress().phase {
            assert_eq!(reason, PauseReason::SourceRefusesWrites);
            return;
        }
        if bench.asked.contains(&Action::FlushDestination) {
            bench.tell(Event::Flushed(Ok(())));
        }
        if bench.asked.contains(&Action::Prepare) {
            id += 1;
            bench.write(id, 3);
            bench.tell(Event::Prepared(Some(Nanos(0))));
            let asked = bench.tell(Event::SourceDone { id: RequestId(id), ok: false });
            let jobs = crate::bench::jobs(asked);
            bench.destination_done(id);
            for job in jobs.into_iter().chain(bench.jobs()) {
                bench.copied(job);
            }
        }
        bench.after(Nanos::from_millis(200)).tell(Event::Tick);
        for job in bench.jobs() {
            bench.copied(job);
        }
    }
    panic!("it never stood still: {:?}", bench.mirror.progress());
}
