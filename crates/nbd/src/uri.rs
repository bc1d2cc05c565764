//! NBD URIs: `nbd://host[:port]/export` and `nbd+unix:///export?socket=/path`. QEMU's older
//! spellings are read, too (`qemu`), and written as URIs.
//!
//! The rule is the NBD URI specification on top of RFC 3986: the export's name is the
//! path without its first slash, percent-decoded; the port defaults to 10809; a query
//! parameter that is not understood is an error, because it could be a wish (TLS, for
//! one) that would silently not be met. Formatting is the inverse of parsing.
//!
//! # Failure cases
//!
//! `nbds` and everything about TLS is refused by name. So are user names, which exist
//! only for TLS, a host beside a Unix socket, and characters that a URI cannot have.

mod qemu;

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;

use crate::codec::string;
use crate::limits::URI_MAX;
use crate::wire::DEFAULT_PORT;

/// Where an export is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Uri {
    /// How to reach the server.
    pub transport: Transport,
    /// The export's name; empty means the default export.
    pub export: String,
}

/// How to reach a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP.
    Tcp {
        /// A host name or an IP address, IPv6 without its brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix domain socket. A path that begins with NUL is in the abstract namespace.
    Unix {
        /// The socket.
        socket: PathBuf,
    },
}

impl Uri {
    /// Whether a text is meant to be the address of a server, well or badly written, and
    /// not a path.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        let qemu = text.starts_with("unix:") || text.starts_with("nbd:");
        qemu || (text.contains("://") && !text.starts_with('/'))
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        if text.len() > URI_MAX {
            return Err(UriError::TooLong);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return qemu::parse(text).unwrap_or(Err(UriError::NotAUri));
        };
        let unix = match scheme.to_ascii_lowercase().as_str() {
            "nbd" | "nbd+tcp" => false,
            "nbd+unix" => true,
            "nbds" | "nbds+tcp" | "nbds+unix" => return Err(UriError::Tls),
            _ if scheme.starts_with("nbd:") || scheme.starts_with("unix:") => {
                return qemu::parse(text).unwrap_or(Err(UriError::NotAUri));
            }
            _ => return Err(UriError::Scheme(scheme.to_owned())),
        };
        check_characters(rest)?;
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, path),
            None => (rest, ""),
        };
        let export = decode(path)?;
        let export = string(&export).ok_or(UriError::ExportName)?.to_owned();
        let socket = socket_parameter(query.unwrap_or_default())?;
        let transport = match (unix, socket) {
            (true, Some(_)) if !authority.is_empty() => {
                return Err(UriError::HostWithSocket);
            }
            (true, Some(socket)) => Transport::Unix { socket },
            (true, None) => return Err(UriError::NoSocket),
            (false, Some(_)) => return Err(UriError::SocketWithTcp),
            (false, None) => parse_authority(authority)?,
        };
        Ok(Self { transport, export })
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.transport {
            Transport::Tcp { host, port } => {
                f.write_str("nbd://")?;
                if host.contains(':') {
                    write!(f, "[{host}]")?;
                } else {
                    encode(f, host.as_bytes(), is_unreserved)?;
                }
                if *port != DEFAULT_PORT {
                    write!(f, ":{port}")?;
                }
                f.write_str("/")?;
                encode(f, self.export.as_bytes(), is_path)
            }
            Transport::Unix { socket } => {
                f.write_str("nbd+unix:///")?;
                encode(f, self.export.as_bytes(), is_path)?;
                f.write_str("?socket=")?;
                encode(f, socket.as_os_str().as_bytes(), is_path)
            }
        }
    }
}

/// All that a URI may consist of; the rest must be percent-encoded.
fn check_characters(text: &str) -> Result<(), UriError> {
    let allowed =
        |c: char| c.is_ascii_alphanumeric() || "-._~:/?[]@!$&'()*+,;=%".contains(c);
    match text.chars().find(|&c| !allowed(c)) {
        None => Ok(()),
        Some('#') => Err(UriError::Fragment),
        Some(c) => Err(UriError::Character(c)),
    }
}

fn parse_authority(authority: &str) -> Result<Transport, UriError> {
    if authority.contains('@') {
        return Err(UriError::UserInfo);
    }
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (address, port) = rest.split_once(']').ok_or(UriError::Host)?;
        let address: std::net::Ipv6Addr = address.parse().map_err(|_| UriError::Host)?;
        let port = match port {
            "" => "",
            _ => port.strip_prefix(':').ok_or(UriError::Host)?,
        };
        (address.to_string(), port)
    } else {
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        let host = String::from_utf8(decode(host)?).map_err(|_| UriError::Host)?;
        if host.contains(|c: char| c == ':' || c.is_control()) {
            return Err(UriError::Host);
        }
        (host, port)
    };
    // As other NBD clients do: without a host, this machine.
    let host = if host.is_empty() { "localhost".to_owned() } else { host };
    let port = match port {
        "" => DEFAULT_PORT,
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok().filter(|&port| port != 0).ok_or(UriError::Port)?
        }
        _ => return Err(UriError::Port),
    };
    Ok(Transport::Tcp { host, port })
}

