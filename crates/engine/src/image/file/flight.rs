//! An operation under way on a file: its steps, and what becomes of it after each.

use std::sync::{Arc, Mutex};

use sterna_core::Nanos;

use super::descriptors::Way;
use super::outstanding::{End, Mark};
use crate::buffer::{Slice, UNIT};
use crate::image::{Done, Extent, ImageOp, ImageResult, Ticket};
use crate::io::Errno;

/// An operation under way.
pub(super) struct Flight {
    pub(super) ticket: Ticket,
    pub(super) op: ImageOp,
    /// Bytes of it that are done.
    pub(super) done: u64,
    pub(super) step: Step,
    /// How its bytes get to the device.
    pub(super) way: Way,
    /// It leaves something in the page cache.
    pub(super) dirties: bool,
    /// How it stands in the accounts of what is not durable.
    pub(super) mark: Mark,
    pub(super) began: Nanos,
}

/// What the kernel is doing for an operation.
pub(super) enum Step {
    /// Reading, writing or flushing.
    Transfer,
    Punch,
    Zero,
    WriteZeroes,
    /// Making it durable.
    Sync,
    /// A helper is looking for extents.
    Seek(Arc<Mutex<Vec<Extent>>>),
}

/// What becomes of an operation after a step.
pub(super) enum Verdict {
    Next,
    Done(Done),
    Failed(Errno),
}

/// The pages that an operation changes, first and behind the last.
pub(super) fn pages(op: &ImageOp) -> Option<(u64, u64)> {
    let (offset, len) = match op {
        ImageOp::Write { offset, buf, .. } => (*offset, buf.len() as u64),
        ImageOp::Zero { offset, len, .. } => (*offset, *len),
        _ => return None,
    };
    Some((offset / UNIT as u64, (offset + len).div_ceil(UNIT as u64)))
}

pub(super) fn pages_meet((first, end): (u64, u64), other: &ImageOp) -> bool {
    pages(other).is_some_and(|(f, e)| first < e && f < end)
}

/// What is left of a transfer.
pub(super) fn rest(offset: u64, buf: &Slice, done: u64) -> (u64, Slice) {
    if done == 0 {
        return (offset, buf.clone());
    }
    (offset + done, buf.part(done as usize, buf.len() - done as usize))
}

impl Flight {
    /// Whether its present step is to make something durable.
    pub(super) fn is_to_sync(&self) -> bool {
        matches!((&self.step, &self.op), (Step::Sync, _) | (_, ImageOp::Flush))
    }

    /// What its result says of what was outstanding. `stored`: a direct write that was
    /// answered is on the storage.
    pub(super) fn end(&self, result: &ImageResult, stored: bool) -> End {
        match result {
            Ok(_) if matches!(self.op, ImageOp::Flush) => End::Flushed,
            // The kernel was not asked, and what it has is as it was.
            Ok(_) | Err(Errno(libc::ECANCELED)) => End::Other,
            Err(_) if self.is_to_sync() => End::FlushFailed,
            Err(errno) if self.may_be_a_flush(errno) => match stored {
                true => End::DirectFlushFailed,
                false => End::FlushFailed,
            },
            Err(_) => End::Other,
        }
    }

    /// Whether a write with FUA that has failed may have failed in its flush. One that finds
    /// no room has failed by itself, and so has one that was still on its way to the page
    /// cache: its flush is a step of its own.
    fn may_be_a_flush(&self, errno: &Errno) -> bool {
        let is_full = matches!(errno, Errno(libc::ENOSPC | libc::EDQUOT));
        let is_durable = matches!(self.op, ImageOp::Write { fua: true, .. });
        is_durable && !is_full && !self.dirties
    }

    /// Where the file ends, if a step has found that out.
    pub(super) fn end_found(&self, count: u64) -> Option<u64> {
        match (&self.step, &self.op) {
            (Step::Transfer, ImageOp::Read { offset, .. }) if count == 0 => {
                Some(offset + self.done)
            }
            _ => None,
        }
    }

    /// A step succeeded with `count`.
    pub(super) fn advance(&mut self, count: u64) -> Verdict {
        match (&self.step, &self.op) {
            (Step::Transfer, ImageOp::Read { .. } | ImageOp::Write { .. })
                if count == 0 =>
            {
                Verdict::Failed(Errno(libc::EIO))
            }
            (Step::Transfer, ImageOp::Read { buf, .. } | ImageOp::Write { buf, .. }) => {
                self.done += count;
                let durable = matches!(self.op, ImageOp::Write { fua: true, .. });
                if self.done < buf.len() as u64 {
                    Verdict::Next
                } else if durable && self.dirties {
                    self.step = Step::Sync;
                    Verdict::Next
                } else {
                    Verdict::Done(Done::Ok)
                }
            }
            (Step::WriteZeroes, ImageOp::Zero { .. }) if count == 0 => {
                Verdict::Failed(Errno(libc::EIO))
            }
            (Step::WriteZeroes, ImageOp::Zero { len, .. })
                if self.done + count < *len =>
            {
                self.done += count;
                Verdict::Next
            }
            (
                Step::Punch | Step::Zero | Step::WriteZeroes,
                ImageOp::Zero { fua: true, .. },
            ) => {
                self.step = Step::Sync;
                Verdict::Next
            }
            (Step::Seek(found), _) => match found.lock() {
                Ok(mut found) => {
                    Verdict::Done(Done::Extents(std::mem::take(&mut *found)))
                }
                Err(_) => Verdict::Failed(Errno(libc::EIO)),
            },
            _ => Verdict::Done(Done::Ok),
        }
    }
}
