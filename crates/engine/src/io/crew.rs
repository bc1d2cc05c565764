//! A datastore's own threads: they wait for what may never answer.
//!
//! A file system in user space, a network share, a device over one of these: whoever
//! asks such storage waits in the kernel, and if it hangs, for ever. A reactor serves the
//! disks of many datastores, so it never waits for one of them: what the kernel cannot
//! start without waiting is done by the threads of the datastore that it concerns, of
//! all its images and for all reactors, and comes back as a completion.
//!
//! **Rules.** Nothing of one datastore waits behind anything of another. Each kind of
//! work has threads of its own: a server that does not answer those who connect keeps
//! nobody waiting who looks for holes. However many operations hang, a datastore holds no
//! more threads than its kinds have. What waits for a thread is bounded by those who ask:
//! a disk has so many requests under way and no more.
//!
//! **Closing** waits as well (a file system in user space is told, and answers; a device's
//! cache is written out), so such a file is closed by them, whoever drops it last. One on
//! a file system of this machine is closed where it is dropped. Who has let go of an image
//! may want others to find it free: [`closed`] waits for that, for a moment.
//!
//! **The end.** Threads that have nothing to do for a while end, but for one that reads,
//! writes and flushes. The last who uses the
//! datastore drops the crew: what was asked for is still done, and a thread that hangs in
//! the kernel is left behind.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::task::Task;
use super::workers::{Finished, Work, Workers};
use super::{Errno, Job};

/// Threads that read, write, flush and allocate: the datastore's queue depth where the
/// kernel offers no other way. As many as QEMU has.
const TRANSFERS: usize = 64;

/// One of them stays while the datastore is in use: every flush needs one, and the system
/// may have no other to give when it comes.
const TRANSFERS_STAY: usize = 1;

/// Threads for each of the shorter kinds of work. There are several, as one may hang
/// where the next does not.
const OF_EACH_KIND: usize = 4;

/// Files on their way to be closed, of all datastores.
static CLOSING: AtomicUsize = AtomicUsize::new(0);

/// How long `closed` waits. A file that takes longer hangs with its datastore.
const CLOSES: Duration = Duration::from_millis(300);

/// Waits until the files that were dropped are closed, unless that takes long. Not for
/// a reactor's thread.
pub(crate) fn closed() {
    let deadline = Instant::now() + CLOSES;
    while CLOSING.load(Relaxed) > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
}

/// What work is about. Each kind has threads of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// Reading, writing, flushing, allocating.
    Transfer,
    /// What is where in a file, or soon to be read from it.
    LookUp,
    /// Sharing blocks between files.
    Clone,
    /// Connecting to a server.
    Connect,
    /// Letting go of a file.
    Close,
}

const CHORES: usize = 5;

/// What a thread of a crew does.
pub(super) enum Errand {
    Task(Task),
    Job(Job),
    Close(OwnedFd),
}

impl Work for Errand {
    fn run(self) -> Result<u64, Errno> {
        match self {
            Errand::Task(task) => task.run(),
            Errand::Job(job) => job(),
            Errand::Close(file) => {
                drop(file);
                CLOSING.fetch_sub(1, Relaxed);
                Ok(0)
            }
        }
    }
}

/// The threads of a datastore.
#[derive(Debug)]
pub(crate) struct Crew {
    workers: [Workers<Errand>; CHORES],
    /// An image was opened that cannot be locked.
    unlocked: AtomicBool,
    /// Operations that are with the workers of rings.
    with_workers: AtomicUsize,
}

impl Default for Crew {
    fn default() -> Self {
        let transfers = Workers::new(TRANSFERS, TRANSFERS_STAY);
        let few = || Workers::new(OF_EACH_KIND, 0);
        Crew {
            workers: [transfers, few(), few(), few(), few()],
            unlocked: AtomicBool::new(false),
            with_workers: AtomicUsize::new(0),
        }
    }
}

impl Crew {
    fn of(&self, chore: Chore) -> &Workers<Errand> {
        &self.workers[chore as usize]
    }

    /// Hands work over; its result goes to `to` under `slot`.
    pub(super) fn start(
        &self,
        chore: Chore,
        errand: Errand,
        slot: u32,
        to: &Arc<Finished>,
    ) {
        self.of(chore).start(errand, Some((slot, Arc::clone(to))));
    }

    /// Takes back what `start` was given and no thread has begun; false if it is too
    /// late.
    pub(super) fn withdraw(&self, slot: u32, to: &Arc<Finished>) -> bool {
        self.workers.iter().any(|workers| workers.withdraw(slot, to))
    }

