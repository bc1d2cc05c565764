//! What a client's handshake is told and what it says: wish, steps, and the outcome.

use super::error::ClientError;
use crate::session::Session;

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// The export's name; empty means the default export.
    pub export: String,
    /// Ask for structured replies.
    pub structured: bool,
    /// Ask for `base:allocation`; needs structured replies.
    pub allocation: bool,
}

impl ClientConfig {
    /// Everything that the server can do.
    #[must_use]
    pub fn new(export: impl Into<String>) -> Self {
        Self { export: export.into(), structured: true, allocation: true }
    }
}

/// What the caller has to do next.
#[derive(Debug)]
pub enum ClientStep {
    /// Send all of these bytes.
    Send(Vec<u8>),
    /// Receive bytes and [`push`](super::ClientHandshake::push) them.
    Receive,
    /// The transmission phase begins.
    Ready(Box<ClientReady>),
    /// Close the connection.
    Failed(ClientError),
}

/// A finished handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientReady {
    /// What was agreed on.
    pub negotiated: Negotiated,
    /// Bytes that have arrived already and belong to the transmission phase. A server
    /// has nothing to say before the first request, so this is usually empty.
    pub leftover: Vec<u8>,
}

/// What client and server agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// Size, flags, block sizes, structured replies, and the id of `base:allocation`.
    pub session: Session,
    /// Whether the server told its block sizes. Otherwise they are the defaults, and a
    /// careful client stays with multiples of 512.
    pub block_sizes_told: bool,
    /// The server's own name for the export, if it told.
    pub name: Option<String>,
    /// The server's description of the export, if it told.
    pub description: Option<String>,
}
