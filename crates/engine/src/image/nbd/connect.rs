//! Connecting to an NBD server, blocking: for helpers and datastores, never
//! for a reactor's thread.
//!
//! Every step has a time limit, so a server that accepts and then says nothing
//! costs a helper no longer than [`HANDSHAKE`]. A TCP connection ends by itself
//! when the other host is gone without a word ([`SILENCE`]).

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use sterna_nbd::client::{ClientConfig, ClientError, ClientHandshake, ClientStep};
use sterna_nbd::{Negotiated, Transport, Uri};

/// How long one address of a TCP server may take to answer.
const CONNECT: Duration = Duration::from_secs(3);
/// How long the whole handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// How long a TCP server's host may not acknowledge what was sent, or, while
/// nothing is sent, not answer the kernel's probes.
const SILENCE: Duration = Duration::from_secs(15);
/// Probes in that time.
const PROBES: libc::c_int = 3;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{0}; is the server running?")]
    Connect(io::Error),
    #[error("the connection broke in the handshake: {0}")]
    Broken(io::Error),
    #[error(
        "the server did not finish the handshake within {} s; does it allow enough \
         clients (qemu-nbd: --shared=8)?",
        HANDSHAKE.as_secs()
    )]
    Silent,
    #[error("{0}")]
    Handshake(ClientError),
    #[error("the server sent data that was not asked for")]
    OutOfTurn,
    #[error("the connection broke before Sterna had seen what it leads to: {0}")]
    Lost(io::Error),
    #[error(
        "the server did not answer within {} s what Sterna reads to know the export",
        super::examine::EXAMINATION.as_secs()
    )]
    Unexamined,
    #[error("{0}")]
    Unclear(String),
}

/// A connection that is past its handshake.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) stream: Stream,
    pub(crate) negotiated: Negotiated,
}

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Connects and shakes hands.
pub(crate) fn connect(uri: &Uri) -> Result<Connected, ConnectError> {
    let mut stream = Stream::connect(&uri.transport).map_err(ConnectError::Connect)?;
    let deadline = Instant::now() + HANDSHAKE;
    let mut handshake = ClientHandshake::new(ClientConfig::new(uri.export.as_str()));
    let mut bytes = [0; 4096];
    loop {
        match handshake.step() {
            ClientStep::Send(out) => {
                stream.limit(deadline)?;
                stream.write_all(&out).map_err(broken)?;
            }
            ClientStep::Receive => {
                stream.limit(deadline)?;
                let room = handshake.room().min(bytes.len());
                let count = stream.read(&mut bytes[..room]).map_err(broken)?;
                if count == 0 {
                    return Err(ConnectError::Handshake(handshake.end_of_input()));
                }
                // No more than there was room for, so all is taken.
                let _ = handshake.push(&bytes[..count]);
            }
            // A server has nothing to say before the first request.
            ClientStep::Ready(ready) if !ready.leftover.is_empty() => {
                return Err(ConnectError::OutOfTurn);
            }
            ClientStep::Ready(ready) => {
                stream.set_timeouts(None).map_err(broken)?;
                return Ok(Connected { stream, negotiated: ready.negotiated });
            }
            ClientStep::Failed(error) => {
                // What it still has to say is a courtesy.
                return Err(ConnectError::Handshake(error));
            }
        }
    }
}

fn broken(error: io::Error) -> ConnectError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ConnectError::Silent,
        _ => ConnectError::Broken(error),
    }
}

impl Stream {
    fn connect(transport: &Transport) -> io::Result<Stream> {
        match transport {
            Transport::Unix { socket } => connect_unix(socket).map(Stream::Unix),
            Transport::Tcp { host, port } => {
                let mut last = io::Error::other("the host has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CONNECT) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            notice_death(&stream)?;
                            return Ok(Stream::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// Lets no call take longer than until `deadline`.
    fn limit(&self, deadline: Instant) -> Result<(), ConnectError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ConnectError::Silent);
        }
        self.set_timeouts(Some(left)).map_err(broken)
    }

    /// Sets how long a read or a write may take.
    pub(crate) fn set_timeouts(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(limit)?;
                stream.set_write_timeout(limit)
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(limit)?;
                stream.set_write_timeout(limit)
            }
        }
    }
}

/// Has the kernel end the connection when the other host has died. A server
/// that lives and only takes its time is not touched by this.
fn notice_death(stream: &TcpStream) -> io::Result<()> {
    // Both are small constants.
    let (millis, seconds) = (SILENCE.as_millis() as libc::c_int, SILENCE.as_secs());
    let pause = seconds as libc::c_int / (PROBES + 2);
    for (level, option, value) in [
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, millis),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 2 * pause),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, pause),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, PROBES),
    ] {
        let len = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the kernel reads one int, which lives until the call returns.
        let result = unsafe {
            let value = (&raw const value).cast();
            libc::setsockopt(stream.as_raw_fd(), level, option, value, len)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn connect_unix(socket: &Path) -> io::Result<UnixStream> {
    match socket.as_os_str().as_bytes() {
        // The abstract namespace.
        [0, name @ ..] => {
            let address = SocketAddr::from_abstract_name(name)?;
            UnixStream::connect_addr(&address)
        }
        _ => UnixStream::connect(socket),
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buf),
            Stream::Unix(stream) => stream.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(buf),
            Stream::Unix(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> OwnedFd {
        match stream {
            Stream::Tcp(stream) => stream.into(),
            Stream::Unix(stream) => stream.into(),
        }
    }
}
