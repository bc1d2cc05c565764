//! How far a copy is believed, and when it is not believed any more.

use sterna_core::durability::Loss;
use sterna_core::mirror::{
    Action, Config, Control, Doubt, Event, Fault, Job, JobKind, JobOutcome, PauseReason,
    Phase, RequestId, Side, Stored, Suspicion,
};
use sterna_core::{ByteRange, Nanos};

use crate::bench::{Bench, REGION, REGIONS, destination, jobs, source};

/// Regions that fit into one chunk.
const SMALL: u64 = 2;

/// A mirror of which all is copied, in one job, and nothing flushed; its last region is
/// written by the guest all the time, so that no switch-over begins.
fn copied() -> Bench {
    let mut bench = Bench::with(Stored::Late, Bench::config());
    bench.tell(Event::Control(Control::Pause));
    bench.write(99, REGIONS - 1);
    bench.tell(Event::Control(Control::Resume));
    let mut jobs: Vec<Job> = bench.jobs();
    while let Some(job) = jobs.pop() {
        bench.copied(job);
        jobs.extend(bench.jobs());
    }
    bench
}

/// A mirror of two regions, which are copied or compared in one job, and that job.
fn with_one_job(stored: Stored, verify: bool) -> (Bench, Job) {
    let config = Config { size: SMALL * REGION, verify, ..Bench::config() };
    let mut bench = Bench::with(stored, config);
    bench.tell(Event::Tick);
    let [job] = bench.jobs()[..] else { panic!("one chunk") };
    (bench, job)
}

fn all_stored(bench: &Bench, stored: Stored) -> bool {
    (0..REGIONS - 1).all(|region| bench.stored(region) == stored)
}

fn behind(bench: &Bench) -> u64 {
    let progress = bench.mirror.progress();
    (progress.total.0 - progress.synced.0) / REGION
}

#[test]
fn what_is_copied_is_believed_by_a_crash_when_a_flush_has_covered_it() {
    let mut bench = copied();
    assert_eq!(behind(&bench), 1, "it counts as equal");
    assert!(all_stored(&bench, Stored::Late), "and is not called so");
    bench.flush();
    assert!(all_stored(&bench, Stored::Synced));
}

#[test]
fn nothing_is_flushed_that_has_been_flushed() {
    let mut bench = copied();
    bench.flush();
    for _ in 0..100 {
        bench.after(Nanos::from_secs(1)).tell(Event::Tick);
        assert!(!bench.asked.contains(&Action::FlushDestination));
    }
}

#[test]
fn a_flush_covers_only_what_was_answered_before_it_began() {
    let mut bench = copied();
    bench.flush();
    assert_eq!(bench.write(1, 0), [source(1), destination(1)]);
    bench.write(2, 1);
    for id in [1, 2] {
        bench.source_done(id);
    }
    bench.destination_done(2);
    bench.flush_begins();
    bench.destination_done(1);
    bench.tell(Event::Flushed(Ok(())));
    assert_eq!(bench.stored(0), Stored::Late, "it was answered too late");
    assert_eq!(bench.stored(1), Stored::Synced);
}

#[test]
fn after_a_fault_what_no_flush_covers_is_copied_again_and_nothing_else() {
    for fault in [Fault::Error(5), Fault::Lost] {
        let mut bench = copied();
        bench.flush();
        bench.write(1, 0);
        bench.source_done(1);
        bench.destination_done(1);
        bench.write(2, 1);
        bench.source_done(2);
        bench.tell(Event::DestinationDone { id: RequestId(2), result: Err(fault) });
        let phase = bench.mirror.progress().phase;
        assert_eq!(phase, Phase::Paused(PauseReason::Destination(fault)));
        assert_eq!(behind(&bench), 3);
        bench.tell(Event::Control(Control::Resume));
        let [job] = bench.jobs()[..] else { panic!("the two that are not known") };
        assert_eq!((job.range.offset, job.range.len), (0, 2 * REGION));
        assert_eq!(job.kind, JobKind::Copy { fresh: false });
    }
}

#[test]
fn a_full_destination_takes_nothing_back() {
    let mut bench = copied();
    bench.write(1, 0);
    bench.source_done(1);
    let result = Err(Fault::Full);
    bench.tell(Event::DestinationDone { id: RequestId(1), result });
    assert_eq!(behind(&bench), 2, "the one that it had no room for, and the guest's");
}

#[test]
fn after_a_flush_that_failed_nothing_that_was_copied_since_the_last_is_believed() {
    for fault in [Fault::Full, Fault::Error(5)] {
        let mut bench = copied();
        bench.flush_begins();
        bench.tell(Event::Flushed(Err(fault)));
        assert!(all_stored(&bench, Stored::Late));
        assert_eq!(behind(&bench), REGIONS);
        bench.tell(Event::Control(Control::Resume));
        assert!(bench.jobs().iter().all(|job| matches!(job.kind, JobKind::Copy { .. })));
    }
}

