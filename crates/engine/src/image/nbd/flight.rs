//! Operations of the disk, and the requests to the server that they are cut
//! into.

use std::collections::VecDeque;

use sterna_core::durability::{Flush, Flushing, Moment};
use sterna_core::{ByteRange, Nanos};
use sterna_nbd::client::ReadPieces;
use sterna_nbd::{Command, Session, TransmissionFlags};

use crate::buffer::Slice;
use crate::image::{Done, Extent, ImageOp, ImageResult, Ticket};
use crate::io::Errno;

/// Requests of one operation that are under way together. More would not keep
/// the server busier, and a long zeroing would take it over.
const WINDOW: u32 = 8;
/// The longest write-zeroes request: a server that has to write them out is
/// busy with it for about a second.
const ZERO_STEP: u64 = 128 << 20;

/// What the server can do, as it said when the image was opened, or less (`adapting`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abilities {
    pub(super) size: u64,
    pub(super) flags: TransmissionFlags,
    /// The longest payload.
    pub(super) maximum: u32,
    pub(super) allocation: bool,
}

impl Abilities {
    pub(super) fn of(session: &Session) -> Abilities {
        let sizes = session.block_sizes;
        // A whole number of the largest blocks that are accepted.
        let maximum = sizes.maximum() - sizes.maximum() % super::MIN_BLOCK_MAX;
        Abilities {
            size: session.size,
            flags: session.flags,
            maximum: maximum.max(super::MIN_BLOCK_MAX),
            allocation: session.allocation.is_some(),
        }
    }

    pub(super) fn has(&self, flag: TransmissionFlags) -> bool {
        self.flags.has(flag)
    }
}

/// An operation under way.
pub(super) struct Flight {
    pub(super) ticket: Ticket,
    pub(super) op: ImageOp,
    pub(super) began: Nanos,
    /// Bytes of it that were cut into requests.
    cut: u64,
    /// Stretches of these that are to be cut anew: where each begins and ends.
    again: Vec<(u64, u64)>,
    /// Requests that are under way or wait to be sent.
    pub(super) parts: u32,
    /// The flush that it is, or that is behind a write that must be durable.
    pub(super) flushing: Option<Flushing>,
    /// What that flush makes known to be durable (`Witnesses::flush_begins`).
    pub(super) covers: u64,
    /// A request of it that writes was sent, and is sent again on another connection.
    pub(super) resent: bool,
    pub(super) error: Option<Errno>,
    extents: Vec<Extent>,
}

impl Flight {
    pub(super) fn new(ticket: Ticket, op: ImageOp, began: Nanos) -> Flight {
        Flight {
            ticket,
            op,
            began,
            cut: 0,
            again: Vec::new(),
            parts: 0,
            flushing: None,
            covers: 0,
            resent: false,
            error: None,
            extents: Vec::new(),
        }
    }

    /// The next request, if one may be made now. After an error there is none.
    pub(super) fn next(&mut self, able: &Abilities, zeroes: &Slice) -> Option<Request> {
        use TransmissionFlags as F;
        if self.error.is_some() || self.parts >= WINDOW {
            return None;
        }
        let ((at, end), maximum) = (self.stretch(), u64::from(able.maximum));
        // No step is longer than 32 bits can say.
        let step = |step: u64| (end - at).min(step) as u32;
        let fua_flag = able.has(F::SEND_FUA);
        let request = match &self.op {
            _ if at >= end => None,
            // One after the other: their bytes arrive in one buffer.
            ImageOp::Read { .. } if self.parts > 0 => None,
            ImageOp::Read { offset, buf } => {
                let len = step(maximum);
                let part = buf.part(at as usize, len as usize);
                let command = Command::Read { offset: offset + at, len, df: false };
                Some((command, Some(part), len))
            }
            ImageOp::Write { offset, buf, fua } => {
                let len = step(maximum);
                let part = buf.part(at as usize, len as usize);
                let (offset, fua) = (offset + at, *fua && fua_flag);
                Some((Command::Write { offset, len, fua }, Some(part), len))
            }
            ImageOp::Zero { offset, unmap, fua, fast, .. } => {
                let (offset, fua) = (offset + at, *fua && fua_flag);
                if able.has(F::SEND_WRITE_ZEROES) {
                    let len = step(ZERO_STEP);
                    // One that had begun may be slow after all.
                    let fast_zero = *fast && able.has(F::SEND_FAST_ZERO);
                    let no_hole = !unmap;
                    let command =
                        Command::WriteZeroes { offset, len, fua, no_hole, fast_zero };
                    Some((command, None, len))
                } else {
                    let len = step(maximum.min(zeroes.len() as u64));
                    let part = zeroes.part(0, len as usize);
                    Some((Command::Write { offset, len, fua }, Some(part), len))
                }
            }
            ImageOp::Extents { offset, len, limit } => {
                let most = u64::from(u32::MAX - (super::MIN_BLOCK_MAX - 1));
                let (offset, req_one) = (*offset, *limit == 1);
                let len = (*len).min(most) as u32;
                Some((Command::BlockStatus { offset, len, req_one }, None, 1))
            }
            ImageOp::Cache { offset, .. } => {
                let len = step(ZERO_STEP);
                Some((Command::Cache { offset: offset + at, len }, None, len))
            }
            _ => None,
        };
        let (command, buf, len) = request?;
        self.has_cut(len);
        self.parts += 1;
        Some((command, buf))
    }

