//! The daemon itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{HurtDisk, PredictionScores};

/// How the daemon does its I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Io {
    /// `io_uring` or `threads`.
    pub engine: String,
    /// Why it is not io_uring.
    pub reason: Option<String>,
}

/// How many of each there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Datastores.
    pub datastores: u64,
    /// Disks.
    pub disks: u64,
    /// Disks that clients can use now.
    pub disks_served: u64,
    /// Disks whose requests take longer than usual, or than is promised.
    #[serde(default)]
    pub disks_hurt: u64,
    /// Disks that are not hurt, and whose requests take twice as long as usual, or longer.
    #[serde(default)]
    pub disks_slower: u64,
    /// Migrations that have not ended.
    pub migrations: u64,
    /// Of these, paused ones.
    pub migrations_paused: u64,
    /// Classes, the built-in one left out.
    pub classes: u64,
    /// Policies, open or closed.
    pub policies: u64,
    /// VMs whose disks QEMU serves.
    #[serde(default)]
    pub vms: u64,
}

/// Files that the daemon has open: images, connections, its state.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
pub struct OpenFiles {
    /// So many are open.
    pub open: u64,
    /// So many may be (`ulimit -Hn`).
    pub limit: u64,
}

/// Who is connected to the daemon, and how many were not let in since its start.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
pub struct Connections {
    /// NBD clients.
    pub guests: u64,
    /// NBD clients that were turned away, as there was no place for them.
    pub guests_refused: u64,
    /// Connections to the API.
    pub api: u64,
    /// Connections to the API that were closed, as there was no place for all.
    pub api_closed: u64,
}

/// Something that somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Warning {
    /// What it is about: `disk web1`, `datastore fast`, `migration 4`.
    pub about: String,
    /// What is wrong.
    pub message: String,
    /// What to do next; may be empty.
    pub hint: String,
}

/// The daemon in one page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The daemon's version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// When it was started (seconds since 1970).
    pub started: u64,
    /// The state directory.
    pub state: String,
    /// The API's socket.
    pub socket: String,
    /// Where NBD clients connect: URIs without a disk's name.
    pub nbd: Vec<String>,
    /// How it does its I/O.
    pub io: Io,
    /// How many of each there are.
    pub counts: Counts,
    /// Files that are open.
    #[serde(default)]
    pub open_files: OpenFiles,
    /// Who is connected.
    #[serde(default)]
    pub connections: Connections,
    /// Lines of the log that could not be written since the start.
    #[serde(default)]
    pub lost_log_lines: u64,
    /// How right predictions were.
    #[serde(default)]
    pub predictions: PredictionScores,
    /// The disks that are hurt, the worst first; 50 at most.
    #[serde(default)]
    pub hurt: Vec<HurtDisk>,
    /// The disks that are not hurt, and whose requests take twice as long as usual, or longer:
    /// the slowest first; 50 at most.
    #[serde(default)]
    pub slower: Vec<HurtDisk>,
    /// The disks that are slowed on purpose: their requests wait because a policy limits their
    /// class, or for the target of another class; 50 at most.
    #[serde(default)]
    pub slowed: Vec<HurtDisk>,
    /// What somebody should look at.
    pub warnings: Vec<Warning>,
}
