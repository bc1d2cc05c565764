//! Writes that do not cover whole blocks.
//!
//! A client that has not asked for the block sizes may write any bytes (`export::blocks`);
//! images take whole blocks. So such a write comes with a buffer for all blocks that it
//! touches, and what is missing of the first and of the last of them is read before it is
//! carried out.
//!
//! **Alone.** From its coming to its answer no other write of any client changes its blocks
//! (`order`). What was read is therefore what is there when the write is carried out, also
//! if the disk has switched over to another image in between.
//!
//! **Twice on its way.** The write is admitted first. Then the blocks are read, by
//! requests that go the way of all reads (through a driver, if the disk moves), but wait for
//! no admission and count as nobody's; then the write goes the way of all writes. To the driver
//! it is a write of whole blocks.
//!
//! **Memory.** The blocks are read into the write's own buffer, one after the other; what it
//! has there already is kept meanwhile, [`TOGETHER`] bytes at most.
//!
//! **Failures.** If a block cannot be read, that is the answer, and nothing is written.
//!
//! **Killed in the middle.** If the process is killed before the blocks have been read,
//! nothing is written. Later the image has been given whole blocks, with what was there
//! around the write's own bytes, and a kernel or a server that has them changes a block as a
//! whole or not at all. So each block has all of the write's bytes in it or none, as after
//! any write that was not answered, one block these and another block those; and the bytes
//! around them are as they were answered. After a loss of power this is so where the storage
//! writes a sector whole; what was not flushed may then be lost, in the same blocks too.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use sterna_core::Nanos;

use super::{Core, Disk, Progress, Request};
use crate::buffer::Slice;
use crate::image::{Cx, ImageOp, ImageResult};
use crate::io::Errno;
use crate::qos::Admission;

/// What images take whole.
pub(crate) const BLOCK: usize = crate::directory::BLOCK_MIN as usize;

/// Blocks that lie so close together are read with what is between them.
const TOGETHER: usize = 8 * BLOCK;

/// How many bytes of a write's first and last block are not its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    /// At the beginning of the first block: less than a block.
    pub(crate) head: usize,
    /// At the end of the last block: less than a block.
    pub(crate) tail: usize,
}

impl Edges {
    /// Whether there are none.
    pub(crate) fn are_whole(self) -> bool {
        self == Edges::default()
    }
}

/// A write on its way.
struct Patch {
    edges: Edges,
    /// What it has in the blocks that are read.
    kept: Vec<(Slice, Vec<u8>)>,
    /// What is still to be read.
    left: Vec<ImageOp>,
    error: Option<Errno>,
}

/// What is to be done for a write next.
enum Step {
    Read(ImageOp),
    /// It can be carried out, or not at all.
    Write(Result<(), Errno>),
}

/// The writes of a disk that do not cover whole blocks.
#[derive(Default)]
pub(super) struct Patches {
    writes: HashMap<u32, Patch>,
    /// Requests that read for them, and for which of them.
    reads: HashMap<u32, u32>,
    /// Those for which a read has ended.
    ready: VecDeque<u32>,
}

impl Patches {
    /// A write has come that does not cover whole blocks.
    pub(super) fn arrives(&mut self, request: u32, edges: Edges) {
        let (kept, left) = (Vec::new(), Vec::new());
        let patch = Patch { edges, kept, left, error: None };
        self.writes.insert(request, patch);
    }

    /// A request is about to start: what has to be read first.
    pub(super) fn begins(&mut self, request: u32, op: &ImageOp) -> Option<ImageOp> {
        // There is hardly ever one.
        if self.writes.is_empty() {
            return None;
        }
        let ImageOp::Write { offset, buf, .. } = op else { return None };
        let patch = self.writes.get_mut(&request)?;
        patch.keep(*offset, buf);
        patch.left.pop()
    }

    /// A request reads for a write.
    fn reads(&mut self, read: u32, write: u32) {
        self.reads.insert(read, write);
    }

