//! Whether a datastore is an export of a server that listens on this machine.
//!
//! An export of the daemon itself holds the very bytes of a disk: a move there would copy
//! the disk onto itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sterna_nbd::Transport;

use super::Location;

impl Location {
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
}
