//! The copier and the guest: who goes first.

use sterna_core::Nanos;
use sterna_core::mirror::{
    Action, Allowance, Config, Control, Event, JobOutcome, Notice, Stored,
};

use crate::bench::{Bench, REGION, REGIONS};

/// Longer than any guest with few requests is waited for.
const GONE: Nanos = Nanos::from_millis(300);

fn guarded(allowance: Allowance) -> Bench {
    Bench::with(Stored::Late, Config { allowance, ..Bench::config() })
}

#[test]
fn with_no_busy_rate_nothing_starts_until_the_guest_is_idle() {
    let mut bench = guarded(Allowance::IDLE_ONLY);
    bench.write(1, 0);
    assert_eq!(bench.jobs(), []);
    bench.after(Nanos::from_secs(1)).tell(Event::Tick);
    assert_eq!(bench.jobs(), [], "the guest still waits for its answer");
    bench.source_done(1);
    assert_eq!(bench.jobs(), [], "the guest may go on at once");
    let wake = bench.mirror.deadline().expect("it is looked at again");
    bench.now = wake;
    bench.tell(Event::Tick);
    assert!(!bench.jobs().is_empty(), "the guest is idle");
}

#[test]
fn a_guest_whose_requests_wait_for_admission_is_active() {
    let mut bench = guarded(Allowance::IDLE_ONLY);
    for id in 0..20 {
        // Half a second for its turn, a millisecond at the device, and the next one.
        bench.tell(Event::GuestWaits(true));
        assert_eq!(bench.jobs(), []);
        bench.after(Nanos::from_millis(500)).tell(Event::Tick);
        assert_eq!(bench.jobs(), [], "the guest waits");
        bench.write(id, 0);
        bench.tell(Event::GuestWaits(false));
        assert_eq!(bench.jobs(), [], "it waits for the source now");
        bench.after(Nanos::from_millis(1)).source_done(id);
        assert_eq!(bench.jobs(), []);
    }
    // The last one is dropped before it has its turn.
    bench.tell(Event::GuestWaits(true));
    bench.after(GONE).tell(Event::GuestWaits(false));
    assert_eq!(bench.jobs(), [], "the guest may go on at once");
    let wake = bench.mirror.deadline().expect("it is looked at again");
    assert!(wake.since(bench.now) < GONE, "{wake} from {}", bench.now);
    bench.now = wake;
    bench.tell(Event::Tick);
    assert!(!bench.jobs().is_empty(), "the guest is idle");
}

#[test]
fn a_pause_of_the_guest_ends_when_its_request_begins_to_wait() {
    // Pauses of 10 ms, and each request waits for its turn: the guest is idle after
    // eight such pauses, as it is without turns.
    let idle_after = |turns: bool| {
        let mut bench = guarded(Allowance::IDLE_ONLY);
        for id in 0..100 {
            bench.after(Nanos::from_millis(10));
            if turns {
                bench.tell(Event::GuestWaits(true));
                bench.after(Nanos::from_millis(20));
            }
            bench.write(id, 0);
            if turns {
                bench.tell(Event::GuestWaits(false));
            }
            bench.after(Nanos::from_millis(1)).source_done(id);
        }
        bench.mirror.deadline().expect("it is looked at again").since(bench.now)
    };
    assert_eq!(idle_after(true), idle_after(false));
}

#[test]
fn the_first_request_of_the_guest_stops_the_next_chunk() {
    let mut bench = guarded(Allowance::IDLE_ONLY);
    bench.after(GONE).tell(Event::Tick);
    let first = bench.jobs()[0];
    bench.write(1, REGIONS - 1);
    assert_eq!(bench.jobs(), []);
    bench.copied(first);
    assert_eq!(bench.jobs(), [], "what was in flight ends, and no more begins");
}

