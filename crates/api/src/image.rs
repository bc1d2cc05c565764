//! The images of a datastore, and what is known of each.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What an image is, by what Sterna has recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageUse {
    /// The image of a disk.
    Disk,
    /// The image of a VM's disk: QEMU said so last, or a move has brought the disk there.
    Vm,
    /// The source or the destination of a migration that has not ended.
    Migration,
    /// The image may have the last writes of a disk: the end of a migration is unknown, or
    /// something of it is still to be put away.
    Unclear,
    /// A migration has moved the disk away, and has left this image.
    OldCopy,
    /// Nothing is recorded of it. Sterna never touches such a file.
    Unknown,
}

/// A file in a datastore's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DatastoreImage {
    /// The file's name.
    pub image: String,
    /// Its length in bytes.
    pub size: u64,
    /// The space that it occupies.
    pub allocated: u64,
    /// What it is.
    pub is: ImageUse,
    /// The disk that it is of.
    pub disk: Option<String>,
    /// The VM that it is of.
    pub vm: Option<String>,
    /// The VM's disk.
    pub device: Option<String>,
    /// The migration that uses it, has left it, or has brought the disk there.
    pub migration: Option<u64>,
}

/// The files in a datastore's directory, without marks and sidecars.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DatastoreImages {
    /// The datastore.
    pub datastore: String,
    /// The files, by name.
    pub images: Vec<DatastoreImage>,
    /// How many files more there are: a list has 10,000 at most.
    pub left_out: u64,
}