fn socket_parameter(query: &str) -> Result<Option<PathBuf>, UriError> {
    let mut socket = None;
    for parameter in query.split(['&', ';']).filter(|p| !p.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match key {
            "socket" if socket.is_some() => return Err(UriError::TwoSockets),
            "socket" => {
                let path = decode(value)?;
                // A leading NUL is the abstract namespace; a later one is no path.
                let nul = path.iter().skip(1).any(|&b| b == 0) && path[0] != 0;
                if path.is_empty() || nul {
                    return Err(UriError::NoSocket);
                }
                socket = Some(PathBuf::from(OsString::from_vec(path)));
            }
            _ if key.starts_with("tls-") => return Err(UriError::Tls),
            _ => return Err(UriError::Parameter(key.to_owned())),
        }
    }
    Ok(socket)
}

fn decode(text: &str) -> Result<Vec<u8>, UriError> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    let hex = |digit: Option<u8>| char::from(digit?).to_digit(16);
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let (Some(high), Some(low)) = (hex(bytes.next()), hex(bytes.next())) else {
                return Err(UriError::Percent);
            };
            out.push((high << 4 | low) as u8);
        } else {
            out.push(byte);
        }
    }
    Ok(out)
}

fn encode(
    f: &mut fmt::Formatter<'_>,
    bytes: &[u8],
    plain: fn(u8) -> bool,
) -> fmt::Result {
    for &byte in bytes {
        if plain(byte) {
            write!(f, "{}", char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn is_path(byte: u8) -> bool {
    is_unreserved(byte) || byte == b'/' || byte == b':'
}

/// Why a text is not a usable NBD URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UriError {
    /// It has no `://`.
    NotAUri,
    /// It is longer than [`URI_MAX`].
    TooLong,
    /// The scheme is not NBD's.
    Scheme(String),
    /// It asks for TLS.
    Tls,
    /// It names a user.
    UserInfo,
    /// The host is malformed.
    Host,
    /// The port is no number from 1 to 65535.
    Port,
    /// A percent sign is not followed by two hexadecimal digits.
    Percent,
    /// This character must be percent-encoded.
    Character(char),
    /// It has a fragment.
    Fragment,
    /// The export's name is not UTF-8, has a NUL in it, or is too long.
    ExportName,
    /// The `socket` parameter is missing or malformed.
    NoSocket,
    /// There is more than one `socket` parameter.
    TwoSockets,
    /// A host beside a Unix socket.
    HostWithSocket,
    /// A `socket` parameter with TCP.
    SocketWithTcp,
    /// An unknown parameter.
    Parameter(String),
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAUri => f.write_str("an NBD URI begins with nbd:// or nbd+unix://"),
            Self::TooLong => write!(f, "the URI is longer than {URI_MAX} bytes"),
            Self::Scheme(scheme) => {
                write!(f, "{scheme:?} is not a scheme of NBD; use nbd or nbd+unix")
            }
            Self::Tls => f.write_str(
                "NBD over TLS is not supported; use nbd or nbd+unix over a trusted path",
            ),
            Self::UserInfo => f.write_str(
                "a user name in an NBD URI is for TLS, which is not supported",
            ),
            Self::Host => f.write_str("the host is malformed"),
            Self::Port => f.write_str("the port is not a number from 1 to 65535"),
            Self::Percent => {
                f.write_str("a percent sign must be followed by two hexadecimal digits")
            }
            Self::Character(c) => {
                write!(f, "the character {c:?} must be percent-encoded")
            }
            Self::Fragment => f.write_str("an NBD URI has no fragment (#)"),
            Self::ExportName => f.write_str(
                "the export's name must be UTF-8 without NUL, at most 4096 bytes",
            ),
            Self::NoSocket => f.write_str("nbd+unix needs a ?socket=/path"),
            Self::TwoSockets => f.write_str("there is more than one socket parameter"),
            Self::HostWithSocket => {
                f.write_str("nbd+unix has no host; write nbd+unix:///export?socket=/path")
            }
            Self::SocketWithTcp => f.write_str("a socket parameter needs nbd+unix"),
            Self::Parameter(key) => write!(f, "{key:?} is not a parameter of NBD URIs"),
        }
    }
}

impl std::error::Error for UriError {}

#[cfg(test)]
mod tests;