#[test]
fn a_busy_rate_is_kept_while_the_guest_is_active() {
    let rate = 10 * REGION;
    let mut bench = guarded(Allowance { busy: Some(rate), ..Allowance::default() });
    bench.write(1, REGIONS - 1);
    let [chunk] = bench.jobs()[..] else { panic!("one chunk of debt") };
    assert_eq!(chunk.range.len, REGION, "a small one");
    bench.copied(chunk);
    assert_eq!(bench.jobs(), []);
    let wake = bench.mirror.deadline().expect("the next chunk has its time");
    assert_eq!(wake.since(bench.now).0 / 1_000_000, 100, "64 KiB at 640 KiB/s");
}

#[test]
fn a_claimed_region_is_copied_whatever_the_allowance() {
    // Written during three copies; then the copier is allowed nothing.
    let mut bench = Bench::with(Stored::Late, Config { size: REGION, ..Bench::config() });
    bench.tell(Event::Tick);
    for round in 0..3 {
        let [job] = bench.jobs()[..] else { panic!("the only region") };
        bench.write(round, 0);
        bench.source_done(round);
        bench.copied(job);
    }
    let [claimed] = bench.jobs()[..] else { panic!("a small copy that is waited for") };
    assert_eq!(bench.write(10, 0), [], "it waits");
    bench.tell(Event::Control(Control::Allow(Allowance::IDLE_ONLY)));
    let failed = JobOutcome::SourceFailed(12); // Of memory, not of a place.
    bench.tell(Event::JobDone { job: claimed.id, outcome: failed });
    let [again] = bench.jobs()[..] else { panic!("the guest waits for it") };
    assert_eq!(again.range, claimed.range);
}

#[test]
fn a_copier_that_yields_is_not_a_destination_that_is_too_slow() {
    let mut bench =
        Bench::with(Stored::Late, Config { size: REGION * 2, ..Bench::config() });
    bench.tell(Event::Tick);
    // The first pass is over, and a region is behind; the guest never goes away.
    let [job] = bench.jobs()[..] else { panic!("one chunk") };
    bench.write(1, 0);
    bench.tell(Event::Control(Control::Allow(Allowance::IDLE_ONLY)));
    bench.copied(job);
    for _ in 0..100 {
        bench.after(Nanos::from_secs(1)).tell(Event::Tick);
        let raised =
            |it: &Action| matches!(it, Action::Notice(Notice::PatienceRaised(_)));
        assert!(!bench.asked.iter().any(raised), "the destination is not to blame");
        if bench.asked.contains(&Action::FlushDestination) {
            bench.tell(Event::Flushed(Ok(())));
        }
    }
    bench.tell(Event::Control(Control::Allow(Allowance::default())));
    bench.source_done(1);
    let [last] = bench.jobs()[..] else { panic!("what is behind is copied") };
    assert_eq!(bench.copied(last), [Action::FlushDestination], "and so it ends");
}

#[test]
fn mirrored_writes_go_on_whatever_the_allowance() {
    let mut bench = Bench::almost_done();
    bench.tell(Event::Control(Control::Allow(Allowance::IDLE_ONLY)));
    bench.write(1, 0);
    assert_eq!(bench.asked, [crate::bench::source(1), crate::bench::destination(1)]);
}

#[test]
fn how_long_the_guest_was_idle_is_counted() {
    let mut bench = guarded(Allowance::IDLE_ONLY);
    bench.write(1, 0);
    bench.source_done(1);
    bench.after(Nanos::from_secs(3)).tell(Event::Tick);
    let idle = bench.mirror.progress().guest_idle;
    assert!((2700..3000).contains(&(idle.0 / 1_000_000)), "{idle}");
}

#[test]
fn how_long_writes_waited_for_the_destination_alone_is_counted() {
    let mut bench = Bench::almost_done();
    bench.write(1, 0);
    bench.after(Nanos::from_millis(2)).source_done(1);
    bench.after(Nanos::from_millis(3)).destination_done(1);
    bench.write(2, 0);
    bench.after(Nanos::from_millis(2)).destination_done(2);
    bench.after(Nanos::from_millis(3)).source_done(2);
    assert_eq!(bench.mirror.progress().mirror_wait, Nanos::from_millis(3));
}
