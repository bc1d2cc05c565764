//! Sectors of the source that cannot be read: found, left until the end, and named.

use sterna_core::ByteRange;
use sterna_core::mirror::{
    Action, Config, Control, Event, Job, JobKind, JobOutcome, PauseReason, Phase, Stored,
};

use crate::bench::{Bench, REGION, REGIONS};

const EIO: i32 = 5;
const ENOTCONN: i32 = 107;

/// A device whose bad sectors are these bytes, or that is gone.
struct Device {
    bad: Vec<u64>,
    gone: bool,
    reads: u32,
    failures: u32,
}

impl Device {
    fn with(bad: &[u64]) -> Device {
        Device { bad: bad.to_vec(), gone: false, reads: 0, failures: 0 }
    }

    /// How it does a job. What a job says is bad is not read.
    fn does(&mut self, job: &Job) -> JobOutcome {
        if job.kind == JobKind::Zero {
            return JobOutcome::Copied { written: 0 };
        }
        self.reads += 1;
        let parts = job.bad.rest_of(job.range);
        let is_bad = |at: &u64| parts.iter().any(|it| it.offset <= *at && *at < it.end());
        if self.gone || self.bad.iter().any(is_bad) {
            self.failures += 1;
            return JobOutcome::SourceFailed(EIO);
        }
        match job.kind {
            JobKind::Probe => JobOutcome::Readable,
            JobKind::Compare => {
                JobOutcome::Compared { differing: vec![], read: job.range.len }
            }
            _ => JobOutcome::Copied { written: job.range.len },
        }
    }

    /// Does all jobs until nothing but a flush is asked for. Gives the jobs.
    fn works(&mut self, bench: &mut Bench) -> Vec<Job> {
        let (mut jobs, mut done) = (bench.jobs(), Vec::new());
        while !jobs.is_empty() {
            let job = jobs.remove(0);
            let outcome = self.does(&job);
            bench.tell(Event::JobDone { job: job.id, outcome });
            jobs.extend(bench.jobs());
            done.push(job);
            assert!(done.len() < 10_000, "it does not end");
        }
        done
    }
}

fn begun(stored: Stored, config: Config) -> Bench {
    let mut bench = Bench::with(stored, config);
    bench.tell(Event::Tick);
    bench
}

fn reason(bench: &Bench) -> String {
    match bench.mirror.progress().phase {
        Phase::Paused(reason) => reason.to_string(),
        phase => panic!("it is {phase:?}"),
    }
}

fn resume(bench: &mut Bench) {
    bench.tell(Event::Control(Control::Resume));
}

#[test]
fn all_that_can_be_read_is_copied_and_the_bad_sectors_are_named() {
    let mut bench = begun(Stored::Late, Bench::config());
    let mut device = Device::with(&[3 * REGION + 1024, 9 * REGION + 512]);
    let jobs = device.works(&mut bench);
    assert_eq!(
        reason(&bench),
        "the source cannot be read: 1024 bytes in 2 places, at the bytes 197632, 590336; \
         the rest is copied"
    );
    let progress = bench.mirror.progress();
    assert_eq!((progress.late_regions, progress.unreadable.0), (2, 1024));
    assert_eq!(progress.synced.0, REGIONS * REGION - 1024);
    // For each: the chunk, the region, seven halves, the sector, and it again.
    assert!(device.failures <= 2 * 11, "{} reads failed", device.failures);
    let last = jobs.iter().rfind(|job| job.kind != JobKind::Probe).expect("copies");
    assert_eq!((last.range.len, last.bad.bytes()), (REGION, 512), "{last:?}");
}

#[test]
fn a_sector_that_was_bad_for_a_moment_is_copied_in_the_end() {
    let mut bench = begun(Stored::Late, Bench::config());
    let mut device = Device::with(&[3 * REGION]);
    device.works(&mut bench);
    device.bad.clear();
    resume(&mut bench);
    device.works(&mut bench);
    assert_eq!(bench.asked, [Action::FlushDestination]);
    bench.reach_seal();
    assert_eq!(bench.stored(3), Stored::Synced);
}

#[test]
fn a_write_over_a_bad_sector_makes_it_a_sector_as_any_other() {
    let mut bench = begun(Stored::Late, Bench::config());
    let mut device = Device::with(&[3 * REGION]);
    device.works(&mut bench);
    device.bad.clear();
    bench.write(1, 3);
    bench.source_done(1);
    assert!(bench.mirror.findings().bad.ranges.is_empty());
    resume(&mut bench);
    device.works(&mut bench);
    assert_eq!(bench.asked, [Action::FlushDestination]);
}

#[test]
fn a_write_beside_a_bad_sector_is_mirrored_and_heals_nothing() {
    let config = Config { skip_bad: true, ..Bench::config() };
    let mut bench = begun(Stored::Late, config);
    let mut device = Device::with(&[3 * REGION + 8192]);
    device.works(&mut bench);
    bench.tell(Event::Flushed(Ok(())));
    assert_eq!(bench.stored(3), Stored::Late, "a kill must not believe it");
    assert_eq!(bench.stored(4), Stored::Synced);
    let asked = bench.write(1, 3);
    assert!(asked.contains(&crate::bench::destination(1)), "{asked:?}");
    assert_eq!(bench.mirror.findings().bad.places.bytes, 512);
}

