//! One connection to the server: the socket, and what is being received.
//!
//! Replies are received into a small staging buffer; the heads are read from
//! there. When a head announces a payload, what of it is in the staging buffer
//! already is copied, and the rest, if it is worth a system call of its own, is
//! received straight into the buffer of the request. So small reads cost one
//! receive for many replies, and large ones are not copied.

use std::sync::{Arc, Mutex};

use sterna_nbd::client::{Parsed, ReplyLimits};
use sterna_nbd::{ReplyHead, Session};

use super::connect::ConnectError;
use super::examine::Examined;
use super::flight::Queue;
use crate::buffer::{Buf, Slice};
use crate::io::{Fd, Message};
use crate::timer::TimerId;

/// The staging buffer: four times the longest head (an error with its message).
pub(super) const STAGING: usize = 16 << 10;
/// A payload's rest from this length on is received where it belongs.
const DIRECT_MIN: usize = 4096;
/// Heads of this many bytes keep their memory from one message to the next.
pub(super) const HEADS_KEPT: usize = 16 << 10;

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Requests can be sent.
    Up,
    /// It is given up; the kernel still has some of its operations.
    Ending,
    /// The next attempt waits for its time.
    Waiting,
    /// A helper is connecting.
    Connecting,
    /// For good.
    Closed,
}

/// Where a helper puts what came of connecting.
pub(super) type Outcome = Arc<Mutex<Option<Result<Examined, ConnectError>>>>;

pub(super) struct Link {
    pub(super) state: State,
    pub(super) fd: Option<Fd>,
    pub(super) limits: ReplyLimits,
    /// The id of `base:allocation` on this connection.
    pub(super) allocation: Option<u32>,
    pub(super) inbox: Inbox,
    /// For the next send; `None` while the kernel has it.
    pub(super) message: Option<Box<Message>>,
    /// Flushes that must be sent on this connection and no other.
    pub(super) own: Queue,
    /// The requests in the message that the kernel has.
    pub(super) sent: Vec<u32>,
    pub(super) receiving: bool,
    /// Requests sent and not answered.
    pub(super) outstanding: u32,
    /// Attempts to connect since the last good reply.
    pub(super) attempts: u32,
    /// It has been up once.
    pub(super) proven: bool,
    pub(super) timer: Option<TimerId>,
    pub(super) outcome: Outcome,
}

impl Link {
    pub(super) fn new(session: &Session) -> Link {
        Link {
            state: State::Waiting,
            fd: None,
            limits: ReplyLimits::of(session),
            allocation: session.allocation,
            inbox: Inbox::default(),
            message: Some(Box::default()),
            own: Queue::new(),
            sent: Vec::new(),
            receiving: false,
            outstanding: 0,
            attempts: 0,
            proven: false,
            timer: None,
            outcome: Outcome::default(),
        }
    }

    /// Whether a message can be sent now.
    pub(super) fn can_send(&self) -> bool {
        self.state == State::Up && self.message.is_some()
    }

    /// Nothing of it is with the kernel, a helper or the clock.
    pub(super) fn is_quiet(&self) -> bool {
        let busy = self.receiving || self.message.is_none() || self.timer.is_some();
        !busy && self.state != State::Connecting
    }
}

/// What is being received.
#[derive(Default)]
pub(super) struct Inbox {
    staging: Option<Buf>,
    /// The bytes of the staging buffer that were not looked at yet.
    start: usize,
    end: usize,
    want: Want,
    /// The receive under way goes to the request's buffer.
    direct: bool,
}

/// What the next bytes are.
#[derive(Default)]
pub(super) enum Want {
    #[default]
    Head,
    /// Data of a read.
    Data {
        part: u32,
        /// Where the rest belongs.
        rest: Slice,
        last: bool,
    },
    /// Extents of a block status.
    Extents { part: u32, ours: bool, bytes: Vec<u8>, len: usize, last: bool },
}

/// What came out of the bytes that are there.
pub(super) enum Step {
    /// Receive more, to here.
    Receive(Slice),
    /// A head; say what to do with what follows it by `expect`.
    Head(ReplyHead),
    /// The data of a part is in.
    Data { part: u32, last: bool },
    /// The extents of a part are in.
    Extents { part: u32, ours: bool, bytes: Vec<u8>, last: bool },
}

impl Inbox {
    /// Starts anew, on a new connection.
    pub(super) fn reset(&mut self, staging: Buf) {
        *self = Inbox { staging: Some(staging), ..Inbox::default() };
    }

    pub(super) fn take_staging(&mut self) -> Option<Buf> {
        self.want = Want::Head;
        self.staging.take()
    }

    pub(super) fn expect(&mut self, want: Want) {
        self.want = want;
    }

    /// Takes `count` bytes that were received.
    pub(super) fn received(&mut self, count: usize) {
        match (&mut self.want, self.direct) {
            (Want::Data { rest, .. }, true) => {
                *rest = rest.part(count, rest.len() - count);
            }
            _ => self.end += count,
        }
        self.direct = false;
    }

    /// Looks at what is there.
    pub(super) fn step(&mut self, limits: &ReplyLimits) -> Result<Step, String> {
        let Some(buf) = self.staging.clone() else {
            return Err("there is no buffer".into());
        };
        let staged = buf.slice(self.start, self.end - self.start);
        match &mut self.want {
            Want::Head => {
                let parsed = ReplyHead::parse(&staged.bytes(), limits);
                match parsed.map_err(|error| error.to_string())? {
                    Parsed::Head(head, used) => {
                        self.start += used;
                        return Ok(Step::Head(head));
                    }
                    Parsed::Need(_) => {}
                }
            }
            Want::Data { rest, .. } => {
                let count = staged.len().min(rest.len());
                if count > 0 {
                    rest.copy_from(0, &staged.bytes()[..count]);
                    *rest = rest.part(count, rest.len() - count);
                    self.start += count;
                }
            }
            Want::Extents { bytes, len, .. } => {
                let count = staged.len().min(*len - bytes.len());
                bytes.extend_from_slice(&staged.bytes()[..count]);
                self.start += count;
            }
        }
        drop(staged);
        Ok(self.done().unwrap_or_else(|| Step::Receive(self.target(&buf))))
    }

    /// The payload, if it is complete.
    fn done(&mut self) -> Option<Step> {
        let complete = match &self.want {
            Want::Head => false,
            Want::Data { rest, .. } => rest.is_empty(),
            Want::Extents { bytes, len, .. } => bytes.len() == *len,
        };
        if !complete {
            return None;
        }
        match std::mem::take(&mut self.want) {
            Want::Head => None,
            Want::Data { part, last, .. } => Some(Step::Data { part, last }),
            Want::Extents { part, ours, bytes, last, .. } => {
                Some(Step::Extents { part, ours, bytes, last })
            }
        }
    }

    /// Where to receive to. Whatever was staged has been used, but for the
    /// beginning of a head.
    fn target(&mut self, buf: &Buf) -> Slice {
        if let Want::Data { rest, .. } = &self.want
            && rest.vector()[0].iov_len >= DIRECT_MIN
        {
            self.direct = true;
            return rest.clone();
        }
        let len = self.end - self.start;
        if self.start > 0 && len > 0 {
            buf.slice(0, self.end)
                .with_mut(|bytes| bytes.copy_within(self.start..self.end, 0));
        }
        (self.start, self.end) = (0, len);
        buf.slice(len, STAGING - len)
    }
}
