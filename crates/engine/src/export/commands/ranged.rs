//! Commands about a range that carry no bytes: discards, zeroes, and what is to be read
//! ahead. They go piece by piece, one after the other.
//!
//! Of a client that has not asked for the block sizes, zeroes may begin and end within
//! blocks: these parts are written out, one after the other, behind all else.
//!
//! Each piece waits for admission. Those that keep the datastore busy with their bytes
//! are as long as a read or a write can be, and cost as much.

use crate::buffer::Slice;
use crate::disk::{BLOCK, Disk, Edges};
use crate::export::blocks::Around;
use crate::export::{MARK_PIECE, PIECE};
use crate::image::ImageOp;

/// What is left of such a command.
pub(super) struct Ranged {
    next: u64,
    end: u64,
    asked: Asked,
    parts: Option<Parts>,
}

/// Parts of blocks that are to be zeroes.
struct Parts {
    /// At most two: where their blocks are, and what of these stays.
    left: Vec<(u64, Edges)>,
    /// A block, of which they are written out.
    block: Slice,
}

/// What is to be done to the range.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    Zero { unmap: bool, fua: bool, fast: bool },
    Cache,
}

impl Asked {
    fn op(self, offset: u64, len: u64) -> ImageOp {
        match self {
            Asked::Zero { unmap, fua, fast } => {
                ImageOp::Zero { offset, len, unmap, fua, fast }
            }
            Asked::Cache => ImageOp::Cache { offset, len },
        }
    }
}

impl Ranged {
    /// For whole blocks, from the one place to the other.
    pub(super) fn new((next, end): (u64, u64), asked: Asked) -> Ranged {
        Ranged { next, end, asked, parts: None }
    }

    /// The same, and then for these parts of blocks, by way of a block.
    pub(super) fn and_parts(self, left: Vec<(u64, Edges)>, block: Slice) -> Ranged {
        Ranged { parts: Some(Parts { left, block }), ..self }
    }

    /// The next piece, if something is left.
    pub(super) fn next(&mut self, disk: &Disk) -> Option<(ImageOp, Edges)> {
        if self.next == self.end {
            return self.next_part();
        }
        let (offset, left) = (self.next, self.end - self.next);
        let whole = self.asked.op(offset, left);
        let piece = if disk.core.moves_bytes(&whole) { PIECE as u64 } else { MARK_PIECE };
        let len = left.min(piece);
        self.next += len;
        Some((self.asked.op(offset, len), Edges::default()))
    }

    fn next_part(&mut self) -> Option<(ImageOp, Edges)> {
        let Parts { left, block } = self.parts.as_mut()?;
        let (offset, edges) = left.pop()?;
        let fua = matches!(self.asked, Asked::Zero { fua: true, .. });
        block.zero();
        Some((ImageOp::Write { offset, buf: block.clone(), fua }, edges))
    }
}

/// The blocks of which a range has a part.
pub(super) fn parts(offset: u64, len: u32) -> Vec<(u64, Edges)> {
    let Around { offset: first, len, edges } = Around::of(offset, len as usize);
    let Edges { head, tail } = edges;
    let last = first + (len - BLOCK) as u64;
    if first == last {
        let part = (first, edges);
        return if edges.are_whole() { Vec::new() } else { vec![part] };
    }
    let ends = [(first, Edges { head, tail: 0 }), (last, Edges { head: 0, tail })];
    ends.into_iter().filter(|(_, edges)| !edges.are_whole()).collect()
}