    /// Whether one more operation may be given to the workers of a ring, of which all
    /// datastores there have only so many.
    pub(super) fn take_worker(&self, limit: usize) -> bool {
        let more = |taken: usize| (taken < limit).then_some(taken + 1);
        self.with_workers.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Such an operation has ended.
    pub(super) fn worker_is_free(&self) {
        self.with_workers.fetch_sub(1, Relaxed);
    }

    /// The datastore's file system knows no locks.
    pub(crate) fn set_unlocked(&self) {
        self.unlocked.store(true, Relaxed);
    }

    pub(crate) fn is_unlocked(&self) -> bool {
        self.unlocked.load(Relaxed)
    }

    fn close(&self, file: OwnedFd) {
        CLOSING.fetch_add(1, Relaxed);
        self.of(Chore::Close).start(Errand::Close(file), None);
    }
}

/// An open file of a datastore. It may be used and dropped on any thread; none of them
/// waits for its closing.
#[derive(Debug)]
pub(crate) struct Stored {
    /// There until it is dropped.
    file: Option<OwnedFd>,
    crew: Arc<Crew>,
    /// Closing it waits for nobody.
    is_closed_at_once: bool,
}

impl Stored {
    pub(crate) fn new(
        file: impl Into<OwnedFd>,
        crew: &Arc<Crew>,
        is_closed_at_once: bool,
    ) -> Stored {
        let (file, crew) = (Some(file.into()), Arc::clone(crew));
        Stored { file, crew, is_closed_at_once }
    }

    /// Those who may wait for it.
    pub(crate) fn crew(&self) -> &Arc<Crew> {
        &self.crew
    }
}

impl AsFd for Stored {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_ref().expect("it is there until it is dropped").as_fd()
    }
}

impl AsRawFd for Stored {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        if let Some(file) = self.file.take().filter(|_| !self.is_closed_at_once) {
            self.crew.close(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;
    use crate::io::{self, Completion, Io, IoChoice, Op, Owner, Token};

    /// Waits until so many operations are done; gives their tags.
    fn done(io: &mut dyn Io, count: usize) -> Vec<u32> {
        let mut completions: Vec<Completion> = Vec::new();
        for _ in 0..500 {
            io.wait(Some(Duration::from_millis(20)), &mut completions);
            if completions.len() >= count {
                break;
            }
        }
        completions.iter().map(|completion| completion.token.tag).collect()
    }

    #[test]
    fn what_hangs_at_a_datastore_keeps_no_other_kind_and_no_other_datastore_waiting() {
        for choice in [IoChoice::Auto, IoChoice::Threads] {
            let (mut io, _) = io::open(choice, None).unwrap();
            let (sick, well) = (Arc::new(Crew::default()), Arc::new(Crew::default()));
            let mut submit = |tag, crew: &Arc<Crew>, chore, job: Job| {
                let token = Token { owner: Owner::Reactor, tag };
                let crew = Arc::clone(crew);
                io.submit(token, Op::Blocking { crew, chore, job: Some(job) });
            };
            let (release, hung) = mpsc::channel::<()>();
            let hung = Arc::new(Mutex::new(hung));
            for tag in 0..300 {
                let hung = Arc::clone(&hung);
                let hang = move || {
                    let _ = hung.lock().unwrap().recv();
                    Ok(0)
                };
                let kinds = [Chore::Connect, Chore::Clone, Chore::Transfer];
                submit(tag, &sick, kinds[tag as usize % 3], Box::new(hang));
            }
            submit(300, &sick, Chore::LookUp, Box::new(|| Ok(0)));
            submit(301, &well, Chore::Transfer, Box::new(|| Ok(0)));
            let mut first = done(io.as_mut(), 2);
            first.sort_unstable();
            assert_eq!(first, [300, 301]);
            drop(release);
            assert_eq!(done(io.as_mut(), 300).len(), 300);
        }
    }

    #[test]
    fn what_nobody_has_begun_can_be_taken_back() {
        let crew = Crew::default();
        let (mine, others) = (Finished::new().unwrap(), Finished::new().unwrap());
        let (release, hung) = mpsc::channel::<()>();
        let hung = Arc::new(Mutex::new(hung));
        let hang = |hung: &Arc<Mutex<mpsc::Receiver<()>>>| -> Errand {
            let hung = Arc::clone(hung);
            Errand::Job(Box::new(move || {
                let _ = hung.lock().unwrap().recv();
                Ok(0)
            }))
        };
        for slot in 0..10 {
            crew.start(Chore::LookUp, hang(&hung), slot, &mine);
        }
        assert!(crew.withdraw(9, &mine) && !crew.withdraw(9, &mine));
        assert!(!crew.withdraw(8, &others), "it is another reactor's slot");
        drop(release);
    }
}
