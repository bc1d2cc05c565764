//! The VM itself: its name, and whether it runs.

use serde::{Deserialize, Serialize};

use super::command::{Nothing, command};

/// Ends the negotiation: we ask for nothing special.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Capabilities {}
command!(Capabilities, "qmp_capabilities", Nothing);

/// Whether the VM runs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueryStatus {}
command!(QueryStatus, "query-status", RunState);

/// How it goes with a VM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RunState {
    /// Whether its processors run.
    pub running: bool,
    /// In one word: `running`, `paused`, `prelaunch`, `io-error`, …
    pub status: String,
}

/// What the VM is called.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueryName {}
command!(QueryName, "query-name", Named);

/// Its processors.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueryProcessors {}
command!(QueryProcessors, "query-cpus-fast", Vec<Processor>);

/// A processor of a VM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Processor {
    /// The thread of QEMU's that runs it, as its host numbers threads.
    pub thread_id: Option<i64>,
}

/// Its memory.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueryMemory {}
command!(QueryMemory, "query-memory-size-summary", MemorySize);

/// How much memory a VM has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MemorySize {
    /// From its start, in bytes.
    pub base_memory: u64,
    /// Plugged in since, where that can be.
    pub plugged_memory: Option<u64>,
}

/// The name that a VM was started with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Named {
    /// It, if it has one.
    pub name: Option<String>,
}
