//! Disks that somebody should look at: what the engine knows and no client can be told.

use std::time::Duration;

use sterna_core::durability::{Lack, Loss};

/// Something about a disk that somebody should look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What.
    pub kind: TroubleKind,
    /// For how long.
    pub age: Duration,
}

/// What is the matter with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleKind {
    /// The server behind its image may have lost writes that clients had been answered.
    Forgot {
        /// A flush of each client has failed since, so the clients know.
        told: bool,
        /// What happened.
        why: Loss,
    },
    /// Another export answers at the address of its image, and is not used.
    AnotherExport,
    /// The export of an image came back without what the image relies on, and is not used.
    Lacks {
        /// What it lacks.
        lack: Lack,
        /// It is the image that a move copies to.
        copy: bool,
    },
    /// A flush of its image failed for which there is no second try; none is acknowledged
    /// any more.
    CannotFlush,
    /// Whether it has unflushed writes could not be noted for the next daemon yet. The age is
    /// that of its image.
    Unkept,
    /// Its image has failed writes, and its clients were told so. The age is that of the last.
    FailsWrites {
        /// How many of that image since the disk is served.
        count: u64,
        /// The error of the last one.
        errno: i32,
        /// How many images the disk has left since then; the first of them is that one.
        moves_since: u32,
    },
    /// Clients do not read what they are answered. The age is that of the longest.
    Unread {
        /// How many.
        clients: usize,
    },
    /// Requests wait for an earlier write of another client, which does not end.
    Waits {
        /// How many.
        requests: usize,
    },
}
