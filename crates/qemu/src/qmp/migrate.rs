//! A running guest that goes from one QEMU to another, as both of them see it.

use serde::{Deserialize, Serialize};

use super::command::{Nothing, command};

/// Sends the guest to a QEMU that waits for it.
#[derive(Clone, Debug, Serialize)]
pub struct Send {
    /// Where that listens: `unix:PATH`.
    pub uri: String,
}
command!(Send, "migrate", Nothing);

/// Has a QEMU that was started with `-incoming defer` wait for a guest.
#[derive(Clone, Debug, Serialize)]
pub struct Receive {
    /// Where it is to listen: `unix:PATH`.
    pub uri: String,
}
command!(Receive, "migrate-incoming", Nothing);

/// Gives a sending up.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CancelSend {}
command!(CancelSend, "migrate_cancel", Nothing);

/// How far a sending or receiving is.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QuerySend {}
command!(QuerySend, "query-migrate", SendInfo);

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SendInfo {
    /// In QEMU's word; absent where there is and was none.
    pub status: Option<String>,
    /// Of the guest's memory.
    pub ram: Option<SentMemory>,
    /// For how long the guest stood still, in milliseconds, once all has been sent.
    pub downtime: Option<f64>,
    /// Why it failed.
    pub error_desc: Option<String>,
    /// Why it cannot begin.
    #[serde(default)]
    pub blocked_reasons: Vec<String>,
    /// Where it waits for a guest, while it does.
    #[serde(default)]
    pub socket_address: Vec<WaitsAt>,
}

/// A socket at which QEMU waits for a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct WaitsAt {
    /// Its path, if it has one.
    pub path: Option<String>,
}

/// How much of a guest's memory has been sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SentMemory {
    /// Bytes that were sent.
    pub transferred: u64,
    /// Bytes that are still to be sent, as far as is known.
    pub remaining: u64,
    /// The memory's size.
    pub total: u64,
    /// Megabits per second.
    #[serde(default)]
    pub mbps: f64,
    /// How many times it was gone through.
    #[serde(default)]
    pub dirty_sync_count: u64,
}

/// What this QEMU could do beside the usual.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueryCapabilities {}
command!(QueryCapabilities, "query-migrate-capabilities", Vec<Capability>);

/// Something that QEMU does, or does not, when it sends or receives.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Capability {
    /// Its name.
    pub capability: String,
    /// Whether it does it.
    pub state: bool,
}

/// Says which of them it is to do.
#[derive(Clone, Debug, Serialize)]
pub struct SetCapabilities {
    /// These; others stay as they are.
    pub capabilities: Vec<Capability>,
}
command!(SetCapabilities, "migrate-set-capabilities", Nothing);

/// Says how fast it may send.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SetSendSpeed {
    /// Bytes per second.
    pub max_bandwidth: u64,
}
command!(SetSendSpeed, "migrate-set-parameters", Nothing);

/// Has the guest stand still; of one that is still to come, it will.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stop {}
command!(Stop, "stop", Nothing);

/// Has the guest go on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Continue {}
command!(Continue, "cont", Nothing);

/// Has QEMU end.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quit {}
command!(Quit, "quit", Nothing);
