//! VMs that exist already, and whose disks QEMU serves itself.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::AskGuard;

/// The names of a VM and of its disks, as Sterna last saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmNames {
    /// Its name.
    pub name: String,
    /// The names of its disks' devices; none if Sterna has not seen it yet.
    pub devices: Vec<String>,
}

/// How it goes with a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VmState {
    /// It runs.
    Running,
    /// The VM is on, and its processors are stopped.
    Paused,
    /// It is off.
    Off,
    /// It cannot be asked, with the reason.
    Unreachable,
}

impl fmt::Display for VmState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            VmState::Running => "running",
            VmState::Paused => "paused",
            VmState::Off => "off",
            VmState::Unreachable => "unreachable",
        })
    }
}

/// The load of a VM's disk, over a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VmFigures {
    /// How long the moment was, in seconds.
    pub window_s: f64,
    /// Reads and writes per second.
    pub iops: f64,
    /// Bytes read and written per second.
    pub bytes_per_second: f64,
    /// The mean response time in microseconds; absent if nothing was asked of the disk.
    pub latency_us: Option<f64>,
}

/// A disk of a VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VmDisk {
    /// Its name in the VM (`vda`).
    pub device: String,
    /// Its image: a file's path, or QEMU's description.
    pub image: String,
    /// How they are kept: `raw`, `qcow2`, …
    pub format: String,
    /// The size that the guest sees.
    pub size: u64,
    /// The space that the image occupies, if known.
    pub allocated: Option<u64>,
    /// The Sterna disk that it is, if it is one.
    pub disk: Option<String>,
    /// The datastore that the image is on, if Sterna knows one.
    pub datastore: Option<String>,
    /// Whether the guest may only read.
    pub read_only: bool,
    /// Why Sterna can neither move nor adopt it, if so.
    #[serde(default)]
    pub unmovable: Option<String>,
    /// The migration that moves it, if one does.
    pub migration: Option<u64>,
    /// Its load now, if known.
    pub now: Option<VmFigures>,
}

/// A VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Vm {
    /// Its name here.
    pub name: String,
    /// The path of QEMU's QMP socket, if it is reached there.
    pub qmp: Option<String>,
    /// libvirt's URI, if it is reached through libvirt.
    pub libvirt: Option<String>,
    /// Its name in libvirt.
    pub domain: Option<String>,
    /// Its state.
    pub state: VmState,
    /// QEMU's or libvirt's word for the state, or why neither answers.
    pub detail: Option<String>,
    /// QEMU's version, if that is known.
    pub qemu: Option<String>,
    /// Its disks; empty while the VM does not answer.
    pub disks: Vec<VmDisk>,
    /// When it was added (seconds since 1970).
    pub added: u64,
}

/// Adds a VM: with either `qmp` or `libvirt`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddVm {
    /// Its name here.
    pub name: String,
    /// The absolute path of a QMP socket that nobody else uses.
    #[serde(default)]
    pub qmp: Option<String>,
    /// libvirt's URI (`qemu:///system`).
    #[serde(default)]
    pub libvirt: Option<String>,
    /// Its name in libvirt; as here if left out.
    #[serde(default)]
    pub domain: Option<String>,
}

/// Asks for a move of a VM's disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveVmDisk {
    /// The disk (`vda`).
    pub device: String,
    /// The datastore to move it to: a directory.
    pub to: String,
    /// The limit of the copy in bytes per second.
    #[serde(default)]
    pub rate: Option<u64>,
    /// The guard.
    #[serde(default)]
    pub guard: AskGuard,
}

/// Asks for a VM's disk to become a disk of Sterna's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptVmDisk {
    /// The disk (`vda`).
    pub device: String,
    /// The datastore to make Sterna's disk on.
    pub on: String,
    /// The disk's name; if left out, the VM's name and the device's (`web-vda`).
    #[serde(default)]
    pub name: Option<String>,
    /// The limit of the copy in bytes per second.
    #[serde(default)]
    pub rate: Option<u64>,
    /// The guard.
    #[serde(default)]
    pub guard: AskGuard,
}

/// Asks for a disk of Sterna's to become a file that QEMU serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseVmDisk {
    /// The disk (`vda`).
    pub device: String,
    /// The absolute path of a file that does not exist yet: its name ends in `.raw` or
    /// `.img`, or in `.qcow2`.
    pub to: String,
    /// The limit of the copy in bytes per second.
    #[serde(default)]
    pub rate: Option<u64>,
    /// The guard.
    #[serde(default)]
    pub guard: AskGuard,
}
