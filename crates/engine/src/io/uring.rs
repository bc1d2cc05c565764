//! The kernel's rings: submissions are written to shared memory and taken, with
//! all others of this iteration, by the one system call that also waits.
//!
//! The ring is set up with everything that the kernel offers to a thread that
//! is alone with its ring: completions are then worked off only inside `wait`,
//! without interrupting the thread (`DEFER_TASKRUN`, 6.1). Older kernels get
//! what they know, down to 5.15; what `Uring` cannot do without (`EXT_ARG`
//! timeouts, completions that are never dropped) came before.
//!
//! Reads and writes are asked for with `RWF_NOWAIT`: the kernel carries a submission out
//! right in the system call, and says `EAGAIN` where it could not start it without
//! waiting. Such an operation goes in again for the kernel's workers: they start it, and
//! do not wait for its end as a thread would (a first write to a hole is six times as
//! quick with many at once). A ring has only so many workers for all its files, so each
//! datastore has only so many operations with them, and what comes beyond that goes to
//! its own threads, as does everything that is not known to be asked without waiting.
//!
//! A request's `user_data` is its slot. A message that the kernel has sent in
//! part goes in again with the rest, so a `Send` completes once.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{Fd as Raw, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use super::crew::Crew;
use super::slots::Slots;
use super::workers::{Finished, Outcome};
use super::{Completion, Errno, Fd, Io, LINGER, Op, Token};
use crate::buffer::Vector;

/// Submissions in one system call. More than an iteration of the loop usually makes:
/// a full ring only costs one more call.
const SUBMISSIONS: u32 = 256;

/// Completions that the ring holds before the kernel must keep them elsewhere.
const COMPLETIONS: u32 = 4096;

/// Workers of the kernel for a ring, and operations that are with them: if all hang, what
/// comes goes to the threads of its datastore.
const WORKERS: u32 = 256;

/// Operations of a datastore that are with the workers of rings, over all rings.
const WITH_WORKERS: usize = 32;

/// `user_data` of a cancellation: nobody waits for its completion.
const NOBODY: u64 = u64::MAX;
/// `user_data` of the poll for the event of the datastores' threads.
const CREWS_EVENT: u64 = u64::MAX - 1;

