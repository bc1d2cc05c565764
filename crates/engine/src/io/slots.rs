//! The operations in flight, with their tokens: where files and buffers live
//! until their completion. Putting an operation in borrows its buffers the way
//! the kernel will use them; taking it out gives the borrows back.

use std::sync::Arc;

use super::crew::{Chore, Crew, Errand};
use super::task::Task;
use super::workers::Finished;
use super::{Completion, Errno, Op, Token};
use crate::slab::Slab;

pub(super) struct Slots(Slab<(Token, Op)>);

impl Slots {
    pub(super) const fn new() -> Slots {
        Slots(Slab::new())
    }

    pub(super) fn insert(&mut self, token: Token, op: Op) -> u32 {
        match &op {
            Op::Read { buf, .. } | Op::Recv { buf, .. } => buf.borrow_exclusive(),
            Op::Write { buf, .. } => buf.borrow_shared(),
            Op::Send { message, .. } => message.borrow(),
            Op::Sync { .. }
            | Op::Allocate { .. }
            | Op::Readable { .. }
            | Op::Blocking { .. } => {}
        }
        self.0.insert((token, op))
    }

    pub(super) fn complete(
        &mut self,
        slot: u32,
        result: Result<u64, Errno>,
    ) -> Completion {
        let (token, op) = self.0.remove(slot).expect("an operation completes once");
        match &op {
            Op::Read { buf, .. } | Op::Recv { buf, .. } => buf.release_exclusive(),
            Op::Write { buf, .. } => buf.release_shared(),
            Op::Send { message, .. } => message.release(),
            Op::Sync { .. }
            | Op::Allocate { .. }
            | Op::Readable { .. }
            | Op::Blocking { .. } => {}
        }
        Completion { token, result, op }
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Op> {
        self.0.get_mut(slot).map(|(_, op)| op)
    }

    /// Hands an operation to the threads of its datastore; its result goes to `to`.
    pub(super) fn delegate(
        &mut self,
        slot: u32,
        to: &Arc<Finished>,
    ) -> Result<(), Errno> {
        let op = self.get_mut(slot).ok_or(Errno(libc::EINVAL))?;
        let crew = crew_of(op).map(Arc::clone).ok_or(Errno(libc::EINVAL))?;
        let (chore, errand) = match op {
            Op::Blocking { chore, job, .. } => (*chore, job.take().map(Errand::Job)),
            op => (Chore::Transfer, Task::of(op).map(Errand::Task)),
        };
        crew.start(chore, errand.ok_or(Errno(libc::EINVAL))?, slot, to);
        Ok(())
    }

    /// Takes an operation back from the threads of its datastore; false if one of them
    /// has begun it, or none was asked to.
    pub(super) fn withdraw(&mut self, slot: u32, to: &Arc<Finished>) -> bool {
        let op = self.0.get(slot).map(|(_, op)| op);
        op.and_then(crew_of).is_some_and(|crew| crew.withdraw(slot, to))
    }

    /// The slots of the operations with that token.
    pub(super) fn with_token(&self, token: Token) -> Vec<u32> {
        self.0.iter().filter(|(_, (t, _))| *t == token).map(|(slot, _)| slot).collect()
    }

    pub(super) fn all(&self) -> Vec<u32> {
        self.0.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many of them lend nothing to the kernel: what they need they have with them.
    pub(super) fn jobs(&self) -> usize {
        let is_job = |op: &Op| matches!(op, Op::Blocking { .. });
        self.0.iter().filter(|(_, (_, op))| is_job(op)).count()
    }

    /// Never frees what is in flight: for an `Io` that must end while the
    /// kernel still holds on to something.
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::replace(&mut self.0, Slab::new()));
    }
}

/// Those who wait for an operation, if somebody may have to.
fn crew_of(op: &Op) -> Option<&Arc<Crew>> {
    match op {
        Op::Blocking { crew, .. } => Some(crew),
        op => op.file()?.crew(),
    }
}