    /// A request has been answered; whether it read for a write.
    pub(super) fn has_read(&mut self, read: u32, result: &ImageResult) -> bool {
        if self.reads.is_empty() {
            return false;
        }
        let Some(write) = self.reads.remove(&read) else { return false };
        if let (Some(patch), Err(errno)) = (self.writes.get_mut(&write), result) {
            patch.error = Some(*errno);
        }
        self.ready.push_back(write);
        true
    }

    /// A request leaves the table.
    pub(super) fn forget(&mut self, request: u32) {
        if !self.writes.is_empty() {
            self.writes.remove(&request);
        }
    }

    /// What is to be done next, and for which write.
    fn next(&mut self) -> Option<(u32, Step)> {
        let write = self.ready.pop_front()?;
        let patch = self.writes.get_mut(&write)?;
        if patch.error.is_none()
            && let Some(read) = patch.left.pop()
        {
            return Some((write, Step::Read(read)));
        }
        let patched = self.writes.remove(&write)?.patched();
        Some((write, Step::Write(patched)))
    }
}

impl Patch {
    /// Keeps what the write has in the blocks at its edges, and says what is to be read.
    fn keep(&mut self, offset: u64, buf: &Slice) {
        let Edges { head, tail } = self.edges;
        if buf.len() <= TOGETHER {
            return self.read(offset, buf, 0..buf.len(), self.edges);
        }
        if tail > 0 {
            let last = buf.len() - BLOCK..buf.len();
            self.read(offset, buf, last, Edges { head: 0, tail });
        }
        if head > 0 {
            self.read(offset, buf, 0..BLOCK, Edges { head, tail: 0 });
        }
    }

    fn read(&mut self, offset: u64, buf: &Slice, blocks: Range<usize>, edges: Edges) {
        let own = blocks.len() - edges.head - edges.tail;
        let own = buf.part(blocks.start + edges.head, own);
        let bytes = own.bytes().to_vec();
        self.kept.push((own, bytes));
        let offset = offset + blocks.start as u64;
        let buf = buf.part(blocks.start, blocks.len());
        self.left.push(ImageOp::Read { offset, buf });
    }

    /// Puts back what was kept.
    fn patched(self) -> Result<(), Errno> {
        if let Some(errno) = self.error {
            return Err(errno);
        }
        for (own, bytes) in &self.kept {
            own.copy_from(0, bytes);
        }
        Ok(())
    }
}

impl Disk {
    /// Reads something for a write.
    pub(super) fn read_for(&mut self, cx: &mut Cx, write: u32, op: ImageOp) {
        if let Some(read) = self.core.insert_read(cx.now, write, op) {
            self.send(cx, read);
        }
    }

    /// Writes go on for which something has been read.
    pub(super) fn patch(&mut self, cx: &mut Cx) {
        while let Some((write, step)) = self.core.patches.next() {
            match step {
                Step::Read(op) => self.read_for(cx, write, op),
                Step::Write(Ok(())) => {
                    self.core.has_started(write);
                    self.send(cx, write);
                }
                Step::Write(Err(errno)) => self.core.answer(cx, write, Err(errno)),
            }
        }
    }
}

impl Core {
    fn insert_read(&mut self, now: Nanos, write: u32, op: ImageOp) -> Option<u32> {
        let origin = self.requests.get(write)?.origin;
        let progress = Progress::Started(now, None);
        let request = Request { origin, op, arrived: now, progress, promised: 0 };
        let read = self.requests.insert(request);
        self.patches.reads(read, write);
        Some(read)
    }

    /// A write that was read for is on its way itself.
    fn has_started(&mut self, write: u32) {
        if let Some(request) = self.requests.get_mut(write)
            && let Progress::Patching(since, admission) = &mut request.progress
        {
            let admission: Option<Admission> = admission.take();
            request.progress = Progress::Started(*since, admission);
        }
    }
}
