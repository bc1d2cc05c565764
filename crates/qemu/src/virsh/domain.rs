//! A VM's XML, as far as its disks go.

use std::str::FromStr;

use roxmltree::{Document, Error, Node};

use crate::Export;

/// A VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its disks.
    pub disks: Vec<DomainDisk>,
    /// The files of its disks, with those on which they are based and those of a copy.
    pub files: Vec<String>,
}

/// A disk of a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainDisk {
    /// Its name (`vda`).
    pub target: String,
    /// Where its bytes are; nothing is in it without.
    pub source: Option<String>,
    /// How they are kept.
    pub format: String,
    /// Whether the guest may only read.
    pub read_only: bool,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// Whether it is a file.
    pub is_file: bool,
    /// What it is being copied to.
    pub mirror: Option<MirrorElement>,
}

/// What a disk is being copied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorElement {
    /// Where that is, as with the disk itself.
    pub place: Option<String>,
    /// Whether both sides are the same.
    pub ready: bool,
    /// Whether libvirt has told QEMU to switch over, or to give it up.
    pub ends: bool,
}

impl FromStr for Domain {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let document = Document::parse(text)?;
        let devices =
            document.root_element().children().find(|node| node.has_tag_name("devices"));
        let disks = devices.iter().flat_map(Node::children);
        let disks: Vec<Node<'_, '_>> =
            disks.filter(|node| node.has_tag_name("disk")).collect();
        let below = disks.iter().flat_map(Node::descendants);
        let files =
            below.filter(|node| matches!(node.tag_name().name(), "source" | "mirror"));
        let files = files.flat_map(|node| {
            ["file", "dev"].into_iter().filter_map(move |name| node.attribute(name))
        });
        let mut files: Vec<String> = files.map(str::to_owned).collect();
        files.sort();
        files.dedup();
        Ok(Domain { disks: disks.into_iter().filter_map(disk).collect(), files })
    }
}

impl Domain {
    /// The disk of this name.
    pub fn disk(&self, target: &str) -> Option<&DomainDisk> {
        self.disks.iter().find(|disk| disk.target == target)
    }
}

fn child<'a, 'i>(node: Node<'a, 'i>, tag: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.has_tag_name(tag))
}

/// A file, a block device, or something on a network: an export of a server on this host
/// as QEMU names it, of anything else the name.
fn place(source: Node<'_, '_>) -> Option<String> {
    let of = |name| source.attribute(name).map(str::to_owned);
    let export = || {
        let socket = child(source, "host")?.attribute("socket")?.to_owned();
        let is_nbd = source.attribute("protocol") == Some("nbd");
        let name = source.attribute("name").unwrap_or_default().to_owned();
        is_nbd.then(|| Export { name, socket }.to_string())
    };
    of("file").or_else(|| of("dev")).or_else(export).or_else(|| of("name"))
}

fn disk(node: Node<'_, '_>) -> Option<DomainDisk> {
    let target = child(node, "target")?.attribute("dev")?.to_owned();
    let driver = child(node, "driver").and_then(|driver| driver.attribute("type"));
    let source = child(node, "source");
    let encrypted = child(node, "encryption").is_some()
        || source.is_some_and(|source| child(source, "encryption").is_some());
    Some(DomainDisk {
        target,
        source: source.and_then(place),
        format: driver.unwrap_or("raw").to_owned(),
        read_only: child(node, "readonly").is_some(),
        encrypted,
        is_file: node.attribute("type") == Some("file"),
        mirror: child(node, "mirror").map(|mirror| {
            let state = mirror.attribute("ready");
            MirrorElement {
                place: child(mirror, "source").and_then(place),
                ready: state == Some("yes"),
                ends: matches!(state, Some("pivot" | "abort")),
            }
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As libvirt 9.0 prints it, without what has to do with other devices.
    const RECORDED: &str = "<domain type='qemu' id='1'>
      <name>st-test</name>
      <devices>
        <emulator>/usr/bin/qemu-system-x86_64</emulator>
        <disk type='file' device='disk'>
          <driver name='qemu' type='raw'/>
          <source file='/vm/a.raw' index='1'/>
          <backingStore type='file'>
            <format type='qcow2'/>
            <source file='/vm/base.qcow2'/>
            <backingStore/>
          </backingStore>
          <mirror type='file' file='/vm/new/x.raw' format='raw' job='copy' ready='yes'>
            <format type='raw'/>
            <source file='/vm/new/x.raw' index='2'/>
            <backingStore/>
          </mirror>
          <target dev='vda' bus='virtio'/>
          <alias name='virtio-disk0'/>
        </disk>
        <disk type='file' device='cdrom'>
          <driver name='qemu'/>
          <target dev='sda' bus='sata'/>
          <readonly/>
        </disk>
        <controller type='sata' index='0'/>
      </devices>
    </domain>";

    #[test]
    fn disks_are_read_with_what_they_are_copied_to() {
        let domain: Domain = RECORDED.parse().unwrap();
        assert_eq!(domain.files, ["/vm/a.raw", "/vm/base.qcow2", "/vm/new/x.raw"]);
        let disk = domain.disk("vda").unwrap();
        assert_eq!(disk.source.as_deref(), Some("/vm/a.raw"));
        assert_eq!((disk.format.as_str(), disk.is_file), ("raw", true));
        let mirror = disk.mirror.as_ref().unwrap();
        assert_eq!(
            (mirror.place.as_deref(), mirror.ready),
            (Some("/vm/new/x.raw"), true)
        );
        let empty = domain.disk("sda").unwrap();
        assert!(empty.source.is_none() && empty.read_only && empty.mirror.is_none());
    }

    #[test]
    fn what_is_no_xml_is_an_error() {
        assert!("error: no such domain".parse::<Domain>().is_err());
        assert!("<domain><devices>".parse::<Domain>().is_err());
    }
}
