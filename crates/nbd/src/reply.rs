//! A server's replies, as heads in fixed buffers.
//!
//! The engine sends a head and, for reads, the data from where it lies, with one
//! gathered write. The free functions are the messages of the specification; the
//! methods of [`Session`] choose between the simple and the structured form:
//!
//! - success without content is always a simple reply (allowed in both modes, and
//!   four bytes shorter);
//! - a read is answered in the negotiated mode, and with structured replies it must be;
//! - an error is structured where that was negotiated, so that it can carry a
//!   sentence for the person in front of the client.
//!
//! # Invariants
//!
//! Exactly one reply per request, except for `Disconnect`, and its last chunk has the
//! `DONE` flag. A data chunk is sent when the data is at hand, so it may itself be the
//! last one.

use crate::codec::{cut, len32};
use crate::error::NbdError;
use crate::head::Head;
use crate::limits::ERROR_MESSAGE_MAX;
use crate::session::Session;
use crate::wire;

/// Room for the longest error chunk: head, error, message length, message, offset.
pub const ERROR_HEAD_MAX: usize = wire::CHUNK_HEAD_LEN + 4 + 2 + ERROR_MESSAGE_MAX + 8;

/// The head of an error, a whole reply.
pub type ErrorHead = Head<ERROR_HEAD_MAX>;

/// The head of a successful read; the data follows it.
pub type ReadHead = Head<{ wire::OFFSET_DATA_HEAD_LEN }>;

/// A simple reply. After a successful read without structured replies the data follows.
#[must_use]
pub fn simple(cookie: u64, error: Option<NbdError>) -> [u8; wire::SIMPLE_REPLY_LEN] {
    let mut out = [0; wire::SIMPLE_REPLY_LEN];
    out[0..4].copy_from_slice(&wire::SIMPLE_REPLY_MAGIC.to_be_bytes());
    out[4..8].copy_from_slice(&error.map_or(0, NbdError::wire).to_be_bytes());
    out[8..16].copy_from_slice(&cookie.to_be_bytes());
    out
}

