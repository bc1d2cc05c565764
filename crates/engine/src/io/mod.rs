//! Submitting operations to the kernel and getting their completions.
//!
//! One `Io` belongs to one reactor thread. `submit` takes an operation whole,
//! with its file and its buffers; `wait` gives it back with the result. In
//! between, the `Io` is the owner, so whatever becomes of the object that
//! started it, no memory is freed and no file closed under the kernel's hands.
//! Every submitted operation completes exactly once.
//!
//! Two implementations, chosen at start: `uring` and `threads` (epoll, and
//! threads with `preadv2` and its like), for kernels and containers that forbid
//! io_uring. They behave the same; tests run against both.
//!
//! **Nobody waits inside the kernel.** `submit` and `wait` never carry out what may have
//! to wait for storage: that is for the threads of the datastore ([`Crew`]). The rings
//! are asked only for what the kernel starts without waiting (`RWF_NOWAIT`), and only
//! of files on file systems that are known to keep to that ([`Fd::stored`]).

mod crew;
mod message;
mod slots;
mod starter;
mod task;
mod threads;
mod uring;
mod workers;

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use std::cell::Cell;

use crate::buffer::Slice;

pub(crate) use crew::{Chore, Crew, Stored, closed};
pub(crate) use message::Message;
pub(crate) use starter::waiting as without_thread;
pub(crate) use workers::{drain, eventfd, signal};

/// An error of the operating system, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// The error of the system call that has just failed.
    pub(crate) fn last() -> Errno {
        Errno::from(io::Error::last_os_error())
    }

    /// What a client is told of several errors of one command: the first, unless one of
    /// them says that something is lost.
    pub(crate) fn or_worse(self, first: Option<Errno>) -> Errno {
        if self.0 == libc::EIO { self } else { first.unwrap_or(self) }
    }
}

impl From<io::Error> for Errno {
    /// Errors that are not the system's own become `EIO`.
    fn from(error: io::Error) -> Self {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        io::Error::from_raw_os_error(errno.0)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl std::error::Error for Errno {}

/// An open file on a reactor: cheap to clone, closed with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Fd(Rc<FdInner>);

#[derive(Debug)]
enum FdInner {
    /// Whoever asks it does not wait.
    Socket {
        fd: OwnedFd,
        /// Whether `threads` has told its epoll about it.
        polled: Cell<bool>,
    },
    /// Whoever asks it may wait for its datastore.
    File {
        file: Stored,
        /// Whether the kernel starts reads and writes of it without waiting, or says that
        /// it would have to.
        at_once: Cell<bool>,
        /// Whether the kernel's own workers may wait for it.
        workers: bool,
    },
}

impl From<OwnedFd> for Fd {
    fn from(fd: OwnedFd) -> Self {
        Fd(Rc::new(FdInner::Socket { fd, polled: Cell::new(false) }))
    }
}

impl Fd {
    /// A file of a datastore. `at_once`: its file system is one that can be asked without
    /// waiting.
    pub(crate) fn stored(file: Stored, at_once: bool) -> Fd {
        let workers = at_once;
        Fd(Rc::new(FdInner::File { file, at_once: Cell::new(at_once), workers }))
    }

    /// The socket itself, if this is the last reference.
    pub(crate) fn into_owned(self) -> Option<OwnedFd> {
        match Rc::into_inner(self.0)? {
            FdInner::Socket { fd, .. } => Some(fd),
            FdInner::File { .. } => None,
        }
    }

    /// Those who may wait for it.
    fn crew(&self) -> Option<&Arc<Crew>> {
        match &*self.0 {
            FdInner::Socket { .. } => None,
            FdInner::File { file, .. } => Some(file.crew()),
        }
    }

    fn is_at_once(&self) -> bool {
        matches!(&*self.0, FdInner::File { at_once, .. } if at_once.get())
    }

    /// Whether the kernel's own workers may wait for it, if it cannot be asked without
    /// waiting.
    fn may_have_workers(&self) -> bool {
        matches!(&*self.0, FdInner::File { workers: true, .. })
    }

    /// Its file system was asked without waiting, and does not know how.
    fn forbid_at_once(&self) {
        if let FdInner::File { at_once, .. } = &*self.0 {
            at_once.set(false);
        }
    }

    /// Whether epoll knows it, from now on; says whether it did before.
    fn set_polled(&self, is: bool) -> bool {
        match &*self.0 {
            FdInner::Socket { polled, .. } => polled.replace(is),
            FdInner::File { .. } => false,
        }
    }
}

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        match &*self.0 {
            FdInner::Socket { fd, .. } => fd.as_raw_fd(),
            FdInner::File { file, .. } => file.as_raw_fd(),
        }
    }
}

/// Which object on the reactor an operation or a timer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The reactor itself (its mailbox).
    Reactor,
    /// A listening socket.
    Listener(u32),
    /// A connection that is shaking hands.
    Handshake(u32),
    /// An NBD connection.
    Connection(u32),
    /// A machine's disk.
    Device(u32),
    /// An image of a disk.
    Image(ImageId),
    /// A disk (or its mirror's driver).
    Disk(u32),
}

/// Names an image among those of a reactor: its disk, and a number that the
/// disk gives it and uses for no other image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageId {
    pub(crate) disk: u32,
    pub(crate) image: u16,
}

/// Says whose an operation or a timer is, and which of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) owner: Owner,
    /// The owner's own name for it.
    pub(crate) tag: u32,
}

