//! An image in a regular file or on a block device.
//!
//! The file is opened twice: past the page cache (`O_DIRECT`) for whatever is
//! aligned as the device wants it, and through the page cache for the rest, and
//! for everything where the file system knows no direct I/O. The kernel keeps
//! the two views coherent, with one gap: a write through the cache rewrites
//! whole pages, so it could put back old bytes around it while a direct write
//! to the same page is under way. `Lane` closes the gap: such a pair never runs
//! together. (Devices with sectors of 512 bytes never get there; files on XFS do, see
//! `file_system`.)
//!
//! **A flush that fails** is reported by the kernel once, and may have lost what was written
//! before it. What it means is decided in `outstanding`: after a loss of pages no later flush is
//! believed (`has_lost`), and a loss of direct writes is told once (`has_forgotten`). Each of
//! the two descriptors has an account of errors of its own in the kernel, so a flush, which goes
//! to the cached one, is told of a page that could not be written even if a direct write with
//! FUA was told before.
//!
//! The kernel tells one caller of a loss. So of two flushes at once that wait for the same
//! page one would succeed, and its client would believe it. One is under way at a time
//! ([`Syncs`]): what comes meanwhile is done by the next one, all together, and fails with
//! the one before if that has lost something.
//!
//! Zeroing is tried from cheap to dear: punch a hole (if the space may go),
//! zero the range in place, write zeroes. What a file system cannot do it is
//! not asked again.
//!
//! Nothing is read behind the end of the file: a disk is no longer than its file was when
//! it was opened. A read that finds an end all the same fails, and so does a look for
//! holes there: somebody has shortened the file, and what is missing is not made up.

mod descriptors;
mod flight;
mod leave;
mod outstanding;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use sterna_core::durability::{Keeper, Loss};

use self::descriptors::{Descriptors, Direct};
use self::flight::{Flight, Step, Verdict, pages, pages_meet, rest};
use self::leave::Leaving;
use self::outstanding::{Failure, Outstanding};
use super::claim::ImageClaim;
use super::clone;
use super::doubt::DOUBT;
use super::open::{Files, open};
use super::{
    Cx, Done, HeldFile, Image, ImageInfo, ImageOp, ImageResult, OpenError, Opened,
    Ticket, extents,
};
use crate::account::{self, Line};
use crate::buffer::UNIT;
use crate::io::{Allocate, Chore, Completion, Crew, Errno, Fd, ImageId, Job, Op, Stored};
use crate::slab::Slab;

/// Zeroes are written in pieces of this size, from one shared buffer.
pub(crate) const ZEROES: usize = 64 << 10;

/// A file that was opened and belongs to no reactor yet.
pub(crate) struct OpenedFile(Files);

impl OpenedFile {
    pub(crate) fn open(
        path: &Path,
        direct: bool,
        crew: &Arc<Crew>,
    ) -> Result<OpenedFile, OpenError> {
        open(path, direct, crew).map(OpenedFile)
    }
}

impl Opened for OpenedFile {
    fn size(&self) -> u64 {
        self.0.size
    }

    fn keeper(&self) -> Option<Keeper> {
        let address = account::address(&self.0.storage.name()?);
        Some(Keeper::Kernel { address })
    }

    fn keep(&mut self, line: Line) {
        self.0.line = Some(line);
    }

    fn start(self: Box<Self>, _cx: &mut Cx, id: ImageId) -> Box<dyn Image> {
        let keeper = self.keeper();
        let Files {
            storage: _,
            line,
            claim,
            buffered,
            direct,
            direct_is_stored,
            seek,
            held,
            at_once,
            size,
            align,
            whole,
        } = self.0;
        let leaving = Leaving::with(keeper, line);
        Box::new(FileImage {
            id,
            size,
            descriptors: Descriptors {
                // The page cache makes whoever writes much wait for the storage.
                cached: Fd::stored(buffered, false),
                direct: direct.map(|file| Direct {
                    fd: Fd::stored(file, at_once),
                    align,
                    whole,
                }),
                direct_is_stored,
            },
            seek,
            named: held,
            _claim: claim,
            flights: Slab::new(),
            held: VecDeque::new(),
            outstanding: Outstanding::new(leaving.inherits()),
            leaving,
            lost: false,
            forgot: false,
            syncs: Syncs::default(),
            can_punch: true,
            can_zero: true,
        })
    }
}

