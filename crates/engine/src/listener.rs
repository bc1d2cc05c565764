//! Sockets that wait for NBD clients.

use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixListener;

use sterna_core::Nanos;

use crate::io::{Errno, Fd};

/// A socket that listens.
#[derive(Debug)]
pub enum Listener {
    /// A Unix-domain socket.
    Unix(UnixListener),
    /// A TCP socket.
    Tcp(TcpListener),
}

/// When the system has no descriptors or memory left for another connection,
/// the next try is after this.
const PAUSE: Nanos = Nanos::from_millis(100);

/// A listener on its reactor.
pub(crate) struct Bound {
    fd: Fd,
    tcp: bool,
}

/// What came of accepting.
pub(crate) enum Accepted {
    Socket(OwnedFd),
    /// Nobody is waiting.
    Nothing,
    /// Not now.
    TryAgain(Nanos),
}

impl Listener {
    /// The socket, and whether it is TCP.
    pub(crate) fn into_parts(self) -> std::io::Result<(OwnedFd, bool)> {
        Ok(match self {
            Listener::Unix(socket) => {
                socket.set_nonblocking(true)?;
                (socket.into(), false)
            }
            Listener::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                (socket.into(), true)
            }
        })
    }
}

impl Bound {
    pub(crate) fn new(socket: OwnedFd, tcp: bool) -> Bound {
        Bound { fd: socket.into(), tcp }
    }

    pub(crate) fn fd(&self) -> &Fd {
        &self.fd
    }

    pub(crate) fn accept(&self) -> Accepted {
        let null = std::ptr::null_mut();
        // SAFETY: null pointers mean that the peer's address is not wanted.
        let socket = unsafe {
            libc::accept4(self.fd.as_raw_fd(), null, null.cast(), libc::SOCK_CLOEXEC)
        };
        if socket < 0 {
            return match Errno::last().0 {
                libc::EAGAIN => Accepted::Nothing,
                // This one is gone; there may be others.
                libc::ECONNABORTED | libc::EINTR | libc::EPROTO => {
                    Accepted::TryAgain(Nanos(0))
                }
                _ => Accepted::TryAgain(PAUSE),
            };
        }
        // SAFETY: the descriptor is new and ours alone.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        if self.tcp {
            // Replies leave whole and at once; a client whose host is gone is
            // noticed sooner or later.
            set(&socket, libc::IPPROTO_TCP, libc::TCP_NODELAY);
            set(&socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE);
        }
        Accepted::Socket(socket)
    }
}

/// Switches a socket option on. It is an improvement, no more: errors are none.
fn set(socket: &OwnedFd, level: libc::c_int, option: libc::c_int) {
    let on: libc::c_int = 1;
    let (value, len) = ((&raw const on).cast(), size_of::<libc::c_int>() as u32);
    // SAFETY: reads one int.
    unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, len) };
}