/// The head of any chunk.
pub(crate) fn chunk(
    kind: u16,
    done: bool,
    cookie: u64,
    payload: u32,
) -> [u8; wire::CHUNK_HEAD_LEN] {
    let flags = if done { wire::REPLY_FLAG_DONE } else { 0 };
    let mut out = [0; wire::CHUNK_HEAD_LEN];
    out[0..4].copy_from_slice(&wire::STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out[4..6].copy_from_slice(&flags.to_be_bytes());
    out[6..8].copy_from_slice(&kind.to_be_bytes());
    out[8..16].copy_from_slice(&cookie.to_be_bytes());
    out[16..20].copy_from_slice(&payload.to_be_bytes());
    out
}

/// The chunk without content that ends a structured reply.
#[must_use]
pub fn none(cookie: u64) -> [u8; wire::CHUNK_HEAD_LEN] {
    chunk(wire::REPLY_NONE, true, cookie, 0)
}

/// The head of a data chunk; `len` bytes follow, at least one and at most
/// `u32::MAX - 8` (reads are bounded far below by [`Session::check`]).
#[must_use]
pub fn offset_data(
    cookie: u64,
    offset: u64,
    len: u32,
    done: bool,
) -> [u8; wire::OFFSET_DATA_HEAD_LEN] {
    debug_assert!(len > 0 && len <= u32::MAX - 8, "a data chunk of {len} bytes");
    let mut out = [0; wire::OFFSET_DATA_HEAD_LEN];
    let payload = len.saturating_add(8);
    out[..20].copy_from_slice(&chunk(wire::REPLY_OFFSET_DATA, done, cookie, payload));
    out[20..].copy_from_slice(&offset.to_be_bytes());
    out
}

/// A chunk that says that `len` bytes, at least one, read as zeroes.
#[must_use]
pub fn offset_hole(
    cookie: u64,
    offset: u64,
    len: u32,
    done: bool,
) -> [u8; wire::OFFSET_HOLE_LEN] {
    debug_assert!(len > 0, "a hole without length");
    let mut out = [0; wire::OFFSET_HOLE_LEN];
    out[..20].copy_from_slice(&chunk(wire::REPLY_OFFSET_HOLE, done, cookie, 12));
    out[20..28].copy_from_slice(&offset.to_be_bytes());
    out[28..].copy_from_slice(&len.to_be_bytes());
    out
}

/// An error chunk, the last of its reply. A message longer than
/// [`ERROR_MESSAGE_MAX`] is cut.
#[must_use]
pub fn error(cookie: u64, error: NbdError, message: &str) -> ErrorHead {
    error_chunk(wire::REPLY_ERROR, true, cookie, error, message, None)
}

/// An error chunk that names the byte where it happened. Further chunks may follow
/// unless it is `done`.
#[must_use]
pub fn error_offset(
    cookie: u64,
    error: NbdError,
    message: &str,
    offset: u64,
    done: bool,
) -> ErrorHead {
    error_chunk(wire::REPLY_ERROR_OFFSET, done, cookie, error, message, Some(offset))
}

fn error_chunk(
    kind: u16,
    done: bool,
    cookie: u64,
    error: NbdError,
    message: &str,
    offset: Option<u64>,
) -> ErrorHead {
    let message = cut(message, ERROR_MESSAGE_MAX);
    let payload = 4 + 2 + message.len() + if offset.is_some() { 8 } else { 0 };
    let mut out = ErrorHead::new();
    let fits = out.put(&chunk(kind, done, cookie, len32(payload)))
        && out.put(&error.wire().to_be_bytes())
        && out.put(&(message.len() as u16).to_be_bytes())
        && out.put(message.as_bytes())
        && offset.is_none_or(|offset| out.put(&offset.to_be_bytes()));
    debug_assert!(fits, "ERROR_HEAD_MAX has room for the longest error");
    out
}

impl Session {
    /// The reply to a command without content that succeeded.
    #[must_use]
    pub fn ok(&self, cookie: u64) -> [u8; wire::SIMPLE_REPLY_LEN] {
        simple(cookie, None)
    }

    /// The head of a whole read; `len` bytes of data follow.
    #[must_use]
    pub fn read(&self, cookie: u64, offset: u64, len: u32) -> ReadHead {
        if self.structured {
            offset_data(cookie, offset, len, true).into()
        } else {
            let mut head = ReadHead::new();
            head.put(&simple(cookie, None));
            head
        }
    }

    /// The reply to a read of nothing but zeroes: no data follows. `None` where
    /// replies are simple; the caller then sends the zeroes.
    #[must_use]
    pub fn read_hole(
        &self,
        cookie: u64,
        offset: u64,
        len: u32,
    ) -> Option<[u8; wire::OFFSET_HOLE_LEN]> {
        self.structured.then(|| offset_hole(cookie, offset, len, true))
    }

    /// The reply to any command that failed.
    #[must_use]
    pub fn error(&self, cookie: u64, error: NbdError, message: &str) -> ErrorHead {
        if self.structured {
            self::error(cookie, error, message)
        } else {
            let mut head = ErrorHead::new();
            head.put(&simple(cookie, Some(error)));
            head
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simple_reply_has_the_bytes_of_the_specification() {
        assert_eq!(
            simple(0xa, Some(NbdError::NoSpc)),
            [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0xa]
        );
    }

    #[test]
    fn a_data_chunk_counts_its_offset() {
        assert_eq!(
            offset_data(7, 0x2000, 4096, true),
            [
                0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0x10,
                8, 0, 0, 0, 0, 0, 0, 0x20, 0,
            ]
        );
    }

    #[test]
    fn a_hole_has_twelve_bytes_of_payload() {
        assert_eq!(
            offset_hole(7, 0x2000, 4096, false),
            [
                0x66, 0x8e, 0x33, 0xef, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 12,
                0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0x10, 0,
            ]
        );
    }

    #[test]
    fn an_error_carries_its_message_then_its_offset() {
        let head = error_offset(1, NbdError::Io, "bad", 9, true);
        assert_eq!(
            &head[16..],
            [0, 0, 0, 17, 0, 0, 0, 5, 0, 3, b'b', b'a', b'd', 0, 0, 0, 0, 0, 0, 0, 9]
        );
        assert_eq!(&head[4..8], [0, 1, 0x80, 2]);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let message = "é".repeat(ERROR_MESSAGE_MAX);
        let head = error_offset(1, NbdError::Io, &message, 9, true);
        assert_eq!(head.len(), ERROR_HEAD_MAX);
        assert!(std::str::from_utf8(&head[26..26 + ERROR_MESSAGE_MAX]).is_ok());
    }
}
