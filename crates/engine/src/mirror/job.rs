//! A job of the copier on its way through both images.
//!
//! A `Run` is a small state machine: it says which operations it needs, is told
//! how they ended, and in the end gives the outcome. It ends only when nothing
//! of it is in flight, also after a failure, so that a job that is over can
//! never write any more.

use std::collections::VecDeque;
use std::sync::Arc;

use sterna_core::ByteRange;
use sterna_core::mirror::{Fault, Job, JobKind, JobOutcome};

use super::comparison::{self, Comparison};
use super::runs;
use crate::buffer::{Pool, Slice};
use crate::image::{Done, Extent, ImageOp, ImageResult, no_clone};
use crate::io::{Errno, Stored};

/// Zeroes that are written out go in pieces of this size.
const ZERO_PIECE: u64 = 1 << 20;

/// Extents asked for at once.
const EXTENTS: usize = 512;

/// Which image an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Destination,
}

/// How the destination is to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Zeroes are written out like data (`thick-zeroed`).
    pub(super) write_zeroes: bool,
    /// Zeroes may lose their space (`thin`).
    pub(super) unmap: bool,
    /// The unit in which a comparison tells differences, a region.
    pub(super) region: usize,
}

/// What a run needs done next.
pub(super) type Need = (Side, ImageOp);

/// Where a run is after an operation of it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More of it is in flight, or needed.
    Going,
    /// It is over.
    Over(JobOutcome),
    /// It is over, and nothing was done: the images cannot share these blocks, at
    /// all or (`EINVAL`) in this range. The job has to be copied.
    CannotClone(Errno),
}

/// A job under way.
pub(super) struct Run {
    job: Job,
    style: Style,
    /// The source's file, if the destination is to share its blocks.
    clone: Option<Arc<Stored>>,
    /// One buffer for a copy, two for a comparison.
    buffers: Vec<Slice>,
    /// Parts of the buffers that are still to be read, if bad sectors lie between them.
    unread: VecDeque<(Side, u64, Slice)>,
    /// How far a job that goes piece by piece has come.
    at: u64,
    reading: bool,
    in_flight: usize,
    /// Of these, on the source.
    on_source: usize,
    written: u64,
    holes: Vec<ByteRange>,
    comparison: Option<Comparison>,
    /// Bytes of the piece that is being compared.
    piece: usize,
    failed: Option<JobOutcome>,
}

impl Run {
    /// Starts `job` with memory from `pool`; `None` if there is not enough now. A
    /// comparison `asks` first which parts are empty on both sides.
    pub(super) fn start(
        job: Job,
        style: Style,
        clone: Option<Arc<Stored>>,
        asks: bool,
        pool: &Pool,
        needs: &mut Vec<Need>,
    ) -> Option<Run> {
        let len = job.range.len;
        let (count, bytes) = match job.kind {
            JobKind::Copy { .. } if clone.is_some() => (0, 0),
            JobKind::Copy { .. } | JobKind::Probe => (1, len),
            JobKind::Compare => (2, len.min(comparison::PIECE)),
            JobKind::Zero if style.write_zeroes => (1, len.min(ZERO_PIECE)),
            JobKind::Zero | JobKind::Scan => (0, 0),
        };
        let bytes = usize::try_from(bytes).ok()?;
        let buffers: Vec<Slice> = (0..count)
            .map(|_| pool.get(bytes).map(|buf| buf.slice(0, bytes)))
            .collect::<Option<_>>()?;
        let compares = job.kind == JobKind::Compare;
        let comparison =
            compares.then(|| Comparison::new(job.range, style.region as u64, asks));
        let mut run = Run {
            job,
            style,
            clone,
            buffers,
            unread: VecDeque::new(),
            at: job.range.offset,
            reading: true,
            in_flight: 0,
            on_source: 0,
            written: 0,
            holes: Vec::new(),
            comparison,
            piece: 0,
            failed: None,
        };
        if job.kind == JobKind::Zero
            && let Some(buffer) = run.buffers.first()
        {
            buffer.zero();
        }
        run.go_on(needs);
        Some(run)
    }

    /// The job, taken back from a run that is over.
    pub(super) fn into_job(self) -> Job {
        self.job
    }

    /// Whether a comparison that asked found something empty on both sides.
    pub(super) fn found_empty(&self) -> Option<bool> {
        self.comparison.as_ref().and_then(Comparison::found_empty)
    }