#[test]
fn a_job_under_way_when_the_destination_forgets_is_void() {
    let (mut bench, job) = with_one_job(Stored::Late, false);
    bench.tell(Event::DestinationForgot);
    bench.copied(job);
    assert_eq!(behind(&bench), SMALL, "a part of it may be gone");
    let [again] = bench.jobs()[..] else { panic!("it is copied again") };
    bench.copied(again);
    assert_eq!(behind(&bench), 0);
}

#[test]
fn a_comparison_under_way_when_the_destination_forgets_is_void() {
    let (mut bench, job) = with_one_job(Stored::Synced, true);
    assert_eq!(job.kind, JobKind::Compare);
    bench.tell(Event::DestinationForgot);
    let outcome = JobOutcome::Compared { differing: vec![], read: 0 };
    bench.tell(Event::JobDone { job: job.id, outcome });
    assert!(!bench.asked.contains(&Action::FlushDestination), "nothing is verified");
    let jobs = bench.jobs();
    assert!(!jobs.is_empty() && jobs.iter().all(|job| job.kind == JobKind::Compare));
}

#[test]
fn a_write_under_way_when_the_destination_forgets_leaves_its_region_behind() {
    let mut bench = copied();
    bench.flush();
    bench.write(1, 0);
    bench.source_done(1);
    bench.tell(Event::DestinationForgot);
    bench.destination_done(1);
    assert_eq!(behind(&bench), 2);
}

#[test]
fn a_flush_that_is_under_way_does_not_cover_what_was_forgotten() {
    let mut bench = copied();
    bench.flush_begins();
    bench.tell(Event::DestinationForgot);
    bench.tell(Event::Flushed(Ok(())));
    assert!(all_stored(&bench, Stored::Late));
}

#[test]
fn a_destination_that_forgets_while_the_guest_is_held_has_the_switch_over_undone() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::Flushed(Ok(())));
    bench.tell(Event::Prepared(Some(Nanos(0))));
    assert!(bench.mirror.holding());
    bench.tell(Event::DestinationForgot);
    assert!(!bench.mirror.holding());
}

#[test]
fn a_hole_into_which_somebody_else_wrote_is_zeroed_and_not_left_out() {
    let config = Config { scan: true, reads_zero: true, ..Bench::config() };
    let mut bench = Bench::with(Stored::Absent, config);
    bench.tell(Event::Control(Control::Pause));
    let written = Suspicion::Written(Side::Destination);
    bench.tell(Event::Doubted(written.doubt()));
    bench.tell(Event::Control(Control::Resume));
    let [scan] = bench.jobs()[..] else { panic!("the holes are asked for") };
    let outcome = JobOutcome::Scanned(vec![scan.range]);
    bench.tell(Event::JobDone { job: scan.id, outcome });
    let zeroed = bench.jobs();
    assert!(!zeroed.is_empty(), "{:?}", bench.asked);
    assert!(zeroed.iter().all(|job| job.kind == JobKind::Zero), "{zeroed:?}");
}

#[test]
fn an_image_that_may_be_another_one_is_compared() {
    let cases = [(Doubt::Equal, Stored::Absent), (Doubt::Everything, Stored::Late)];
    for (doubt, untouched) in cases {
        let (mut bench, job) = with_one_job(Stored::Absent, false);
        bench.copied(job);
        bench.tell(Event::Flushed(Ok(()))); // That of the switch-over.
        bench.tell(Event::Control(Control::Pause));
        let stored =
            |bench: &Bench, stored| (0..SMALL).all(|it| bench.stored(it) == stored);
        assert!(stored(&bench, Stored::Synced));
        bench.tell(Event::Doubted(doubt));
        assert!(stored(&bench, Stored::Suspect), "{doubt:?}");
        bench.tell(Event::Control(Control::Resume));
        assert!(bench.jobs().iter().all(|job| job.kind == JobKind::Compare));
        let mut fresh = Bench::with(Stored::Absent, Bench::config());
        fresh.tell(Event::Control(Control::Pause));
        fresh.tell(Event::Doubted(doubt));
        assert_eq!(fresh.stored(0), untouched, "{doubt:?}");
    }
}

/// A region that differs each time that it is compared, after it was copied.
#[test]
fn what_a_source_goes_on_to_drop_is_not_the_destinations_fault() {
    for drops in [false, true] {
        let config = Config { verify: true, ..Bench::config() };
        let mut bench = Bench::with(Stored::Synced, config);
        let mut open = jobs(bench.tell(Event::Tick));
        for _ in 0..40 {
            let Some(job) = open.pop() else { break };
            if drops {
                let forgot = Event::SourceForgot(Loss::FlushFailed);
                open.extend(jobs(bench.tell(forgot)));
            }
            let differing = vec![ByteRange::new(job.range.offset, 512)];
            let outcome = JobOutcome::Compared { differing, read: job.range.len };
            let asked = match job.kind {
                JobKind::Compare => bench.tell(Event::JobDone { job: job.id, outcome }),
                _ => bench.copied(job),
            };
            open.extend(jobs(asked));
        }
        let phase = bench.mirror.progress().phase;
        let is_accused = matches!(phase, Phase::Paused(PauseReason::Differing(_)));
        assert_eq!(is_accused, !drops, "{phase:?}");
    }
}