struct FileImage {
    id: ImageId,
    size: u64,
    descriptors: Descriptors,
    seek: Arc<Stored>,
    /// The file with its name.
    named: Arc<HeldFile>,
    /// Held for as long as the image is open.
    _claim: Option<ImageClaim>,
    flights: Slab<Flight>,
    /// Writes that wait in the lane.
    held: VecDeque<(Ticket, ImageOp)>,
    outstanding: Outstanding,
    leaving: Leaving,
    /// A flush has failed for which there is no second try, and nobody has asked since.
    lost: bool,
    /// One has failed that may have lost direct writes, and nobody has asked since.
    forgot: bool,
    syncs: Syncs,
    can_punch: bool,
    can_zero: bool,
}

/// The operations that have to be made durable, by their flights.
#[derive(Default)]
struct Syncs {
    /// The kernel is at it, for all of these; the first has its token.
    under_way: Vec<u32>,
    /// They have come since.
    waiting: Vec<u32>,
}

impl Image for FileImage {
    fn submit(&mut self, cx: &mut Cx, ticket: Ticket, op: ImageOp) {
        if self.must_wait(&op) {
            self.held.push_back((ticket, op));
            return;
        }
        self.start(cx, ticket, op);
    }

    fn completed(&mut self, cx: &mut Cx, completion: Completion) {
        let key = completion.token.tag;
        let Some(flight) = self.flights.get_mut(key) else { return };
        if flight.is_to_sync() {
            return self.synced(cx, &completion.result.map(|_| Done::Ok));
        }
        let verdict = match completion.result {
            Ok(count) => {
                if let Some(end) = flight.end_found(count) {
                    self.named.is_short(end);
                }
                flight.advance(count)
            }
            Err(errno) => Verdict::Failed(errno),
        };
        match verdict {
            Verdict::Next => self.issue(cx, key),
            Verdict::Done(done) => self.finish(cx, key, Ok(done)),
            Verdict::Failed(errno) => self.failed(cx, key, errno),
        }
    }

    fn info(&self) -> ImageInfo {
        ImageInfo {
            size: self.size,
            min_block: 1,
            direct: self.descriptors.direct.is_some(),
            finds_holes: true,
            fast_zero: self.can_punch || self.can_zero,
        }
    }

    fn moves_bytes(&self, op: &ImageOp) -> bool {
        match op {
            ImageOp::Read { .. } | ImageOp::Write { .. } => true,
            ImageOp::Zero { unmap, fast, .. } => {
                !(*fast || self.can_zero || *unmap && self.can_punch)
            }
            ImageOp::Cache { .. } => self.descriptors.direct.is_none(),
            _ => false,
        }
    }

    fn file(&self) -> Option<Arc<Stored>> {
        Some(Arc::clone(&self.seek))
    }

    fn named(&self) -> Option<Arc<HeldFile>> {
        Some(Arc::clone(&self.named))
    }

    fn has_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    fn has_forgotten(&mut self) -> Option<Loss> {
        std::mem::take(&mut self.forgot).then_some(Loss::FlushFailed)
    }

    fn lacks_line(&self) -> Option<Keeper> {
        self.leaving.lacks_line()
    }

    fn keep_late(&mut self, cx: &mut Cx, line: Line) {
        self.begin_line(cx, line);
    }

    fn timer(&mut self, cx: &mut Cx, tag: u32) {
        match tag {
            DOUBT => self.looks_for_long_flushes(cx),
            _ => self.leave_as_it_is(),
        }
    }

    fn in_flight(&self) -> usize {
        self.flights.len() + self.held.len()
    }

    fn close(&mut self, cx: &mut Cx) {
        self.close_line(cx);
    }

    fn take_leave(&mut self, cx: &mut Cx) {
        self.flush_last(cx);
    }

    fn idle(&self) -> bool {
        self.in_flight() == 0 || self.leaving.has_left()
    }

    /// What no thread has begun ends; the rest ends when the storage answers.
    fn abort(&mut self, cx: &mut Cx) {
        for (ticket, _) in std::mem::take(&mut self.held) {
            cx.finished.push((ticket, Err(Errno(libc::ECANCELED))));
        }
        for key in std::mem::take(&mut self.syncs.waiting) {
            self.finish(cx, key, Err(Errno(libc::ECANCELED)));
        }
        for key in self.flights.keys() {
            cx.io.cancel(super::token(self.id, key));
        }
    }
}