    /// Whether the source works on it.
    pub(super) fn is_on_source(&self) -> bool {
        self.on_source > 0
    }

    fn need(&mut self, needs: &mut Vec<Need>, side: Side, op: ImageOp) {
        self.in_flight += 1;
        self.on_source += usize::from(side == Side::Source);
        needs.push((side, op));
    }

    /// Asks for the next piece.
    fn go_on(&mut self, needs: &mut Vec<Need>) {
        let offset = self.at;
        let left = self.job.range.end() - offset;
        match self.job.kind {
            JobKind::Scan => {
                let op = ImageOp::Extents { offset, len: left, limit: EXTENTS };
                self.need(needs, Side::Source, op);
            }
            JobKind::Copy { .. } if let Some(from) = self.clone.clone() => {
                self.reading = false;
                self.written = left;
                let op = ImageOp::Clone { offset, len: left, from };
                self.need(needs, Side::Destination, op);
            }
            JobKind::Copy { .. } | JobKind::Probe => {
                self.read(needs, Side::Source, ByteRange::new(offset, left));
            }
            JobKind::Zero if self.style.write_zeroes => {
                let len = left.min(ZERO_PIECE);
                let buf = self.buffers[0].part(0, len as usize);
                self.at += len;
                self.written += len;
                let op = ImageOp::Write { offset, buf, fua: false };
                self.need(needs, Side::Destination, op);
            }
            JobKind::Zero => {
                self.at += left;
                let op = self.zero(offset, left);
                self.need(needs, Side::Destination, op);
            }
            JobKind::Compare => self.go_on_comparing(needs),
        }
    }

    /// Asks both sides what is empty, or reads the next piece of both, if one is left.
    fn go_on_comparing(&mut self, needs: &mut Vec<Need>) {
        let sides = [Side::Source, Side::Destination];
        let ByteRange { offset, len } = self.job.range;
        if self.asking() {
            for side in sides {
                self.need(needs, side, ImageOp::Extents { offset, len, limit: EXTENTS });
            }
            return;
        }
        let piece = self.comparison.as_mut().and_then(Comparison::piece);
        let Some(piece) = piece else { return };
        self.piece = piece.len as usize;
        for side in sides {
            self.read(needs, side, piece);
        }
    }

    /// Reads a piece of a side into that side's buffer, but for what the job says cannot
    /// be read, which is not all of it: that is zeroes.
    fn read(&mut self, needs: &mut Vec<Need>, side: Side, piece: ByteRange) {
        let buffer = self.buffers[usize::from(side == Side::Destination)].clone();
        if !self.job.bad.is_none() {
            buffer.part(0, piece.len as usize).zero();
        }
        for ByteRange { offset, len } in self.job.bad.rest_of(piece) {
            let buf = buffer.part((offset - piece.offset) as usize, len as usize);
            self.unread.push_back((side, offset, buf));
        }
        self.read_on(needs, side);
    }

    /// Asks for the next part of a side. One after the other: they share a buffer, and only
    /// one operation at a time may write to that.
    fn read_on(&mut self, needs: &mut Vec<Need>, side: Side) {
        let next = self.unread.iter().position(|(of, ..)| *of == side);
        let next = next.and_then(|at| self.unread.remove(at));
        if let Some((_, offset, buf)) = next {
            self.need(needs, side, ImageOp::Read { offset, buf });
        }
    }

    fn zero(&self, offset: u64, len: u64) -> ImageOp {
        ImageOp::Zero { offset, len, unmap: self.style.unmap, fua: false, fast: false }
    }

    /// An operation of the job has ended.
    pub(super) fn done(
        &mut self,
        side: Side,
        result: ImageResult,
        needs: &mut Vec<Need>,
    ) -> Step {
        self.in_flight -= 1;
        self.on_source -= usize::from(side == Side::Source);
        match result {
            Err(errno) if self.clone.is_some() && no_clone(errno) => {
                return Step::CannotClone(errno);
            }
            // Who cannot say what is empty has data there, and is read.
            Err(_) if self.asking() => {}
            Err(errno) => {
                self.fail(side, errno);
                self.unread.clear();
            }
            Ok(Done::Extents(extents)) => self.found(&extents),
            Ok(Done::Ok) => self.read_on(needs, side),
        }
        if self.in_flight > 0 {
            return Step::Going;
        }
        if let Some(failure) = self.failed.take() {
            return Step::Over(failure);
        }
        match self.job.kind {
            JobKind::Copy { fresh } if self.reading => {
                self.reading = false;
                self.write(fresh, needs);
            }
            JobKind::Copy { .. } | JobKind::Probe => {}
            JobKind::Compare => {
                self.compare();
                self.go_on_comparing(needs);
            }
            _ if self.at < self.job.range.end() => self.go_on(needs),
            _ => {}
        }
        if self.in_flight > 0 {
            return Step::Going;
        }
        Step::Over(self.outcome())
    }

