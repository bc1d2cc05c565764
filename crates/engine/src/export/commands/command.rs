//! A command that is being carried out.

use sterna_core::Nanos;

use super::ranged::Ranged;
use super::stream::Stream;
use super::write::Write;
use crate::io::Errno;

pub(super) struct Command {
    pub(super) cookie: u64,
    pub(super) kind: Kind,
    /// Requests of the disk that have not been answered.
    pub(super) pieces: u32,
    /// The first error of a piece.
    pub(super) error: Option<Errno>,
    /// What its buffers cost the connection's account.
    pub(super) cost: usize,
    /// The cost counts as under way at the datastore. Not of a long read that waits until its
    /// client takes what was read.
    pub(super) is_at_store: bool,
    /// How long it had to wait before it started: its first request counts as so much older.
    /// The time that a client takes to send a write's payload is not the disk's.
    pub(super) waited: Nanos,
}

/// What a command does, and how far it is.
pub(super) enum Kind {
    /// A read in one piece: from where on, and how long.
    Read(u64, u32),
    /// A longer read.
    Stream(Stream),
    Write(Write),
    Ranged(Ranged),
    Flush,
    Status(Status),
}

/// A question for the state of a range.
#[derive(Clone, Copy)]
pub(super) struct Status {
    pub(super) len: u32,
    pub(super) req_one: bool,
    /// The disk is asked for whole blocks, so many bytes more at the beginning.
    pub(super) skip: u64,
}
