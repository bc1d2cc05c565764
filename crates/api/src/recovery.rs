//! Recovery: disks whose images are there, and which the state does not know.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The role of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageRole {
    /// The truth; of several, the one with the highest generation.
    Active,
    /// The destination of a migration that has not ended: only a part.
    Partial,
    /// Was the truth once.
    Retired,
}

/// The contents of an image's sidecar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sidecar {
    /// The disk's name.
    pub disk: String,
    /// The disk's id.
    pub id: String,
    /// The disk's size.
    pub size: u64,
    /// Goes up each time another image becomes the truth.
    pub generation: u64,
    /// The image's role.
    pub role: ImageRole,
}

/// An image with a sidecar that was not the image of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FoundImage {
    /// The datastore that it is on.
    pub datastore: String,
    /// Where it is.
    pub image: String,
    /// The contents of its sidecar; absent if Sterna cannot read it.
    pub sidecar: Option<Sidecar>,
    /// Whether it is the image of a disk now; in a dry run, whether it would be.
    pub taken: bool,
    /// Why it was left as it is; absent if it was taken.
    pub reason: Option<String>,
}

/// The result of a recovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Recovery {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// The images, by datastore and file.
    pub images: Vec<FoundImage>,
}

/// Makes images that are the truth of disks into disks again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecoverDisks {
    /// Only the images on this datastore. (Those on all others are looked at all the
    /// same, as one of them may be newer.)
    #[serde(default)]
    pub datastore: Option<String>,
    /// Only show what would be done.
    #[serde(default)]
    pub dry_run: bool,
}
