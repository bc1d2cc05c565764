//! Transfers: virtual machines that go from one QEMU to another, and so to another host.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Carries out what is recommended for a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartTransfer {
    /// The machine.
    pub vm: String,
    /// The QMP socket of the QEMU that waits for it; absent if the host's program starts
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qmp: Option<String>,
    /// Bytes per second at most; absent for as fast as a link of 10 Gbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
}

/// Where a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransferState {
    /// The other QEMU is being started, or told what comes.
    Starting,
    /// Memory is being copied. The guest runs where it was.
    Copying,
    /// It is being given up.
    Cancelling,
    /// The guest is to run at the other QEMU.
    SwitchingOver,
    /// It runs there.
    Completed,
    /// It runs where it was.
    Cancelled,
    /// It is in neither, or it is not known where: `reason` says it.
    Lost,
}

impl TransferState {
    /// Whether nothing will happen any more.
    pub fn ended(self) -> bool {
        matches!(
            self,
            TransferState::Completed | TransferState::Cancelled | TransferState::Lost
        )
    }
}

impl fmt::Display for TransferState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TransferState::Starting => "starting",
            TransferState::Copying => "copying",
            TransferState::Cancelling => "cancelling",
            TransferState::SwitchingOver => "switching over",
            TransferState::Completed => "completed",
            TransferState::Cancelled => "cancelled",
            TransferState::Lost => "lost",
        })
    }
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransferProgress {
    /// Bytes that were sent. What the guest has written meanwhile is sent again.
    pub sent: u64,
    /// Bytes still to be sent, as far as is known.
    pub left: u64,
    /// Bytes per second, as QEMU says.
    pub rate: f64,
    /// How long the rest takes at this rate, in seconds.
    pub eta_s: Option<f64>,
    /// How many times the guest's memory was gone through.
    pub passes: u64,
}

/// How a transfer went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransferReport {
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Bytes that were sent.
    pub sent: u64,
    /// How many times the guest's memory was gone through.
    pub passes: u64,
    /// How long the guest stood still, in milliseconds; absent where a daemon was killed
    /// meanwhile.
    pub held_ms: Option<f64>,
}

/// A machine's way to another host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Transfer {
    /// Its number.
    pub id: u64,
    /// The machine.
    pub vm: String,
    /// The host that it leaves.
    pub from: String,
    /// The one that it goes to.
    pub to: String,
    /// The QMP socket where it was.
    pub source: String,
    /// The one where it is if this is completed.
    pub destination: String,
    /// What it is for.
    pub why: String,
    /// How much that matters: 1 is the most, 5 the least.
    pub priority: u8,
    /// Whether nobody has asked for it.
    pub automatic: bool,
    /// Where it is.
    pub state: TransferState,
    /// Why it is there, if there is something to be said of that.
    pub reason: Option<String>,
    /// Whether it cannot go on at the moment: `reason` says why. It is tried again.
    pub stuck: bool,
    /// When it began (seconds since 1970).
    pub started: u64,
    /// When it ended.
    pub ended: Option<u64>,
    /// How far it is, while that is known.
    pub progress: Option<TransferProgress>,
    /// How it went, once it is completed.
    pub report: Option<TransferReport>,
}
