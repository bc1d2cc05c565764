//! The head of a server's reply, and how much payload follows it.
//!
//! [`ReplyHead::parse`] looks at the bytes received so far. It takes the head off and
//! leaves the payload where it is, so that the engine can receive it into the request's
//! own buffer. Only an error's message is part of the head, because it is short and
//! nobody's buffer waits for it.
//!
//! # Failure cases
//!
//! The stream cannot be followed after a wrong magic, an unknown kind of content, or a
//! length that does not fit; every [`BadReply`] ends the connection. An unknown kind of
//! *error* is an error of its request only, as the specification demands.

use std::fmt;

use crate::codec::Reader;
use crate::error::NbdError;
use crate::limits::{ERROR_PAYLOAD_MAX, STATUS_EXTENTS_READ_MAX};
use crate::session::Session;
use crate::wire;

/// How long the payloads of a server may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Whether structured replies were agreed on; otherwise a chunk is a violation.
    pub structured: bool,
    /// The longest data in one chunk: the longest read the client sends.
    pub data_max: u32,
    /// The most extents in one chunk.
    pub extents_max: u32,
}

impl ReplyLimits {
    /// The limits of a session in which no read is longer than the maximum payload.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        Self {
            structured: session.structured,
            data_max: session.block_sizes.maximum(),
            extents_max: STATUS_EXTENTS_READ_MAX,
        }
    }
}

/// The head of a reply, or of one chunk of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyHead {
    /// A simple reply, the only one for its request. If the request was a read and
    /// there is no error, as many bytes follow as were asked for; with structured
    /// replies a simple reply to a read is a violation. Both need the engine's
    /// knowledge of the request.
    Simple {
        /// The request's cookie.
        cookie: u64,
        /// Its error.
        error: Option<NbdError>,
    },
    /// `len` bytes of data follow.
    Data {
        /// The request's cookie.
        cookie: u64,
        /// First byte, in the export.
        offset: u64,
        /// Number of bytes, not zero.
        len: u32,
        /// Whether the reply is complete after them.
        done: bool,
    },
    /// These bytes read as zeroes; nothing follows.
    Hole {
        /// The request's cookie.
        cookie: u64,
        /// First byte, in the export.
        offset: u64,
        /// Number of bytes, not zero.
        len: u32,
        /// Whether the reply is complete.
        done: bool,
    },
    /// `payload` bytes of extents follow, for [`crate::status::parse_extents`].
    Status {
        /// The request's cookie.
        cookie: u64,
        /// The id of the metadata context.
        context: u32,
        /// Number of bytes, a multiple of eight and not zero.
        payload: u32,
        /// Whether the reply is complete after them.
        done: bool,
    },
    /// The reply is complete; nothing follows.
    Done {
        /// The request's cookie.
        cookie: u64,
    },
    /// The request failed; nothing follows.
    Error {
        /// The request's cookie.
        cookie: u64,
        /// Its error.
        error: NbdError,
        /// The byte where it happened, if the server told.
        offset: Option<u64>,
        /// The server's own words; may be empty.
        message: String,
        /// Whether the reply is complete.
        done: bool,
    },
}

/// What [`ReplyHead::parse`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// The head is not complete: at least this many bytes are needed in all.
    Need(usize),
    /// The head, and how many bytes it took.
    Head(ReplyHead, usize),
}

impl ReplyHead {
    /// Reads the head at the front of `bytes`. On an error the connection must be
    /// dropped.
    pub fn parse(bytes: &[u8], limits: &ReplyLimits) -> Result<Parsed, BadReply> {
        let mut reader = Reader::new(bytes);
        match reader.u32() {
            None => Ok(Parsed::Need(wire::SIMPLE_REPLY_LEN)),
            Some(wire::SIMPLE_REPLY_MAGIC) => {
                let (Some(error), Some(cookie)) = (reader.u32(), reader.u64()) else {
                    return Ok(Parsed::Need(wire::SIMPLE_REPLY_LEN));
                };
                let error = NbdError::from_wire(error);
                Ok(Parsed::Head(Self::Simple { cookie, error }, wire::SIMPLE_REPLY_LEN))
            }
            Some(wire::STRUCTURED_REPLY_MAGIC) if limits.structured => {
                match ChunkHead::read(&mut reader) {
                    Some(head) => head.parse(reader, limits),
                    None => Ok(Parsed::Need(wire::CHUNK_HEAD_LEN)),
                }
            }
            Some(magic) => Err(BadReply::Magic(magic)),
        }
    }

    /// The request's cookie.
    #[must_use]
    pub const fn cookie(&self) -> u64 {
        match *self {
            Self::Simple { cookie, .. }
            | Self::Data { cookie, .. }
            | Self::Hole { cookie, .. }
            | Self::Status { cookie, .. }
            | Self::Done { cookie }
            | Self::Error { cookie, .. } => cookie,
        }
    }

    /// Whether the reply to the request is complete once this head's payload is in.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        match *self {
            Self::Simple { .. } | Self::Done { .. } => true,
            Self::Data { done, .. }
            | Self::Hole { done, .. }
            | Self::Status { done, .. }
            | Self::Error { done, .. } => done,
        }
    }
}

/// The twenty bytes before every chunk.
#[derive(Clone, Copy)]
struct ChunkHead {
    done: bool,
    kind: u16,
    cookie: u64,
    len: u32,
}

