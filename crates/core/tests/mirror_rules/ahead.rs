//! The time left of a move whose disk is mostly holes.

use std::collections::VecDeque;

use sterna_core::mirror::{
    Action, Config, Event, Job, JobKind, JobOutcome, Phase, Stored,
};
use sterna_core::{ByteRange, Nanos};

use crate::bench::{Bench, jobs};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DISK: u64 = 8 * GIB;
/// What both storages do in a second.
const SPEED: u64 = 100 * MIB;

/// The data of a range: all that the disk has lies in its first GiB.
fn data_in(range: ByteRange) -> u64 {
    let data = ByteRange::new(0, GIB);
    range.end().min(data.end()).saturating_sub(range.offset)
}

/// A job done by storage that passes holes at once, and the time that it took.
fn done(job: Job) -> (JobOutcome, Nanos) {
    let data = data_in(job.range);
    let took = Nanos(data * 1_000_000_000 / SPEED);
    match job.kind {
        JobKind::Scan => {
            let hole = job.range.offset + data..job.range.end();
            let holes = (!hole.is_empty())
                .then(|| ByteRange::new(hole.start, hole.end - hole.start));
            (JobOutcome::Scanned(holes.into_iter().collect()), Nanos(0))
        }
        JobKind::Compare => {
            (JobOutcome::Compared { differing: Vec::new(), read: data }, took)
        }
        _ => (JobOutcome::Copied { written: data }, took),
    }
}

#[test]
fn the_time_left_of_a_thin_disk_counts_no_holes() {
    let config = Config {
        verify: true,
        reads_zero: true,
        allocated: Some(GIB),
        ..Config::new(DISK)
    };
    let mut bench = Bench::with(Stored::Absent, config);
    let began = bench.now;
    let mut open: VecDeque<Job> = jobs(bench.tell(Event::Tick)).into();
    let mut told: Vec<(Nanos, Nanos)> = Vec::new();
    while let Some(job) = open.pop_front() {
        let (outcome, took) = done(job);
        let asked = bench.after(took).tell(Event::JobDone { job: job.id, outcome });
        let flushes = asked.contains(&Action::FlushDestination);
        open.extend(jobs(asked));
        if flushes {
            open.extend(jobs(bench.tell(Event::Flushed(Ok(())))));
        }
        let progress = bench.mirror.progress();
        let is_there = matches!(progress.phase, Phase::Copying | Phase::Verifying);
        if let Some(eta) = progress.eta.filter(|_| is_there) {
            told.push((bench.now, eta));
        }
    }
    let whole = bench.now.since(began).as_secs_f64();
    assert!((20.0..21.0).contains(&whole), "a GiB is copied and compared: {whole} s");
    for (at, eta) in told.iter().filter(|(at, _)| at.since(began) > Nanos::from_secs(2)) {
        let right = bench.now.since(*at).as_secs_f64();
        let eta = eta.as_secs_f64();
        assert!((eta - right).abs() < 0.05 * whole, "{eta} s left, and it were {right}");
    }
    assert!(told.len() > 500, "{}", told.len());
}
