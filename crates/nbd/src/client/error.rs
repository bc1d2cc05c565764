//! Why a client's handshake fails.

use std::fmt;

use crate::block_sizes::BlockSizesError;
use crate::error::OptionError;

/// The outcome of a handshake that did not reach the transmission phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientError {
    /// The server speaks the oldstyle protocol, which cannot name an export.
    Oldstyle,
    /// The peer is no NBD server.
    NotNbd,
    /// The server has no export of this name.
    ExportUnknown {
        /// The server's own words; may be empty.
        message: String,
    },
    /// The server wants TLS, which this client does not speak.
    TlsRequired {
        /// The server's own words; may be empty.
        message: String,
    },
    /// The server's policy forbids the export to this client.
    Policy {
        /// The server's own words; may be empty.
        message: String,
    },
    /// The server is stopping.
    Shutdown {
        /// The server's own words; may be empty.
        message: String,
    },
    /// The server refused the export for another reason.
    Refused {
        /// Its error.
        error: OptionError,
        /// The server's own words; may be empty.
        message: String,
    },
    /// The server closed the connection after an `EXPORT_NAME`, which is its only way
    /// to refuse an export in the old manner.
    ExportNameRefused,
    /// The server closed the connection before the handshake was over.
    Closed,
    /// The export's name is longer than the protocol allows, or has a NUL in it.
    BadName,
    /// The server broke the protocol.
    Violation(Violation),
}

/// How a server broke the protocol in the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// A reply to an option did not begin with its magic.
    ReplyMagic,
    /// A reply to an option that was not sent.
    ReplyOption {
        /// The option that the reply names.
        got: u32,
        /// The option that was sent.
        sent: u32,
    },
    /// A reply of a kind that does not answer the option.
    ReplyKind(u32),
    /// A reply that is longer than any sensible one.
    ReplyTooLong(u32),
    /// More replies to one option than any sensible number.
    TooManyReplies,
    /// A reply whose content does not fit its length.
    Malformed,
    /// The export was accepted without its size.
    NoExportInfo,
    /// The transmission flags lack `HAS_FLAGS`.
    NoFlags,
    /// The size has more than 63 bits.
    Size(u64),
    /// The block sizes contradict the specification.
    BlockSizes(BlockSizesError),
}

impl ClientError {
    /// The error of a refused `GO`.
    pub(super) fn refused(error: OptionError, message: String) -> Self {
        match error {
            OptionError::Unknown => Self::ExportUnknown { message },
            OptionError::TlsRequired => Self::TlsRequired { message },
            OptionError::Policy => Self::Policy { message },
            OptionError::Shutdown => Self::Shutdown { message },
            error => Self::Refused { error, message },
        }
    }
}

impl From<Violation> for ClientError {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match self {
            Self::Oldstyle => {
                return f.write_str("the server speaks only the oldstyle NBD protocol");
            }
            Self::NotNbd => return f.write_str("the peer is not an NBD server"),
            Self::ExportNameRefused => {
                return f.write_str(
                    "the server closed the connection; it most likely has no such export",
                );
            }
            Self::Closed => {
                return f
                    .write_str("the server closed the connection during the handshake");
            }
            Self::BadName => {
                return f.write_str(
                    "the export's name is longer than 4096 bytes or has a NUL in it",
                );
            }
            Self::Violation(violation) => {
                return write!(f, "the server broke the NBD protocol: {violation}");
            }
            Self::ExportUnknown { message } => {
                f.write_str("the server has no such export")?;
                message
            }
            Self::TlsRequired { message } => {
                f.write_str("the server requires TLS, which is not supported")?;
                message
            }
            Self::Policy { message } => {
                f.write_str("the server's policy forbids this export")?;
                message
            }
            Self::Shutdown { message } => {
                f.write_str("the server is stopping")?;
                message
            }
            Self::Refused { error, message } => {
                write!(f, "the server refused the export: {error}")?;
                message
            }
        };
        if message.is_empty() { Ok(()) } else { write!(f, " (it said: {message:?})") }
    }
}

impl std::error::Error for ClientError {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReplyMagic => f.write_str("a reply began with a wrong magic"),
            Self::ReplyOption { got, sent } => {
                write!(f, "a reply to option {got} came where {sent} was sent")
            }
            Self::ReplyKind(kind) => write!(f, "a reply of unexpected kind {kind:#x}"),
            Self::ReplyTooLong(len) => write!(f, "a reply with {len} bytes"),
            Self::TooManyReplies => f.write_str("too many replies to one option"),
            Self::Malformed => f.write_str("a malformed reply"),
            Self::NoExportInfo => {
                f.write_str("the export was accepted but its size not told")
            }
            Self::NoFlags => f.write_str("the transmission flags are not valid"),
            Self::Size(size) => write!(f, "{size} bytes is no possible size"),
            Self::BlockSizes(error) => error.fmt(f),
        }
    }
}