    /// What is to be cut next: from where to where.
    fn stretch(&self) -> (u64, u64) {
        let all = match &self.op {
            ImageOp::Read { buf, .. } | ImageOp::Write { buf, .. } => buf.len() as u64,
            ImageOp::Zero { len, .. } | ImageOp::Cache { len, .. } => *len,
            // One question.
            ImageOp::Extents { .. } => 1,
            _ => 0,
        };
        self.again.last().copied().unwrap_or((self.cut, all))
    }

    fn has_cut(&mut self, len: u32) {
        let Some((at, end)) = self.again.last_mut() else {
            self.cut += u64::from(len);
            return;
        };
        *at += u64::from(len);
        if at >= end {
            self.again.pop();
        }
    }

    /// A request of it is not sent as it was cut: its bytes are to be cut anew.
    pub(super) fn cut_again(&mut self, command: &Command) {
        let start = match self.op {
            ImageOp::Read { offset, .. }
            | ImageOp::Write { offset, .. }
            | ImageOp::Zero { offset, .. } => offset,
            _ => return,
        };
        let Some((offset, len)) = command.range() else { return };
        let at = offset - start;
        self.again.push((at, at + u64::from(len)));
        self.parts -= 1;
    }

    /// Whether the operation ends with a flush: it is one, or it must be durable and the
    /// server has no FUA.
    pub(super) fn ends_with_flush(&self, able: &Abilities) -> bool {
        use TransmissionFlags as F;
        let is_flush = matches!(self.op, ImageOp::Flush);
        let has_no_fua = !able.has(F::SEND_FUA) && able.has(F::SEND_FLUSH);
        let behind = self.op.makes_durable() && has_no_fua;
        self.error.is_none() && (is_flush || behind)
    }

    /// Takes what the server says about the range of an `Extents`. Nothing, if
    /// it could not say: then everything is data.
    pub(super) fn take_extents(&mut self, said: &[sterna_nbd::Extent]) {
        let ImageOp::Extents { offset, len, limit } = self.op else { return };
        let mut at = offset;
        self.extents.clear(); // A lost connection may have answered in part.
        for extent in said.iter().take(limit.max(1)) {
            let range = ByteRange::new(at, extent.len);
            let (hole, zero) = (extent.state.hole, extent.state.zero);
            self.extents.push(Extent { range, hole, zero });
            at += extent.len;
        }
        if self.extents.is_empty() {
            self.extents.push(data(offset, len));
        }
    }

    /// The operation's answer.
    pub(super) fn answer(self) -> ImageResult {
        match (self.error, self.op) {
            (Some(errno), _) => Err(errno),
            (None, ImageOp::Extents { .. }) => Ok(Done::Extents(self.extents)),
            (None, _) => Ok(Done::Ok),
        }
    }
}

/// What is answered without asking the server, because it cannot do it.
pub(super) fn at_once(op: &ImageOp, able: &Abilities) -> Option<ImageResult> {
    use TransmissionFlags as F;
    match *op {
        // What is answered is as durable as it will ever be.
        ImageOp::Flush if !able.has(F::SEND_FLUSH) => Some(Ok(Done::Ok)),
        ImageOp::Cache { .. } if !able.has(F::SEND_CACHE) => Some(Ok(Done::Ok)),
        ImageOp::Clone { .. } => Some(Err(Errno(libc::EOPNOTSUPP))),
        ImageOp::Extents { offset, len, .. } if !able.allocation => {
            Some(Ok(Done::Extents(vec![data(offset, len)])))
        }
        ImageOp::Zero { fast: true, .. } if !able.has(F::SEND_FAST_ZERO) => {
            Some(Err(Errno(libc::EOPNOTSUPP)))
        }
        _ => None,
    }
}

