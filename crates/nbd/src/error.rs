//! The errors that travel: those of requests and those of options.
//!
//! Errors of requests are a closed set of numbers that look like Linux `errno` values
//! but are not: an unknown number counts as `EINVAL`, and a server maps its own errors
//! to the set before it sends them.

use std::fmt;

use crate::wire;

/// An error in a reply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NbdError {
    /// Operation not permitted (`EPERM`): a write to a read-only export.
    Perm,
    /// Input or output error (`EIO`).
    Io,
    /// Out of memory (`ENOMEM`).
    NoMem,
    /// Invalid argument (`EINVAL`).
    Inval,
    /// No space left (`ENOSPC`); also a write past the end.
    NoSpc,
    /// Value too large (`EOVERFLOW`): ask again for less.
    Overflow,
    /// Not supported (`ENOTSUP`): a fast zero that would not be fast.
    NotSup,
    /// The server is stopping (`ESHUTDOWN`).
    Shutdown,
}

impl NbdError {
    /// The number on the wire.
    #[must_use]
    pub const fn wire(self) -> u32 {
        match self {
            Self::Perm => wire::EPERM,
            Self::Io => wire::EIO,
            Self::NoMem => wire::ENOMEM,
            Self::Inval => wire::EINVAL,
            Self::NoSpc => wire::ENOSPC,
            Self::Overflow => wire::EOVERFLOW,
            Self::NotSup => wire::ENOTSUP,
            Self::Shutdown => wire::ESHUTDOWN,
        }
    }

    /// The error of a number on the wire; `None` for zero, which is success. An
    /// unknown number is [`NbdError::Inval`], as the specification asks.
    #[must_use]
    pub const fn from_wire(value: u32) -> Option<Self> {
        Some(match value {
            0 => return None,
            wire::EPERM => Self::Perm,
            wire::EIO => Self::Io,
            wire::ENOMEM => Self::NoMem,
            wire::ENOSPC => Self::NoSpc,
            wire::EOVERFLOW => Self::Overflow,
            wire::ENOTSUP => Self::NotSup,
            wire::ESHUTDOWN => Self::Shutdown,
            _ => Self::Inval,
        })
    }

    /// The error for an `errno` of Linux. What has no counterpart is an I/O error: a
    /// client must not take a failed disk for its own mistake.
    #[must_use]
    pub const fn from_errno(errno: i32) -> Self {
        match errno {
            1 | 13 | 30 => Self::Perm,    // EPERM, EACCES, EROFS
            12 => Self::NoMem,            // ENOMEM
            22 => Self::Inval,            // EINVAL
            27 | 28 | 122 => Self::NoSpc, // EFBIG, ENOSPC, EDQUOT
            95 => Self::NotSup,           // EOPNOTSUPP
            108 => Self::Shutdown,        // ESHUTDOWN
            _ => Self::Io,
        }
    }

    /// The nearest `errno` of Linux, for a client that hands the error on.
    #[must_use]
    pub const fn to_errno(self) -> i32 {
        match self {
            Self::Perm => 1,
            Self::Io => 5,
            Self::NoMem => 12,
            Self::Inval => 22,
            Self::NoSpc => 28,
            Self::Overflow => 75,
            Self::NotSup => 95,
            Self::Shutdown => 108,
        }
    }
}

impl fmt::Display for NbdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Perm => "operation not permitted",
            Self::Io => "input or output error",
            Self::NoMem => "out of memory",
            Self::Inval => "invalid request",
            Self::NoSpc => "no space left",
            Self::Overflow => "the request is too large",
            Self::NotSup => "not supported",
            Self::Shutdown => "the server is stopping",
        })
    }
}

impl std::error::Error for NbdError {}