impl FileImage {
    fn start(&mut self, cx: &mut Cx, ticket: Ticket, op: ImageOp) {
        let step = match &op {
            ImageOp::Zero { unmap: true, .. } if self.can_punch => Step::Punch,
            ImageOp::Zero { .. } if self.can_zero => Step::Zero,
            ImageOp::Zero { fast: true, .. } => {
                cx.finished.push((ticket, Err(Errno(libc::EOPNOTSUPP))));
                return;
            }
            ImageOp::Zero { .. } => Step::WriteZeroes,
            ImageOp::Extents { .. } => Step::Seek(Arc::default()),
            ImageOp::Cache { .. } if self.descriptors.direct.is_some() => {
                cx.finished.push((ticket, Ok(Done::Ok)));
                return;
            }
            _ => Step::Transfer,
        };
        let way = self.descriptors.way(&op);
        let dirties = self.descriptors.dirties(&op, way);
        let mark =
            self.outstanding.begins(&op, dirties, self.descriptors.direct_is_stored);
        if op.makes_durable() {
            self.leaving.flush_begins(cx, self.id);
        }
        let began = cx.now;
        let flight = Flight { ticket, op, done: 0, step, way, dirties, mark, began };
        let key = self.flights.insert(flight);
        self.issue(cx, key);
    }

    /// Keeps the account of what is durable when an operation has ended.
    fn note(&mut self, cx: &mut Cx, flight: &Flight, result: &ImageResult) {
        let end = flight.end(result, self.descriptors.direct_is_stored);
        let lost = self.outstanding.ended(flight.mark, end);
        self.note_line(cx, end, lost.is_some());
        match lost {
            Some(Failure::Final) => self.lost = true,
            Some(Failure::Once) => {
                self.forgot = true;
                // Before any flush is answered that was under way.
                let news = Ticket { disk: self.id.disk, id: Ticket::NEWS };
                cx.finished.push((news, Ok(Done::Ok)));
            }
            None => {}
        }
    }

    /// Asks the kernel for the next step of an operation.
    fn issue(&mut self, cx: &mut Cx, key: u32) {
        let Some(flight) = self.flights.get(key) else { return };
        let (done, buffered) = (flight.done, || self.descriptors.cached.clone());
        let op = match (&flight.step, &flight.op) {
            (Step::Transfer, ImageOp::Read { offset, buf }) => {
                let (offset, buf) = rest(*offset, buf, done);
                Op::Read { fd: self.descriptors.to_read(offset, &buf), offset, buf }
            }
            (Step::Transfer, ImageOp::Write { offset, buf, fua }) => {
                let (offset, buf) = rest(*offset, buf, done);
                let dsync = *fua && !flight.dirties;
                Op::Write {
                    fd: self.descriptors.to_write(offset, &buf),
                    offset,
                    buf,
                    dsync,
                }
            }
            (Step::Punch, ImageOp::Zero { offset, len, .. }) => Op::Allocate {
                fd: buffered(),
                mode: Allocate::Punch,
                offset: *offset,
                len: *len,
            },
            (Step::Zero, ImageOp::Zero { offset, len, .. }) => Op::Allocate {
                fd: buffered(),
                mode: Allocate::Zero,
                offset: *offset,
                len: *len,
            },
            (Step::WriteZeroes, ImageOp::Zero { offset, len, .. }) => {
                let (offset, left) = (offset + done, len - done);
                let len = piece(offset, left, cx.zeroes.len() as u64) as usize;
                let buf = cx.zeroes.part(0, len);
                Op::Write {
                    fd: self.descriptors.to_write(offset, &buf),
                    offset,
                    buf,
                    dsync: false,
                }
            }
            (Step::Seek(found), ImageOp::Extents { offset, len, limit }) => {
                let (offset, len, limit) = (*offset, *len, *limit);
                let (file, found) = (Arc::clone(&self.seek), Arc::clone(found));
                let job = move || {
                    let extents = extents::find(&*file, offset, len, limit)?;
                    *found.lock().map_err(|_| Errno(libc::EIO))? = extents;
                    Ok(0)
                };
                self.aside(Chore::LookUp, Box::new(job))
            }
            (_, ImageOp::Cache { offset, len }) => {
                let (file, offset, len) = (Arc::clone(&self.seek), *offset, *len);
                let job = move || extents::will_need(&*file, offset, len);
                self.aside(Chore::LookUp, Box::new(job))
            }
            (_, ImageOp::Clone { offset, len, from }) => {
                let (to, from) = (Arc::clone(&self.seek), Arc::clone(from));
                let (offset, len) = (*offset, *len);
                let job = move || clone::range(&from, &to, offset, len);
                self.aside(Chore::Clone, Box::new(job))
            }
            _ => {
                self.syncs.waiting.push(key);
                return self.sync_next(cx);
            }
        };
        cx.io.submit(super::token(self.id, key), op);
    }

