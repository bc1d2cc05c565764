//! The kernel's rings: submissions are written to shared memory and taken, with
//! all others of this turn, by the one system call that also waits.
//!
//! The ring is set up with everything that the kernel offers to a thread that
//! is alone with its ring: completions are then worked off only inside `wait`,
//! without interrupting the thread (`DEFER_TASKRUN`, 6.1). Older kernels get
//! what they know, down to 5.15; what `Uring` cannot do without (`EXT_ARG`
//! timeouts, completions that are never dropped) came before.
//!
//! A request's `user_data` is its slot. A message that the kernel has sent in
//! part goes in again with the rest, so a `Send` completes once.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{Fd as Raw, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use super::helpers::Helpers;
use super::slots::Slots;
use super::workers::{Finished, Outcome};
use super::{Completion, Errno, Io, Op, Token};
use crate::buffer::Vector;

/// Submissions in one system call. More than a turn of the loop usually makes:
/// a full ring only costs one more call.
const SUBMISSIONS: u32 = 256;

/// Completions that the ring holds before the kernel must keep them elsewhere.
const COMPLETIONS: u32 = 4096;

/// How long the end of an `Io` waits for the kernel to let go.
const LINGER: Duration = Duration::from_secs(5);

/// `user_data` of a cancellation: nobody waits for its completion.
const NOBODY: u64 = u64::MAX;
/// `user_data` of the poll for the helpers' event.
const HELPERS_EVENT: u64 = u64::MAX - 1;

pub(super) struct Uring {
    ring: IoUring,
    slots: Slots,
    helpers: Helpers,
    helped: Arc<Finished>,
    helpers_polled: bool,
    helpers_busy: usize,
    /// What was taken from the completion ring and not yet handled.
    reaped: Vec<(u64, i32)>,
    outcomes: Vec<Outcome>,
    /// Completions found while making room for submissions.
    early: Vec<Completion>,
}

