//! Commands of a client: how they become requests of the disk, and how answers
//! become replies.

use sterna_core::Nanos;
use sterna_nbd::{self as nbd, Allocation, NbdError, Session, reply, status};

use crate::buffer::Slice;
use crate::disk::{Answer, Client, Disk, Edges, Origin};
use crate::image::{Cx, Done, ImageOp};
use crate::io::Errno;

use super::ahead::Pending;
use super::blocks::{Around, inside};
use super::connection::Connection;
use super::memory::{Lanes, Refusal};
use super::ranged::{Asked, Ranged};
use super::stream::Stream;
use super::{EXTENTS_MAX, PIECE};

/// A command that is being carried out.
pub(super) struct Command {
    pub(super) cookie: u64,
    pub(super) kind: Kind,
    /// Requests of the disk that have not been answered.
    pub(super) pieces: u32,
    /// The first error of a piece.
    pub(super) error: Option<Errno>,
    /// What its buffers cost the connection's account.
    pub(super) cost: usize,
    /// When its head was read, if it had to wait then: its first request counts from
    /// there.
    came: Option<Nanos>,
}

pub(super) enum Kind {
    /// A read in one piece: from where on, and how long.
    Read(u64, u32),
    /// A longer read.
    Stream(Stream),
    Write(Write),
    Ranged(Ranged),
    Flush,
    Status(Status),
}

/// A question for the state of a range.
#[derive(Clone, Copy)]
pub(super) struct Status {
    len: u32,
    req_one: bool,
    /// The disk is asked for whole blocks, so many bytes more at the beginning.
    skip: u64,
}

/// A write whose payload comes in.
pub(super) struct Write {
    fua: bool,
    /// Where the payload that is not yet in `filling` goes.
    next: u64,
    /// How much of it there is.
    left: usize,
    /// What is being filled.
    filling: Option<Filling>,
    /// Its buffers: one if one is enough.
    lanes: Lanes,
}

/// A piece of a write.
struct Filling {
    /// Whole blocks.
    blocks: Slice,
    /// Where these begin on the disk, and what of them is not the client's.
    around: Around,
    /// So much of the client's has come.
    filled: usize,
}

impl Filling {
    fn len(&self) -> usize {
        let Edges { head, tail } = self.around.edges;
        self.blocks.len() - head - tail
    }
}

impl Write {
    /// The part of a buffer that the next bytes belong in; `None` while all
    /// buffers are being written to disk.
    pub(super) fn target(&mut self) -> Option<Slice> {
        if self.filling.is_none() {
            let buf = self.lanes.iter().flatten().find(|buf| buf.is_unique())?;
            let room = buf.capacity().min(PIECE) - Around::of(self.next, 0).edges.head;
            let around = Around::of(self.next, self.left.min(room));
            let blocks = buf.slice(0, around.len);
            self.filling = Some(Filling { blocks, around, filled: 0 });
        }
        let filling = self.filling.as_ref()?;
        let (filled, len) = (filling.filled, filling.len());
        Some(filling.blocks.part(filling.around.edges.head + filled, len - filled))
    }

    /// So many bytes have come. Gives a piece that is complete.
    fn filled(&mut self, len: usize) -> Option<(Around, Slice)> {
        let filling = self.filling.as_mut()?;
        filling.filled += len;
        if filling.filled < filling.len() {
            return None;
        }
        let Filling { blocks, around, filled } = self.filling.take()?;
        self.next += filled as u64;
        self.left -= filled;
        Some((around, blocks))
    }

    pub(super) fn complete(&self) -> bool {
        self.left == 0
    }
}