#[test]
fn whoever_says_so_leaves_them_behind() {
    let mut bench = begun(Stored::Late, Bench::config());
    let mut device = Device::with(&[3 * REGION]);
    device.works(&mut bench);
    bench.tell(Event::Control(Control::SkipBad));
    resume(&mut bench);
    let again = device.works(&mut bench);
    assert!(again.iter().any(|job| job.kind == JobKind::Probe), "it is tried again");
    assert_eq!(bench.asked, [Action::FlushDestination]);
    assert_eq!(bench.mirror.findings().bad.ranges, [ByteRange::new(3 * REGION, 512)]);
}

#[test]
fn a_source_that_is_gone_is_not_skipped_sector_by_sector() {
    let mut bench = begun(Stored::Late, Config { skip_bad: true, ..Bench::config() });
    let mut device = Device { gone: true, ..Device::with(&[]) };
    device.works(&mut bench);
    assert!(device.reads <= 12, "{} reads", device.reads);
    assert_eq!(bench.mirror.progress().phase, Phase::Paused(PauseReason::Source(EIO)));
    assert!(bench.mirror.findings().bad.ranges.is_empty());
    device.gone = false;
    resume(&mut bench);
    device.works(&mut bench);
    assert_eq!(bench.asked, [Action::FlushDestination]);
}

#[test]
fn a_source_that_goes_while_bad_sectors_are_tried_again_is_not_skipped() {
    let mut bench = begun(Stored::Late, Bench::config());
    let bad: Vec<u64> = (0..6).map(|sector| 3 * REGION + sector * 1024).collect();
    let mut device = Device::with(&bad);
    device.works(&mut bench);
    device.gone = true;
    bench.tell(Event::Control(Control::SkipBad));
    resume(&mut bench);
    device.works(&mut bench);
    assert_eq!(bench.mirror.progress().phase, Phase::Paused(PauseReason::Source(EIO)));
    device.gone = false;
    device.bad.truncate(1);
    resume(&mut bench);
    device.works(&mut bench);
    assert_eq!(bench.asked, [Action::FlushDestination]);
    assert_eq!(bench.mirror.findings().bad.places.bytes, 512, "the rest could be read");
}

#[test]
fn a_connection_that_is_lost_is_no_bad_sector() {
    let mut bench = begun(Stored::Late, Bench::config());
    let mut jobs = bench.jobs();
    for _ in 0..3 {
        let outcome = JobOutcome::SourceFailed(ENOTCONN);
        bench.tell(Event::JobDone { job: jobs.remove(0).id, outcome });
        jobs.extend(bench.jobs());
    }
    assert_eq!(
        bench.mirror.progress().phase,
        Phase::Paused(PauseReason::Source(ENOTCONN))
    );
}

#[test]
fn verification_goes_around_what_cannot_be_read() {
    let config = Config { verify: true, skip_bad: true, ..Bench::config() };
    let mut bench = begun(Stored::Late, config);
    let mut device = Device::with(&[3 * REGION + 512]);
    let jobs = device.works(&mut bench);
    assert_eq!(bench.asked, [Action::FlushDestination]);
    let compared = |job: &&Job| job.kind == JobKind::Compare && !job.bad.is_none();
    let compared = jobs.iter().find(compared).expect("the region is compared");
    assert_eq!((compared.range.offset, compared.bad.bytes()), (3 * REGION, 512));
}

#[test]
fn a_region_of_which_nothing_can_be_read_is_zeroes() {
    let config = Config { verify: true, skip_bad: true, ..Bench::config() };
    let mut bench = begun(Stored::Late, config);
    let bad: Vec<u64> = (0..128).map(|sector| 3 * REGION + sector * 512).collect();
    let mut device = Device::with(&bad);
    let jobs = device.works(&mut bench);
    assert_eq!(bench.asked, [Action::FlushDestination]);
    let zeroed = jobs.iter().find(|job| job.kind == JobKind::Zero).expect("zeroes");
    assert_eq!(zeroed.range, ByteRange::new(3 * REGION, REGION));
    assert!(device.failures <= 3 * 128 + 3, "{} reads failed", device.failures);
}

#[test]
fn what_was_copied_before_it_went_bad_is_not_written_over_with_zeroes() {
    let config = Config { verify: true, ..Bench::config() };
    let mut bench = begun(Stored::Synced, config);
    let mut device = Device::with(&[3 * REGION]);
    let jobs = device.works(&mut bench);
    assert!(reason(&bench).contains("at the byte 196608"), "{}", reason(&bench));
    let writes = |job: &&Job| matches!(job.kind, JobKind::Copy { .. } | JobKind::Zero);
    assert_eq!(jobs.iter().find(writes), None);
}

#[test]
fn a_copy_that_is_not_believed_any_more_does_not_show_where_the_source_is_bad() {
    let mut bench = begun(Stored::Suspect, Bench::config());
    let mut device = Device::with(&[3 * REGION]);
    let jobs = device.works(&mut bench);
    let last = jobs.iter().rfind(|job| !job.bad.is_none()).expect("it is copied");
    assert!(matches!(last.kind, JobKind::Copy { .. }), "{last:?}");
}

#[test]
fn of_very_many_bad_sectors_the_first_are_listed_and_all_are_counted() {
    let mut bench = begun(Stored::Late, Bench::config());
    let sectors = (0..REGIONS * REGION / 512).filter(|sector| sector % 2 == 1);
    let mut device =
        Device::with(&sectors.map(|sector| sector * 512).collect::<Vec<_>>());
    device.works(&mut bench);
    let bad = bench.mirror.findings().bad;
    assert_eq!(bad.places.count, REGIONS * 64);
    assert_eq!(bad.ranges.len(), sterna_core::mirror::LISTED_MAX.min(1024));
    assert!(reason(&bench).contains("and so on"), "{}", reason(&bench));
}