pub(super) struct Uring {
    ring: IoUring,
    slots: Slots,
    /// What the datastores' threads have done.
    helped: Arc<Finished>,
    crews_polled: bool,
    /// How many slots are with these threads.
    with_crews: usize,
    /// The slots that are with the kernel's workers, and whose they are.
    with_workers: HashMap<u32, Arc<Crew>>,
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
        // An older kernel has as many as it likes.
        let _ = ring.submitter().register_iowq_max_workers(&mut [WORKERS, 0]);
        if let Some(keep) = keep {
            // A registered file is let go of when the ring is freed, which is after
            // the last of its requests.
            ring.submitter().register_files(&[keep.as_raw_fd()])?;
        }
        let helped = Finished::new()?;
        Ok(Uring {
            ring,
            slots: Slots::new(),
            helped,
            crews_polled: false,
            with_crews: 0,
            with_workers: HashMap::new(),
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
                // What could not be begun meanwhile.
                early.append(&mut self.early);
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
                CREWS_EVENT => {
                    self.crews_polled = false;
                    self.collect(out);
                }
                slot => self.settle(slot as u32, result, out),
            }
        }
        self.reaped = reaped;
    }

    /// Completes the operation in a slot, unless a part of it is left to do.
    fn settle(&mut self, slot: u32, result: i32, out: &mut Vec<Completion>) {
        if self.would_wait(slot, result) {
            return;
        }
        let retry = match self.slots.get_mut(slot) {
            Some(Op::Send { fd, message }) if result == -libc::EINTR => {
                Some(send(fd.as_raw_fd(), message.rest()))
            }
            Some(Op::Send { fd, message }) if result >= 0 => message
                .advance(result as usize)
                .map(|header| send(fd.as_raw_fd(), header)),
            Some(op) if result == -libc::EINTR => Some(entry(op, true)),
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
            self.with_crews -= 1;
            out.push(self.slots.complete(slot, result));
        }
        self.outcomes = outcomes;
    }

    /// Has the threads of its datastore carry out the operation in a slot.
    fn delegate(&mut self, slot: u32) {
        match self.slots.delegate(slot, &self.helped) {
            Ok(()) => self.with_crews += 1,
            Err(errno) => {
                let completion = self.slots.complete(slot, Err(errno));
                self.early.push(completion);
            }
        }
    }

    /// Whether the kernel would have had to wait for what it was to start at once; then
    /// somebody is asked who may.
    fn would_wait(&mut self, slot: u32, result: i32) -> bool {
        let waited = if self.with_workers.is_empty() {
            None
        } else {
            self.with_workers.remove(&slot)
        };
        if let Some(crew) = &waited {
            crew.worker_is_free();
        }
        // What the ring was asked to do with a file was to be started at once.
        let Some(op) = self.slots.get_mut(slot) else { return false };
        let Some(file) = op.file() else { return false };
        match -result {
            libc::EAGAIN => {}
            libc::EOPNOTSUPP if waited.is_none() => file.forbid_at_once(),
            _ => return false,
        }
        match waited {
            None => self.give_to_a_worker(slot),
            Some(_) => self.delegate(slot),
        }
        true
    }

    /// Has one of the kernel's workers do it, if one may and is there; else a thread of the
    /// datastore.
    fn give_to_a_worker(&mut self, slot: u32) {
        // One that waits for a worker would wait for another datastore, which may hang.
        let free = self.with_workers.len() < WORKERS as usize;
        let Some(op) = self.slots.get_mut(slot) else { return };
        let file = op.file().filter(|file| free && file.may_have_workers());
        let crew = file.and_then(Fd::crew);
        match crew.filter(|crew| crew.take_worker(WITH_WORKERS)).map(Arc::clone) {
            Some(crew) => {
                let entry = entry(op, false).flags(squeue::Flags::ASYNC);
                self.with_workers.insert(slot, crew);
                self.push(&entry.user_data(u64::from(slot)));
            }
            None => self.delegate(slot),
        }
    }
}

impl Io for Uring {
    fn submit(&mut self, token: Token, op: Op) {
        let at_once = op.is_at_once();
        // A file system in memory does not know how to be asked without waiting.
        let transfers = matches!(op, Op::Read { .. } | Op::Write { .. });
        let slot = self.slots.insert(token, op);
        match (at_once, transfers) {
            (true, _) => {}
            (false, true) => return self.give_to_a_worker(slot),
            (false, false) => return self.delegate(slot),
        }
        let op = self.slots.get_mut(slot).expect("just put in");
        let entry = entry(op, true).user_data(u64::from(slot));
        self.push(&entry);
    }

