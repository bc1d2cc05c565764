//! Destinations that fail, hang, go away or forget.

use sterna_core::Nanos;
use sterna_core::durability::{Lack, Loss};
use sterna_core::mirror::{
    Action, Commit, Control, Event, Fault, JobKind, Notice, PauseReason, Phase,
    RequestId, Stored,
};

use crate::bench::{Bench, REGIONS, answer, destination, source};

#[test]
fn a_destination_error_pauses_with_the_reason_and_the_guest_sees_nothing() {
    let mut bench = Bench::almost_done();
    bench.write(1, 0);
    let full = Event::DestinationDone { id: RequestId(1), result: Err(Fault::Full) };
    let reason = PauseReason::Destination(Fault::Full);
    assert_eq!(bench.tell(full), [Action::Notice(Notice::Paused(reason))]);
    assert_eq!(bench.source_done(1), [answer(1)]);
    assert_eq!(bench.write(2, 0), [source(2)], "paused: the source alone");
    assert_eq!(bench.mirror.progress().phase, Phase::Paused(reason));
}

#[test]
fn a_destination_that_never_answers_pauses_the_migration() {
    let mut bench = Bench::with(Stored::Late, Bench::config());
    bench.tell(Event::Tick);
    for job in bench.jobs() {
        bench.tell(Event::JobOnSource { job: job.id, is: false });
    }
    bench.after(Nanos::from_secs(10)).tell(Event::Tick);
    let phase = bench.mirror.progress().phase;
    assert!(matches!(phase, Phase::Paused(PauseReason::DestinationTimedOut(_))));
}

#[test]
fn a_job_that_waits_for_its_turn_is_nobodys_silence() {
    let mut bench = Bench::with(Stored::Late, Bench::config());
    bench.tell(Event::Tick);
    let jobs: Vec<_> = bench.jobs().iter().map(|job| job.id).collect();
    for job in jobs.clone() {
        bench.tell(Event::JobHeld { job, is: true });
    }
    bench.after(Nanos::from_secs(60)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, Phase::Copying);
    for job in jobs {
        bench.tell(Event::JobHeld { job, is: false });
    }
    bench.after(Nanos::from_millis(9_900)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, Phase::Copying, "from its turn on");
    bench.after(Nanos::from_millis(100)).tell(Event::Tick);
    let phase = bench.mirror.progress().phase;
    assert!(matches!(phase, Phase::Paused(PauseReason::SourceTimedOut(_))), "{phase:?}");
}

#[test]
fn a_destination_out_of_reach_is_lost_after_two_seconds_and_not_before() {
    let lost = Phase::Paused(PauseReason::Destination(Fault::Lost));
    let mut bench = Bench::almost_done();
    bench.tell(Event::DestinationInReach(false));
    bench.after(Nanos::from_millis(1900)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, Phase::Copying);
    bench.tell(Event::DestinationInReach(true));
    bench.tell(Event::DestinationInReach(false));
    bench.after(Nanos::from_millis(1900)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, Phase::Copying, "each outage for itself");
    bench.after(Nanos::from_millis(100)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, lost);
    assert_eq!(bench.mirror.deadline(), None);
    // Resumed, it has as long again to come back.
    bench.after(Nanos::from_secs(60)).tell(Event::Control(Control::Resume));
    bench.after(Nanos::from_secs(1)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, Phase::Copying);
    bench.after(Nanos::from_secs(1)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, lost);
    bench.tell(Event::DestinationInReach(true));
    bench.tell(Event::Control(Control::Resume));
    bench.after(Nanos::from_secs(5)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, Phase::Copying);
}

#[test]
fn a_destination_in_whose_place_something_unfit_answers_pauses_with_that_reason() {
    for fault in [Fault::Another, Fault::Lacks(Lack::Writable)] {
        let mut bench = Bench::almost_done();
        bench.tell(Event::DestinationInReach(false));
        bench.tell(Event::DestinationUnfit(Some(fault)));
        bench.after(Nanos::from_secs(2)).tell(Event::Tick);
        let paused = Phase::Paused(PauseReason::Destination(fault));
        assert_eq!(bench.mirror.progress().phase, paused);
    }
}

#[test]
fn a_destination_that_is_lost_during_the_commit_changes_nothing() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    bench.tell(Event::DestinationInReach(false));
    assert_eq!(bench.mirror.deadline(), None, "the commit's answer decides");
    assert_eq!(bench.after(Nanos::from_secs(3)).tell(Event::Tick), []);
    bench.tell(Event::Committed(Commit::Failed));
    assert_eq!(bench.mirror.progress().phase, Phase::Paused(PauseReason::StateStore));
}

#[test]
fn a_source_that_may_have_forgotten_is_compared_with_its_copy() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::SourceForgot(Loss::ServerAway));
    assert!(bench.jobs().iter().all(|job| job.kind == JobKind::Compare));
}

#[test]
fn a_source_that_forgets_during_the_commit_is_compared_if_it_stays_the_truth() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    assert_eq!(bench.tell(Event::SourceForgot(Loss::ServerAway)), []);
    assert!(bench.mirror.holding(), "the commit's answer decides");
    bench.tell(Event::Committed(Commit::Failed));
    assert!(!bench.mirror.holding());
    assert!((0..REGIONS).all(|region| bench.stored(region) != Stored::Synced));
    bench.tell(Event::Control(Control::Resume));
    assert!(bench.jobs().iter().all(|job| job.kind == JobKind::Compare));
}

#[test]
fn a_copy_that_was_under_way_when_a_side_forgot_is_not_believed() {
    for forgot in [Event::SourceForgot(Loss::ServerAway), Event::DestinationForgot] {
        let mut bench = Bench::with(Stored::Late, Bench::config());
        bench.tell(Event::Tick);
        let job = bench.jobs()[0];
        assert!(matches!(job.kind, JobKind::Copy { .. }), "{job:?}");
        bench.tell(forgot);
        bench.copied(job);
        let region = job.range.offset / Bench::config().region;
        assert_ne!(bench.stored(region), Stored::Synced, "read before, written after");
    }
}

#[test]
fn writes_that_could_not_even_be_sent_make_the_destination_count_as_stalled() {
    let mut bench = Bench::almost_done();
    for id in 1..=8 {
        assert!(bench.write(id, id).contains(&destination(id)));
        bench.source_done(id);
    }
    // All lose patience; but for the first, there was no memory to send them from.
    bench.after(Nanos::from_millis(20)).tell(Event::Tick);
    for id in 2..=8 {
        bench.tell(Event::DestinationSkipped { id: RequestId(id) });
    }
    assert!(!bench.write(9, 9).contains(&destination(9)), "nobody waits for it");
    bench.source_done(9);
    bench.destination_done(1);
    assert!(bench.write(10, 10).contains(&destination(10)), "it works again");
}
