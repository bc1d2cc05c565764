//! What all reactors of an engine share, and how one reaches the others.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Instant;

use super::Reactor;
use crate::classes::Classes;
use crate::directory::Directory;
use crate::image::Voucher;
use crate::mailbox::Mailbox;

/// Clients that did not get in, since the start.
#[derive(Debug, Default)]
pub(crate) struct TurnedAway {
    /// There was no place for them.
    pub(crate) refused: AtomicU64,
    /// Their handshake made room for that of a newcomer.
    pub(crate) dropped: AtomicU64,
}

/// What all reactors of an engine share.
pub(crate) struct Shared {
    pub(crate) directory: Directory,
    /// One for each reactor.
    pub(crate) mailboxes: Vec<Arc<Mailbox<Reactor>>>,
    /// Connections in their transmission phase, over all reactors.
    pub(crate) connections: AtomicUsize,
    /// Clients that did not get in.
    pub(crate) turned_away: TurnedAway,
    /// Images were opened that others can open meanwhile: their file system knows no
    /// locks.
    pub(crate) unlocked: AtomicBool,
    /// A client gets a descriptor below this, or is turned away.
    pub(crate) descriptors: i32,
    pub(crate) keep: Option<Arc<OwnedFd>>,
    pub(crate) classes: Classes,
    pub(crate) voucher: Voucher,
    /// When time begins. One for all: a datastore's images on several reactors share
    /// its budget, which is kept in moments.
    pub(crate) epoch: Instant,
}