    fn wait(&mut self, timeout: Option<Duration>, out: &mut Vec<Completion>) {
        if self.with_crews > 0 && !self.crews_polled {
            let event = Raw(self.helped.event().as_raw_fd());
            let poll = opcode::PollAdd::new(event, libc::POLLIN as u32).build();
            self.push(&poll.user_data(CREWS_EVENT));
            self.crews_polled = true;
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
            if self.slots.withdraw(slot, &self.helped) {
                self.with_crews -= 1;
                let ended = self.slots.complete(slot, Err(Errno(libc::ECANCELED)));
                self.early.push(ended);
                continue;
            }
            self.push(
                &opcode::AsyncCancel::new(u64::from(slot)).build().user_data(NOBODY),
            );
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let mut ended = Vec::new();
        for slot in self.slots.all() {
            if self.slots.withdraw(slot, &self.helped) {
                ended.push(self.slots.complete(slot, Err(Errno(libc::ECANCELED))));
                self.with_crews -= 1;
                continue;
            }
            self.push(
                &opcode::AsyncCancel::new(u64::from(slot)).build().user_data(NOBODY),
            );
        }
        let deadline = Instant::now() + LINGER;
        while self.slots.len() > self.slots.jobs() && Instant::now() < deadline {
            self.wait(Some(Duration::from_millis(100)), &mut ended);
            ended.clear();
        }
        for crew in self.with_workers.values() {
            crew.worker_is_free();
        }
        if self.slots.len() > self.slots.jobs() {
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

/// The ring's form of an operation, from its start; of reads and writes `at_once`, or by
/// whoever may wait.
fn entry(op: &mut Op, at_once: bool) -> squeue::Entry {
    let nowait = if at_once { libc::RWF_NOWAIT } else { 0 };
    match op {
        Op::Read { fd, offset, buf } => {
            let fd = Raw(fd.as_raw_fd());
            match buf.vector() {
                Vector::One(one) => {
                    opcode::Read::new(fd, one.iov_base.cast(), one.iov_len as u32)
                        .offset(*offset)
                        .rw_flags(nowait)
                        .build()
                }
                Vector::Many(many) => {
                    opcode::Readv::new(fd, many.as_ptr(), many.len() as u32)
                        .offset(*offset)
                        .rw_flags(nowait)
                        .build()
                }
            }
        }
        Op::Write { fd, offset, buf, dsync } => {
            let fd = Raw(fd.as_raw_fd());
            let durably = if *dsync { libc::RWF_DSYNC } else { 0 };
            let flags = nowait | durably;
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
        Op::Recv { fd, buf } => {
            let first = buf.vector()[0];
            let (start, len) = (first.iov_base.cast(), first.iov_len as u32);
            opcode::Recv::new(Raw(fd.as_raw_fd()), start, len).build()
        }
        Op::Send { fd, message } => send(fd.as_raw_fd(), message.prepare()),
        Op::Readable { fd } => {
            opcode::PollAdd::new(Raw(fd.as_raw_fd()), libc::POLLIN as u32).build()
        }
        // These are for the datastore's threads.
        Op::Sync { .. } | Op::Allocate { .. } | Op::Blocking { .. } => {
            opcode::Nop::new().build()
        }
    }
}

fn send(fd: i32, header: *const libc::msghdr) -> squeue::Entry {
    let flags = (libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32;
    opcode::SendMsg::new(Raw(fd), header).flags(flags).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Pool;
    use crate::io::{Fd, Owner, Stored};

    const TOKEN: Token = Token { owner: Owner::Reactor, tag: 0 };

    #[test]
    fn where_other_datastores_hold_all_workers_the_own_threads_do_it() {
        let Ok(mut ring) = Uring::open(None) else { return };
        let pool = Pool::new(1 << 20).unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let fd = Fd::stored(Stored::new(file, &Arc::default(), true), true);
        let read = |ring: &mut Uring| {
            let buf = pool.get(4096).unwrap().slice(0, 4096);
            let slot =
                ring.slots.insert(TOKEN, Op::Read { fd: fd.clone(), offset: 0, buf });
            // What the kernel says where it would have to wait.
            assert!(ring.would_wait(slot, -libc::EAGAIN));
            let mut done = Vec::new();
            let with_crews = ring.with_crews;
            while done.is_empty() {
                ring.wait(Some(Duration::from_secs(1)), &mut done);
            }
            assert_eq!(done[0].result, Ok(4096));
            with_crews
        };
        assert_eq!(read(&mut ring), 0, "a worker is free");
        // Operations of datastores that hang; their slots are nobody's.
        let mut slots = 1 << 20..;
        for _ in 0..WORKERS as usize / WITH_WORKERS {
            let sick = Arc::new(Crew::default());
            while sick.take_worker(WITH_WORKERS) {
                ring.with_workers.extend(slots.next().zip(Some(Arc::clone(&sick))));
            }
        }
        assert_eq!(read(&mut ring), 1);
    }
}
