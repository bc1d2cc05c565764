//! A request that may be carried out.
//!
//! On the server's side a [`Command`] comes out of [`crate::Session::check`] and so
//! has passed every rule; on the client's side it is what the engine wants, and
//! [`Command::request`] gives it its bytes.

use crate::flags::CommandFlags;
use crate::request::Request;
use crate::wire;

/// One command with everything it needs but its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Read a range.
    Read {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Reply with one piece of content.
        df: bool,
    },
    /// Write a range; `len` bytes of payload follow the head.
    Write {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Reply only when the data is on stable storage.
        fua: bool,
    },
    /// Finish what is in flight and close; there is no reply.
    Disconnect,
    /// Bring all replied writes to stable storage.
    Flush,
    /// The range is no longer needed.
    Trim {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Reply only when done on stable storage.
        fua: bool,
    },
    /// The range will be read soon.
    Cache {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Make the range read as zeroes.
    WriteZeroes {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Reply only when done on stable storage.
        fua: bool,
        /// Keep the range allocated.
        no_hole: bool,
        /// Fail at once with `ENOTSUP` if this is as slow as a write.
        fast_zero: bool,
    },
    /// Report the allocation of a range.
    BlockStatus {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Reply with one extent.
        req_one: bool,
    },
}

impl Command {
    /// The request's head.
    #[must_use]
    pub const fn request(&self, cookie: u64) -> Request {
        use CommandFlags as F;
        let (command, flags) = match *self {
            Self::Read { df, .. } => (wire::CMD_READ, F::NONE.with_if(df, F::DF)),
            Self::Write { fua, .. } => (wire::CMD_WRITE, F::NONE.with_if(fua, F::FUA)),
            Self::Disconnect => (wire::CMD_DISC, F::NONE),
            Self::Flush => (wire::CMD_FLUSH, F::NONE),
            Self::Trim { fua, .. } => (wire::CMD_TRIM, F::NONE.with_if(fua, F::FUA)),
            Self::Cache { .. } => (wire::CMD_CACHE, F::NONE),
            Self::WriteZeroes { fua, no_hole, fast_zero, .. } => (
                wire::CMD_WRITE_ZEROES,
                F::NONE
                    .with_if(fua, F::FUA)
                    .with_if(no_hole, F::NO_HOLE)
                    .with_if(fast_zero, F::FAST_ZERO),
            ),
            Self::BlockStatus { req_one, .. } => {
                (wire::CMD_BLOCK_STATUS, F::NONE.with_if(req_one, F::REQ_ONE))
            }
        };
        let (offset, len) = match self.range() {
            Some(range) => range,
            None => (0, 0),
        };
        Request { flags, command, cookie, offset, len }
    }

    /// Offset and length, for the commands that have them.
    #[must_use]
    pub const fn range(&self) -> Option<(u64, u32)> {
        match *self {
            Self::Read { offset, len, .. }
            | Self::Write { offset, len, .. }
            | Self::Trim { offset, len, .. }
            | Self::Cache { offset, len }
            | Self::WriteZeroes { offset, len, .. }
            | Self::BlockStatus { offset, len, .. } => Some((offset, len)),
            Self::Disconnect | Self::Flush => None,
        }
    }

    /// Whether the command changes the export's bytes.
    #[must_use]
    pub const fn is_write(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Trim { .. } | Self::WriteZeroes { .. })
    }
}
