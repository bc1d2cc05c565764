//! The way without io_uring: sockets through epoll, files through threads.
//!
//! A socket operation is tried at once; if it would block, it waits for the
//! edge that epoll reports (each socket is told to epoll once). A file
//! operation goes to the threads of its datastore.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::slots::Slots;
use super::task::retry;
use super::workers::{Finished, Outcome};
use super::{Completion, Errno, Fd, Io, LINGER, Op, Token};

/// Events taken from epoll at a time.
const EVENTS: u16 = 64;

pub(super) struct Threads {
    epoll: OwnedFd,
    slots: Slots,
    worked: Arc<Finished>,
    /// How many slots are with threads.
    working: usize,
    waiting: HashMap<RawFd, Waiting>,
    ready: Vec<Outcome>,
}

/// The slots that wait for a socket.
#[derive(Default)]
struct Waiting {
    read: Option<u32>,
    write: Option<u32>,
}

impl Threads {
    pub(super) fn open() -> io::Result<Threads> {
        // SAFETY: no pointers are involved.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours alone.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        let worked = Finished::new()?;
        add(&epoll, worked.event().as_raw_fd(), libc::EPOLLIN)?;
        Ok(Threads {
            epoll,
            slots: Slots::new(),
            worked,
            working: 0,
            waiting: HashMap::new(),
            ready: Vec::new(),
        })
    }

    /// Tries a socket operation; if it would block, notes who waits.
    fn attempt(&mut self, slot: u32) {
        let Some(op) = self.slots.get_mut(slot) else { return };
        let (fd, write, result) = match op {
            Op::Recv { fd, buf } => (fd.clone(), false, receive(fd, buf.vector()[0])),
            Op::Send { fd, message } => (fd.clone(), true, send(fd, message)),
            Op::Readable { fd } => (fd.clone(), false, readable(fd)),
            _ => return,
        };
        let result = match result {
            Err(Errno(libc::EAGAIN)) => self.watch(&fd).err().map(Err),
            result => Some(result),
        };
        let waiting = self.waiting.entry(fd.as_raw_fd()).or_default();
        let place = if write { &mut waiting.write } else { &mut waiting.read };
        if let Some(result) = result {
            *place = None;
            self.ready.push((slot, result));
        } else {
            *place = Some(slot);
        }
        if waiting.read.is_none() && waiting.write.is_none() {
            self.waiting.remove(&fd.as_raw_fd());
        }
    }

    /// Tells epoll about a socket, once.
    fn watch(&self, fd: &Fd) -> Result<(), Errno> {
        if fd.set_polled(true) {
            return Ok(());
        }
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        add(&self.epoll, fd.as_raw_fd(), events).map_err(Errno::from)
    }

    fn work(&mut self, slot: u32) {
        match self.slots.delegate(slot, &self.worked) {
            Ok(()) => self.working += 1,
            Err(errno) => self.ready.push((slot, Err(errno))),
        }
    }

    fn poll(&mut self, timeout: Option<Duration>) {
        if timeout != Some(Duration::ZERO) {
            sleep(&self.epoll, timeout);
        }
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS as usize];
        // SAFETY: the kernel writes at most `EVENTS` entries into a live array.
        let count = unsafe {
            let (epoll, events) = (self.epoll.as_raw_fd(), events.as_mut_ptr());
            libc::epoll_wait(epoll, events, EVENTS.into(), 0)
        };
        for event in &events[..usize::try_from(count).unwrap_or(0)] {
            let (fd, set) = (event.u64 as RawFd, event.events);
            if fd == self.worked.event().as_raw_fd() {
                let before = self.ready.len();
                self.worked.collect(&mut self.ready);
                self.working -= self.ready.len() - before;
                continue;
            }
            let any = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
            let Some(&Waiting { read, write }) = self.waiting.get(&fd) else { continue };
            if set & (any | (libc::EPOLLIN | libc::EPOLLRDHUP) as u32) != 0 {
                read.into_iter().for_each(|slot| self.attempt(slot));
            }
            if set & (any | libc::EPOLLOUT as u32) != 0 {
                write.into_iter().for_each(|slot| self.attempt(slot));
            }
        }
    }
}