/// What is done to a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allocate {
    /// Make it a hole: it reads as zeroes and takes no space.
    Punch,
    /// Make it read as zeroes, keeping its space.
    Zero,
}

impl Allocate {
    /// The flags of `fallocate(2)`.
    fn mode(self) -> i32 {
        let mode = match self {
            Allocate::Punch => libc::FALLOC_FL_PUNCH_HOLE,
            Allocate::Zero => libc::FALLOC_FL_ZERO_RANGE,
        };
        mode | libc::FALLOC_FL_KEEP_SIZE
    }
}

/// Something that may block, for a thread of a crew. What it finds beyond a
/// number goes through whatever it captured (an `Arc<Mutex<_>>`).
pub(crate) type Job = Box<dyn FnOnce() -> Result<u64, Errno> + Send>;

/// An operation. Results are byte counts, unless said otherwise.
pub(crate) enum Op {
    /// Reads at `offset`; may read less than asked for, 0 at the end.
    Read { fd: Fd, offset: u64, buf: Slice },
    /// Writes at `offset`, with `dsync` durably; may write less.
    Write { fd: Fd, offset: u64, buf: Slice, dsync: bool },
    /// Makes what was written durable (`fdatasync`). Result 0.
    Sync { fd: Fd },
    /// Changes how a range is allocated. Result 0.
    Allocate { fd: Fd, mode: Allocate, offset: u64, len: u64 },
    /// Receives what there is, at least one byte, into the first stretch; 0 when the
    /// peer has closed.
    Recv { fd: Fd, buf: Slice },
    /// Sends the whole message, or fails.
    Send { fd: Fd, message: Box<Message> },
    /// Waits until there is something to read (or to accept). Result 0.
    Readable { fd: Fd },
    /// Runs the job on a thread of the crew; its result is the result. `None` when
    /// it comes back: the job is used up.
    Blocking { crew: Arc<Crew>, chore: Chore, job: Option<Job> },
}

impl Op {
    /// The file that it is about, if it is no socket.
    fn file(&self) -> Option<&Fd> {
        match self {
            Op::Read { fd, .. }
            | Op::Write { fd, .. }
            | Op::Sync { fd }
            | Op::Allocate { fd, .. } => Some(fd),
            Op::Recv { .. }
            | Op::Send { .. }
            | Op::Readable { .. }
            | Op::Blocking { .. } => None,
        }
    }

    /// Whether the kernel can be asked without waiting for its datastore.
    fn is_at_once(&self) -> bool {
        match self {
            Op::Read { fd, .. } | Op::Write { fd, .. } => fd.is_at_once(),
            Op::Recv { .. } | Op::Send { .. } | Op::Readable { .. } => true,
            Op::Sync { .. } | Op::Allocate { .. } | Op::Blocking { .. } => false,
        }
    }
}

/// How long the end of an `Io` waits for what is under way. Whoever ends one has waited
/// for its disks before: what is left by then hangs.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// An operation that is done.
pub(crate) struct Completion {
    pub(crate) token: Token,
    pub(crate) result: Result<u64, Errno>,
    /// The operation, with its buffers.
    pub(crate) op: Op,
}

/// Submits operations and waits for completions.
pub(crate) trait Io {
    /// Starts an operation. It may be held back until the next `wait`.
    fn submit(&mut self, token: Token, op: Op);

    /// Starts what was submitted, waits for at least one completion or until
    /// `timeout` is over, and appends all completions there are to `out`.
    fn wait(&mut self, timeout: Option<Duration>, out: &mut Vec<Completion>);

    /// Ends the operations with this token early where the kernel can; they
    /// still complete, with `ECANCELED` or their result. Only `Recv`, `Send`
    /// and `Readable` are sure to end.
    fn cancel(&mut self, token: Token);

    /// Operations submitted and not yet given back.
    #[cfg(test)]
    fn in_flight(&self) -> usize;

    /// Forgets a file that goes to another thread. Nothing of it is in flight.
    fn forget(&mut self, fd: &Fd) {
        let _ = fd;
    }
}

/// Which way to the kernel to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoChoice {
    /// io_uring if the system allows it, else threads.
    #[default]
    Auto,
    /// io_uring, or fail to start.
    Uring,
    /// epoll and worker threads.
    Threads,
}

/// The way to the kernel that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoKind {
    /// `io_uring` or `threads`.
    pub name: &'static str,
    /// Why not io_uring, if it was tried and failed.
    pub reason: Option<String>,
}

/// Opens an `Io` for the calling thread, which must be the one that uses it. The
/// kernel holds `keep` open until the last operation has ended, even if the
/// process is killed before (threads do that by themselves: a process's files
/// are open as long as one of its threads is in a system call).
pub(crate) fn open(
    choice: IoChoice,
    keep: Option<BorrowedFd<'_>>,
) -> io::Result<(Box<dyn Io>, IoKind)> {
    starter::begin()?;
    let reason = match choice {
        IoChoice::Threads => None,
        IoChoice::Auto | IoChoice::Uring => match uring::Uring::open(keep) {
            Ok(io) => {
                return Ok((Box::new(io), IoKind { name: "io_uring", reason: None }));
            }
            Err(error) if choice == IoChoice::Uring => return Err(error),
            Err(error) => Some(error.to_string()),
        },
    };
    Ok((Box::new(threads::Threads::open()?), IoKind { name: "threads", reason }))
}