    /// Makes durable what waits for it, if nothing is just being made so.
    fn sync_next(&mut self, cx: &mut Cx) {
        if self.syncs.under_way.is_empty() {
            self.syncs.under_way = std::mem::take(&mut self.syncs.waiting);
            if let Some(first) = self.syncs.under_way.first() {
                let fd = self.descriptors.cached.clone();
                cx.io.submit(super::token(self.id, *first), Op::Sync { fd });
            }
        }
    }

    /// What was under way is durable, or is not.
    fn synced(&mut self, cx: &mut Cx, result: &ImageResult) {
        for key in std::mem::take(&mut self.syncs.under_way) {
            self.finish(cx, key, result.clone());
        }
        if result.is_err() && self.lost {
            // The kernel has told of the loss, and would not tell them.
            for key in std::mem::take(&mut self.syncs.waiting) {
                self.finish(cx, key, result.clone());
            }
        }
        self.sync_next(cx);
    }

    /// A job for a thread of the datastore.
    fn aside(&self, chore: Chore, job: Job) -> Op {
        Op::Blocking { crew: Arc::clone(self.seek.crew()), chore, job: Some(job) }
    }

    /// A step failed: another way, or the end.
    fn failed(&mut self, cx: &mut Cx, key: u32, errno: Errno) {
        let unable = matches!(
            errno.0,
            libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::ENODEV
        );
        let no_room = matches!(errno.0, libc::ENOSPC | libc::EDQUOT);
        // `EINVAL` speaks of this range, the others of the file system.
        let for_ever = unable && errno.0 != libc::EINVAL;
        let Some(flight) = self.flights.get_mut(key) else { return };
        let fast = matches!(flight.op, ImageOp::Zero { fast: true, .. });
        match flight.step {
            Step::Punch if unable => {
                self.can_punch &= !for_ever;
                flight.step = Step::Zero;
            }
            Step::Zero if unable && fast => {
                self.can_zero &= !for_ever;
                return self.finish(cx, key, Err(Errno(libc::EOPNOTSUPP)));
            }
            Step::Zero if unable => {
                self.can_zero &= !for_ever;
                flight.step = Step::WriteZeroes;
            }
            // Some file systems allocate anew for that, and may have given back what was
            // there: it is written, however fast it was to be. Direct writes take the room
            // again; the page cache would want more besides. It is not tried again: others
            // could write where there is no room meanwhile.
            Step::Zero if no_room => {
                self.can_zero = false;
                flight.step = Step::WriteZeroes;
            }
            _ => return self.finish(cx, key, Err(errno)),
        }
        self.issue(cx, key);
    }

    fn finish(&mut self, cx: &mut Cx, key: u32, result: ImageResult) {
        if let Some(flight) = self.flights.remove(key) {
            self.note(cx, &flight, &result);
            match flight.ticket.id {
                Ticket::LAST => self.flushed_last(cx, &result),
                _ => cx.finished.push((flight.ticket, result)),
            }
        }
        // In their order, and each held back only by those before it.
        for (ticket, op) in std::mem::take(&mut self.held) {
            self.submit(cx, ticket, op);
        }
    }

    /// The lane: whether a write must wait for another one in the same pages,
    /// because one of the two goes through the page cache and one does not.
    fn must_wait(&self, op: &ImageOp) -> bool {
        if !self.descriptors.share_pages() {
            return false;
        }
        let Some(pages) = pages(op) else { return false };
        let way = self.descriptors.way(op);
        let meets = |other: &ImageOp| pages_meet(pages, other);
        self.flights.iter().any(|(_, f)| !f.way.goes_with(way) && meets(&f.op))
            || self.held.iter().any(|(_, op)| meets(op))
    }
}

/// How much of what is `left` from an offset on is written at once: up to the next whole
/// block, or whole blocks, or the rest of one.
fn piece(offset: u64, left: u64, most: u64) -> u64 {
    let unit = UNIT as u64;
    match unit - offset % unit {
        edge if edge < unit => left.min(edge),
        _ if left < unit => left,
        _ => (left - left % unit).min(most),
    }
}

#[cfg(test)]
mod tests;