impl ChunkHead {
    /// After the magic; `None` if it is not complete.
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            done: reader.u16()? & wire::REPLY_FLAG_DONE != 0,
            kind: reader.u16()?,
            cookie: reader.u64()?,
            len: reader.u32()?,
        })
    }

    fn parse(self, reader: Reader<'_>, limits: &ReplyLimits) -> Result<Parsed, BadReply> {
        match self.kind {
            wire::REPLY_NONE if self.len == 0 && self.done => Ok(Parsed::Head(
                ReplyHead::Done { cookie: self.cookie },
                wire::CHUNK_HEAD_LEN,
            )),
            wire::REPLY_NONE => Err(self.bad_length()),
            wire::REPLY_OFFSET_DATA => self.data(reader, limits),
            wire::REPLY_OFFSET_HOLE => self.hole(reader),
            wire::REPLY_BLOCK_STATUS => self.status(reader, limits),
            kind if kind & wire::REPLY_ERROR_BIT != 0 => self.error(reader),
            kind => Err(BadReply::Kind(kind)),
        }
    }

    fn data(
        self,
        mut reader: Reader<'_>,
        limits: &ReplyLimits,
    ) -> Result<Parsed, BadReply> {
        let Self { done, cookie, .. } = self;
        let len = self.len.checked_sub(8).ok_or(self.bad_length())?;
        if len == 0 || len > limits.data_max {
            return Err(self.bad_length());
        }
        let Some(offset) = reader.u64() else {
            return Ok(Parsed::Need(wire::OFFSET_DATA_HEAD_LEN));
        };
        in_export(offset, len)?;
        let head = ReplyHead::Data { cookie, offset, len, done };
        Ok(Parsed::Head(head, wire::OFFSET_DATA_HEAD_LEN))
    }

    fn hole(self, mut reader: Reader<'_>) -> Result<Parsed, BadReply> {
        let Self { done, cookie, .. } = self;
        if self.len != 12 {
            return Err(self.bad_length());
        }
        let (Some(offset), Some(len)) = (reader.u64(), reader.u32()) else {
            return Ok(Parsed::Need(wire::OFFSET_HOLE_LEN));
        };
        if len == 0 {
            return Err(BadReply::EmptyHole);
        }
        in_export(offset, len)?;
        let head = ReplyHead::Hole { cookie, offset, len, done };
        Ok(Parsed::Head(head, wire::OFFSET_HOLE_LEN))
    }

    fn status(
        self,
        mut reader: Reader<'_>,
        limits: &ReplyLimits,
    ) -> Result<Parsed, BadReply> {
        let Self { done, cookie, .. } = self;
        let payload = self.len.checked_sub(4).ok_or(self.bad_length())?;
        let extents = payload / wire::EXTENT_LEN as u32;
        let whole = payload.is_multiple_of(wire::EXTENT_LEN as u32);
        if !whole || extents == 0 || extents > limits.extents_max {
            return Err(self.bad_length());
        }
        let Some(context) = reader.u32() else {
            return Ok(Parsed::Need(wire::BLOCK_STATUS_HEAD_LEN));
        };
        let head = ReplyHead::Status { cookie, context, payload, done };
        Ok(Parsed::Head(head, wire::BLOCK_STATUS_HEAD_LEN))
    }

    fn error(self, mut reader: Reader<'_>) -> Result<Parsed, BadReply> {
        let Self { done, cookie, kind, len } = self;
        let fixed = if kind == wire::REPLY_ERROR_OFFSET { 14 } else { 6 };
        if len < fixed || len > ERROR_PAYLOAD_MAX {
            return Err(self.bad_length());
        }
        let end = wire::CHUNK_HEAD_LEN + len as usize;
        let Some(payload) = reader.bytes(len as usize) else {
            return Ok(Parsed::Need(end));
        };
        let mut reader = Reader::new(payload);
        let fields = (reader.u32(), reader.u16());
        let (Some(code), Some(message_len)) = fields else {
            return Err(self.bad_length());
        };
        // Zero would be success; a failed request must never look like one.
        let error = NbdError::from_wire(code).unwrap_or(NbdError::Inval);
        let message = reader.bytes(message_len.into()).ok_or(self.bad_length())?;
        let offset = if kind == wire::REPLY_ERROR_OFFSET {
            Some(reader.u64().ok_or(self.bad_length())?)
        } else {
            None
        };
        let message = String::from_utf8_lossy(message).into_owned();
        let head = ReplyHead::Error { cookie, error, offset, message, done };
        Ok(Parsed::Head(head, end))
    }

    fn bad_length(self) -> BadReply {
        BadReply::Length { kind: self.kind, len: self.len }
    }
}

/// No export has bytes past 2^64, so such a range is nonsense for any request.
fn in_export(offset: u64, len: u32) -> Result<(), BadReply> {
    match offset.checked_add(u64::from(len)) {
        Some(_) => Ok(()),
        None => Err(BadReply::Range { offset, len }),
    }
}

/// Why a server's reply cannot be followed. The connection must be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadReply {
    /// Neither kind of reply begins like this; or it is a structured reply and none
    /// was agreed on.
    Magic(u32),
    /// An unknown kind of chunk.
    Kind(u16),
    /// A chunk whose length (or missing `DONE`) does not fit its kind or our limits.
    Length {
        /// The kind of chunk.
        kind: u16,
        /// Its length.
        len: u32,
    },
    /// A hole without bytes.
    EmptyHole,
    /// A range that ends past the last possible byte.
    Range {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
}

impl fmt::Display for BadReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic(magic) => {
                write!(f, "{magic:#010x} is not the magic of an expected reply")
            }
            Self::Kind(kind) => write!(f, "the server sent an unknown chunk ({kind})"),
            Self::Length { kind, len } => {
                write!(f, "the server sent a chunk of kind {kind} with {len} bytes")
            }
            Self::EmptyHole => f.write_str("the server sent a hole without bytes"),
            Self::Range { offset, len } => {
                write!(f, "the server sent the range {offset}+{len}, which cannot exist")
            }
        }
    }
}

impl std::error::Error for BadReply {}
