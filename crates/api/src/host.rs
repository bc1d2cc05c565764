//! Hosts: where virtual machines run, and which are where.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// So much of each resource; also a load, in parts of what a host has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Amounts {
    /// Processors; 1.5 is one and a half.
    pub cpu: f64,
    /// Memory in bytes; of a load the part that is taken.
    pub memory: f64,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The processors that it has for machines.
    pub cpu: f64,
    /// The memory that it has for them.
    pub memory: u64,
    /// What the machines on it are entitled to, in parts of what it has.
    pub load: Amounts,
    /// The machines on it, by name.
    pub vms: Vec<String>,
    /// The program that starts machines there, if there is one.
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
    /// The processors that it has for machines.
    pub cpu: f64,
    /// The memory that it has for them.
    pub memory: u64,
}

/// Says which program starts machines on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostProgram {
    /// Its path; `null` if there is to be none.
    pub program: Option<String>,
}

/// Says where a machine is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceVm {
    /// The host that it is on; `null` if that is to be forgotten.
    pub host: Option<String>,
}

/// Where a machine is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Placement {
    /// The machine.
    pub vm: String,
    /// The host that it is on, if that is known.
    pub host: Option<String>,
    /// Whether that was recommended. A machine that somebody moves elsewhere is left
    /// alone for a while.
    pub recommended: bool,
}