    fn outcome(&mut self) -> JobOutcome {
        match self.job.kind {
            JobKind::Scan => JobOutcome::Scanned(std::mem::take(&mut self.holes)),
            JobKind::Copy { .. } | JobKind::Zero => {
                JobOutcome::Copied { written: self.written }
            }
            JobKind::Probe => JobOutcome::Readable,
            JobKind::Compare => {
                let over = self.comparison.as_mut().map(Comparison::end);
                let (differing, read) = over.unwrap_or_default();
                JobOutcome::Compared { differing, read }
            }
        }
    }

    /// Keeps the first failure; but the source's before the destination's, which may have
    /// the same block of the same device.
    fn fail(&mut self, side: Side, errno: Errno) {
        match (side, &self.failed) {
            (Side::Source, None | Some(JobOutcome::DestinationFailed(_))) => {
                self.failed = Some(JobOutcome::SourceFailed(errno.0));
            }
            (Side::Destination, None) => {
                self.failed = Some(JobOutcome::DestinationFailed(fault(errno)));
            }
            _ => {}
        }
    }

    fn found(&mut self, extents: &[Extent]) {
        if let Some(comparison) = &mut self.comparison {
            return comparison.told(extents);
        }
        for extent in extents {
            if extent.zero {
                self.holes.push(extent.range);
            }
            self.at = extent.range.end();
        }
        if extents.is_empty() {
            self.at = self.job.range.end(); // It cannot say: all is data.
        }
    }

    /// The chunk was read: writes it, zeroes apart.
    fn write(&mut self, fresh: bool, needs: &mut Vec<Need>) {
        let chunk = self.buffers[0].clone();
        let offset = self.job.range.offset;
        if self.style.write_zeroes {
            self.written += chunk.len() as u64;
            let op = ImageOp::Write { offset, buf: chunk, fua: false };
            self.need(needs, Side::Destination, op);
            return;
        }
        let runs = runs::runs(&chunk.bytes());
        for run in runs {
            let (at, len) = (offset + run.bytes.start as u64, run.bytes.len());
            if !run.zero {
                let buf = chunk.part(run.bytes.start, len);
                self.written += len as u64;
                let op = ImageOp::Write { offset: at, buf, fua: false };
                self.need(needs, Side::Destination, op);
            } else if !fresh {
                let op = self.zero(at, len as u64);
                self.need(needs, Side::Destination, op);
            }
        }
    }

    /// Whether a comparison asks what is empty.
    fn asking(&self) -> bool {
        self.reading && self.comparison.as_ref().is_some_and(|one| one.asks)
    }

    /// Both sides have said what is empty, or a piece of both was read.
    fn compare(&mut self) {
        if self.asking() {
            self.reading = false;
            return;
        }
        let Some(comparison) = &mut self.comparison else { return };
        let [source, destination] = &self.buffers[..] else { return };
        let len = self.piece;
        comparison
            .was_read(&source.part(0, len).bytes(), &destination.part(0, len).bytes());
    }
}

