//! A thread that listens on a socket and speaks with one hypervisor at a time.
//!
//! What it says is the matter of `control`. A message that makes no sense ends the
//! connection, as the protocol has it; the hypervisor may connect again.
//!
//! A hypervisor that connects while another one is served waits: two machines on one
//! disk would ruin it.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use vhost::vhost_user::{BackendReqHandler, Error, Result};

use super::control::{Control, Served};
use super::devices::Devices;

/// When the system has no descriptors or memory left, the next try is after this.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket on which a disk is served, until it is dropped.
pub(crate) struct Server {
    listener: UnixListener,
    /// The connection that is being served.
    served: Arc<Mutex<Option<UnixStream>>>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a disk on a socket.
    pub(crate) fn start<D: Devices>(
        listener: UnixListener,
        disk: Served<D>,
    ) -> io::Result<Server> {
        listener.set_nonblocking(false)?;
        let served = Arc::new(Mutex::new(None));
        let (socket, current) = (listener.try_clone()?, Arc::clone(&served));
        let (ending, disk) = (Arc::clone(&disk.ending), Arc::new(disk));
        let thread = std::thread::Builder::new()
            .name("sterna-vhost".into())
            .spawn(move || listen(&socket, &current, &disk))?;
        Ok(Server { listener, served, ending, thread: Some(thread) })
    }
}

impl Server {
    /// Makes it end, without waiting for that.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
        shut(&self.listener);
        if let Ok(served) = self.served.lock()
            && let Some(stream) = &*served
        {
            shut(stream);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a server for virtual machines has panicked");
        }
    }
}

/// Makes whoever waits for something on a socket go on.
fn shut(socket: &impl AsRawFd) {
    // SAFETY: no pointers are involved; a socket that is gone is as good.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Whether nothing is said on a socket until then.
fn is_silent(socket: &impl AsRawFd, until: Instant) -> bool {
    let events = libc::POLLIN;
    let mut asked = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // SAFETY: it is given one entry, which lives as long as the call.
        match unsafe { libc::poll(&raw mut asked, 1, left.as_millis() as i32) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            heard => return heard == 0,
        }
    }
}

fn listen<D: Devices>(
    listener: &UnixListener,
    current: &Mutex<Option<UnixStream>>,
    disk: &Arc<Served<D>>,
) {
    loop {
        let accepted = listener.accept().and_then(|(stream, _)| {
            let shown = stream.try_clone()?;
            Ok((stream, shown))
        });
        let Ok(mut served) = current.lock() else { return };
        // Also of those who were waiting when the socket was shut.
        if disk.ending.load(Ordering::SeqCst) {
            return;
        }
        let (stream, shown) = match accepted {
            Ok(pair) => pair,
            Err(error) => {
                drop(served);
                tracing::warn!(disk = disk.name, %error, "cannot accept a machine");
                std::thread::sleep(PAUSE);
                continue;
            }
        };
        *served = Some(shown);
        drop(served);
        match serve(stream, disk) {
            Ok(()) => {
                tracing::info!(disk = disk.name, "a virtual machine has disconnected");
            }
            Err(error) => {
                tracing::warn!(disk = disk.name, %error, "Sterna has disconnected a \
                                                          virtual machine");
            }
        }
        if let Ok(mut served) = current.lock() {
            *served = None;
        }
    }
}

/// Serves one hypervisor to its end.
fn serve<D: Devices>(stream: UnixStream, disk: &Arc<Served<D>>) -> Result<()> {
    let control = Arc::new(Mutex::new(Control::new(disk)?));
    tracing::info!(disk = disk.name, "a virtual machine has connected");
    let mut handler = BackendReqHandler::from_stream(stream, Arc::clone(&control));
    loop {
        let settles_at = control.lock().ok().and_then(|control| control.settles_at());
        if let Some(until) = settles_at
            && is_silent(&handler, until)
            && let Ok(mut control) = control.lock()
        {
            control.settle()?;
        }
        match handler.handle_request() {
            Ok(()) => {}
            Err(Error::Disconnected | Error::PartialMessage) => return Ok(()),
            Err(Error::SocketBroken(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
