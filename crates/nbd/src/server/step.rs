//! What a server's handshake says to its caller: steps, questions, and the outcome.

use super::Closed;
use crate::session::Session;

/// What the caller has to do next.
#[derive(Debug)]
pub enum ServerStep {
    /// Send all of these bytes.
    Send(Vec<u8>),
    /// Receive bytes and [`push`](super::ServerHandshake::push) them.
    Receive,
    /// Look up an export and call [`answer_export`](super::ServerHandshake::answer_export).
    NeedExport(ExportQuestion),
    /// List the exports and call [`answer_list`](super::ServerHandshake::answer_list).
    NeedList,
    /// The transmission phase begins.
    Ready(Box<Ready>),
    /// Close the connection.
    Closed(Closed),
}

/// A question about an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportQuestion {
    /// The name; empty means the default export.
    pub name: String,
    /// What for.
    pub purpose: Purpose,
}

/// Why the handshake asks about an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To describe it.
    Info,
    /// To serve it: on success the transmission phase begins.
    Go,
    /// To list or select its metadata contexts.
    MetaContext,
}

/// A finished handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The name under which the client chose its export.
    pub name: String,
    /// What was agreed on.
    pub session: Session,
    /// Bytes that have arrived already and belong to the transmission phase.
    pub leftover: Vec<u8>,
}
