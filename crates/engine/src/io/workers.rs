//! Threads of one `Io`, for what cannot be done without blocking.
//!
//! Threads start when there is work and none is free, up to a limit, and end
//! with the `Io`. Results come back through a queue and an eventfd. A thread
//! that hangs in the kernel (a lost NFS server) is left behind at the end.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use super::Errno;

/// The stack of a helper: system calls and path look-ups need little.
const STACK: usize = 256 * 1024;

/// The result of the work in a slot.
pub(super) type Outcome = (u32, Result<u64, Errno>);

/// Work for a helper.
pub(super) trait Work: Send + 'static {
    fn run(self) -> Result<u64, Errno>;
}

/// What helpers have done and nobody has collected yet. Several `Workers` may share
/// it: then there is one event for all of them.
pub(super) struct Finished {
    outcomes: Mutex<Vec<Outcome>>,
    event: OwnedFd,
}

impl Finished {
    pub(super) fn new() -> io::Result<Arc<Finished>> {
        Ok(Arc::new(Finished { outcomes: Mutex::default(), event: eventfd()? }))
    }

    /// Becomes readable when there is something to `collect`.
    pub(super) fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Appends what is done to `out`, after reading the event.
    pub(super) fn collect(&self, out: &mut Vec<Outcome>) {
        drain(&self.event);
        out.append(&mut self.outcomes.lock().expect("no helper panics with the lock"));
    }

    fn add(&self, outcome: Outcome) {
        let mut outcomes = self.outcomes.lock().expect("no helper panics with the lock");
        let first = outcomes.is_empty();
        outcomes.push(outcome);
        drop(outcomes);
        if first {
            signal(&self.event);
        }
    }
}

pub(super) struct Workers<W> {
    shared: Arc<Shared<W>>,
    threads: usize,
    limit: usize,
}

struct Shared<W> {
    queue: Mutex<Queue<W>>,
    ready: Condvar,
    finished: Arc<Finished>,
}

struct Queue<W> {
    work: VecDeque<(u32, W)>,
    idle: usize,
    stop: bool,
}

impl<W: Work> Workers<W> {
    pub(super) fn new(limit: usize, finished: &Arc<Finished>) -> Workers<W> {
        let queue = Queue { work: VecDeque::new(), idle: 0, stop: false };
        let shared = Shared {
            queue: Mutex::new(queue),
            ready: Condvar::new(),
            finished: Arc::clone(finished),
        };
        Workers { shared: Arc::new(shared), threads: 0, limit }
    }

    /// Hands work to a helper. Fails if there is none and none can be started.
    pub(super) fn start(&mut self, slot: u32, work: W) -> Result<(), Errno> {
        let mut queue = self.shared.queue.lock().expect("no helper panics with the lock");
        if queue.idle <= queue.work.len() && self.threads < self.limit {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new()
                .name("sterna-helper".into())
                .stack_size(STACK)
                .spawn(move || shared.run());
            match started {
                Ok(_) => self.threads += 1,
                Err(error) if self.threads == 0 => return Err(Errno::from(error)),
                Err(_) => {}
            }
        }
        queue.work.push_back((slot, work));
        drop(queue);
        self.shared.ready.notify_one();
        Ok(())
    }

    /// Takes back work that no helper has begun; false if it is too late.
    pub(super) fn withdraw(&mut self, slot: u32) -> bool {
        let mut queue = self.shared.queue.lock().expect("no helper panics with the lock");
        let before = queue.work.len();
        queue.work.retain(|(other, _)| *other != slot);
        queue.work.len() < before
    }
}

impl<W> Drop for Workers<W> {
    fn drop(&mut self) {
        if let Ok(mut queue) = self.shared.queue.lock() {
            queue.stop = true;
            queue.work.clear();
        }
        self.shared.ready.notify_all();
    }
}

impl<W: Work> Shared<W> {
    fn run(&self) {
        while let Some((slot, work)) = self.next() {
            self.finished.add((slot, work.run()));
        }
    }

    fn next(&self) -> Option<(u32, W)> {
        let mut queue = self.queue.lock().expect("no helper panics with the lock");
        queue.idle += 1;
        loop {
            if queue.stop {
                return None;
            }
            if let Some(work) = queue.work.pop_front() {
                queue.idle -= 1;
                return Some(work);
            }
            queue = self.ready.wait(queue).expect("no helper panics with the lock");
        }
    }
}

/// A new eventfd.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are involved.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes an eventfd readable.
pub(crate) fn signal(event: &impl AsRawFd) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: writes eight bytes from a live array. It can fail only if the
    // counter is full, and then the event is readable anyway.
    unsafe { libc::write(event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Makes an eventfd unreadable.
pub(crate) fn drain(event: &impl AsRawFd) {
    let mut count = [0u8; 8];
    // SAFETY: reads at most eight bytes into a live array. It fails if the
    // event was not readable, which is as good.
    unsafe { libc::read(event.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
}
