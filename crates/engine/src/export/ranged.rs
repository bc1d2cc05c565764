//! Commands about a range that carry no bytes: discards, zeroes, and what is to be read
//! ahead. They go piece by piece, one after the other.
//!
//! Each piece waits for its turn. Those that keep the datastore busy with their bytes
//! are as long as a read or a write can be, and cost as much.

use super::ahead::Pending;
use super::command::{Command, Kind};
use super::connection::Connection;
use super::{MARK_PIECE, PIECE};
use crate::disk::Disk;
use crate::image::{Cx, ImageOp};

/// What is left of such a command.
pub(super) struct Ranged {
    next: u64,
    end: u64,
    asked: Asked,
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
    pub(super) fn new(offset: u64, len: u32, asked: Asked) -> Ranged {
        Ranged { next: offset, end: offset + u64::from(len), asked }
    }

    /// The next piece, if something is left.
    fn next(&mut self, disk: &Disk) -> Option<ImageOp> {
        let (offset, left) = (self.next, self.end - self.next);
        let whole = self.asked.op(offset, left);
        let piece = if disk.core.moves_bytes(&whole) { PIECE as u64 } else { MARK_PIECE };
        let len = left.min(piece);
        self.next += len;
        (len > 0).then(|| self.asked.op(offset, len))
    }
}

impl Connection {
    pub(super) fn start_ranged(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        pending: &Pending,
        ranged: Ranged,
    ) {
        let key = self.add(pending, Kind::Ranged(ranged), 0);
        self.next_piece(cx, disk, key);
    }

    /// Asks for the next piece; false if nothing is left.
    pub(super) fn next_piece(&mut self, cx: &mut Cx, disk: &mut Disk, key: u32) -> bool {
        let Some(Command { kind: Kind::Ranged(ranged), .. }) = self.commands.get_mut(key)
        else {
            return false;
        };
        let Some(op) = ranged.next(disk) else { return false };
        self.request(cx, disk, key, op);
        true
    }
}
