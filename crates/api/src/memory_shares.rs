//! How VMs share the memory of their host.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What Sterna does automatically if a host runs short of memory.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryAutomation {
    /// Nothing: it says what it would do.
    #[default]
    Manual,
    /// It has balloons take what guests do not need, and give it back.
    Partial,
    /// It also moves memory of idle VMs to swap.
    Full,
}

/// When a host counts as short of memory, and what Sterna does then.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(default)]
pub struct MemorySettings {
    /// What Sterna does automatically.
    pub automation: MemoryAutomation,
    /// What the host is to keep available, in bytes; missing for the usual part of its memory.
    pub reserve: Option<u64>,
}

/// Changes when a host counts as short of memory, and what Sterna does then.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct ChangeMemory {
    /// What Sterna does automatically.
    #[serde(default)]
    pub automation: Option<MemoryAutomation>,
    /// What the host is to keep available, in bytes; 0 for the usual part of its memory.
    #[serde(default)]
    pub reserve: Option<u64>,
}

/// What a VM is promised of its host's memory, and held to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemoryTerms {
    /// What it keeps in any case, in bytes.
    pub reservation: u64,
    /// What it holds at most, in bytes; missing without a limit.
    pub limit: Option<u64>,
    /// Its part of what is left, against the shares of the others.
    pub shares: u32,
    /// What its balloon may take at most, in bytes; missing for the usual part of its memory.
    pub balloon_max: Option<u64>,
    /// How long a wake of it may take, in seconds; missing if nobody has said.
    pub wake_within_s: Option<f64>,
}

/// Changes what a VM is promised of its host's memory, and held to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeMemoryTerms {
    /// What it keeps in any case, in bytes.
    #[serde(default)]
    pub reservation: Option<u64>,
    /// What it holds at most, in bytes; 0 for no limit.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Its part of what is left, against the shares of the others.
    #[serde(default)]
    pub shares: Option<u32>,
    /// What its balloon may take at most, in bytes.
    #[serde(default)]
    pub balloon_max: Option<u64>,
    /// How long a wake of it may take, in seconds; 0 for any time.
    #[serde(default)]
    pub wake_within_s: Option<f64>,
}

/// How short of memory a host is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum HostMemoryState {
    /// It has its reserve.
    High,
    /// Less than its reserve is available: balloons take what guests do not need.
    Soft,
    /// Less than 64 % of it: memory of idle VMs goes to swap.
    Hard,
    /// Less than 32 % of it.
    Low,
}

/// A VM's balloon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmBalloon {
    /// What Sterna has asked it to take, in bytes.
    pub taken: u64,
    /// What it has, in bytes.
    pub has: u64,
    /// What it may take at most, in bytes.
    pub max: u64,
    /// What the guest's programs could have without swapping, in bytes; missing while the guest
    /// does not say.
    pub guest_available: Option<u64>,
    /// Whether the guest gives back pages that nobody uses; missing if that is not known.
    pub reports_free: Option<bool>,
}

/// A way to get memory of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryMeansKind {
    /// The guest gives back pages that nobody uses, by itself.
    FreePages,
    /// The balloon takes memory from inside the guest.
    Balloon,
    /// Memory goes out to the swap tiers.
    Swap,
    /// The VM goes to another host.
    Migration,
}

/// What one way to get memory of a VM would give, and what it costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemoryMeans {
    /// The way.
    pub means: MemoryMeansKind,
    /// What it can give at most, in bytes; missing if that is not known.
    pub can_give: Option<u64>,
    /// What it is to give now, in bytes.
    pub gives: u64,
    /// What it costs, or why it gives nothing.
    pub cost: String,
}

/// Why a VM has the memory that it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemoryExplanation {
    /// The VM.
    pub vm: String,
    /// How short of memory its host is.
    pub state: HostMemoryState,
    /// What the host has available, in bytes.
    pub available: u64,
    /// What it is to keep available, in bytes.
    pub reserve: u64,
    /// What it lacks, in bytes: nothing while it has its reserve.
    pub lacks: u64,
    /// What of that nobody gives, in bytes.
    pub short: u64,
    /// What all VMs may hold together, in bytes.
    pub room: u64,
    /// What the VM is promised and held to.
    pub terms: MemoryTerms,
    /// The shares of all VMs together.
    pub all_shares: u64,
    /// How much memory it has, in bytes.
    pub size: u64,
    /// What of it is in the host's memory, in bytes.
    pub resident: u64,
    /// What it could make use of, in bytes.
    pub wants: u64,
    /// The part of its memory that its guest uses, from 0 to 1.
    pub active: f64,
    /// For how long its guest has done nothing, in seconds.
    pub idle_s: f64,
    /// What one of its shares is worth: 1 if its guest uses all of its memory, less if not.
    pub price: f64,
    /// What it is entitled to, in bytes.
    pub entitled: u64,
    /// The ways to get memory of it, in the order in which they are used.
    pub means: Vec<MemoryMeans>,
    /// What Sterna does of this automatically.
    pub automation: MemoryAutomation,
    /// What is said of it in one sentence.
    pub says: String,
}
