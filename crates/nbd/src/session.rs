//! What the handshake agreed on, and the check of every request against it.
//!
//! Both sides have a [`Session`]: the server checks what arrives, and a client can
//! check what it is about to send. The rule: a request that the other side may not
//! send, as negotiated, never becomes a [`Command`].
//!
//! # After a refusal
//!
//! A refused request still gets its reply, and a refused *write* still has its payload
//! on the way. Up to [`PAYLOAD_DRAIN_MAX`] (or the export's maximum, if that is
//! larger) the payload must be read and dropped, then the error is sent: the client
//! keeps its connection and learns what was wrong. A longer payload is not worth
//! reading; the connection is dropped. [`Refusal::remedy`] says which.
//!
//! # What is checked, in this order
//!
//! command known; flags known, right for the command, and negotiated; export writable
//! (`EPERM`); command offered by the export; length not zero; range inside the export
//! (`ENOSPC` for writes, else `EINVAL`); aligned to the minimum block size; payload not
//! above the maximum.

use std::fmt;

use crate::block_sizes::BlockSizes;
use crate::command::Command;
use crate::error::NbdError;
use crate::flags::{CommandFlags, TransmissionFlags};
use crate::limits::PAYLOAD_DRAIN_MAX;
use crate::request::Request;
use crate::wire;

/// The outcome of a handshake, the same on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Size of the export in bytes.
    pub size: u64,
    /// What the export can do, as announced to the client.
    pub flags: TransmissionFlags,
    /// Size constraints. A server holds a client that did not ask for them to no minimum.
    pub block_sizes: BlockSizes,
    /// Whether replies are structured.
    pub structured: bool,
    /// The id of `base:allocation`, if it was selected.
    pub allocation: Option<u32>,
}

impl Session {
    /// The command in this request, if the client may send it.
    pub fn check(&self, request: &Request) -> Result<Command, Refusal> {
        self.judge(request).map_err(|reason| Refusal {
            reason,
            remedy: self.remedy(request.payload_len()),
            structured: self.structured,
        })
    }

    fn judge(&self, request: &Request) -> Result<Command, RefusalReason> {
        let Request { flags, offset, len, .. } = *request;
        let fua = flags.has(CommandFlags::FUA);
        let command = match request.command {
            wire::CMD_READ => {
                Command::Read { offset, len, df: flags.has(CommandFlags::DF) }
            }
            wire::CMD_WRITE => Command::Write { offset, len, fua },
            wire::CMD_DISC => return Ok(Command::Disconnect),
            wire::CMD_FLUSH => Command::Flush,
            wire::CMD_TRIM => Command::Trim { offset, len, fua },
            wire::CMD_CACHE => Command::Cache { offset, len },
            wire::CMD_WRITE_ZEROES => Command::WriteZeroes {
                offset,
                len,
                fua,
                no_hole: flags.has(CommandFlags::NO_HOLE),
                fast_zero: flags.has(CommandFlags::FAST_ZERO),
            },
            wire::CMD_BLOCK_STATUS => Command::BlockStatus {
                offset,
                len,
                req_one: flags.has(CommandFlags::REQ_ONE),
            },
            other => return Err(RefusalReason::UnknownCommand(other)),
        };
        let stray = flags.without(self.allowed_flags(&command));
        if !stray.is_empty() {
            return Err(RefusalReason::Flags(stray));
        }
        if command.is_write() && self.flags.has(TransmissionFlags::READ_ONLY) {
            return Err(RefusalReason::ReadOnly);
        }
        if !self.offers(&command) {
            return Err(RefusalReason::NotNegotiated);
        }
        self.judge_range(request, &command)?;
        Ok(command)
    }

    fn judge_range(
        &self,
        request: &Request,
        command: &Command,
    ) -> Result<(), RefusalReason> {
        let Some((offset, len)) = command.range() else {
            return if request.offset == 0 && request.len == 0 {
                Ok(())
            } else {
                Err(RefusalReason::StrayRange)
            };
        };
        if len == 0 {
            return Err(RefusalReason::Empty);
        }
        let end = offset.checked_add(u64::from(len));
        if end.is_none_or(|end| end > self.size) {
            // A trim is a hint, so its bad range is an invalid argument, not a full disk.
            let full =
                matches!(command, Command::Write { .. } | Command::WriteZeroes { .. });
            return Err(RefusalReason::PastEnd { full });
        }
        if !self.block_sizes.aligned(offset) || !self.block_sizes.aligned(len.into()) {
            return Err(RefusalReason::Misaligned(self.block_sizes.minimum()));
        }
        let maximum = self.block_sizes.maximum();
        let payload = matches!(command, Command::Read { .. } | Command::Write { .. });
        if payload && len > maximum {
            let read = matches!(command, Command::Read { .. });
            return Err(RefusalReason::TooLarge { maximum, read });
        }
        Ok(())
    }

