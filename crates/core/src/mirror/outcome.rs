//! What became of the copier's jobs.

use super::jobs::InFlight;
use super::{Action, JobId, JobKind, JobOutcome, Mirror, RegionMap, State, Stored};
use crate::{ByteRange, Nanos};

impl<M: RegionMap> Mirror<M> {
    pub(super) fn job_done(
        &mut self,
        now: Nanos,
        id: JobId,
        outcome: &JobOutcome,
        out: &mut Vec<Action>,
    ) {
        let job = self.jobs.take(id);
        if job.is_read() {
            // Nobody said when the source was done with it: now, at the latest.
            self.has_read(now, job.started, job.job.range.len);
        }
        if matches!(self.state, State::Ended(_)) {
            return;
        }
        match outcome {
            JobOutcome::Scanned(_) if job.void => self.scanned(&job, &[]),
            JobOutcome::Scanned(holes) => self.scanned(&job, holes),
            JobOutcome::SourceFailed(_) if job.job.kind == JobKind::Scan => {
                self.scanned(&job, &[]);
            }
            JobOutcome::Copied { written } => {
                let was_read = job.job.kind != JobKind::Zero;
                if was_read {
                    self.copier.source_errors = 0;
                    self.bad.source_reads();
                }
                self.copier.copied += written;
                let len = job.job.range.len;
                self.pace.done(now, len, len, *written, was_read);
                if !job.void {
                    self.copied(&job);
                }
            }
            JobOutcome::Compared { differing, read } => {
                if *read > 0 {
                    self.copier.source_errors = 0;
                    self.bad.source_reads();
                }
                match job.verify {
                    true => self.ahead.compared(*read),
                    false => self.ahead.skipped(job.job.range.len.saturating_sub(*read)),
                }
                self.pace.done(now, job.job.range.len, *read, *read, false);
                if job.void {
                    self.compare_again(&job);
                } else {
                    self.compared(now, &job, differing, out);
                }
            }
            JobOutcome::Readable => self.probed(now, &job, Ok(()), out),
            JobOutcome::SourceFailed(errno) if job.job.kind == JobKind::Probe => {
                self.probed(now, &job, Err(*errno), out);
            }
            JobOutcome::SourceFailed(errno) => {
                self.compare_again(&job);
                self.source_failed(now, &job, *errno, out);
            }
            JobOutcome::DestinationFailed(fault) => {
                self.compare_again(&job);
                self.destination_failed(now, *fault, out);
            }
        }
    }

    /// Whether what a job waits for is the source.
    pub(super) fn job_on_source(&mut self, now: Nanos, id: JobId, is: bool) {
        let read = self.jobs.set_on_source(id, is);
        if let Some((since, bytes)) = read.map(|job| (job.started, job.job.range.len)) {
            self.has_read(now, since, bytes);
        }
    }

    /// The source was read for a copy, which began at `since`.
    fn has_read(&mut self, now: Nanos, since: Nanos, bytes: u64) {
        self.pace.read(bytes, now.since(since), self.jobs.bytes_at_source());
    }

    fn scanned(&mut self, job: &InFlight, holes: &[ByteRange]) {
        self.copier.set_window(job.regions.clone());
        for hole in holes {
            let inside = self.regions.inside(*hole);
            let start = inside.start.max(job.regions.start);
            for region in start..inside.end.min(job.regions.end) {
                if job.touched(region) || self.regions.is_equal(region) {
                    continue;
                }
                let busy = self.regions.is_busy(region);
                match self.regions.stored(region) {
                    _ if busy => {}
                    Stored::Absent if self.config.reads_zero => {
                        self.regions.set_synced(region);
                        self.ahead.skipped(self.regions.bytes(region..region + 1).len);
                    }
                    _ => self.copier.set_hole(region),
                }
            }
        }
    }

    fn copied(&mut self, job: &InFlight) {
        for region in job.regions.clone() {
            if job.touched(region) {
                self.copier.add_round(region);
            } else {
                self.regions.set_synced(region);
                self.bad.was_read(region);
                self.copier.recopied(region);
                self.caught_up(region);
            }
        }
    }

    /// The region is equal; its claim ends unless it must be compared first.
    pub(super) fn caught_up(&mut self, region: u64) {
        if !self.copier.again.contains(&region) {
            self.copier.release(region);
        }
    }
}
