//! Disks as QEMU has them: devices, and the nodes that hold their bytes.
//!
//! A device (what the guest sees) has a root node; a node is a driver over another node,
//! down to a file. A VM's owner names nodes (`node-name`); those that nobody names have
//! names of QEMU's that begin with `#`.

use serde::{Deserialize, Serialize};

use super::command::{Nothing, command};

/// All devices.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueryBlock {}
command!(QueryBlock, "query-block", Vec<Block>);

/// A device.
#[derive(Clone, Debug, Deserialize)]
pub struct Block {
    /// Its old name (`-drive id=`); empty without one.
    #[serde(default)]
    pub device: String,
    /// The path of the guest's device in QEMU.
    pub qdev: Option<String>,
    /// What is in it, if anything is.
    pub inserted: Option<Inserted>,
}

/// What a device holds: its root node.
#[derive(Clone, Debug, Deserialize)]
pub struct Inserted {
    /// The root node.
    #[serde(rename = "node-name")]
    pub node: Option<String>,
    /// Its driver.
    #[serde(rename = "drv")]
    pub driver: String,
    /// The file that it comes down to.
    pub file: String,
    /// Whether the guest may only read.
    #[serde(rename = "ro")]
    pub read_only: bool,
    /// Whether it is encrypted.
    #[serde(default)]
    pub encrypted: bool,
    /// How many images it is based on.
    #[serde(default, rename = "backing_file_depth")]
    pub backing_depth: u64,
    /// What becomes of zeroes that the guest writes.
    #[serde(default, rename = "detect_zeroes")]
    pub detect_zeroes: String,
    /// How it is cached.
    pub cache: Cache,
    /// The image.
    pub image: Image,
    /// Bitmaps of what was written since some moment, in older versions of QEMU.
    #[serde(default, rename = "dirty-bitmaps")]
    pub bitmaps: Vec<Bitmap>,
}

/// How a node is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cache {
    /// Past the host's page cache.
    pub direct: bool,
    /// Flushes are not carried out.
    pub no_flush: bool,
}

/// An image.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Image {
    /// `raw`, `qcow2`, …
    pub format: String,
    /// The size that the guest sees.
    pub virtual_size: u64,
    /// What it takes where it lies, if that is known.
    pub actual_size: Option<u64>,
    /// The clusters of a qcow2 image.
    pub cluster_size: Option<u64>,
    /// Snapshots inside the image.
    #[serde(default)]
    pub snapshots: Vec<serde::de::IgnoredAny>,
}

/// A bitmap of what was written since some moment.
#[derive(Clone, Debug, Deserialize)]
pub struct Bitmap {
    /// Its name, if somebody gave it one.
    #[serde(default)]
    pub name: String,
    /// Whether it is kept in the image.
    #[serde(default)]
    pub persistent: bool,
}

/// All nodes that have a name.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueryNodes {
    /// Without what is below each of them.
    pub flat: bool,
}
command!(QueryNodes, "query-named-block-nodes", Vec<Inserted>);

/// Makes a node.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum AddNode {
    /// A file.
    File(FileOptions),
    /// A format over a node.
    Format(FormatOptions),
    /// An export of an NBD server.
    Export(ExportOptions),
}
command!(AddNode, "blockdev-add", Nothing);

/// What all nodes that we make have.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct NodeOptions {
    /// Its name.
    pub node_name: String,
    /// How it is cached.
    pub cache: Cache,
    /// `unmap`: what the guest discards is given back, and zeroes take no room.
    pub discard: &'static str,
}

/// A node that is a file.
#[derive(Clone, Debug, Serialize)]
pub struct FileOptions {
    /// `file`.
    pub driver: &'static str,
    /// Where the file is.
    pub filename: String,
    /// What all nodes have.
    #[serde(flatten)]
    pub node: NodeOptions,
}

/// A node that is a format over a file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FormatOptions {
    /// `raw` or `qcow2`.
    pub driver: String,
    /// The node below.
    pub file: String,
    /// What becomes of zeroes that the guest writes.
    pub detect_zeroes: String,
    /// What all nodes have.
    #[serde(flatten)]
    pub node: NodeOptions,
}

/// A node that is an export of an NBD server.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExportOptions {
    /// `nbd`.
    pub driver: &'static str,
    /// Where the server is.
    pub server: UnixServer,
    /// The export's name.
    pub export: String,
    /// How long requests wait for a server that is away, in seconds.
    pub reconnect_delay: u32,
    /// What becomes of zeroes that the guest writes.
    pub detect_zeroes: String,
    /// What all nodes have.
    #[serde(flatten)]
    pub node: NodeOptions,
}

/// A server on this host.
#[derive(Clone, Debug, Serialize)]
pub struct UnixServer {
    /// `unix`.
    pub r#type: &'static str,
    /// The path of its socket.
    pub path: String,
}

/// Drops a node that nothing uses.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeleteNode {
    /// Its name.
    pub node_name: String,
}
command!(DeleteNode, "blockdev-del", Nothing);

/// An image to be made in a node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct NewImage {
    /// `qcow2`.
    pub driver: String,
    /// The node that holds it.
    pub file: String,
    /// The size that the guest sees.
    pub size: u64,
    /// Its clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_size: Option<u64>,
}