/// An error in a reply to an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OptionError {
    /// The option is unknown to the server.
    Unsup,
    /// The server's policy forbids it.
    Policy,
    /// The option makes no sense.
    Invalid,
    /// The server's platform cannot do it.
    Platform,
    /// TLS must be started first.
    TlsRequired,
    /// There is no such export.
    Unknown,
    /// The server is stopping.
    Shutdown,
    /// The client must ask for the block sizes.
    BlockSizeRequired,
    /// The option or its answer is too long.
    TooBig,
    /// A code that this crate does not know.
    Other(u32),
}

impl OptionError {
    /// The reply type on the wire; the error bit is always set.
    #[must_use]
    pub const fn wire(self) -> u32 {
        match self {
            Self::Unsup => wire::REP_ERR_UNSUP,
            Self::Policy => wire::REP_ERR_POLICY,
            Self::Invalid => wire::REP_ERR_INVALID,
            Self::Platform => wire::REP_ERR_PLATFORM,
            Self::TlsRequired => wire::REP_ERR_TLS_REQD,
            Self::Unknown => wire::REP_ERR_UNKNOWN,
            Self::Shutdown => wire::REP_ERR_SHUTDOWN,
            Self::BlockSizeRequired => wire::REP_ERR_BLOCK_SIZE_REQD,
            Self::TooBig => wire::REP_ERR_TOO_BIG,
            Self::Other(code) => code | wire::REP_ERROR_BIT,
        }
    }

    /// The error of a reply type; `None` where the error bit is clear.
    #[must_use]
    pub const fn from_wire(value: u32) -> Option<Self> {
        if value & wire::REP_ERROR_BIT == 0 {
            return None;
        }
        Some(match value {
            wire::REP_ERR_UNSUP => Self::Unsup,
            wire::REP_ERR_POLICY => Self::Policy,
            wire::REP_ERR_INVALID => Self::Invalid,
            wire::REP_ERR_PLATFORM => Self::Platform,
            wire::REP_ERR_TLS_REQD => Self::TlsRequired,
            wire::REP_ERR_UNKNOWN => Self::Unknown,
            wire::REP_ERR_SHUTDOWN => Self::Shutdown,
            wire::REP_ERR_BLOCK_SIZE_REQD => Self::BlockSizeRequired,
            wire::REP_ERR_TOO_BIG => Self::TooBig,
            other => Self::Other(other),
        })
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsup => "this option is not supported",
            Self::Policy => "the server's policy forbids this",
            Self::Invalid => "this option is malformed or out of place",
            Self::Platform => "the server's platform cannot do this",
            Self::TlsRequired => "TLS must be started first",
            Self::Unknown => "there is no such export",
            Self::Shutdown => "the server is stopping",
            Self::BlockSizeRequired => "the client must ask for the block sizes",
            Self::TooBig => "the option or its answer is too long",
            Self::Other(code) => return write!(f, "unknown option error {code:#x}"),
        })
    }
}

impl std::error::Error for OptionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_survive_the_wire_and_unknown_ones_are_invalid() {
        for value in 1..200 {
            let error = NbdError::from_wire(value).expect("not zero");
            assert!(error.wire() == value || error == NbdError::Inval);
        }
        assert_eq!(NbdError::from_wire(0), None);
        assert_eq!(NbdError::from_wire(u32::MAX), Some(NbdError::Inval));
    }

    #[test]
    fn a_broken_disk_is_never_the_clients_mistake() {
        let (eio, enodev, estale, edquot, efbig) = (5, 19, 116, 122, 27);
        for errno in [eio, enodev, estale, 0, -1] {
            assert_eq!(NbdError::from_errno(errno), NbdError::Io);
        }
        for errno in [edquot, efbig] {
            assert_eq!(NbdError::from_errno(errno), NbdError::NoSpc);
        }
    }

    #[test]
    fn option_errors_survive_the_wire() {
        for value in wire::REP_ERROR_BIT..wire::REP_ERROR_BIT + 20 {
            assert_eq!(OptionError::from_wire(value).map(OptionError::wire), Some(value));
        }
        assert_eq!(OptionError::from_wire(wire::REP_ACK), None);
    }
}
