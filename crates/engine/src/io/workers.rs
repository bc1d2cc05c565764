//! Threads for what cannot be done without waiting.
//!
//! Threads start when there is work and none is free, up to a limit, and end when there
//! has been nothing to do for a while; of some kinds of work the last one stays as long as
//! somebody can ask. Whoever asks hears of the end through a queue and an eventfd of its
//! own. When nobody can ask any more, what was asked for is still done.
//!
//! **The system may have no thread for us**, as when datastores that hang hold all that the
//! process may have. That is nobody's I/O error: the work waits for the threads there are,
//! or, if there is none, until one can be started ([`starter`](super::starter)).

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use super::{Errno, starter};

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
}

struct Shared<W> {
    /// Threads at most.
    limit: usize,
    /// So many of them stay, though there is nothing to do.
    stay: usize,
    /// How long one that does not stay waits for more to do.
    idle: Duration,
    stack: AtomicUsize,
    queue: Mutex<Queue<W>>,
    ready: Condvar,
}

struct Queue<W> {
    work: VecDeque<(W, To)>,
    threads: usize,
    idle: usize,
    stop: bool,
    /// There is work, no thread, and none could be started.
    stuck: bool,
}

impl<W> fmt::Debug for Workers<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workers(at most {})", self.shared.limit)
    }
}

impl<W: Work> Workers<W> {
    /// So many threads at most, of which so many stay.
    pub(super) fn new(limit: usize, stay: usize) -> Workers<W> {
        Workers::with(limit, stay, IDLE)
    }

    fn with(limit: usize, stay: usize, idle: Duration) -> Workers<W> {
        let (work, stop, stuck) = (VecDeque::new(), false, false);
        let queue = Queue { work, threads: 0, idle: 0, stop, stuck };
        let (queue, ready) = (Mutex::new(queue), Condvar::new());
        let stack = AtomicUsize::new(STACK);
        Workers { shared: Arc::new(Shared { limit, stay, idle, stack, queue, ready }) }
    }

    /// Hands work to a thread.
    pub(super) fn start(&self, work: W, to: To) {
        let mut queue = self.shared.lock();
        queue.work.push_back((work, to));
        let mut stuck = false;
        if queue.idle < queue.work.len() && queue.threads < self.shared.limit {
            let started = self.shared.start_thread(&mut queue);
            let first = started.is_err() && queue.threads == 0;
            stuck = first && !std::mem::replace(&mut queue.stuck, true);
        }
        drop(queue);
        if stuck {
            let shared = Arc::clone(&self.shared);
            starter::needs(move || shared.is_served());
        }
        self.shared.ready.notify_one();
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
    fn start_thread(self: &Arc<Self>, queue: &mut Queue<W>) -> io::Result<()> {
        let shared = Arc::clone(self);
        thread::Builder::new()
            .name("sterna-helper".into())
            .stack_size(self.stack.load(Relaxed))
            .spawn(move || shared.run())?;
        queue.threads += 1;
        queue.stuck = false;
        Ok(())
    }

    /// Whether there is a thread, or can be one now, or nothing to do for it.
    fn is_served(self: &Arc<Self>) -> bool {
        let mut queue = self.lock();
        let served = queue.threads > 0 || queue.work.is_empty();
        if served {
            queue.stuck = false;
        }
        served || self.start_thread(&mut queue).is_ok()
    }

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
            if queue.stop || waited && queue.threads > self.stay {
                queue.idle -= 1;
                queue.threads -= 1;
                return None;
            }
            let woken = self.ready.wait_timeout(queue, self.idle);
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// No system has so much for a stack.
    const TOO_MUCH: usize = 1 << 60;

    /// A moment, and longer than anything here takes on a busy machine.
    const SHORT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(30);

    struct Answer(u64);

    impl Work for Answer {
        fn run(self) -> Result<u64, Errno> {
            Ok(self.0)
        }
    }

    /// Waits for so many outcomes.
    fn outcomes(finished: &Finished, count: usize) -> Vec<Outcome> {
        let (mut found, end) = (Vec::new(), Instant::now() + LONG);
        while found.len() < count {
            assert!(Instant::now() < end, "only {found:?}");
            thread::sleep(SHORT);
            finished.collect(&mut found);
        }
        found
    }

    #[test]
    fn where_no_thread_can_be_started_work_waits_until_one_can_be() {
        starter::begin().unwrap();
        let workers = Workers::new(4, 0);
        let finished = Finished::new().unwrap();
        workers.shared.stack.store(TOO_MUCH, Relaxed);
        for slot in 0..3 {
            workers.start(Answer(7), Some((slot, Arc::clone(&finished))));
        }
        assert!(starter::waiting() >= 1);
        thread::sleep(2 * starter::AGAIN);
        let mut none = Vec::new();
        finished.collect(&mut none);
        assert_eq!(none, []);
        assert!(workers.withdraw(1, &finished), "nobody has begun it");
        workers.shared.stack.store(STACK, Relaxed);
        let mut found = outcomes(&finished, 2);
        found.sort_by_key(|(slot, _)| *slot);
        assert_eq!(found, [(0, Ok(7)), (2, Ok(7))]);
    }

    #[test]
    fn what_was_asked_for_is_done_though_nobody_can_ask_any_more() {
        starter::begin().unwrap();
        let workers = Workers::new(4, 1);
        let finished = Finished::new().unwrap();
        workers.shared.stack.store(TOO_MUCH, Relaxed);
        workers.start(Answer(7), Some((0, Arc::clone(&finished))));
        let shared = Arc::clone(&workers.shared);
        drop(workers);
        shared.stack.store(STACK, Relaxed);
        assert_eq!(outcomes(&finished, 1), [(0, Ok(7))]);
    }

    #[test]
    fn the_last_thread_stays_as_long_as_somebody_can_ask() {
        for stay in [0, 1] {
            let workers = Workers::with(4, stay, SHORT);
            let finished = Finished::new().unwrap();
            for slot in 0..4 {
                workers.start(Answer(7), Some((slot, Arc::clone(&finished))));
            }
            outcomes(&finished, 4);
            let threads = || workers.shared.lock().threads;
            let end = Instant::now() + LONG;
            while threads() > stay && Instant::now() < end {
                thread::sleep(SHORT);
            }
            thread::sleep(20 * SHORT);
            assert_eq!(threads(), stay);
            // Whatever the system says now.
            workers.shared.stack.store(TOO_MUCH, Relaxed);
            if stay > 0 {
                workers.start(Answer(8), Some((4, Arc::clone(&finished))));
                assert_eq!(outcomes(&finished, 1), [(4, Ok(8))]);
            }
            let shared = Arc::clone(&workers.shared);
            drop(workers);
            let end = Instant::now() + LONG;
            while shared.lock().threads > 0 && Instant::now() < end {
                thread::sleep(SHORT);
            }
            assert_eq!(shared.lock().threads, 0);
        }
    }
}