impl Connection {
    /// Starts a command, if its buffers can be had now.
    pub(super) fn start(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        pending: &Pending,
    ) -> Result<(), Refusal> {
        match pending.command {
            nbd::Command::Read { offset, len, df } => {
                return self.start_read(cx, disk, pending, offset, len, df);
            }
            nbd::Command::Write { offset, len, fua } => {
                return self.start_write(cx, disk, pending, offset, len as usize, fua);
            }
            nbd::Command::Trim { offset, len, fua } => {
                let zero = Asked::Zero { unmap: true, fua, fast: false };
                let ranged = Ranged::new(inside(offset, len), zero);
                self.start_ranged(cx, disk, pending, ranged, 0);
            }
            nbd::Command::WriteZeroes { offset, len, fua, no_hole, fast_zero } => {
                let zero = Asked::Zero { unmap: !no_hole, fua, fast: fast_zero };
                return self.start_zeroes(cx, disk, pending, (offset, len), zero);
            }
            nbd::Command::Cache { offset, len } => {
                let Around { offset, len, .. } = Around::of(offset, len as usize);
                let range = (offset, offset + len as u64);
                self.start_ranged(cx, disk, pending, Ranged::new(range, Asked::Cache), 0);
            }
            nbd::Command::Flush => {
                let key = self.add(pending, Kind::Flush, 0);
                self.request(cx, disk, key, ImageOp::Flush);
            }
            nbd::Command::BlockStatus { offset, len, req_one } => {
                let around = Around::of(offset, len as usize);
                let skip = around.edges.head as u64;
                let status = Status { len, req_one, skip };
                let key = self.add(pending, Kind::Status(status), 0);
                let limit = if req_one { 1 } else { EXTENTS_MAX };
                let (offset, len) = (around.offset, around.len as u64);
                self.request(cx, disk, key, ImageOp::Extents { offset, len, limit });
            }
            nbd::Command::Disconnect => self.finish(),
        }
        Ok(())
    }

    fn start_read(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        pending: &Pending,
        offset: u64,
        len: u32,
        df: bool,
    ) -> Result<(), Refusal> {
        let around = Around::of(offset, len as usize);
        match self.take_buffers(cx, disk, around.len)? {
            ([Some(first), Some(second)], cost) => {
                let chunked = self.session.structured && !df;
                let stream = Stream::new(offset, len, chunked, [first, second]);
                let key = self.add(pending, Kind::Stream(stream), cost);
                self.streams.push(key);
                self.advance_stream(cx, disk, key);
            }
            ([first, second], cost) => {
                let Some(buf) = first.or(second) else { return Ok(()) };
                let key = self.add(pending, Kind::Read(offset, len), cost);
                let (offset, buf) = (around.offset, buf.slice(0, around.len));
                self.request(cx, disk, key, ImageOp::Read { offset, buf });
            }
        }
        Ok(())
    }

    fn start_write(
        &mut self,
        cx: &Cx,
        disk: &mut Disk,
        pending: &Pending,
        offset: u64,
        len: usize,
        fua: bool,
    ) -> Result<(), Refusal> {
        let (lanes, cost) = self.take_buffers(cx, disk, Around::of(offset, len).len)?;
        let write = Write { fua, next: offset, left: len, filling: None, lanes };
        let key = self.add(pending, Kind::Write(write), cost);
        self.phase = super::receive::Phase::Payload(key);
        Ok(())
    }

    /// The buffers of a command, unless it has to wait for them or for its disk.
    pub(super) fn take_buffers(
        &mut self,
        cx: &Cx,
        disk: &mut Disk,
        len: usize,
    ) -> Result<(Lanes, usize), Refusal> {
        if !disk.core.may_begin() {
            return Err(Refusal::Admission);
        }
        let strain = disk.core.strain(cx);
        let taken = self.account.take(&cx.buffers, len, strain)?;
        disk.core.begun();
        Ok(taken)
    }

    /// Payload of a write has come into its target.
    pub(super) fn payload(&mut self, cx: &mut Cx, disk: &mut Disk, key: u32, len: usize) {
        let Some(command) = self.commands.get_mut(key) else { return };
        let Kind::Write(write) = &mut command.kind else { return };
        let piece = write.filled(len);
        let (complete, fua) = (write.complete(), write.fua);
        if complete {
            // The request keeps what it needs; the rest is free at once.
            write.lanes = [None, None];
            self.phase = super::receive::Phase::Head;
        }
        match piece {
            // After an error the rest of the payload only passes through.
            Some((Around { offset, edges, .. }, buf)) if command.error.is_none() => {
                let write = ImageOp::Write { offset, buf, fua };
                self.request_within(cx, disk, key, write, edges);
            }
            _ if complete && command.pieces == 0 => self.end(key),
            _ => {}
        }
    }

