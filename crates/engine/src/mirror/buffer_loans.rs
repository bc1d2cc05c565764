//! The loan pool: the memory from which mirrored writes go to the destination.
//!
//! **Lent.** A mirrored write goes to the destination out of the guest's own
//! buffer, which then is not free before the destination lets go of it. So that
//! a destination that hangs cannot keep the guests' buffers, only a part of them
//! is lent out at any time, over all disks of the reactor.
//!
//! **Copied.** Past that, and always where the buffer is of a smaller pool or the connection
//! uses it again for the next piece of a long write (it would stand still), the write goes out
//! of a copy, from a pool of our own.
//!
//! **Postponed.** If that is full as well, the write waits until an earlier one
//! has ended. That is what slows the guest down to what the destination takes,
//! and it is bounded like all waiting, by the guest's patience: a write that is
//! still postponed when the guest gets its answer never goes to the destination.
//! Our own copies are what a postponed write waits for, so one that ends always
//! lets the next one go.

use std::collections::VecDeque;
use std::io;

use sterna_core::mirror::RequestId;

use crate::buffer::{Pool, Slice};
use crate::image::Cx;

/// Copies of guests' writes for the destination: with the copier's pool, 16 MiB.
const COPIES: usize = 4 << 20;

/// The part of the guests' buffers that may be lent to destinations: 1/4, which
/// leaves the guests enough to go on at full speed.
const LENT_PART: usize = 4;

/// What a mirrored write holds until the destination has answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BufferLoan(usize);

impl BufferLoan {
    /// Gives back what was lent.
    pub(super) fn end(self, cx: &mut Cx) {
        cx.lent -= self.0;
    }
}

/// Finds the memory for mirrored writes, and keeps those for which there is none.
pub(super) struct LoanPool {
    copies: Pool,
    postponed: VecDeque<RequestId>,
}

impl LoanPool {
    pub(super) fn new() -> io::Result<LoanPool> {
        Ok(LoanPool { copies: Pool::new(COPIES)?, postponed: VecDeque::new() })
    }

    /// The bytes of a guest's write for the destination; `None` if there is no
    /// room for them now. `reused`: the buffer's connection waits for it.
    pub(super) fn lend(
        &self,
        cx: &mut Cx,
        buf: &Slice,
        reused: bool,
    ) -> Option<(Slice, BufferLoan)> {
        let cost = buf.cost();
        let ours = buf.is_of(&cx.buffers);
        if ours && !reused && cx.lent + cost <= cx.buffers.budget() / LENT_PART {
            cx.lent += cost;
            return Some((buf.clone(), BufferLoan(cost)));
        }
        let copy = self.copies.get(buf.len())?.slice(0, buf.len());
        buf.copy_to(&copy);
        Some((copy, BufferLoan::default()))
    }

    /// Remembers a write for which there is no memory.
    pub(super) fn postpone(&mut self, id: RequestId) {
        self.postponed.push_back(id);
    }

    /// Whether writes wait, behind which new ones have to queue.
    pub(super) fn is_busy(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// The write that has waited longest.
    pub(super) fn next(&self) -> Option<RequestId> {
        self.postponed.front().copied()
    }

    /// Forgets a postponed write; false if this one is not.
    pub(super) fn forget(&mut self, id: RequestId) -> bool {
        let found = self.postponed.iter().position(|postponed| *postponed == id);
        found.and_then(|at| self.postponed.remove(at)).is_some()
    }
}