/// What an error of the destination means for the migration.
pub(super) fn fault(errno: Errno) -> Fault {
    match errno.0 {
        libc::ENOSPC | libc::EDQUOT => Fault::Full,
        libc::ECONNRESET
        | libc::ENOTCONN
        | libc::EPIPE
        | libc::ECONNABORTED
        | libc::ESHUTDOWN
        | libc::ENETDOWN
        | libc::EHOSTUNREACH => Fault::Lost,
        errno => Fault::Error(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna_core::mirror::{JobId, Sectors};

    const STYLE: Style = Style { write_zeroes: false, unmap: true, region: 64 << 10 };

    fn start(kind: JobKind, len: u64) -> (Run, Vec<Need>) {
        let pool = Pool::new(8 << 20).unwrap();
        let (range, bad) = (ByteRange::new(1 << 20, len), Sectors::default());
        let job = Job { id: JobId(1), kind, range, bad };
        let mut needs = Vec::new();
        let run = Run::start(job, STYLE, None, false, &pool, &mut needs)
            .expect("there is memory");
        (run, needs)
    }

    #[test]
    fn zeroes_are_not_written_to_a_fresh_thin_destination() {
        let (mut run, mut needs) = start(JobKind::Copy { fresh: true }, 128 << 10);
        let (_, ImageOp::Read { buf, .. }) = needs.remove(0) else { panic!("reads") };
        buf.zero();
        let outcome = run.done(Side::Source, Ok(Done::Ok), &mut needs);
        assert_eq!(outcome, Step::Over(JobOutcome::Copied { written: 0 }));
        assert!(needs.is_empty());
    }

    #[test]
    fn zeroes_are_unmapped_where_the_destination_may_hold_something() {
        let (mut run, mut needs) = start(JobKind::Copy { fresh: false }, 128 << 10);
        let (_, ImageOp::Read { buf, .. }) = needs.remove(0) else { panic!("reads") };
        buf.zero();
        assert_eq!(run.done(Side::Source, Ok(Done::Ok), &mut needs), Step::Going);
        let zero = matches!(needs[..], [(_, ImageOp::Zero { unmap: true, .. })]);
        assert!(zero, "{needs:?}");
        let outcome = run.done(Side::Destination, Ok(Done::Ok), &mut needs);
        assert_eq!(outcome, Step::Over(JobOutcome::Copied { written: 0 }));
    }

    #[test]
    fn a_job_that_failed_ends_only_when_nothing_of_it_is_in_flight() {
        let (mut run, mut needs) = start(JobKind::Compare, 64 << 10);
        let failed = run.done(Side::Source, Err(Errno(libc::EIO)), &mut needs);
        assert_eq!(failed, Step::Going);
        let outcome = run.done(Side::Destination, Ok(Done::Ok), &mut needs);
        assert_eq!(outcome, Step::Over(JobOutcome::SourceFailed(libc::EIO)));
    }

    #[test]
    fn a_comparison_goes_piece_by_piece_and_names_regions() {
        let (mut run, mut needs) = start(JobKind::Compare, 768 << 10);
        let mut step = Step::Going;
        let mut pieces = 0;
        while step == Step::Going {
            pieces += 1;
            for (side, op) in std::mem::take(&mut needs) {
                let ImageOp::Read { buf, .. } = op else { panic!("reads") };
                buf.zero();
                if side == Side::Source && pieces == 2 {
                    buf.copy_from(0, &[1]);
                }
                step = run.done(side, Ok(Done::Ok), &mut needs);
            }
        }
        let first = ByteRange::new((1 << 20) + (512 << 10), 64 << 10);
        assert_eq!(
            step,
            Step::Over(JobOutcome::Compared { differing: vec![first], read: 768 << 10 })
        );
    }

    #[test]
    fn a_comparison_reads_nothing_where_both_sides_are_empty() {
        let pool = Pool::new(8 << 20).unwrap();
        let range = ByteRange::new(1 << 20, 512 << 10);
        let (kind, bad) = (JobKind::Compare, Sectors::default());
        let job = Job { id: JobId(1), kind, range, bad };
        let mut needs = Vec::new();
        let mut run = Run::start(job, STYLE, None, true, &pool, &mut needs).unwrap();
        let empty = || vec![Extent { range, hole: true, zero: true }];
        for (side, said, over) in [
            (Side::Source, Ok(Done::Extents(empty())), false),
            (Side::Destination, Ok(Done::Extents(empty())), true),
        ] {
            let step = run.done(side, said, &mut needs);
            assert_eq!(step != Step::Going, over);
        }
        assert!(needs.drain(..).all(|(_, op)| matches!(op, ImageOp::Extents { .. })));

        let mut run = Run::start(job, STYLE, None, true, &pool, &mut needs).unwrap();
        needs.clear();
        run.done(Side::Source, Ok(Done::Extents(empty())), &mut needs);
        let step = run.done(Side::Destination, Err(Errno(libc::EIO)), &mut needs);
        assert_eq!(step, Step::Going, "who cannot say is read");
        assert!(needs.iter().all(|(_, op)| matches!(op, ImageOp::Read { .. })));
        assert_eq!(needs.len(), 2);
    }
}
