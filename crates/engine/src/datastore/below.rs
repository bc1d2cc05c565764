//! Where a datastore's bytes lead on this machine: to files, for loop devices, and to servers
//! that listen here.
//!
//! Such a datastore may hold the very bytes of a disk that it is asked to take: a loop device
//! over the disk's image, or an export of the daemon itself. A move there would copy the
//! disk onto itself. What another server does with its export, and another machine with its
//! devices, cannot be seen from here.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sterna_nbd::Transport;

use super::Location;
use super::backing::number;

/// Devices below a device, at most: more than anybody stacks.
const DEVICES_MAX: usize = 64;

impl Location {
    /// The files that a block device has its bytes in: those of loop devices, of its own or
    /// of the devices below it. None if it is no device.
    pub fn files_below(&self) -> Vec<PathBuf> {
        let Location::Device(path) = self else { return Vec::new() };
        let Ok(found) = path.metadata() else { return Vec::new() };
        let first = fs::canonicalize(format!("/sys/dev/block/{}", number(found.rdev())));
        let mut seen: HashSet<PathBuf> = first.into_iter().collect();
        let mut open: Vec<PathBuf> = seen.iter().cloned().collect();
        let mut files = Vec::new();
        while let Some(mut device) = open.pop() {
            if device.join("partition").exists() {
                device.pop();
            }
            if let Ok(file) = fs::read_to_string(device.join("loop/backing_file")) {
                files.push(PathBuf::from(file.trim_end_matches('\n')));
            }
            for below in fs::read_dir(device.join("slaves")).into_iter().flatten() {
                let below = below.and_then(|below| fs::canonicalize(below.path()));
                let Ok(below) = below else { continue };
                if seen.len() < DEVICES_MAX && seen.insert(below.clone()) {
                    open.push(below);
                }
            }
        }
        files
    }

    /// Whether this is an export of the server at this Unix socket.
    pub fn is_at_socket(&self, socket: &Path) -> bool {
        let Location::Nbd(uri) = self else { return false };
        let Transport::Unix { socket: named } = &uri.transport else { return false };
        let file = |path: &Path| path.metadata().map(|it| (it.dev(), it.ino())).ok();
        named == socket || file(named).is_some_and(|it| Some(it) == file(socket))
    }

    /// Whether this is an export of the server that listens at this address of this machine.
    /// May ask for a host's address, if the port is the server's.
    pub fn is_at_address(&self, address: SocketAddr) -> bool {
        let Location::Nbd(uri) = self else { return false };
        let Transport::Tcp { host, port } = &uri.transport else { return false };
        if *port != address.port() {
            return false;
        }
        let mut named = (host.as_str(), *port).to_socket_addrs().into_iter().flatten();
        named.any(|named| {
            // `::ffff:127.0.0.1` is 127.0.0.1.
            let [named, listening] = [named, address].map(|it| it.ip().to_canonical());
            let listens = named == listening
                || named.is_unspecified()
                || listening.is_unspecified();
            listens && is_of_this_machine(named)
        })
    }
}

/// Whether an address is this machine's: the system reaches it from itself. Nothing is sent.
fn is_of_this_machine(ip: IpAddr) -> bool {
    // Who connects to no address in particular reaches the machine it is on.
    if ip.is_unspecified() {
        return true;
    }
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let reached = UdpSocket::bind((any, 0)).and_then(|socket| {
        // A port is needed, and which one does not matter.
        socket.connect((ip, 9))?;
        socket.local_addr()
    });
    reached.is_ok_and(|from| from.ip() == ip)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn location(text: &str) -> Location {
        text.parse().unwrap()
    }

    #[test]
    fn a_server_s_socket_is_known_by_whatever_name() {
        let directory = tempfile::tempdir().unwrap();
        let [socket, link, other] = ["nbd.sock", "link.sock", "other.sock"]
            .map(|name| directory.path().join(name));
        let _listeners = [&socket, &other].map(|it| UnixListener::bind(it).unwrap());
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        let at = |named: &Path| {
            location(&format!("nbd+unix:///db?socket={}", named.display()))
                .is_at_socket(&socket)
        };
        assert_eq!([at(&socket), at(&link), at(&other)], [true, true, false]);
        assert!(!location("nbd://localhost/db").is_at_socket(&socket));
    }

    #[test]
    fn a_server_s_address_is_known_by_its_host_s_names() {
        let at = |text: &str, address: &str| {
            location(text).is_at_address(address.parse().unwrap())
        };
        assert!(at("nbd://127.0.0.1:10809/db", "127.0.0.1:10809"));
        assert!(at("nbd://localhost/db", "127.0.0.1:10809"));
        assert!(at("nbd://127.0.0.1/db", "0.0.0.0:10809"));
        assert!(at("nbd://0.0.0.0/db", "127.0.0.1:10809"));
        assert!(at("nbd://[::ffff:127.0.0.1]/db", "127.0.0.1:10809"));
        assert!(!at("nbd://127.0.0.1:10810/db", "127.0.0.1:10809"));
        assert!(!at("nbd://192.0.2.1/db", "0.0.0.0:10809"));
        assert!(!at("/vm/disks", "127.0.0.1:10809"));
    }

    #[test]
    fn a_directory_has_no_device_and_a_device_that_is_not_there_no_file() {
        assert_eq!(location("/tmp").files_below(), Vec::<PathBuf>::new());
        assert_eq!(location("/dev/nosuch").files_below(), Vec::<PathBuf>::new());
    }
}