/// Whether the server reads or writes an operation's bytes. One that does not speak of
/// fast zeroes may still discard quickly, as nearly all do.
pub(super) fn moves_bytes(op: &ImageOp, able: &Abilities) -> bool {
    use TransmissionFlags as F;
    match *op {
        ImageOp::Read { .. } | ImageOp::Write { .. } => true,
        ImageOp::Zero { unmap, fast, .. } => {
            let quick = fast || unmap || able.has(F::SEND_FAST_ZERO);
            !(quick && able.has(F::SEND_WRITE_ZEROES))
        }
        ImageOp::Cache { .. } => able.has(F::SEND_CACHE),
        _ => false,
    }
}

/// What an operation changes.
pub(super) fn changes(op: &ImageOp) -> Option<ByteRange> {
    match op {
        ImageOp::Write { offset, buf, .. } => {
            Some(ByteRange::new(*offset, buf.len() as u64))
        }
        ImageOp::Zero { offset, len, .. } => Some(ByteRange::new(*offset, *len)),
        _ => None,
    }
}

fn data(offset: u64, len: u64) -> Extent {
    Extent { range: ByteRange::new(offset, len), hole: false, zero: false }
}

/// A command, and its payload or where the payload of its reply belongs.
pub(super) type Request = (Command, Option<Slice>);

/// A request that waits to be sent or to be answered.
pub(super) struct Part {
    pub(super) flight: u32,
    pub(super) command: Command,
    pub(super) buf: Option<Slice>,
    /// What it is called on the wire; new each time it is sent.
    pub(super) cookie: u64,
    /// The connection that it was sent on; `None`: it is in the queue.
    pub(super) link: Option<usize>,
    /// When it was sent, for what its answer proves.
    pub(super) sent: Moment,
    /// Of a flush that was sent: what it covers.
    pub(super) flush: Option<Flush>,
    /// The kernel still sends it, and reads its payload.
    pub(super) sending: bool,
    pub(super) answered: bool,
    pub(super) error: Option<Errno>,
    /// What has come in of a read.
    pub(super) pieces: Option<ReadPieces>,
    /// Extents have come in.
    pub(super) told: bool,
}

impl Part {
    pub(super) fn new(flight: u32, (command, buf): Request) -> Part {
        Part {
            flight,
            command,
            buf,
            cookie: 0,
            link: None,
            sent: Moment::default(),
            flush: None,
            sending: false,
            answered: false,
            error: None,
            pieces: None,
            told: false,
        }
    }

    /// Makes it as new, to be sent again.
    pub(super) fn reset(&mut self) {
        self.link = None;
        self.flush = None;
        self.error = None;
        self.pieces = None;
        self.told = false;
    }

    /// Whether it writes something that is not durable when it is answered.
    pub(super) fn writes_to_cache(&self) -> bool {
        matches!(
            self.command,
            Command::Write { fua: false, .. } | Command::WriteZeroes { fua: false, .. }
        )
    }

    /// Whether this error may come from the flush that it is or has, so that the server may
    /// have dropped what it had in its cache. A write for which there is no room (`ENOSPC`)
    /// has failed before.
    pub(super) fn may_drop(&self, error: Errno) -> bool {
        let is_durable = matches!(
            self.command,
            Command::Write { fua: true, .. } | Command::WriteZeroes { fua: true, .. }
        );
        self.flush.is_some() || is_durable && error.0 == libc::EIO
    }

    /// What is missing from a reply that says it is complete.
    pub(super) fn gap(&self) -> Option<&'static str> {
        match self.command {
            _ if self.error.is_some() => None,
            Command::Read { .. } => match &self.pieces {
                Some(pieces) if pieces.is_complete() => None,
                _ => Some("it left out a part of a read"),
            },
            Command::BlockStatus { .. } if !self.told => Some("it sent no extents"),
            _ => None,
        }
    }
}

/// The requests that wait to be sent.
pub(super) type Queue = VecDeque<u32>;
