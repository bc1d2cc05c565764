//! Threads for what cannot be done without waiting.
//!
//! Threads start when there is work and none is free, up to a limit, and end when there
//! has been nothing to do for a while. Whoever asks hears of the end through a queue and
//! an eventfd of its own. When nobody can ask any more, what was asked for is still done.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use super::Errno;

/// The stack of a helper: system calls and path look-ups need little.
const STACK: usize = 256 * 1024;

/// How long a thread with nothing to do waits for more.
const IDLE: Duration = Duration::from_secs(10);

/// The result of the work in a slot.
pub(super) type Outcome = (u32, Result<u64, Errno>);

/// Work for a thread.
pub(super) trait Work: Send + 'static {
    fn run(self) -> Result<u64, Errno>;
}

/// What threads have done for one `Io` and it has not collected yet: one event for all
/// datastores.
#[derive(Debug)]
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

/// Who hears of the end of some work.
type To = Option<(u32, Arc<Finished>)>;

pub(super) struct Workers<W> {
    shared: Arc<Shared<W>>,
    limit: usize,
}

struct Shared<W> {
    queue: Mutex<Queue<W>>,
    ready: Condvar,
}

struct Queue<W> {
    work: VecDeque<(W, To)>,
    threads: usize,
    idle: usize,
    stop: bool,
}

impl<W> fmt::Debug for Workers<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workers(at most {})", self.limit)
    }
}

impl<W: Work> Workers<W> {
    pub(super) fn new(limit: usize) -> Workers<W> {
        let queue = Queue { work: VecDeque::new(), threads: 0, idle: 0, stop: false };
        let shared = Shared { queue: Mutex::new(queue), ready: Condvar::new() };
        Workers { shared: Arc::new(shared), limit }
    }

    /// Hands work to a thread. Gives it back if there is none and none can be started.
    pub(super) fn start(&self, work: W, to: To) -> Result<(), (W, Errno)> {
        let mut queue = self.shared.lock();
        if queue.idle <= queue.work.len() && queue.threads < self.limit {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new()
                .name("sterna-helper".into())
                .stack_size(STACK)
                .spawn(move || shared.run());
            match started {
                Ok(_) => queue.threads += 1,
                Err(error) if queue.threads == 0 => {
                    return Err((work, Errno::from(error)));
                }
                Err(_) => {}
            }
        }
        queue.work.push_back((work, to));
        drop(queue);
        self.shared.ready.notify_one();
        Ok(())
    }

    /// Takes back work that no thread has begun; false if it is too late.
    pub(super) fn withdraw(&self, slot: u32, to: &Arc<Finished>) -> bool {
        let mut queue = self.shared.lock();
        let is_it = |(_, whose): &(W, To)| {
            whose.as_ref().is_some_and(|(at, of)| *at == slot && Arc::ptr_eq(of, to))
        };
        let at = queue.work.iter().position(is_it);
        at.and_then(|at| queue.work.remove(at)).is_some()
    }
}

impl<W> Drop for Workers<W> {
    fn drop(&mut self) {
        if let Ok(mut queue) = self.shared.queue.lock() {
            queue.stop = true;
        }
        self.shared.ready.notify_all();
    }
}

impl<W> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, Queue<W>> {
        self.queue.lock().expect("no thread panics with the lock")
    }
}

impl<W: Work> Shared<W> {
    fn run(&self) {
        while let Some((work, to)) = self.next() {
            let result = work.run();
            if let Some((slot, to)) = to {
                to.add((slot, result));
            }
        }
    }

    /// The next work; none if there is nothing to do any more.
    fn next(&self) -> Option<(W, To)> {
        let mut queue = self.lock();
        queue.idle += 1;
        let mut waited = false;
        loop {
            if let Some(next) = queue.work.pop_front() {
                queue.idle -= 1;
                return Some(next);
            }
            if queue.stop || waited {
                queue.idle -= 1;
                queue.threads -= 1;
                return None;
            }
            let woken = self.ready.wait_timeout(queue, IDLE);
            let (again, time) = woken.expect("no thread panics with the lock");
            (queue, waited) = (again, time.timed_out());
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
