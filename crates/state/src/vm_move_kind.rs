//! What a move of a VM's disk makes of it, as the state keeps it.

use serde::{Deserialize, Serialize};
use sterna_core::DiskId;

/// What a move makes of a VM's disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VmMoveKind {
    /// QEMU serves it before and after: from file to file.
    Move,
    /// It becomes a disk of ours, which is made for it.
    Adopt(OurDisk),
    /// It has been a disk of ours, and becomes a file that QEMU serves.
    Release(OurDisk),
}

/// A disk of ours that a VM's disk becomes, or was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OurDisk {
    /// Its name.
    pub name: String,
    /// Its id: by the name alone it could be another one by now.
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub id: DiskId,
}

impl VmMoveKind {
    /// Whether a disk of ours is made for it.
    pub fn adopts(&self) -> bool {
        matches!(self, VmMoveKind::Adopt(_))
    }

    /// Whether it makes a VM's disk this one of ours.
    pub fn adopts_disk(&self, disk: DiskId) -> bool {
        matches!(self, VmMoveKind::Adopt(it) if it.id == disk)
    }

    /// The disk of ours that it has to do with.
    pub fn disk(&self) -> Option<&OurDisk> {
        match self {
            VmMoveKind::Move => None,
            VmMoveKind::Adopt(disk) | VmMoveKind::Release(disk) => Some(disk),
        }
    }
}

fn as_text<S: serde::Serializer>(id: &DiskId, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(id)
}

fn from_text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<DiskId, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}
