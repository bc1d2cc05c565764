//! What has arrived of a handshake and has not been read.
//!
//! Both sides of a handshake take bytes as they come, in pieces of any length, and
//! read them off the front when enough are there. The rule: it never holds more than
//! [`INPUT_MAX`] bytes, so a peer that floods fills the socket's buffers and not our
//! memory. What is left when the handshake ends belongs to the transmission phase.

use std::mem;
use std::ops::Deref;

use crate::limits::INPUT_MAX;

/// Bytes in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Input(Vec<u8>);

impl Input {
    /// How many bytes [`push`](Self::push) takes at the moment.
    pub(crate) fn room(&self) -> usize {
        INPUT_MAX.saturating_sub(self.0.len())
    }

    /// Takes as many bytes as there is room for, and says how many.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room());
        self.0.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Drops so many bytes from the front; they are there.
    pub(crate) fn skip(&mut self, len: usize) {
        self.0.drain(..len);
    }

    /// The data of a message of which the head was looked at, if all of it is there;
    /// then both are taken off.
    pub(crate) fn message(&mut self, head: usize, data: usize) -> Option<Vec<u8>> {
        let data = self.0.get(head..head + data)?.to_vec();
        self.skip(head + data.len());
        Some(data)
    }

    /// Everything that is left.
    pub(crate) fn leftover(&mut self) -> Vec<u8> {
        mem::take(&mut self.0)
    }
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
