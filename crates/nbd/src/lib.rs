//! The NBD protocol without I/O: codec, server and client state machines.
//!
//! Bytes go in, bytes and events come out. Nothing here opens a socket, reads a
//! clock or starts a thread, so the same code serves io_uring, blocking sockets
//! and a fuzzer.
//!
//! - [`server`]: the fixed newstyle handshake as a server. It asks the caller about
//!   exports and ends with a [`Session`] and the bytes that already belong to the
//!   transmission phase.
//! - [`Session`], [`Request`], [`Command`]: what was negotiated, and the check of
//!   every request against it.
//! - [`reply`], [`status`]: a server's replies, as small heads in fixed buffers, so
//!   that a payload is sent from where it lies.
//! - [`client`]: the handshake as a client, the heads of replies, and the book-keeping
//!   of a fragmented read.
//! - [`uri`]: `nbd://` and `nbd+unix://`.
//!
//! # Invariants
//!
//! - No input makes this crate panic, and none makes it hold more memory than the
//!   constants in [`limits`] allow.
//! - The result never depends on how the bytes were split on their way in.
//! - A request that the peer may not send, as negotiated, never becomes a
//!   [`Command`].
//!
//! # What is not here
//!
//! TLS (refused with a clear error on both sides), the oldstyle handshake, extended
//! headers, and metadata contexts other than `base:allocation`.

#![forbid(unsafe_code)]

pub mod block_sizes;
pub mod client;
mod codec;
pub mod command;
pub mod error;
pub mod export;
pub mod flags;
pub mod head;
mod input;
pub mod limits;
mod option;
pub mod reply;
pub mod request;
pub mod server;
pub mod session;
pub mod status;
pub mod uri;
pub mod wire;

pub use block_sizes::{BlockSizes, BlockSizesError};
pub use client::{ClientHandshake, ClientStep, Negotiated, ReplyHead};
pub use command::Command;
pub use error::{NbdError, OptionError};
pub use export::Export;
pub use flags::{CommandFlags, TransmissionFlags};
pub use head::Head;
pub use request::{BadRequest, Request};
pub use server::{ServerHandshake, ServerStep};
pub use session::{Refusal, RefusalReason, Remedy, Session};
pub use status::{Allocation, Extent};
pub use uri::{Transport, Uri, UriError};
