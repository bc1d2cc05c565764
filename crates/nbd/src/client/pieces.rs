//! The pieces of a structured read.
//!
//! A server may answer a read with pieces of data and holes in any order. [`ReadPieces`]
//! keeps the rule that makes the result trustworthy: every piece lies within the
//! request, no byte comes twice, and at the end none is missing. A copier that took a
//! read with a gap for complete would lose data silently.

use std::fmt;

use crate::limits::READ_PIECES_MAX;

/// Which bytes of one read have come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadPieces {
    start: u64,
    end: u64,
    /// Sorted, separate, never touching.
    covered: Vec<(u64, u64)>,
}

impl ReadPieces {
    /// Nothing has come in of `len` bytes from `offset`.
    #[must_use]
    pub fn new(offset: u64, len: u32) -> Self {
        let end = offset.saturating_add(len.into());
        Self { start: offset, end, covered: Vec::new() }
    }

    /// Takes a piece and says where it begins in the request's buffer.
    pub fn add(&mut self, offset: u64, len: u32) -> Result<usize, BadPiece> {
        let end = offset.checked_add(len.into()).ok_or(BadPiece::Outside)?;
        if len == 0 || offset < self.start || end > self.end {
            return Err(BadPiece::Outside);
        }
        let at = self.covered.partition_point(|&(_, e)| e < offset);
        // Everything before `at` ends before the piece; `at` may touch or overlap it.
        let mut merged = (offset, end);
        let mut until = at;
        while let Some(&(s, e)) = self.covered.get(until) {
            if s > end {
                break;
            }
            if s < end && offset < e {
                return Err(BadPiece::Overlap);
            }
            merged = (merged.0.min(s), merged.1.max(e));
            until += 1;
        }
        if until == at && self.covered.len() >= READ_PIECES_MAX {
            return Err(BadPiece::TooMany);
        }
        self.covered.splice(at..until, [merged]);
        // Below `len` of the request, which has 32 bits.
        Ok((offset - self.start) as usize)
    }

    /// Whether every byte has come in.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.start == self.end || self.covered == [(self.start, self.end)]
    }
}

/// Why a piece of a read cannot be right. The connection must be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadPiece {
    /// It is empty or lies outside the request.
    Outside,
    /// Some of its bytes have come in before.
    Overlap,
    /// There are more separate pieces than [`READ_PIECES_MAX`].
    TooMany,
}

impl fmt::Display for BadPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Outside => "the server sent data outside the requested range",
            Self::Overlap => "the server sent the same bytes twice",
            Self::TooMany => "the server sent a read in too many pieces",
        })
    }
}

impl std::error::Error for BadPiece {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_in_any_order_make_a_whole() {
        let mut pieces = ReadPieces::new(1000, 300);
        assert_eq!(pieces.add(1200, 100), Ok(200));
        assert_eq!(pieces.add(1000, 100), Ok(0));
        assert!(!pieces.is_complete());
        assert_eq!(pieces.add(1100, 100), Ok(100));
        assert!(pieces.is_complete());
        assert_eq!(pieces.add(1100, 1), Err(BadPiece::Overlap));
        assert_eq!(pieces.add(1299, 2), Err(BadPiece::Outside));
    }

    #[test]
    fn a_read_in_dust_is_refused() {
        let mut pieces = ReadPieces::new(0, u32::MAX);
        for n in 0..READ_PIECES_MAX as u64 {
            pieces.add(2 * n, 1).unwrap();
        }
        let next = 2 * READ_PIECES_MAX as u64;
        assert_eq!(pieces.add(next, 1), Err(BadPiece::TooMany));
        assert_eq!(pieces.add(1, 1), Ok(1), "closing a gap is always possible");
    }

    proptest! {
        #[test]
        fn pieces_agree_with_a_map_of_bytes(
            list in prop::collection::vec((0u64..80, 0u32..12), 0..40),
        ) {
            let mut pieces = ReadPieces::new(10, 60);
            let mut bytes = [false; 60];
            for (offset, len) in list {
                let end = offset + u64::from(len);
                let inside = len > 0 && offset >= 10 && end <= 70;
                let range = || (offset - 10) as usize..(end - 10) as usize;
                let free = inside && bytes[range()].iter().all(|b| !b);
                prop_assert_eq!(pieces.add(offset, len).is_ok(), free);
                if free {
                    bytes[range()].fill(true);
                }
                prop_assert_eq!(pieces.is_complete(), bytes.iter().all(|b| *b));
            }
        }
    }
}
