//! What is copied, compared and left out; and giving up.

use sterna_core::mirror::{
    Action, Config, Control, Event, JobKind, JobOutcome, MirrorEnd, Notice, PauseReason,
    Phase, Stored,
};
use sterna_core::{ByteRange, Nanos};

use crate::bench::{Bench, REGION, REGIONS, answer, source};

#[test]
fn cancelling_leaves_the_source_as_it_was() {
    let mut bench = Bench::almost_done();
    bench.write(1, 0);
    assert_eq!(
        bench.tell(Event::Control(Control::Cancel)),
        [Action::Ended(MirrorEnd::Cancelled)]
    );
    assert_eq!(bench.source_done(1), [answer(1)]);
    assert_eq!(bench.write(2, 0), [source(2)]);
}

#[test]
fn holes_are_not_copied_to_a_destination_that_reads_as_zeroes() {
    let config = Config { scan: true, reads_zero: true, ..Bench::config() };
    let mut bench = Bench::with(Stored::Absent, config);
    bench.tell(Event::Tick);
    let [scan] = bench.jobs()[..] else { panic!("the scan comes first") };
    assert_eq!(scan.kind, JobKind::Scan);
    let hole = ByteRange::new(REGION, (REGIONS - 1) * REGION);
    bench.tell(Event::JobDone { job: scan.id, outcome: JobOutcome::Scanned(vec![hole]) });
    let [copy] = bench.jobs()[..] else { panic!("only the data is copied") };
    assert_eq!(copy.kind, JobKind::Copy { fresh: true });
    assert_eq!(copy.range, ByteRange::new(0, REGION));
}

#[test]
fn a_hole_that_is_written_during_the_scan_is_copied() {
    let config = Config { scan: true, reads_zero: true, ..Bench::config() };
    let mut bench = Bench::with(Stored::Absent, config);
    bench.tell(Event::Tick);
    let scan = bench.jobs()[0];
    bench.write(1, 3);
    bench.source_done(1);
    let hole = ByteRange::new(0, REGIONS * REGION);
    bench.tell(Event::JobDone { job: scan.id, outcome: JobOutcome::Scanned(vec![hole]) });
    let [copy] = bench.jobs()[..] else { panic!("one region is copied") };
    assert_eq!(copy.range, ByteRange::new(3 * REGION, REGION));
}

#[test]
fn holes_are_zeroed_on_a_destination_that_holds_something_else() {
    let mut bench = Bench::with(Stored::Late, Config { scan: true, ..Bench::config() });
    bench.tell(Event::Tick);
    let scan = bench.jobs()[0];
    let hole = ByteRange::new(0, REGIONS * REGION);
    bench.tell(Event::JobDone { job: scan.id, outcome: JobOutcome::Scanned(vec![hole]) });
    assert!(bench.jobs().iter().all(|job| job.kind == JobKind::Zero));
}

#[test]
fn after_a_power_loss_regions_are_compared_and_only_what_differs_is_copied() {
    let mut bench = Bench::with(Stored::Suspect, Bench::config());
    bench.tell(Event::Tick);
    let jobs = bench.jobs();
    assert!(jobs.iter().all(|job| job.kind == JobKind::Compare));
    let differing = vec![ByteRange::new(jobs[0].range.offset, 512)];
    bench.tell(Event::JobDone {
        job: jobs[0].id,
        outcome: JobOutcome::Compared { differing, read: REGION },
    });
    let [copy] = bench.jobs()[..] else { panic!("one region differs") };
    assert_eq!(copy.range, ByteRange::new(0, REGION));
}

#[test]
fn verification_copies_what_differs_and_compares_it_again() {
    let config = Config { verify: true, ..Bench::config() };
    let mut bench = Bench::with(Stored::Synced, config);
    bench.tell(Event::Tick);
    let [compare, other] = bench.jobs()[..] else { panic!("all is compared") };
    let equal = JobOutcome::Compared { differing: vec![], read: REGION };
    bench.tell(Event::JobDone { job: other.id, outcome: equal });
    let differing = vec![ByteRange::new(REGION, 512)];
    bench.tell(Event::JobDone {
        job: compare.id,
        outcome: JobOutcome::Compared { differing, read: REGION },
    });
    assert!(bench.asked.contains(&Action::Notice(Notice::Differing { regions: 1 })));
    let [copy] = bench.jobs()[..] else { panic!("what differs is copied") };
    assert_eq!(copy.range, ByteRange::new(REGION, REGION));
    bench.copied(copy);
    let [again] = bench.jobs()[..] else { panic!("and compared again") };
    assert_eq!((again.kind, again.range), (JobKind::Compare, copy.range));
    bench.tell(Event::JobDone {
        job: again.id,
        outcome: JobOutcome::Compared { differing: vec![], read: REGION },
    });
    assert_eq!(bench.asked, [Action::FlushDestination]);
}

#[test]
fn a_source_that_never_answers_the_copier_is_what_is_blamed() {
    let mut bench = Bench::with(Stored::Late, Bench::config());
    bench.tell(Event::Tick);
    assert!(!bench.jobs().is_empty(), "they read the source");
    bench.after(Nanos::from_secs(10)).tell(Event::Tick);
    let phase = bench.mirror.progress().phase;
    assert!(matches!(phase, Phase::Paused(PauseReason::SourceTimedOut(_))), "{phase:?}");
}

#[test]
fn a_rate_limits_how_often_chunks_start() {
    let config = Config { rate: Some(REGION * 10), ..Bench::config() };
    let mut bench = Bench::with(Stored::Late, config);
    bench.tell(Event::Tick);
    assert_eq!(bench.jobs().len(), 1, "one chunk of debt");
    let next = bench.mirror.deadline().expect("the next chunk has its time");
    assert_eq!(next.since(bench.now).0 / 1_000_000, 100, "64 KiB at 640 KiB/s");
}
