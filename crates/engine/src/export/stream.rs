//! Reads longer than their buffers: two buffers that take turns.
//!
//! Pieces are read ahead and sent in order. A buffer is free again when the
//! message with its piece has left, which shows in its count of references.

use sterna_nbd::reply;

use crate::buffer::{Buf, Slice};
use crate::disk::Disk;
use crate::image::{Cx, ImageOp};
use crate::io::Errno;

use super::blocks::Around;
use super::command::{Command, Kind, error_head};
use super::connection::Connection;

pub(super) struct Stream {
    /// The whole read.
    offset: u64,
    len: u32,
    /// The next piece to ask the disk for, the next one to send, and the end of all, in
    /// whole blocks.
    read: u64,
    send: u64,
    last: u64,
    /// Each piece is a chunk; else the head of the first promises all.
    chunked: bool,
    lanes: [Lane; 2],
}

struct Lane {
    buf: Buf,
    state: State,
}

enum State {
    /// Free once nobody else refers to the buffer.
    Idle,
    Reading(u64, Slice),
    Ready(u64, Slice),
}

/// What a stream wants to do next. What is sent is of the read alone.
enum Next {
    Read { offset: u64, buf: Slice },
    Send { offset: u64, buf: Slice },
    Wait,
    Done,
}

impl Stream {
    pub(super) fn new(offset: u64, len: u32, chunked: bool, lanes: [Buf; 2]) -> Stream {
        let lanes = lanes.map(|buf| Lane { buf, state: State::Idle });
        let around = Around::of(offset, len as usize);
        let (first, last) = (around.offset, around.offset + around.len as u64);
        Stream { offset, len, read: first, send: first, last, chunked, lanes }
    }

    fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    fn started(&self) -> bool {
        self.send > self.offset
    }

    /// The disk has read (or failed to read) the piece at `offset`.
    pub(super) fn arrived(&mut self, offset: u64) {
        for lane in &mut self.lanes {
            match std::mem::replace(&mut lane.state, State::Idle) {
                State::Reading(at, slice) if at == offset => {
                    lane.state = State::Ready(at, slice);
                }
                other => lane.state = other,
            }
        }
    }

    fn next(&mut self, may_send: bool) -> Next {
        let (start, end, send) = (self.offset, self.end(), self.send);
        if send == self.last {
            return Next::Done;
        }
        for lane in &mut self.lanes {
            match std::mem::replace(&mut lane.state, State::Idle) {
                State::Ready(offset, buf) if may_send && offset == send => {
                    self.send += buf.len() as u64;
                    let from = offset.max(start);
                    let len = self.send.min(end) - from;
                    let buf = buf.part((from - offset) as usize, len as usize);
                    return Next::Send { offset: from, buf };
                }
                State::Idle if self.read < self.last && lane.buf.is_unique() => {
                    let len =
                        (self.last - self.read).min(lane.buf.capacity() as u64) as usize;
                    let (offset, buf) = (self.read, lane.buf.slice(0, len));
                    lane.state = State::Reading(offset, buf.clone());
                    self.read += len as u64;
                    return Next::Read { offset, buf };
                }
                other => lane.state = other,
            }
        }
        Next::Wait
    }
}

impl Connection {
    /// Does what can be done for a long read now.
    pub(super) fn advance_stream(&mut self, cx: &mut Cx, disk: &mut Disk, key: u32) {
        loop {
            let owner = self.exclusive;
            let Some(command) = self.commands.get_mut(key) else { return };
            let may_send = owner.is_none_or(|owner| owner == key);
            if command.error.is_some() {
                if may_send {
                    self.fail_stream(key);
                }
                return;
            }
            let (cookie, cost) = (command.cookie, command.cost);
            let Kind::Stream(stream) = &mut command.kind else { return };
            match stream.next(may_send) {
                Next::Read { offset, buf } => {
                    self.request(cx, disk, key, ImageOp::Read { offset, buf });
                }
                Next::Send { offset, buf } => {
                    let (len, end) = (buf.len() as u64, stream.end());
                    let (whole, first) = (stream.len, offset == stream.offset);
                    let (chunked, done) = (stream.chunked, offset + len == end);
                    // The buffers are paid for until the last piece has left.
                    let cost = if done { cost } else { 0 };
                    if chunked {
                        let head = reply::offset_data(cookie, offset, len as u32, done);
                        self.output.push(&head, Some(buf), cost);
                    } else {
                        let head = self.session.read(cookie, offset, whole);
                        let head: &[u8] = if first { &head } else { &[] };
                        self.output.push(head, Some(buf), cost);
                        self.exclusive = (!done).then_some(key);
                    }
                }
                Next::Wait => return,
                Next::Done => {
                    self.account.answered(cost);
                    self.commands.remove(key);
                    self.streams.retain(|stream| *stream != key);
                    return;
                }
            }
        }
    }

    /// A piece could not be read. Once the others are back, the client is told,
    /// if that is possible.
    fn fail_stream(&mut self, key: u32) {
        let Some(Command {
            cookie, error, pieces: 0, kind: Kind::Stream(stream), ..
        }) = self.commands.get_mut(key)
        else {
            return;
        };
        if !stream.chunked && stream.started() {
            return self.close();
        }
        let head = error_head(&self.session, *cookie, error.unwrap_or(Errno(libc::EIO)));
        if let Some(command) = self.commands.remove(key) {
            self.account.answered(command.cost);
            self.output.push(&head, None, command.cost);
        }
        self.streams.retain(|stream| *stream != key);
    }
}
