//! An export of an NBD server, in libvirt's XML.

use crate::{Export, RECONNECT};

/// A disk that is an export.
pub(crate) fn nbd_disk(export: &Export, target: &str) -> String {
    let [name, socket, target] = [&export.name, &export.socket, target].map(escaped);
    format!(
        "<disk type='network' device='disk'>\
         <driver name='qemu' type='raw' discard='unmap'/>\
         <source protocol='nbd' name='{name}'>\
         <host transport='unix' socket='{socket}'/><reconnect delay='{RECONNECT}'/>\
         </source><target dev='{target}' bus='virtio'/></disk>"
    )
}

/// The least VM that has such a disk.
pub(crate) fn probe() -> String {
    let export = Export { name: "disk".into(), socket: "/run/nbd.sock".into() };
    let disk = nbd_disk(&export, "vda");
    format!(
        "<domain type='qemu'><name>probe</name><memory unit='MiB'>64</memory>\
         <os><type>hvm</type></os><devices>{disk}</devices></domain>"
    )
}

/// Text as the value of an attribute.
fn escaped(text: &str) -> String {
    let code = |c: char| match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '\'' => "&apos;".into(),
        c => c.to_string(),
    };
    text.chars().map(code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virsh::Domain;

    #[test]
    fn what_libvirt_is_told_is_what_is_read() {
        let export = Export { name: "web-vda".into(), socket: "/run/a&'b/n".into() };
        let disk = nbd_disk(&export, "vda");
        let xml = format!("<domain><devices>{disk}</devices></domain>");
        let domain: Domain = xml.parse().unwrap();
        let disk = domain.disk("vda").unwrap();
        assert_eq!(disk.source, Some(export.to_string()));
        assert!(!disk.is_file && disk.format == "raw");
    }
}