    pub(super) fn add(&mut self, pending: &Pending, kind: Kind, cost: usize) -> u32 {
        let Pending { cookie, came, .. } = *pending;
        let command = Command { cookie, kind, pieces: 0, error: None, cost, came };
        self.commands.insert(command)
    }

    /// Gives the disk one more request of a command.
    pub(super) fn request(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        key: u32,
        op: ImageOp,
    ) {
        self.request_within(cx, disk, key, op, Edges::default());
    }

    /// The same of a write that does not change all bytes of its blocks.
    pub(super) fn request_within(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        key: u32,
        op: ImageOp,
        edges: Edges,
    ) {
        if let Some(command) = self.commands.get_mut(key) {
            command.pieces += 1;
            let client = Client::Connection(self.index);
            let came = command.came.take().unwrap_or(cx.now);
            disk.submit_within(cx, Origin { client, command: key }, op, edges, came);
        }
    }

    /// The disk has answered a request.
    pub(super) fn answered(&mut self, cx: &mut Cx, disk: &mut Disk, answer: Answer) {
        let (key, closed) = (answer.origin.command, self.is_closed());
        let Some(command) = self.commands.get_mut(key) else { return };
        command.pieces -= 1;
        let done = match answer.result {
            Ok(done) => done,
            Err(errno) => {
                command.error = Some(errno.or_worse(command.error));
                Done::Ok
            }
        };
        if closed {
            return self.bury(key);
        }
        let failed = command.error.is_some();
        let pending = command.pieces > 0;
        match (&mut command.kind, answer.op) {
            (Kind::Stream(stream), ImageOp::Read { offset, .. }) => {
                stream.arrived(offset);
                self.advance_stream(cx, disk, key);
            }
            (Kind::Write(write), _) if !write.complete() || pending => {
                if !self.is_open() {
                    // The rest of the payload will not come.
                    self.bury(key);
                }
            }
            _ if failed => self.end(key),
            (Kind::Ranged(_), _) => {
                if !self.next_piece(cx, disk, key) {
                    self.end(key);
                }
            }
            (Kind::Read(from, len), ImageOp::Read { offset, buf }) => {
                let (from, len) = (*from, *len);
                let skip = (from - offset) as usize;
                self.end_read(key, from, buf.part(skip, len as usize));
            }
            (Kind::Status(status), ImageOp::Extents { .. }) => {
                let status = *status;
                self.end_status(key, status, &done);
            }
            _ => self.end(key),
        }
    }

    fn end_read(&mut self, key: u32, offset: u64, buf: Slice) {
        if let Some(command) = self.commands.remove(key) {
            self.account.answered(command.cost);
            let head = self.session.read(command.cookie, offset, buf.len() as u32);
            self.output.push(&head, Some(buf), command.cost);
        }
    }

    fn end_status(&mut self, key: u32, asked: Status, done: &Done) {
        let Some(command) = self.commands.get_mut(key) else { return };
        let Status { len, req_one, mut skip } = asked;
        let reply = match (done, self.session.allocation) {
            (Done::Extents(found), Some(context)) => {
                let extents = found.iter().map(|extent| {
                    let before = skip.min(extent.range.len);
                    skip -= before;
                    let state = Allocation { hole: extent.hole, zero: extent.zero };
                    status::Extent { len: extent.range.len - before, state }
                });
                status::block_status(command.cookie, context, len, req_one, extents)
            }
            _ => None,
        };
        match reply {
            Some(reply) => {
                self.commands.remove(key);
                self.output.push(&reply, None, 0);
            }
            None => {
                command.error = Some(Errno(libc::EIO));
                self.end(key);
            }
        }
    }

    /// Replies to a command without content, or with its error, and forgets it.
    pub(super) fn end(&mut self, key: u32) {
        let Some(command) = self.commands.remove(key) else { return };
        self.account.answered(command.cost);
        self.account.give(command.cost);
        match command.error {
            None => self.output.push(&self.session.ok(command.cookie), None, 0),
            Some(errno) => {
                let head = error_head(&self.session, command.cookie, errno);
                self.output.push(&head, None, 0);
            }
        }
    }
}

/// The error reply for an error of the system.
pub(super) fn error_head(
    session: &Session,
    cookie: u64,
    errno: Errno,
) -> reply::ErrorHead {
    session.error(cookie, NbdError::from_errno(errno.0), &errno.to_string())
}
