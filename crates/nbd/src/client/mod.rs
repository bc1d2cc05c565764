//! NBD as a client: the handshake, the heads of replies, and fragmented reads.
//!
//! - [`ClientHandshake`] chooses an export and ends with [`Negotiated`].
//! - [`ReplyHead::parse`] reads the head of the next reply and says how many bytes of
//!   payload follow, so that the engine receives them where they belong.
//! - [`ReadPieces`] watches over a structured read: every byte exactly once.
//!
//! The rule for all three: the server is not trusted. Lengths are bounded before
//! anything is held, and what the specification forbids ends the connection. Which
//! cookies are in flight, and what each asked for, is the engine's knowledge.

mod error;
mod handshake;
mod pieces;
mod reply;
mod step;
#[cfg(test)]
mod tests;

pub use error::{ClientError, Violation};
pub use handshake::ClientHandshake;
pub use pieces::{BadPiece, ReadPieces};
pub use reply::{BadReply, Parsed, ReplyHead, ReplyLimits};
pub use step::{ClientConfig, ClientReady, ClientStep, Negotiated};
