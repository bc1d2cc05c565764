//! Commands about a range that carry no bytes: discards, zeroes, and what is to be read
//! ahead. They go piece by piece, one after the other.
//!
//! Of a client that has not asked for the block sizes, zeroes may begin and end within
//! blocks: these parts are written out, one after the other, behind all else.
//!
//! Each piece waits for admission. Those that keep the datastore busy with their bytes
//! are as long as a read or a write can be, and cost as much.

use super::ahead::Pending;
use super::blocks::{Around, inside};
use super::command::{Command, Kind};
use super::connection::Connection;
use super::memory::Refusal;
use super::{MARK_PIECE, PIECE};
use crate::buffer::Slice;
use crate::disk::{BLOCK, Disk, Edges};
use crate::image::{Cx, ImageOp};

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

    /// The next piece, if something is left.
    fn next(&mut self, disk: &Disk) -> Option<(ImageOp, Edges)> {
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
fn parts(offset: u64, len: u32) -> Vec<(u64, Edges)> {
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

impl Connection {
    /// Starts to write zeroes. What they cover of blocks at their ends is written out, when
    /// all else has gone well.
    pub(super) fn start_zeroes(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        pending: &Pending,
        (offset, len): (u64, u32),
        asked: Asked,
    ) -> Result<(), Refusal> {
        let mut ranged = Ranged::new(inside(offset, len), asked);
        let (left, mut paid) = (parts(offset, len), 0);
        if !left.is_empty() {
            let (lanes, cost) = self.take_buffers(cx, disk, BLOCK)?;
            let block = lanes.into_iter().flatten().next().map(|buf| buf.slice(0, BLOCK));
            ranged.parts = block.map(|block| Parts { left, block });
            paid = cost;
        }
        self.start_ranged(cx, disk, pending, ranged, paid);
        Ok(())
    }

    /// Starts a command, whose buffers have cost so much.
    pub(super) fn start_ranged(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        pending: &Pending,
        ranged: Ranged,
        cost: usize,
    ) {
        let key = self.add(pending, Kind::Ranged(ranged), cost);
        if !self.next_piece(cx, disk, key) {
            // A trim in which no block is whole.
            self.end(key);
        }
    }

    /// Asks for the next piece; false if nothing is left.
    pub(super) fn next_piece(&mut self, cx: &mut Cx, disk: &mut Disk, key: u32) -> bool {
        let Some(Command { kind: Kind::Ranged(ranged), .. }) = self.commands.get_mut(key)
        else {
            return false;
        };
        let Some((op, edges)) = ranged.next(disk) else { return false };
        self.request_within(cx, disk, key, op, edges);
        true
    }
}
