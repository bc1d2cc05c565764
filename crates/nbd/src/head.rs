//! A few bytes in a fixed buffer: the head of a reply, before its payload.
//!
//! The engine keeps a head beside the request it answers and sends head and payload
//! with one gathered write; nothing is allocated and no payload is copied.

use std::ops::Deref;

/// Up to `N` bytes, held inline. Dereferences to the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Head<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Head<N> {
    /// No bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    /// Copies a head into a (larger) buffer, so that heads of several kinds can share
    /// one type. `None` when it does not fit.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Option<Self> {
        let mut head = Self::new();
        head.put(bytes).then_some(head)
    }

    /// Appends the bytes if they fit, and says whether they did.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> bool {
        let end = self.len + bytes.len();
        let Some(free) = self.bytes.get_mut(self.len..end) else {
            return false;
        };
        free.copy_from_slice(bytes);
        self.len = end;
        true
    }
}

impl<const N: usize> Default for Head<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Deref for Head<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<const N: usize> AsRef<[u8]> for Head<N> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<const N: usize> From<[u8; N]> for Head<N> {
    fn from(bytes: [u8; N]) -> Self {
        Self { bytes, len: N }
    }
}

impl<const N: usize> std::fmt::Debug for Head<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Head({:02x?})", &self[..])
    }
}
