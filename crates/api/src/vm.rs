//! Virtual machines that exist already, and whose disks QEMU serves itself.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::AskGuard;

/// How it goes with a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VmState {
    /// It runs.
    Running,
    /// It is there, and its processors stand still.
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

/// What a machine's disk does, over a moment.
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

/// A disk of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VmDisk {
    /// What the machine's owner calls it (`vda`).
    pub device: String,
    /// Where its bytes are: a file's path, or what QEMU has instead.
    pub image: String,
    /// How they are kept: `raw`, `qcow2`, …
    pub format: String,
    /// The size that the guest sees.
    pub size: u64,
    /// What the image takes, if that is known.
    pub allocated: Option<u64>,
    /// The disk of Sterna's that it is, if it is one.
    pub disk: Option<String>,
    /// The datastore that the image is on, if it is on one that is known here.
    pub datastore: Option<String>,
    /// Whether the guest may only read.
    pub read_only: bool,
    /// Why it cannot be moved or adopted as it is, if it cannot.
    #[serde(default)]
    pub unmovable: Option<String>,
    /// The migration that moves it, if one does.
    pub migration: Option<u64>,
    /// What it does now, if that can be had.
    pub now: Option<VmFigures>,
}

/// A virtual machine.
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
    /// How it goes with it.
    pub state: VmState,
    /// What QEMU or libvirt says of that, or why it cannot be asked.
    pub detail: Option<String>,
    /// QEMU's version, if that is known.
    pub qemu: Option<String>,
    /// Its disks; none while it cannot be asked.
    pub disks: Vec<VmDisk>,
    /// When it was added (seconds since 1970).
    pub added: u64,
}

/// Adds a machine: with either `qmp` or `libvirt`.
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

/// Asks for a move of a machine's disk.
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
    /// What must hold for the application meanwhile.
    #[serde(default)]
    pub guard: AskGuard,
}

/// Asks for a machine's disk to become a disk of Sterna's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptVmDisk {
    /// The disk (`vda`).
    pub device: String,
    /// The datastore to make Sterna's disk on.
    pub on: String,
    /// What to call it: the machine's name and the device's if left out (`web-vda`).
    #[serde(default)]
    pub name: Option<String>,
    /// The limit of the copy in bytes per second.
    #[serde(default)]
    pub rate: Option<u64>,
    /// What must hold for the application meanwhile.
    #[serde(default)]
    pub guard: AskGuard,
}

/// Asks for a disk of Sterna's to become a file that QEMU serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseVmDisk {
    /// The disk (`vda`).
    pub device: String,
    /// The absolute path of a file that is not there yet: its name ends in `.raw` or
    /// `.img`, or in `.qcow2`.
    pub to: String,
    /// The limit of the copy in bytes per second.
    #[serde(default)]
    pub rate: Option<u64>,
    /// What must hold for the application meanwhile.
    #[serde(default)]
    pub guard: AskGuard,
}
