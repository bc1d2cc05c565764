//! Commands that cannot start yet: those of which the heads have been read.
//!
//! A command that finds no memory, or whose disk lets enough wait, holds up its
//! connection; but its client is waiting for all that it has sent. So heads are read
//! on, as far as that takes no memory: up to a write, whose payload comes next, or
//! the good-bye, and no more than a connection may have under way (`IN_FLIGHT_MAX`).
//! Each counts from when its head was read; while the connection waits for nothing but that
//! its client takes replies, that is the client's time and not counted. They start in order.

use std::collections::VecDeque;

use sterna_core::Nanos;
use sterna_nbd::Command;

use super::memory::Refusal;

/// A command that was read and has not started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) cookie: u64,
    pub(super) command: Command,
    /// When its head was read, if it could not start at once.
    pub(super) came: Option<Nanos>,
}

/// Those of a connection, in order of their coming.
#[derive(Default)]
pub(super) struct Ahead {
    commands: VecDeque<Pending>,
    /// Why the first of them could not start.
    refusal: Option<Refusal>,
}

impl Ahead {
    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Why the first of them could not start.
    pub(super) fn starved(&self) -> Option<Refusal> {
        self.refusal.filter(|_| !self.is_empty())
    }

    /// Whether another head may come next.
    pub(super) fn is_open(&self) -> bool {
        let last = self.commands.back().map(|pending| &pending.command);
        !matches!(last, Some(Command::Write { .. } | Command::Disconnect))
    }

    /// Takes the first one out.
    pub(super) fn take(&mut self) -> Option<Pending> {
        self.commands.pop_front()
    }

    /// It could not start, and is the first again.
    pub(super) fn refused(&mut self, now: Nanos, pending: Pending, why: Refusal) {
        let came = Some(pending.came.unwrap_or(now));
        self.commands.push_front(Pending { came, ..pending });
        self.refusal = Some(why);
    }

    /// One more was read.
    pub(super) fn push(&mut self, pending: Pending) {
        debug_assert!(self.is_open() && !self.is_empty());
        self.commands.push_back(pending);
    }

    /// They have waited for nothing but their client until now: they count from here.
    pub(super) fn come_anew(&mut self, now: Nanos) {
        for pending in &mut self.commands {
            pending.came = Some(now);
        }
    }

    /// Forgets all; says how many they were.
    pub(super) fn clear(&mut self) -> usize {
        let count = self.commands.len();
        self.commands.clear();
        count
    }
}
