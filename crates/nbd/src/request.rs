//! The 28 bytes at the head of every request.
//!
//! A [`Request`] is what the bytes say, not yet whether they may say it: that is
//! [`crate::Session::check`]. Only the magic is judged here, because after a wrong one
//! nobody knows where the next request begins, and the connection must be dropped.

use std::fmt;

use crate::codec::Reader;
use crate::flags::CommandFlags;
use crate::wire;

/// A request's head. The payload of a write follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What is asked for beside the command.
    pub flags: CommandFlags,
    /// The command's number, known or not.
    pub command: u16,
    /// The client's mark, to be repeated in every reply.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u32,
}

impl Request {
    /// Reads a head. On an error the connection must be dropped.
    pub fn parse(bytes: &[u8; wire::REQUEST_LEN]) -> Result<Self, BadRequest> {
        let mut reader = Reader::new(bytes);
        let short = BadRequest { magic: 0 };
        let magic = reader.u32().ok_or(short)?;
        if magic != wire::REQUEST_MAGIC {
            return Err(BadRequest { magic });
        }
        Ok(Self {
            flags: CommandFlags::from_bits(reader.u16().ok_or(short)?),
            command: reader.u16().ok_or(short)?,
            cookie: reader.u64().ok_or(short)?,
            offset: reader.u64().ok_or(short)?,
            len: reader.u32().ok_or(short)?,
        })
    }

    /// The head as it goes over the wire.
    #[must_use]
    pub fn encode(&self) -> [u8; wire::REQUEST_LEN] {
        let mut out = [0; wire::REQUEST_LEN];
        out[0..4].copy_from_slice(&wire::REQUEST_MAGIC.to_be_bytes());
        out[4..6].copy_from_slice(&self.flags.bits().to_be_bytes());
        out[6..8].copy_from_slice(&self.command.to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out[16..24].copy_from_slice(&self.offset.to_be_bytes());
        out[24..28].copy_from_slice(&self.len.to_be_bytes());
        out
    }

    /// How many bytes of payload follow the head, whether or not it is legal.
    #[must_use]
    pub const fn payload_len(&self) -> u32 {
        if self.command == wire::CMD_WRITE { self.len } else { 0 }
    }
}

/// The bytes are no request. The connection must be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRequest {
    /// What stood in the place of the magic.
    pub magic: u32,
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x} is not the magic of a request", self.magic)
    }
}

impl std::error::Error for BadRequest {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use proptest::prelude::*;

    #[test]
    fn a_write_has_the_bytes_of_the_specification() {
        let write = Command::Write { offset: 0x1_0000, len: 512, fua: true };
        let bytes = write.request(0x0102_0304_0506_0708).encode();
        assert_eq!(
            bytes,
            [
                0x25, 0x60, 0x95, 0x13, // magic
                0x00, 0x01, // FUA
                0x00, 0x01, // write
                1, 2, 3, 4, 5, 6, 7, 8, // cookie
                0, 0, 0, 0, 0, 1, 0, 0, // offset
                0, 0, 2, 0, // length
            ]
        );
    }

    #[test]
    fn a_wrong_magic_is_named() {
        let mut bytes = Command::Flush.request(1).encode();
        bytes[0] = 0x12;
        let error = Request::parse(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "0x12609513 is not the magic of a request");
    }

    proptest! {
        #[test]
        fn encoding_and_parsing_are_inverse(
            flags: u16, command: u16, cookie: u64, offset: u64, len: u32,
        ) {
            let flags = CommandFlags::from_bits(flags);
            let request = Request { flags, command, cookie, offset, len };
            prop_assert_eq!(Request::parse(&request.encode()), Ok(request));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes: [u8; 28]) {
            if let Ok(request) = Request::parse(&bytes) {
                prop_assert_eq!(request.encode(), bytes);
            }
        }
    }
}
