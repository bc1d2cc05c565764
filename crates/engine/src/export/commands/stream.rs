//! Reads longer than their buffers: two buffers that take turns.
//!
//! Pieces are read ahead and sent in order. A buffer is free again when the
//! message with its piece has left, which shows in its count of references.

use crate::buffer::{Buf, Slice};
use crate::export::blocks::Around;

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

/// What a stream wants to do next.
pub(super) enum Next {
    Read { offset: u64, buf: Slice },
    Send(Piece),
    Wait,
    Done,
}

/// What is sent at a time, of the read alone.
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) buf: Slice,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

impl Stream {
    pub(super) fn new(offset: u64, len: u32, chunked: bool, lanes: [Buf; 2]) -> Stream {
        let lanes = lanes.map(|buf| Lane { buf, state: State::Idle });
        let around = Around::of(offset, len as usize);
        let (first, last) = (around.offset, around.offset + around.len as u64);
        Stream { offset, len, read: first, send: first, last, chunked, lanes }
    }

    /// How long the whole read is.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn is_chunked(&self) -> bool {
        self.chunked
    }

    pub(super) fn has_started(&self) -> bool {
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

    pub(super) fn next(&mut self, may_send: bool) -> Next {
        if self.send == self.last {
            return Next::Done;
        }
        let (start, end, send) =
            (self.offset, self.offset + u64::from(self.len), self.send);
        for lane in &mut self.lanes {
            match std::mem::replace(&mut lane.state, State::Idle) {
                State::Ready(offset, buf) if may_send && offset == send => {
                    self.send += buf.len() as u64;
                    let from = offset.max(start);
                    let to = self.send.min(end);
                    let buf = buf.part((from - offset) as usize, (to - from) as usize);
                    let (is_first, is_last) = (from == start, to == end);
                    return Next::Send(Piece { offset: from, buf, is_first, is_last });
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
