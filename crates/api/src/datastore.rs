//! Datastores: named places that hold disk images.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a datastore is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DatastoreKind {
    /// A directory (local or NFS) with one file per image.
    Directory,
    /// A block device that holds one image.
    Device,
    /// An NBD export that holds one image.
    Nbd,
    /// An emulated storage array, over a directory with one file per image.
    Array,
}

/// A datastore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Datastore {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub kind: DatastoreKind,
    /// Where it is: an absolute path, an NBD URI, or an emulated array with its
    /// directory (`array://old-fc?path=/vm/old`).
    pub location: String,
    /// Artificial limits (`mbps=300,iops=5000,latency=1ms`), if any.
    pub shape: Option<String>,
    /// The device that it may share with other datastores: a disk (`disk sda`), a server
    /// (`server nas`), or a file system without more details. Absent if it shares
    /// nothing.
    #[serde(default)]
    pub backing: Option<String>,
    /// Its size, if known now.
    pub capacity: Option<u64>,
    /// Its free space, if known now.
    pub free: Option<u64>,
    /// How many disks have their image here.
    pub disks: u64,
    /// The disks of VMs that QEMU serves from here (`web/vda`), as Sterna last saw the VMs.
    /// Plans do not move these.
    #[serde(default)]
    pub vm_disks: Vec<String>,
    /// Why it cannot be used now; absent when all is well.
    pub problem: Option<String>,
    /// Whether it is in maintenance: it takes no new disks or moves.
    #[serde(default)]
    pub maintenance: bool,
}

/// Puts a datastore in maintenance, or ends maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetMaintenance {
    /// Whether it takes no new disks or moves.
    pub maintenance: bool,
}

/// Asks for a new datastore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddDatastore {
    /// Its name.
    pub name: String,
    /// An absolute path of a directory or block device, an NBD URI, or an emulated
    /// array (`array://old-fc?spindles=7`).
    pub location: String,
    /// Artificial limits (`mbps=300,iops=5000,latency=1ms`).
    #[serde(default)]
    pub shape: Option<String>,
}

/// What a datastore's device did under one load of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeStep {
    /// The probe's requests under way, 1 to 1024.
    pub outstanding: u32,
    /// How many of them were answered per second.
    pub iops: f64,
    /// What one of them took, in microseconds; above 0.
    pub response_us: f64,
    /// Requests per second of everybody else, as a mean of the 4 s of this load.
    pub others_iops: f64,
}

/// What a probe has found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeFound {
    /// One load after the other; 64 at most.
    pub steps: Vec<ProbeStep>,
}
