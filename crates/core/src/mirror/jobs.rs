//! The copier's jobs in flight, and which of their regions a guest write touched.

use std::ops::Range;

use super::bits::Bits;
use super::{Job, JobId, JobKind, Sectors};
use crate::{ByteRange, Nanos};

/// A job in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) job: Job,
    pub(super) regions: Range<u64>,
    pub(super) started: Nanos,
    /// What it waits for now is the source.
    on_source: bool,
    /// Its operations that wait for admission: neither side works on them.
    held: u32,
    /// It belongs to the verification pass.
    pub(super) verify: bool,
    /// What it brings is of no account: part of it may be forgotten already.
    pub(super) void: bool,
    touched: Bits,
}

impl InFlight {
    /// Whether a guest write touched `region` since the job began.
    pub(super) fn touched(&self, region: u64) -> bool {
        self.touched.has(region - self.regions.start)
    }

    /// Whether it is a copy that the source is being read for.
    pub(super) fn is_read(&self) -> bool {
        self.on_source && matches!(self.job.kind, JobKind::Copy { .. })
    }

    fn moves_data(&self) -> bool {
        matches!(self.job.kind, JobKind::Copy { .. } | JobKind::Compare)
    }

    fn touch(&mut self, regions: Range<u64>) {
        let start = regions.start.max(self.regions.start);
        let end = regions.end.min(self.regions.end);
        for region in start..end {
            self.touched.set(region - self.regions.start);
        }
    }
}

/// The jobs in flight; few, so that a linear search is the quickest.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    list: Vec<InFlight>,
    next: u64,
}

impl Jobs {
    pub(super) fn start(
        &mut self,
        now: Nanos,
        kind: JobKind,
        regions: Range<u64>,
        range: ByteRange,
        bad: Sectors,
        verify: bool,
    ) -> Job {
        let job = Job { id: JobId(self.next), kind, range, bad };
        self.next += 1;
        let touched = Bits::none(regions.end - regions.start);
        self.list.push(InFlight {
            job,
            regions,
            started: now,
            on_source: true,
            held: 0,
            verify,
            void: false,
            touched,
        });
        job
    }

    pub(super) fn take(&mut self, id: JobId) -> InFlight {
        let at = self.list.iter().position(|job| job.job.id == id);
        self.list.swap_remove(at.expect("the driver names jobs in flight"))
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A guest write touches `regions`.
    pub(super) fn touch(&mut self, regions: &Range<u64>) {
        for job in &mut self.list {
            job.touch(regions.clone());
        }
    }

    /// What the jobs in flight bring is of no account.
    pub(super) fn void(&mut self) {
        for job in &mut self.list {
            job.void = true;
        }
    }

    /// The end of the job that works on `region`, if one does.
    pub(super) fn covering(&self, region: u64) -> Option<u64> {
        self.list
            .iter()
            .find(|job| job.regions.contains(&region))
            .map(|job| job.regions.end)
    }

    /// Whether a job of the verification pass is in flight.
    pub(super) fn verifying(&self) -> bool {
        self.list.iter().any(|job| job.verify)
    }

    pub(super) fn scanning(&self) -> bool {
        self.list.iter().any(|job| job.job.kind == JobKind::Scan)
    }

    /// Whether the source works on a job now. Gives the job of a copy that has just
    /// been read.
    pub(super) fn set_on_source(&mut self, id: JobId, is: bool) -> Option<&InFlight> {
        let job = self.list.iter_mut().find(|job| job.job.id == id)?;
        let read = job.is_read() && !is;
        job.on_source = is;
        read.then_some(job)
    }

    /// Bytes of copies and comparisons in flight.
    pub(super) fn bytes(&self) -> u64 {
        let moving = self.list.iter().filter(|job| job.moves_data());
        moving.map(|job| job.job.range.len).sum()
    }

    /// Of these, the bytes that the source works on.
    pub(super) fn bytes_at_source(&self) -> u64 {
        let there = self.list.iter().filter(|job| job.moves_data() && job.on_source);
        there.map(|job| job.job.range.len).sum()
    }

    /// An operation of a job waits for admission, or has got it. The job's time counts
    /// from then on.
    pub(super) fn set_held(&mut self, now: Nanos, id: JobId, is: bool) {
        let Some(job) = self.list.iter_mut().find(|job| job.job.id == id) else { return };
        if is {
            job.held += 1;
        } else {
            job.held -= 1;
            job.started = now;
        }
    }

    /// Whether an operation of any job waits for admission.
    pub(super) fn any_held(&self) -> bool {
        self.list.iter().any(|job| job.held > 0)
    }

    /// When the oldest job began that a side works on, and whether that is the source.
    pub(super) fn oldest(&self) -> Option<(Nanos, bool)> {
        let at_work = self.list.iter().filter(|job| job.held == 0);
        at_work.map(|job| (job.started, job.on_source)).min()
    }

    /// Counts the time of all jobs from `now` on: a pause has ended.
    pub(super) fn rearm(&mut self, now: Nanos) {
        for job in &mut self.list {
            job.started = now;
        }
    }
}
