//! Where the daemon's things are, and where its clients connect.

use std::path::PathBuf;

use sterna_engine::datastore::Location;

/// Where the daemon's things are.
#[derive(Clone, Debug)]
pub struct DaemonPlaces {
    /// The state directory.
    pub state: PathBuf,
    /// The API's socket.
    pub socket: PathBuf,
    /// NBD URIs without an export.
    pub nbd: Vec<NbdPlace>,
}

/// Where NBD clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdPlace {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(std::net::SocketAddr),
}

impl NbdPlace {
    /// The URI of an export here; of the place itself if the name is empty.
    pub fn uri(&self, export: &str) -> String {
        match self {
            NbdPlace::Unix(path) => {
                format!("nbd+unix:///{export}?socket={}", escape(&path.to_string_lossy()))
            }
            NbdPlace::Tcp(address) => format!("nbd://{address}/{export}"),
        }
    }

    /// Whether a location is an export here.
    pub(crate) fn serves(&self, location: &Location) -> bool {
        match self {
            NbdPlace::Unix(path) => location.is_at_socket(path),
            NbdPlace::Tcp(address) => location.is_at_address(*address),
        }
    }
}

/// What is not plain in a path, escaped for a URI.
fn escape(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'/'
            | b'.'
            | b'_'
            | b'-'
            | b'~' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_what_nbd_clients_take() {
        let unix = NbdPlace::Unix("/run/a b/nbd.sock".into());
        assert_eq!(unix.uri("db"), "nbd+unix:///db?socket=/run/a%20b/nbd.sock");
        let tcp = NbdPlace::Tcp("[::1]:10809".parse().unwrap());
        assert_eq!(tcp.uri("db"), "nbd://[::1]:10809/db");
    }
}
