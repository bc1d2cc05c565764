//! What of a disk waits for its turn: how many requests of its guest, and what they hold
//! of the reactor's memory.

use crate::image::ImageOp;

/// Connections that stand behind what waits begin one command each, in turn: so each has
/// the same part of the requests that its class lets through, whether it asks for 8 KiB at
/// a time or for 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nobody is at its turn.
    #[default]
    Nobody,
    /// Who works now may begin one command.
    One,
    /// It has.
    Used,
}

#[derive(Default)]
pub(super) struct Waiting {
    requests: usize,
    memory: usize,
}

impl Waiting {
    pub(super) fn begin(&mut self, op: &ImageOp) {
        self.requests += 1;
        self.memory += op.memory();
    }

    pub(super) fn end(&mut self, op: &ImageOp) {
        self.requests -= 1;
        self.memory -= op.memory();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests == 0
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }
}
