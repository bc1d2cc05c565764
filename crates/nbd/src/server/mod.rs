//! The handshake as a server.
//!
//! [`ServerHandshake`] is driven by one loop. The caller moves bytes and answers
//! questions about exports, which live elsewhere; everything else happens inside:
//!
//! ```
//! use sterna_nbd::{Export, OptionError, ServerHandshake, ServerStep};
//!
//! # fn read(_: &mut [u8]) -> usize { 0 }
//! # fn write_all(_: &[u8]) {}
//! let mut handshake = ServerHandshake::new();
//! let mut buffer = [0; 4096];
//! loop {
//!     match handshake.step() {
//!         ServerStep::Send(bytes) => write_all(&bytes),
//!         ServerStep::Receive => {
//!             let room = handshake.room().min(buffer.len());
//!             match read(&mut buffer[..room]) {
//!                 0 => break, // the client has gone
//!                 n => assert_eq!(handshake.push(&buffer[..n]), n),
//!             }
//!         }
//!         ServerStep::NeedExport(question) => handshake.answer_export(
//!             match question.name.as_str() {
//!                 "disk" => Ok(Export::disk(1 << 30)),
//!                 _ => Err(OptionError::Unknown),
//!             },
//!         ),
//!         ServerStep::NeedList => handshake.answer_list(Err(OptionError::Policy)),
//!         ServerStep::Ready(ready) => {
//!             let _ = (ready.session, ready.leftover); // transmission begins
//!             break;
//!         }
//!         ServerStep::Closed(_) => break,
//!     }
//! }
//! ```
//!
//! # Rules
//!
//! - Output comes first: while there is any, `step` yields it before it looks at the
//!   next option. So the machine never holds more output than one answer.
//! - The bytes that arrived after the final option belong to the transmission phase
//!   and are given back in [`Ready::leftover`].
//! - A wrong option gets an error reply and the handshake goes on. The connection is
//!   dropped only where the specification says so or nothing else is possible: bad
//!   magic, unknown client flags, an `EXPORT_NAME` that cannot be served (it has no
//!   error reply), an option too long to be read, too many options.
//! - TLS is not supported: `STARTTLS` is answered with `ERR_UNSUP`.

mod answer;
mod machine;
mod step;
#[cfg(test)]
mod tests;

pub use machine::ServerHandshake;
pub use step::{ExportQuestion, Purpose, Ready, ServerStep};

use std::fmt;

/// Why the server drops the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The client said `ABORT`; its reply has been sent. Not an error.
    Aborted,
    /// The handshake has ended with [`ServerStep::Ready`], and was stepped again.
    Finished,
    /// The client set flags that do not exist or were not offered.
    ClientFlags(u32),
    /// An option did not begin with its magic.
    BadMagic,
    /// The client cannot receive replies to options and sent one that has them.
    NotFixedNewstyle {
        /// The option.
        option: u32,
    },
    /// The option is too long even to be dropped.
    OptionTooLong {
        /// The option.
        option: u32,
        /// Its length.
        len: u32,
    },
    /// The client sent more than [`crate::limits::OPTIONS_MAX`] options.
    TooManyOptions,
    /// `EXPORT_NAME` with a name that is no string of the protocol.
    BadExportName,
    /// `EXPORT_NAME` for an export that was refused; there is no other way to say so.
    ExportRefused(crate::OptionError),
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted => f.write_str("the client ended the negotiation"),
            Self::Finished => f.write_str("the handshake is over"),
            Self::ClientFlags(flags) => {
                write!(f, "the client set unknown flags ({flags:#x})")
            }
            Self::BadMagic => f.write_str("the client sent something else than NBD"),
            Self::NotFixedNewstyle { option } => {
                write!(f, "the client sent option {option} but cannot read its reply")
            }
            Self::OptionTooLong { option, len } => {
                write!(f, "the client sent option {option} with {len} bytes")
            }
            Self::TooManyOptions => f.write_str("the client sent too many options"),
            Self::BadExportName => f.write_str("the export's name is not valid"),
            Self::ExportRefused(error) => {
                write!(f, "the client asked in the old way, and {error}")
            }
        }
    }
}

impl std::error::Error for Closed {}
