//! QEMU's command line for a disk that somebody else serves: over NBD, or over vhost-user.
//!
//! These are the values of `-blockdev` and `-chardev` alone. Whoever starts QEMU adds the
//! guest's device, and knows what it is called.

use crate::RECONNECT;

/// The block device of this name that an export is, of a server in QEMU's words.
pub fn blockdev(node: &str, server: &str, export: &str) -> String {
    format!(
        "driver=nbd,node-name={node},{server},export={export},\
         reconnect-delay={RECONNECT},open-timeout=60,discard=unmap,cache.direct=on"
    )
}

/// A server on this host, in QEMU's words.
pub fn unix_server(path: &str) -> String {
    format!("server.type=unix,server.path={}", escaped(path))
}

/// The way to a vhost-user socket, by this name.
pub fn chardev(id: &str, path: &str) -> String {
    format!("socket,id={id},path={},reconnect=1", escaped(path))
}

/// A path as QEMU's options have it: commas twice.
fn escaped(path: &str) -> String {
    path.replace(',', ",,")
}
