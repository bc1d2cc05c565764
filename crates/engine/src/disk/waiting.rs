//! What of a disk waits for its turn: how many requests of its guest, and what they hold
//! of the reactor's memory.

use crate::image::ImageOp;

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
