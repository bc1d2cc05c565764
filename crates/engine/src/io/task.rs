//! File operations as a thread carries them out: the plain system calls.

use std::os::fd::{AsRawFd, RawFd};

use super::{Allocate, Errno, Op};

/// What a thread does with a file. The addresses belong to the operation in its slot.
pub(super) enum Task {
    Read { fd: RawFd, offset: u64, to: Vec<libc::iovec> },
    Write { fd: RawFd, offset: u64, from: Vec<libc::iovec>, dsync: bool },
    Sync { fd: RawFd },
    Allocate { fd: RawFd, mode: Allocate, offset: u64, len: u64 },
}

// SAFETY: the raw addresses are valid and borrowed for the operation until its
// completion is taken out of its slot, which happens after the thread is done
// with them (or never, if the slots are leaked).
unsafe impl Send for Task {}

impl Task {
    pub(super) fn of(op: &mut Op) -> Option<Task> {
        Some(match op {
            Op::Read { fd, offset, buf } => Task::Read {
                fd: fd.as_raw_fd(),
                offset: *offset,
                to: buf.vector().to_vec(),
            },
            Op::Write { fd, offset, buf, dsync } => Task::Write {
                fd: fd.as_raw_fd(),
                offset: *offset,
                from: buf.vector().to_vec(),
                dsync: *dsync,
            },
            Op::Sync { fd } => Task::Sync { fd: fd.as_raw_fd() },
            Op::Allocate { fd, mode, offset, len } => Task::Allocate {
                fd: fd.as_raw_fd(),
                mode: *mode,
                offset: *offset,
                len: *len,
            },
            Op::Blocking { .. }
            | Op::Recv { .. }
            | Op::Send { .. }
            | Op::Readable { .. } => return None,
        })
    }

    pub(super) fn run(self) -> Result<u64, Errno> {
        match self {
            Task::Read { fd, offset, to } => {
                let (at, count) = (to.as_ptr(), count(&to));
                // SAFETY: the buffer is borrowed exclusively for this read.
                retry(|| unsafe { libc::preadv2(fd, at, count, signed(offset), 0) })
            }
            Task::Write { fd, offset, from, dsync } => {
                let (at, count) = (from.as_ptr(), count(&from));
                let flags = if dsync { libc::RWF_DSYNC } else { 0 };
                // SAFETY: the buffer is borrowed for reading.
                retry(|| unsafe { libc::pwritev2(fd, at, count, signed(offset), flags) })
            }
            // SAFETY: no pointers are involved.
            Task::Sync { fd } => retry(|| unsafe { libc::fdatasync(fd) } as isize),
            Task::Allocate { fd, mode, offset, len } => retry(|| {
                // SAFETY: no pointers are involved.
                let result = unsafe {
                    libc::fallocate(fd, mode.mode(), signed(offset), signed(len))
                };
                result as isize
            }),
        }
    }
}

/// A number of stretches as the system calls take it. There are never so many.
fn count(vector: &[libc::iovec]) -> i32 {
    i32::try_from(vector.len()).unwrap_or(i32::MAX)
}

/// An offset as the system calls take it. Images are never larger.
fn signed(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

/// Makes a system call until it is not interrupted. Some devices say `EAGAIN` now and
/// then, and mean it.
pub(super) fn retry(mut call: impl FnMut() -> isize) -> Result<u64, Errno> {
    loop {
        let result = call();
        match u64::try_from(result) {
            Ok(value) => return Ok(value),
            Err(_) => match Errno::last() {
                Errno(libc::EINTR) => {}
                errno => return Err(errno),
            },
        }
    }
}
