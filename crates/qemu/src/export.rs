//! An export of an NBD server on this host, as QEMU's client finds it.

use std::fmt;

/// How long a guest's requests wait for a server that is away, in seconds; QEMU sends
/// them again when it is back. QEMU's default is 0: errors at once. What a server's
/// restart takes is seconds, and somebody may have to see to it first.
pub const RECONNECT: u32 = 300;

/// An export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// The path of the server's socket.
    pub socket: String,
}

impl Export {
    /// The export that an image is, in QEMU's words, if it is one.
    pub fn parse(image: &str) -> Option<Export> {
        let (name, socket) =
            image.strip_prefix("nbd+unix:///")?.split_once("?socket=")?;
        Some(Export { name: name.into(), socket: socket.into() })
    }
}

/// As QEMU names it: nothing is escaped.
impl fmt::Display for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nbd+unix:///{}?socket={}", self.name, self.socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_qemu_says_is_read_back() {
        let export = Export { name: "web-vda".into(), socket: "/run/a b/n.sock".into() };
        let said = "nbd+unix:///web-vda?socket=/run/a b/n.sock";
        assert_eq!(export.to_string(), said);
        assert_eq!(Export::parse(said), Some(export));
        for other in ["/mnt/a.raw", "nbd://host:10809/a", "nbd+unix:///a", "json:{}"] {
            assert_eq!(Export::parse(other), None, "{other}");
        }
    }
}
