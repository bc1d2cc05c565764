//! A write whose payload comes in, piece by piece: into one buffer if that is enough, else
//! into two that take turns.

use crate::buffer::Slice;
use crate::disk::Edges;
use crate::export::PIECE;
use crate::export::blocks::Around;
use crate::export::memory::Lanes;

pub(super) struct Write {
    pub(super) fua: bool,
    /// The rest of its payload will not come.
    pub(super) is_cut_off: bool,
    /// Where the payload that is not yet in `filling` goes.
    next: u64,
    /// How much of it there is.
    left: usize,
    /// What is being filled.
    filling: Option<Filling>,
    lanes: Lanes,
}

/// A piece of a write.
struct Filling {
    /// Whole blocks.
    blocks: Slice,
    /// Where these begin on the disk, and what of them is not the client's.
    around: Around,
    /// So much of the client's has come.
    filled: usize,
}

impl Filling {
    fn len(&self) -> usize {
        let Edges { head, tail } = self.around.edges;
        self.blocks.len() - head - tail
    }
}

impl Write {
    pub(super) fn new(offset: u64, len: usize, fua: bool, lanes: Lanes) -> Write {
        let is_cut_off = false;
        Write { fua, is_cut_off, next: offset, left: len, filling: None, lanes }
    }

    /// The part of a buffer that the next bytes belong in; `None` while all
    /// buffers are being written to disk.
    pub(super) fn target(&mut self) -> Option<Slice> {
        if self.filling.is_none() {
            let buf = self.lanes.iter().flatten().find(|buf| buf.is_unique())?;
            let room = buf.capacity().min(PIECE) - Around::of(self.next, 0).edges.head;
            let around = Around::of(self.next, self.left.min(room));
            let blocks = buf.slice(0, around.len);
            self.filling = Some(Filling { blocks, around, filled: 0 });
        }
        let filling = self.filling.as_ref()?;
        let (filled, len) = (filling.filled, filling.len());
        Some(filling.blocks.part(filling.around.edges.head + filled, len - filled))
    }

    /// So many bytes have come. Gives a piece that is complete.
    pub(super) fn filled(&mut self, len: usize) -> Option<(Around, Slice)> {
        let filling = self.filling.as_mut()?;
        filling.filled += len;
        if filling.filled < filling.len() {
            return None;
        }
        let Filling { blocks, around, filled } = self.filling.take()?;
        self.next += filled as u64;
        self.left -= filled;
        if self.is_complete() {
            // The request keeps what it needs; the rest is free at once.
            self.lanes = [None, None];
        }
        Some((around, blocks))
    }

    pub(super) fn is_complete(&self) -> bool {
        self.left == 0
    }
}
