//! How QEMU writes an NBD server on its command lines, beside URIs:
//! `nbd:unix:/run/nbd.sock:exportname=disk`, `nbd:host:10809:exportname=disk`. Without
//! `nbd:` only the one with a socket is taken: `host:10809` may be anything.
//!
//! Nothing in it is encoded. The export's name is all behind the first `:exportname=`, so a
//! socket whose path has these characters needs a URI.

use std::path::PathBuf;

use super::{Transport, Uri, UriError, parse_authority};
use crate::codec::string;

const EXPORT: &str = ":exportname=";

/// Reads it, if it is in QEMU's manner.
pub(super) fn parse(text: &str) -> Option<Result<Uri, UriError>> {
    let (rest, host_allowed) = match text.strip_prefix("nbd:") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (server, export) = rest.split_once(EXPORT).unwrap_or((rest, ""));
    let transport = match server.strip_prefix("unix:") {
        Some("") => Err(UriError::NoSocket),
        Some(socket) if socket.contains('\0') => Err(UriError::NoSocket),
        Some(socket) => Ok(Transport::Unix { socket: PathBuf::from(socket) }),
        None if host_allowed => address(server),
        None => return None,
    };
    Some(transport.and_then(|transport| {
        let export = string(export.as_bytes()).ok_or(UriError::ExportName)?.to_owned();
        Ok(Uri { transport, export })
    }))
}

/// A host and, as QEMU wants it, a port.
fn address(server: &str) -> Result<Transport, UriError> {
    match server.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !port.is_empty() => {
            parse_authority(server)
        }
        _ => Err(UriError::Host),
    }
}