impl Uring {
    /// A ring for the calling thread.
    pub(super) fn open(keep: Option<BorrowedFd<'_>>) -> io::Result<Uring> {
        let ring = build()?;
        let params = ring.params();
        if !params.is_feature_ext_arg() || !params.is_feature_nodrop() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel's io_uring is older than 5.11",
            ));
        }
        // Saves the look-up of the ring at each call; kernels before 5.18 cannot.
        let _ = ring.submitter().register_ring_fd();
        if let Some(keep) = keep {
            // A registered file is let go of when the ring is freed, which is after
            // the last of its requests.
            ring.submitter().register_files(&[keep.as_raw_fd()])?;
        }
        let helped = Finished::new()?;
        Ok(Uring {
            ring,
            slots: Slots::new(),
            helpers: Helpers::new(&helped),
            helped,
            helpers_polled: false,
            helpers_busy: 0,
            reaped: Vec::new(),
            outcomes: Vec::new(),
            early: Vec::new(),
        })
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: what the entry points to (buffers, messages, files) belongs to
        // the operation in its slot, which stays until its completion is reaped.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.enter(None);
        }
    }

    /// Submits what there is; with a timeout also waits for a completion.
    fn enter(&mut self, wait: Option<Option<Duration>>) {
        let submitter = self.ring.submitter();
        let result = match wait {
            None => submitter.submit(),
            Some(None) => submitter.submit_and_wait(1),
            Some(Some(timeout)) => {
                let time =
                    Timespec::new().sec(timeout.as_secs()).nsec(timeout.subsec_nanos());
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match result.map_err(Errno::from) {
            Ok(_) | Err(Errno(libc::ETIME | libc::EINTR)) => {}
            // The kernel wants completions to be taken first.
            Err(Errno(libc::EBUSY | libc::EAGAIN)) => {
                let mut early = std::mem::take(&mut self.early);
                self.reap(&mut early);
                self.early = early;
            }
            Err(errno) => panic!("io_uring_enter: {errno}"),
        }
    }

    fn reap(&mut self, out: &mut Vec<Completion>) {
        let mut reaped = std::mem::take(&mut self.reaped);
        reaped.extend(self.ring.completion().map(|cqe| (cqe.user_data(), cqe.result())));
        for (user_data, result) in reaped.drain(..) {
            match user_data {
                NOBODY => {}
                HELPERS_EVENT => {
                    self.helpers_polled = false;
                    self.collect(out);
                }
                slot => self.settle(slot as u32, result, out),
            }
        }
        self.reaped = reaped;
    }

    /// Completes the operation in a slot, unless a part of it is left to do.
    fn settle(&mut self, slot: u32, result: i32, out: &mut Vec<Completion>) {
        let retry = match self.slots.get_mut(slot) {
            Some(Op::Send { fd, message }) if result == -libc::EINTR => {
                Some(send(fd.as_raw_fd(), message.rest()))
            }
            Some(Op::Send { fd, message }) if result >= 0 => message
                .advance(result as usize)
                .map(|header| send(fd.as_raw_fd(), header)),
            Some(op) if result == -libc::EINTR => Some(entry(op)),
            // Some devices say so now and then, and mean it.
            Some(op @ (Op::Read { .. } | Op::Write { .. } | Op::Sync { .. }))
                if result == -libc::EAGAIN =>
            {
                Some(entry(op))
            }
            _ => None,
        };
        if let Some(again) = retry {
            self.push(&again.user_data(u64::from(slot)));
            return;
        }
        let result = if result < 0 { Err(Errno(-result)) } else { Ok(result as u64) };
        let mut completion = self.slots.complete(slot, result);
        match &completion.op {
            Op::Readable { .. } => completion.result = result.map(|_| 0),
            Op::Send { message, .. } => {
                completion.result = result.map(|_| message.len() as u64);
            }
            _ => {}
        }
        out.push(completion);
    }

    fn collect(&mut self, out: &mut Vec<Completion>) {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        self.helped.collect(&mut outcomes);
        for (slot, result) in outcomes.drain(..) {
            self.helpers_busy -= 1;
            out.push(self.slots.complete(slot, result));
        }
        self.outcomes = outcomes;
    }

    fn start_job(&mut self, slot: u32) {
        let job = match self.slots.get_mut(slot) {
            Some(Op::Blocking { chore, job }) => job.take().map(|job| (*chore, job)),
            _ => None,
        };
        let started = job.map_or(Err(Errno(libc::EINVAL)), |(chore, job)| {
            self.helpers.start(slot, chore, job)
        });
        match started {
            Ok(()) => self.helpers_busy += 1,
            Err(errno) => {
                let completion = self.slots.complete(slot, Err(errno));
                self.early.push(completion);
            }
        }
    }
}

impl Io for Uring {
    fn submit(&mut self, token: Token, op: Op) {
        let blocking = matches!(op, Op::Blocking { .. });
        let slot = self.slots.insert(token, op);
        if blocking {
            return self.start_job(slot);
        }
        let op = self.slots.get_mut(slot).expect("just put in");
        let entry = entry(op).user_data(u64::from(slot));
        self.push(&entry);
    }

    fn wait(&mut self, timeout: Option<Duration>, out: &mut Vec<Completion>) {
        if self.helpers_busy > 0 && !self.helpers_polled {
            let event = Raw(self.helped.event().as_raw_fd());
            let poll = opcode::PollAdd::new(event, libc::POLLIN as u32).build();
            self.push(&poll.user_data(HELPERS_EVENT));
            self.helpers_polled = true;
        }
        let timeout = if self.early.is_empty() { timeout } else { Some(Duration::ZERO) };
        self.enter(Some(timeout));
        out.append(&mut self.early);
        self.reap(out);
        out.append(&mut self.early);
    }

    #[cfg(test)]
    fn in_flight(&self) -> usize {
        self.slots.len()
    }

    fn cancel(&mut self, token: Token) {
        for slot in self.slots.with_token(token) {
            self.push(
                &opcode::AsyncCancel::new(u64::from(slot)).build().user_data(NOBODY),
            );
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        for slot in self.slots.all() {
            self.push(
                &opcode::AsyncCancel::new(u64::from(slot)).build().user_data(NOBODY),
            );
        }
        let (deadline, mut ended) = (Instant::now() + LINGER, Vec::new());
        while self.slots.len() > self.helpers_busy && Instant::now() < deadline {
            self.enter(Some(Some(Duration::from_millis(100))));
            self.reap(&mut ended);
            ended.clear();
        }
        if self.slots.len() > self.helpers_busy {
            self.slots.leak();
        }
    }
}

/// The best ring that the kernel gives.
fn build() -> io::Result<IoUring> {
    let best = IoUring::builder()
        .setup_cqsize(COMPLETIONS)
        .setup_clamp()
        .setup_submit_all()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(SUBMISSIONS);
    let coop = || {
        IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_clamp()
            .setup_submit_all()
            .setup_coop_taskrun()
            .build(SUBMISSIONS)
    };
    let plain =
        || IoUring::builder().setup_cqsize(COMPLETIONS).setup_clamp().build(SUBMISSIONS);
    let unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    match best {
        Err(error) if unknown(&error) => match coop() {
            Err(error) if unknown(&error) => plain(),
            ring => ring,
        },
        ring => ring,
    }
}

/// The ring's form of an operation, from its start.
fn entry(op: &mut Op) -> squeue::Entry {
    match op {
        Op::Read { fd, offset, buf } => {
            let fd = Raw(fd.as_raw_fd());
            match buf.vector() {
                Vector::One(one) => {
                    opcode::Read::new(fd, one.iov_base.cast(), one.iov_len as u32)
                        .offset(*offset)
                        .build()
                }
                Vector::Many(many) => {
                    opcode::Readv::new(fd, many.as_ptr(), many.len() as u32)
                        .offset(*offset)
                        .build()
                }
            }
        }
        Op::Write { fd, offset, buf, dsync } => {
            let fd = Raw(fd.as_raw_fd());
            let flags = if *dsync { libc::RWF_DSYNC } else { 0 };
            match buf.vector() {
                Vector::One(one) => {
                    let (start, len) = (one.iov_base.cast::<u8>(), one.iov_len as u32);
                    opcode::Write::new(fd, start, len)
                        .offset(*offset)
                        .rw_flags(flags)
                        .build()
                }
                Vector::Many(many) => {
                    opcode::Writev::new(fd, many.as_ptr(), many.len() as u32)
                        .offset(*offset)
                        .rw_flags(flags)
                        .build()
                }
            }
        }
        Op::Sync { fd } => {
            opcode::Fsync::new(Raw(fd.as_raw_fd())).flags(FsyncFlags::DATASYNC).build()
        }
        Op::Allocate { fd, mode, offset, len } => {
            opcode::Fallocate::new(Raw(fd.as_raw_fd()), *len)
                .offset(*offset)
                .mode(mode.mode())
                .build()
        }
        Op::Recv { fd, buf } => {
            let first = buf.vector()[0];
            let (start, len) = (first.iov_base.cast(), first.iov_len as u32);
            opcode::Recv::new(Raw(fd.as_raw_fd()), start, len).build()
        }
        Op::Send { fd, message } => send(fd.as_raw_fd(), message.prepare()),
        Op::Readable { fd } => {
            opcode::PollAdd::new(Raw(fd.as_raw_fd()), libc::POLLIN as u32).build()
        }
        Op::Blocking { .. } => opcode::Nop::new().build(),
    }
}

fn send(fd: i32, header: *const libc::msghdr) -> squeue::Entry {
    let flags = (libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32;
    opcode::SendMsg::new(Raw(fd), header).flags(flags).build()
}
