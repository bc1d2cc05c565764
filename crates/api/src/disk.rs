//! Disks: virtual disks as guests see them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{BindingLimit, Figures, HeldFor};

/// How much room an image takes before anything is written to it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Provision {
    /// Only what is written takes room.
    #[default]
    Thin,
    /// All of it is allocated.
    Thick,
    /// All of it is allocated and written with zeroes.
    ThickZeroed,
}

/// The activity of a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiskActivity {
    /// Clients connected to it.
    pub connections: u64,
    /// Requests being carried out.
    pub in_flight: u64,
    /// Reads since the disk was attached.
    pub reads: u64,
    /// Writes since the disk was attached (discards and write-zeroes count).
    pub writes: u64,
    /// Bytes read since the disk was attached.
    pub read_bytes: u64,
    /// Bytes written since the disk was attached.
    pub written_bytes: u64,
    /// The last seconds; absent right after the disk was attached.
    pub recent: Option<Figures>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Disk {
    /// Its name, which is its export's name too.
    pub name: String,
    /// Its id, for ever the same.
    pub id: String,
    /// Its size.
    pub size: u64,
    /// The datastore that holds its image.
    pub datastore: String,
    /// Where the image is.
    pub image: String,
    /// How the image was provisioned.
    pub provision: Provision,
    /// Whether the image is the operator's own file, which was imported.
    #[serde(default)]
    pub imported: bool,
    /// The space that the image occupies, if the datastore reports it.
    pub allocated: Option<u64>,
    /// Goes up each time another image becomes the truth.
    pub generation: u64,
    /// Whether clients can use it now.
    pub served: bool,
    /// Why it is not served, or the problem with its image while it is served; absent
    /// without a problem.
    pub problem: Option<String>,
    /// What to do about that, if it is not served.
    #[serde(default)]
    pub hint: Option<String>,
    /// The migration under way, if there is one.
    pub migration: Option<u64>,
    /// The class that it is in, if it is in one.
    #[serde(default)]
    pub class: Option<String>,
    /// Additional limits, shared with its class or with all disks without a class, while
    /// cruise control requires them.
    #[serde(default)]
    pub held: Option<HeldFor>,
    /// Of all limits on its class, the one that binds first: what its requests wait for if the
    /// class reaches it.
    #[serde(default)]
    pub binds: Option<BindingLimit>,
    /// Its NBD addresses; empty while it is not served.
    pub uris: Vec<String>,
    /// Its vhost-user-blk socket, if it is attached to one.
    #[serde(default)]
    pub vhost_user: Option<String>,
    /// Its activity; absent when it is not served.
    pub activity: Option<DiskActivity>,
}

/// What happens to the image of a removed disk.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ImageFate {
    /// Keep it if it was imported, else remove it.
    #[default]
    Auto,
    /// Keep it, as a retired one.
    Keep,
    /// Remove it.
    Delete,
}

impl ImageFate {
    /// As it is written in a query.
    pub fn as_str(self) -> &'static str {
        match self {
            ImageFate::Auto => "auto",
            ImageFate::Keep => "keep",
            ImageFate::Delete => "delete",
        }
    }
}

/// A disk that was removed, as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RemovedDisk {
    /// The removed disk.
    #[serde(flatten)]
    pub disk: Disk,
    /// Whether its image is still there.
    pub image_kept: bool,
    /// Whether the image was gone before the disk was removed.
    #[serde(default)]
    pub image_missing: bool,
}

/// Where a VM's hypervisor finds a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachDisk {
    /// The vhost-user-blk socket to be made: an absolute path.
    pub vhost_user: String,
}

/// Asks for a new, empty disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDisk {
    /// Its name.
    pub name: String,
    /// Its size, a multiple of 512.
    pub size: u64,
    /// The datastore to put it on; if left out, Storage DRS chooses one.
    #[serde(default)]
    pub datastore: Option<String>,
    /// How much room to take at once.
    #[serde(default)]
    pub provision: Provision,
}

/// A datastore that was not chosen for a new disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PassedOver {
    /// Its name.
    pub datastore: String,
    /// Why not.
    pub reason: String,
}

/// The datastore that was chosen for a new disk, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChosenDatastore {
    /// Why it was.
    pub reason: String,
    /// The others, and why not.
    pub others: Vec<PassedOver>,
}

/// A disk that was created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreatedDisk {
    /// The disk.
    #[serde(flatten)]
    pub disk: Disk,
    /// Why Storage DRS chose this datastore; absent if the request named it.
    #[serde(default)]
    pub chosen: Option<ChosenDatastore>,
}

/// Imports an existing raw image as a disk, in place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportDisk {
    /// The disk's name.
    pub name: String,
    /// The datastore that the image is on.
    pub datastore: String,
    /// The raw file, by its path or its name in the datastore's directory; for
    /// a device or an NBD export, the location of the datastore.
    pub file: String,
}
