//! Big-endian integers in and out of byte slices.
//!
//! The rule: a [`Reader`] never looks past its slice; every step that would gives
//! `None`, and the caller says what that means.

use crate::limits::STRING_MAX;

/// Takes fields off the front of a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(front)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string with its 32-bit length before it.
    pub(crate) fn counted_string(&mut self) -> Option<&'a str> {
        let len = usize::try_from(self.u32()?).ok()?;
        string(self.bytes(len)?)
    }
}

/// The bytes as a string of the protocol: UTF-8, without NUL, not too long.
pub(crate) fn string(bytes: &[u8]) -> Option<&str> {
    if bytes.len() > STRING_MAX || bytes.contains(&0) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

/// The longest prefix of `text` with at most `max` bytes, cut between characters.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Appends a string with its 32-bit length before it.
pub(crate) fn put_counted(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&len32(text.len()).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// A length as the wire's 32 bits; callers have bounded it long before.
pub(crate) fn len32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
