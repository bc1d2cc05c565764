//! Memory of VMs, and the swap tiers to which it goes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{HostMemoryState, MemorySettings, MemoryTerms, VmBalloon};

/// A file or device that the kernel swaps to on Sterna's word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SwapTier {
    /// Its name.
    pub name: String,
    /// The datastore on which its file is; missing for a device.
    pub datastore: Option<String>,
    /// The file or device.
    pub path: String,
    /// How large it is, in bytes.
    pub size: u64,
    /// How much of it is in use, in bytes.
    pub used: u64,
    /// The kernel fills tiers of the highest priority first; missing if the kernel does not
    /// swap to it.
    pub priority: Option<i32>,
    /// How long 64 KiB at a random place took when it was measured, in microseconds.
    pub access_us: f64,
    /// What it read in order when it was measured, in bytes per second.
    pub bytes_per_s: u64,
    /// When it was added (seconds since 1970).
    pub added: u64,
}

/// Adds a swap tier: a file on a datastore, or a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddSwapTier {
    /// Its name.
    pub name: String,
    /// The datastore, a directory, on which a file is made.
    #[serde(default)]
    pub datastore: Option<String>,
    /// The size of that file, in bytes.
    #[serde(default)]
    pub size: Option<u64>,
    /// A block device, all of which is used.
    #[serde(default)]
    pub device: Option<String>,
}

/// The memory of the host, its swap tiers, and its VMs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostMemory {
    /// All of it, in bytes.
    pub total: u64,
    /// What programs could have without swapping, by the kernel's estimate, in bytes.
    pub available: u64,
    /// What is to stay available, in bytes.
    pub reserve: u64,
    /// How short it is.
    pub state: HostMemoryState,
    /// When it counts as short, and what Sterna does then.
    pub settings: MemorySettings,
    /// What it lacks that nobody on it gives, in bytes, when that was looked at last.
    pub short: u64,
    /// How many wakes were compared with what was predicted of them, of the last 32.
    pub wakes_scored: u64,
    /// By what part those predictions were wrong, half of them by less.
    pub wake_error: Option<f64>,
    /// The swap tiers, the fastest first.
    pub tiers: Vec<SwapTier>,
    /// The VMs, by name.
    pub vms: Vec<VmMemory>,
}

/// What a VM does with its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VmMemoryState {
    /// Its memory is where the guest and the kernel have it.
    Awake,
    /// Its memory is going out.
    FallingAsleep,
    /// Its memory is out. Sterna brings it back when the guest needs it.
    Asleep,
    /// Its memory is coming back, or it is noted what its guest uses of it.
    Waking,
}

/// The memory of a VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VmMemory {
    /// The VM.
    pub vm: String,
    /// What it does.
    pub state: VmMemoryState,
    /// Since when it sleeps (seconds since 1970).
    pub asleep_since: Option<u64>,
    /// How much memory it has, in bytes.
    pub size: Option<u64>,
    /// How much of that is in memory and in use, in bytes.
    pub resident: Option<u64>,
    /// How much is out, in bytes.
    pub out: Option<u64>,
    /// Where that is.
    pub out_on: Vec<OutOnTier>,
    /// How many wakes Sterna knows, and predicts from: four at most.
    pub wakes_known: u64,
    /// How long it would take until what a wake needs at once is back, in seconds.
    pub wake_hot_s: Option<f64>,
    /// How long it would take until all is back, in seconds.
    pub wake_all_s: Option<f64>,
    /// What it is promised and held to.
    pub terms: MemoryTerms,
    /// What it is entitled to, in bytes, when that was looked at last.
    pub entitled: Option<u64>,
    /// The part of it that its guest uses, from 0 to 1, when that was looked at last.
    pub active: Option<f64>,
    /// Its balloon, when that was looked at last.
    pub balloon: Option<VmBalloon>,
    /// From when to when all would be back in nine of ten cases, in seconds, by what the last wakes
    /// of all VMs took.
    pub wake_range_s: Option<[f64; 2]>,
    /// What is being done.
    pub work: Option<MemoryWork>,
    /// How its last wake went.
    pub last_wake: Option<WakeReport>,
    /// Why nothing is known of its memory, if nothing is.
    pub problem: Option<String>,
}

/// What of a VM is out on one swap tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutOnTier {
    /// The tier; missing if the device is none of Sterna's.
    pub tier: Option<String>,
    /// So many bytes.
    pub bytes: u64,
    /// In so many pieces that lie together there.
    pub runs: u64,
}

/// What is done with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryWorkKind {
    /// It goes out.
    Sleep,
    /// It comes back.
    Wake,
}

/// Memory that goes out, or comes back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemoryWork {
    /// Which of the two.
    pub kind: MemoryWorkKind,
    /// So many bytes in all.
    pub total: u64,
    /// So many bytes by now.
    pub done: u64,
    /// Bytes per second.
    pub bytes_per_s: Option<u64>,
    /// How long the rest takes, in seconds.
    pub eta_s: Option<f64>,
    /// Whether the guest is held now.
    pub held: bool,
}

/// How a wake went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WakeReport {
    /// When it ended (seconds since 1970).
    pub at: u64,
    /// So many bytes came back.
    pub bytes: u64,
    /// So many bytes could not be read.
    pub failed: u64,
    /// How long the guest was held, in milliseconds.
    pub held_ms: f64,
    /// How long it took until what was needed at once was back, in seconds.
    pub hot_s: Option<f64>,
    /// How long it took until all was back, in seconds.
    pub all_s: Option<f64>,
    /// How long that was predicted to take, in seconds.
    pub predicted_s: Option<f64>,
}

/// Has a VM's memory go out.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct SleepVm {
    /// Also what its wakes need at once.
    #[serde(default)]
    pub all: bool,
}

/// Brings a VM's memory back.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct WakeVm {
    /// How long the guest may be held at the beginning, in milliseconds; 0 for not at all.
    /// Without it Sterna decides, up to 2 s.
    #[serde(default)]
    pub hold_ms: Option<u64>,
}

impl VmMemoryState {
    /// Of a VM with which this is done, and that sleeps or does not.
    pub fn of(work: Option<&MemoryWork>, asleep: bool) -> VmMemoryState {
        match (work.map(|work| work.kind), asleep) {
            (Some(MemoryWorkKind::Sleep), _) => VmMemoryState::FallingAsleep,
            (Some(MemoryWorkKind::Wake), _) => VmMemoryState::Waking,
            (None, true) => VmMemoryState::Asleep,
            (None, false) => VmMemoryState::Awake,
        }
    }
}
