//! Memory as `top` shows it: what the kernel counts, for which no VM is asked.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{HostMemoryState, VmMemoryState};

/// The memory of the host, its swap tiers and its VMs, as far as the kernel counts it. No VM is
/// asked, so the answer comes at once, whatever hangs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemoryTop {
    /// When the counters were read (milliseconds since 1970).
    pub at_ms: u64,
    /// The span of all figures per second, in seconds: ten, or less after the daemon's start.
    pub window_s: f64,
    /// All memory of the host, in bytes.
    pub total: u64,
    /// What programs could have without swapping, by the kernel's estimate, in bytes.
    pub available: u64,
    /// What is to stay available, in bytes.
    pub reserve: u64,
    /// How short of memory the host is.
    pub state: HostMemoryState,
    /// What it lacks that nobody on it gives, in bytes; 0 if nobody has looked lately.
    pub short: u64,
    /// How often a process of the host had to wait for a page to be read, per second, from swap or
    /// from a file; missing until the counters were read twice.
    pub faults_per_s: Option<f64>,
    /// The swap tiers, the fastest first.
    pub tiers: Vec<SwapTierTop>,
    /// The VMs of which something is known, by name.
    pub vms: Vec<VmMemoryTop>,
}

/// A swap tier, and what its device does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SwapTierTop {
    /// The tier.
    pub tier: String,
    /// How large it is, in bytes.
    pub size: u64,
    /// How much of it is in use, in bytes.
    pub used: u64,
    /// Whether the kernel swaps to it.
    pub in_use: bool,
    /// The device whose figures follow, by the kernel's name; missing if the kernel counts nothing
    /// of it.
    pub device: Option<String>,
    /// Whether the tier is that whole device. If not, it is a file, and the figures are those of
    /// all that is on the device of its file system.
    pub whole_device: bool,
    /// Reads of the device since the host was started.
    pub reads: Option<u64>,
    /// How long they took, added up, in seconds.
    pub read_s: Option<f64>,
    /// Writes of the device since the host was started.
    pub writes: Option<u64>,
    /// Reads per second.
    pub reads_per_s: Option<f64>,
    /// Writes per second.
    pub writes_per_s: Option<f64>,
    /// The mean time of a read, in microseconds; missing if there was none.
    pub read_us: Option<f64>,
}

/// The memory of a VM, as the kernel counts it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VmMemoryTop {
    /// The VM.
    pub vm: String,
    /// What it does.
    pub state: VmMemoryState,
    /// How much memory it has, in bytes.
    pub size: Option<u64>,
    /// What its process has in memory, QEMU's own memory too, in bytes.
    pub resident: Option<u64>,
    /// How much of its process is on swap, in bytes.
    pub out: Option<u64>,
    /// What its balloon has, in bytes, if that was looked at lately.
    pub balloon: Option<u64>,
    /// What it is entitled to, in bytes, if that was looked at lately.
    pub entitled: Option<u64>,
    /// How often its process had to wait for a page to be read since it was started. Under KVM not
    /// all waits of the guest are among these.
    pub faults: Option<u64>,
    /// The same, per second.
    pub faults_per_s: Option<f64>,
}
