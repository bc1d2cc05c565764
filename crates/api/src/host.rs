//! Hosts: where VMs run, and which are where.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An amount of each resource; also a load, as parts of the host's resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Amounts {
    /// Processors; 1.5 is one and a half.
    pub cpu: f64,
    /// Memory in bytes; of a load, the used part.
    pub memory: f64,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The processors that it has for VMs.
    pub cpu: f64,
    /// The memory that it has for them.
    pub memory: u64,
    /// Its load: what its VMs are entitled to, as parts of its resources.
    pub load: Amounts,
    /// The VMs on it, by name.
    pub vms: Vec<String>,
    /// The program that starts VMs there, if there is one.
    pub program: Option<String>,
    /// When it was added (seconds since 1970).
    pub added: u64,
}

/// Adds a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddHost {
    /// Its name.
    pub name: String,
    /// The processors that it has for VMs.
    pub cpu: f64,
    /// The memory that it has for them.
    pub memory: u64,
}

/// Sets the program that starts VMs on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostProgram {
    /// Its path; `null` removes it.
    pub program: Option<String>,
}

/// Records the host of a VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceVm {
    /// The host that it is on; `null` forgets the host.
    pub host: Option<String>,
}

/// Where a VM is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Placement {
    /// The VM.
    pub vm: String,
    /// The host that it is on, if known.
    pub host: Option<String>,
    /// Whether DRS had recommended this host. If not, DRS leaves the VM alone for a
    /// while.
    pub recommended: bool,
}
