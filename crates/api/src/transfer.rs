//! Transfers: VMs that go from one QEMU to another, and so to another host.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Carries out the recommended VM migration of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartTransfer {
    /// The VM.
    pub vm: String,
    /// The QMP socket of the waiting QEMU; absent if the host's program starts one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qmp: Option<String>,
    /// Bytes per second at most; absent for as fast as a link of 10 Gbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
}

/// The state of a VM migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransferState {
    /// Sterna starts and prepares the second QEMU.
    Starting,
    /// QEMU copies memory. The guest runs at the first QEMU.
    Copying,
    /// The VM migration is being cancelled.
    Cancelling,
    /// The guest is switching to the second QEMU.
    SwitchingOver,
    /// The guest runs at the second QEMU.
    Completed,
    /// The guest runs at the first QEMU.
    Cancelled,
    /// The guest runs in neither QEMU, or it is unknown where it runs: see `reason`.
    Lost,
}

impl TransferState {
    /// Whether this state is final.
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

/// The progress of a VM migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransferProgress {
    /// Bytes sent. Memory that the guest writes meanwhile is sent, and counts, again.
    pub sent: u64,
    /// Bytes still to be sent, as far as is known.
    pub left: u64,
    /// Bytes per second, as QEMU says.
    pub rate: f64,
    /// How long the rest takes at this rate, in seconds.
    pub eta_s: Option<f64>,
    /// The number of passes over the guest's memory.
    pub passes: u64,
}

/// The results of a VM migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransferReport {
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Bytes that were sent.
    pub sent: u64,
    /// The number of passes over the guest's memory.
    pub passes: u64,
    /// How long the guest stood still, in milliseconds; absent if the daemon was killed
    /// meanwhile.
    pub held_ms: Option<f64>,
}

/// A VM migration to another host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Transfer {
    /// Its number.
    pub id: u64,
    /// The VM.
    pub vm: String,
    /// The host that it leaves.
    pub from: String,
    /// The destination.
    pub to: String,
    /// The QMP socket of the first QEMU.
    pub source: String,
    /// The QMP socket of the second QEMU.
    pub destination: String,
    /// The problem that the VM migration repairs.
    pub why: String,
    /// How much that matters: 1 is the most, 5 the least.
    pub priority: u8,
    /// Whether DRS has started it automatically.
    pub automatic: bool,
    /// Where it is.
    pub state: TransferState,
    /// The reason for this state, if there is one.
    pub reason: Option<String>,
    /// Whether it is stalled: see `reason`. Sterna tries again.
    pub stuck: bool,
    /// When it began (seconds since 1970).
    pub started: u64,
    /// When it ended.
    pub ended: Option<u64>,
    /// Its progress, while known.
    pub progress: Option<TransferProgress>,
    /// Its results, once it is completed.
    pub report: Option<TransferReport>,
}