impl Io for Threads {
    fn submit(&mut self, token: Token, mut op: Op) {
        if let Op::Send { message, .. } = &mut op {
            message.prepare();
        }
        let socket =
            matches!(op, Op::Recv { .. } | Op::Send { .. } | Op::Readable { .. });
        let slot = self.slots.insert(token, op);
        if socket { self.attempt(slot) } else { self.work(slot) }
    }

    fn wait(&mut self, timeout: Option<Duration>, out: &mut Vec<Completion>) {
        let timeout = if self.ready.is_empty() { timeout } else { Some(Duration::ZERO) };
        self.poll(timeout);
        for (slot, result) in self.ready.drain(..) {
            out.push(self.slots.complete(slot, result));
        }
    }

    #[cfg(test)]
    fn in_flight(&self) -> usize {
        self.slots.len()
    }

    fn cancel(&mut self, token: Token) {
        for slot in self.slots.with_token(token) {
            if self.slots.withdraw(slot, &self.worked) {
                self.working -= 1;
                self.ready.push((slot, Err(Errno(libc::ECANCELED))));
                continue;
            }
            let fd = match self.slots.get_mut(slot) {
                Some(Op::Recv { fd, .. } | Op::Send { fd, .. } | Op::Readable { fd }) => {
                    fd.as_raw_fd()
                }
                _ => continue,
            };
            let Some(waiting) = self.waiting.get_mut(&fd) else { continue };
            for place in [&mut waiting.read, &mut waiting.write] {
                if *place == Some(slot) {
                    *place = None;
                    self.ready.push((slot, Err(Errno(libc::ECANCELED))));
                }
            }
        }
    }

    fn forget(&mut self, fd: &Fd) {
        if fd.set_polled(false) {
            let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_raw_fd());
            // SAFETY: removal reads no event.
            unsafe {
                libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut())
            };
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for slot in self.slots.all() {
            let unbegun = self.slots.withdraw(slot, &self.worked);
            self.working -= usize::from(unbegun);
        }
        let deadline = Instant::now() + LINGER;
        while self.working > 0 && Instant::now() < deadline {
            self.poll(Some(Duration::from_millis(100)));
        }
        if self.working > 0 {
            self.slots.leak();
        }
    }
}

fn receive(fd: &Fd, to: libc::iovec) -> Result<u64, Errno> {
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: the buffer is borrowed exclusively for this receive.
    retry(|| unsafe { libc::recv(fd.as_raw_fd(), to.iov_base, to.iov_len, flags) })
}

/// Sends until everything is out or it would block.
fn send(fd: &Fd, message: &mut super::Message) -> Result<u64, Errno> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    loop {
        let header = message.rest();
        // SAFETY: the header points to parts of the message, which are borrowed.
        let sent = retry(|| unsafe { libc::sendmsg(fd.as_raw_fd(), header, flags) })?;
        if message.advance(sent as usize).is_none() {
            return Ok(message.len() as u64);
        }
    }
}

fn readable(fd: &Fd) -> Result<u64, Errno> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live entry.
    match retry(|| unsafe { libc::poll(&raw mut poll, 1, 0) } as isize)? {
        0 => Err(Errno(libc::EAGAIN)),
        _ => Ok(0),
    }
}

fn add(epoll: &OwnedFd, fd: RawFd, events: i32) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: fd as u64 };
    let (epoll, event) = (epoll.as_raw_fd(), &raw mut event);
    // SAFETY: reads one live entry.
    if unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, event) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Waits until epoll has events, to the nanosecond (epoll itself counts
/// milliseconds, and emulated datastores wait for less).
fn sleep(epoll: &OwnedFd, timeout: Option<Duration>) {
    let mut poll =
        libc::pollfd { fd: epoll.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let time = timeout.map(|timeout| libc::timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: one live entry, and a live timeout or none.
    unsafe { libc::ppoll(&raw mut poll, 1, time, std::ptr::null()) };
}
