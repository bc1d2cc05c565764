//! Requests of clients that have not asked for the block sizes: any offset, any length.
//!
//! Disks take whole blocks. So what such a client asks for becomes a request for all blocks
//! that it touches:
//!
//! - **Reads**, and what is to be read ahead: the blocks are read, and the reply is cut.
//! - **Writes** have a buffer for all blocks of a piece; what is missing of the first and the
//!   last of them the disk reads itself (`disk::patch`).
//! - **Zeroes**: whole blocks first, then the parts at both ends, as writes (`commands`).
//! - **Trims** are hints: parts of blocks are left as they are.
//! - **Block status**: that of the blocks, cut.
//!
//! Limits, shares and statistics count the blocks.

use crate::disk::{BLOCK, Edges};

/// The whole blocks around a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Around {
    /// Where they begin.
    pub(super) offset: u64,
    /// How many bytes they are.
    pub(super) len: usize,
    /// How much of them is not of the range.
    pub(super) edges: Edges,
}

impl Around {
    pub(super) fn of(offset: u64, len: usize) -> Around {
        let head = (offset % BLOCK as u64) as usize;
        let whole = (head + len).next_multiple_of(BLOCK);
        let edges = Edges { head, tail: whole - head - len };
        Around { offset: offset - head as u64, len: whole, edges }
    }
}

/// The whole blocks inside a range; they end where they begin if there are none.
pub(super) fn inside(offset: u64, len: u32) -> (u64, u64) {
    let block = BLOCK as u64;
    let start = offset.next_multiple_of(block);
    let end = (offset + u64::from(len)) / block * block;
    (start, end.max(start))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_around_a_range_are_whole_and_as_few_as_can_be(
            offset in 0u64..1 << 40, len in 1usize..1 << 21,
        ) {
            let Around { offset: start, len: whole, edges } = Around::of(offset, len);
            prop_assert!(start.is_multiple_of(512) && whole.is_multiple_of(512));
            prop_assert!(edges.head < 512 && edges.tail < 512);
            prop_assert_eq!(start + edges.head as u64, offset);
            prop_assert_eq!(edges.head + len + edges.tail, whole);
        }

        #[test]
        fn blocks_inside_a_range_are_all_but_parts_at_its_ends(
            offset in 0u64..1 << 40, len in 1u32..1 << 21,
        ) {
            let (start, end) = inside(offset, len);
            prop_assert!(start.is_multiple_of(512) && end.is_multiple_of(512));
            let whole = (end - start) as usize;
            let Around { len: around, edges, .. } = Around::of(offset, len as usize);
            let parts = [edges.head, edges.tail].iter().filter(|it| **it > 0).count();
            let one = around == 512 && parts > 0;
            prop_assert_eq!(whole, if one { 0 } else { around - 512 * parts });
        }
    }
}
