//! A disk that QEMU serves.

use std::fmt;

use serde_json::Value;

use crate::qmp::Cache;

/// A disk of a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drive {
    /// What the VM's owner calls it (`vda`).
    pub device: String,
    /// Where its bytes are: a file's path, or what QEMU has instead.
    pub image: String,
    /// How they are kept: `raw`, `qcow2`, …
    pub format: String,
    /// The size that the guest sees.
    pub size: u64,
    /// What the image takes, if that is known.
    pub allocated: Option<u64>,
    /// Whether the guest may only read.
    pub read_only: bool,
    /// Why it cannot be moved, if it cannot.
    pub unmovable: Option<Unmovable>,
    /// What QEMU needs to be told of it; not known through libvirt.
    pub(crate) node: Option<Node>,
}

/// A disk in QEMU's own terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The root node.
    pub(crate) name: String,
    /// The path of the guest's device.
    pub(crate) qdev: Option<String>,
    /// How it is cached.
    pub(crate) cache: Cache,
    /// What becomes of zeroes that the guest writes.
    pub(crate) detect_zeroes: String,
    /// The clusters of a qcow2 image.
    pub(crate) cluster_size: Option<u64>,
}

/// Why a disk cannot be moved without losing something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmovable {
    /// Nobody writes to it, so a plain copy does.
    ReadOnly,
    /// It is neither raw nor qcow2.
    Format,
    /// A copy would not be encrypted.
    Encrypted,
    /// Snapshots inside the image would be left behind.
    Snapshots,
    /// Bitmaps that backups go by would be left behind.
    Bitmaps,
    /// It goes by the name of its node alone, and a move gives it another node.
    Unnamed,
    /// What the guest writes is in a file that QEMU throws away (`snapshot=on`).
    Temporary,
}

impl fmt::Display for Unmovable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unmovable::ReadOnly => {
                "the disk is read-only for the guest: copy the file instead"
            }
            Unmovable::Format => "QEMU moves only raw and qcow2 images",
            Unmovable::Encrypted => "the image is encrypted, and the copy would not be",
            Unmovable::Snapshots => {
                "the image has internal snapshots, which the copy would not have: delete \
                 them first (`qemu-img snapshot`, `virsh snapshot-delete`)"
            }
            Unmovable::Bitmaps => {
                "the image has bitmaps for backups, which the copy would not have: \
                 remove them first (the next backup is a full one)"
            }
            Unmovable::Temporary => {
                "QEMU keeps the guest's writes in a temporary file, which disappears \
                 with QEMU: start the VM without snapshot=on"
            }
            Unmovable::Unnamed => {
                "the disk's device has no id, so Sterna could not identify the disk \
                 after the move: start the VM with an id= for the device (`-device \
                 virtio-blk-pci,id=vda,...`)"
            }
        })
    }
}

/// The file that has the bytes of an image which QEMU describes in JSON, as it does where
/// one is based on another in a way that the images do not say: that of the topmost.
pub fn file_of(image: &str) -> Option<String> {
    let node: Value = serde_json::from_str(image.strip_prefix("json:")?).ok()?;
    let mut node = &node;
    while let Some(below) = node.get("file").filter(|below| below.is_object()) {
        node = below;
    }
    node.get("filename")?.as_str().map(ToOwned::to_owned)
}

/// All files that an image in QEMU's words has to do with: those below it, and those on
/// which it is based.
pub(crate) fn files_in(image: &str) -> Vec<String> {
    fn collect(node: &Value, files: &mut Vec<String>) {
        match node {
            Value::Object(fields) => {
                let file = fields.get("filename").and_then(Value::as_str);
                files.extend(file.map(str::to_owned));
                fields.values().for_each(|below| collect(below, files));
            }
            Value::Array(all) => all.iter().for_each(|below| collect(below, files)),
            _ => {}
        }
    }
    let described = image.strip_prefix("json:");
    let Some(node) = described.and_then(|json| serde_json::from_str(json).ok()) else {
        return vec![image.to_owned()];
    };
    let mut files = Vec::new();
    collect(&node, &mut files);
    files
}

/// Whether a disk of this format can be moved at all.
pub(crate) fn is_known(format: &str) -> bool {
    matches!(format, "raw" | "qcow2")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_is_described_has_a_file() {
        let described = r#"json:{"backing": {"driver": "qcow2", "file": {"driver": "file",
            "filename": "/vm/base.qcow2"}}, "driver": "qcow2",
            "file": {"driver": "file", "filename": "/vm/top.qcow2"}}"#;
        assert_eq!(file_of(described).as_deref(), Some("/vm/top.qcow2"));
        let mut files = files_in(described);
        files.sort();
        assert_eq!(files, ["/vm/base.qcow2", "/vm/top.qcow2"]);
        assert_eq!(files_in("/vm/a.raw"), ["/vm/a.raw"]);
        let named = ["/vm/a.raw", "json:{", r#"json:{"driver": "null-co"}"#, ""];
        assert!(named.into_iter().all(|image| file_of(image).is_none()));
    }
}