    /// The command flags that this command may carry in this session. With `SEND_FUA`
    /// negotiated the specification allows FUA on every command.
    fn allowed_flags(&self, command: &Command) -> CommandFlags {
        let offered = |flag| self.flags.has(flag);
        let own = match command {
            Command::Read { .. } => CommandFlags::NONE
                .with_if(offered(TransmissionFlags::SEND_DF), CommandFlags::DF),
            Command::WriteZeroes { .. } => CommandFlags::NO_HOLE.with_if(
                offered(TransmissionFlags::SEND_FAST_ZERO),
                CommandFlags::FAST_ZERO,
            ),
            Command::BlockStatus { .. } => CommandFlags::REQ_ONE,
            _ => CommandFlags::NONE,
        };
        own.with_if(offered(TransmissionFlags::SEND_FUA), CommandFlags::FUA)
    }

    fn offers(&self, command: &Command) -> bool {
        match command {
            Command::Read { .. } | Command::Write { .. } | Command::Disconnect => true,
            Command::Flush => self.flags.has(TransmissionFlags::SEND_FLUSH),
            Command::Trim { .. } => self.flags.has(TransmissionFlags::SEND_TRIM),
            Command::Cache { .. } => self.flags.has(TransmissionFlags::SEND_CACHE),
            Command::WriteZeroes { .. } => {
                self.flags.has(TransmissionFlags::SEND_WRITE_ZEROES)
            }
            Command::BlockStatus { .. } => self.structured && self.allocation.is_some(),
        }
    }

    fn remedy(&self, payload: u32) -> Remedy {
        match payload {
            0 => Remedy::Reply,
            n if n > PAYLOAD_DRAIN_MAX.max(self.block_sizes.maximum()) => Remedy::HangUp,
            n => Remedy::DrainThenReply(n),
        }
    }
}

/// A request that must not be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong with it.
    pub reason: RefusalReason,
    /// What to do about it.
    pub remedy: Remedy,
    structured: bool,
}

/// What a server does about a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Send the error.
    Reply,
    /// Read and drop this many bytes of payload, then send the error.
    DrainThenReply(u32),
    /// Drop the connection: the payload is too long to read for nothing.
    HangUp,
}

/// What is wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// No command has this number.
    UnknownCommand(u16),
    /// These flags are unknown, out of place, or not negotiated.
    Flags(CommandFlags),
    /// The export did not announce this command.
    NotNegotiated,
    /// The export is read-only.
    ReadOnly,
    /// The length is zero.
    Empty,
    /// A flush with an offset or a length.
    StrayRange,
    /// The range ends past the export.
    PastEnd {
        /// Whether this counts as a full disk (`ENOSPC`).
        full: bool,
    },
    /// Offset or length is no multiple of this minimum block size.
    Misaligned(u32),
    /// The payload would be longer than the maximum.
    TooLarge {
        /// The maximum.
        maximum: u32,
        /// Whether this is a read.
        read: bool,
    },
}

impl Refusal {
    /// The error to send. A read that is too large is `EOVERFLOW` where replies are
    /// structured ("ask for less"), and `EINVAL` otherwise, as the specification keeps
    /// the other for structured replies.
    #[must_use]
    pub const fn error(&self) -> NbdError {
        match self.reason {
            RefusalReason::ReadOnly => NbdError::Perm,
            RefusalReason::PastEnd { full: true } => NbdError::NoSpc,
            RefusalReason::TooLarge { read: true, .. } if self.structured => {
                NbdError::Overflow
            }
            _ => NbdError::Inval,
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCommand(n) => write!(f, "there is no command {n}"),
            Self::Flags(flags) => {
                write!(f, "the command flags {:#x} are not allowed here", flags.bits())
            }
            Self::NotNegotiated => {
                f.write_str("this command was not offered by the export")
            }
            Self::ReadOnly => f.write_str("the export is read-only"),
            Self::Empty => f.write_str("the length is zero"),
            Self::StrayRange => f.write_str("a flush has neither offset nor length"),
            Self::PastEnd { .. } => f.write_str("the range ends past the export"),
            Self::Misaligned(minimum) => {
                write!(f, "offset and length must be multiples of {minimum}")
            }
            Self::TooLarge { maximum, .. } => {
                write!(f, "the length is above the maximum of {maximum}")
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests;
