//! How commands start: with the buffers that they will ever need, or not at all.

use sterna_core::Nanos;
use sterna_nbd as nbd;

use super::command::{Command, Kind, Status};
use super::ranged::{Asked, Ranged, parts};
use super::stream::Stream;
use super::write::Write;
use super::{Coming, Commands};
use crate::disk::{BLOCK, Disk};
use crate::export::EXTENTS_MAX;
use crate::export::ahead::Pending;
use crate::export::blocks::{Around, inside};
use crate::export::memory::{Lanes, Refusal};
use crate::image::{Cx, ImageOp};

impl Commands {
    /// Starts a command, if its buffers can be had now. Says what the client sends next.
    pub(in crate::export) fn start(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        pending: &Pending,
    ) -> Result<Coming, Refusal> {
        match pending.command {
            nbd::Command::Read { offset, len, df } => {
                self.start_read(cx, disk, pending, offset, len, df)?;
            }
            nbd::Command::Write { offset, len, fua } => {
                let len = len as usize;
                let blocks = Around::of(offset, len).len;
                let (lanes, cost) = self.take_buffers(cx, disk, blocks)?;
                let write = Write::new(offset, len, fua, lanes);
                return Ok(Coming::Payload(self.add(
                    cx,
                    pending,
                    Kind::Write(write),
                    cost,
                )));
            }
            nbd::Command::Trim { offset, len, fua } => {
                let zero = Asked::Zero { unmap: true, fua, fast: false };
                let ranged = Ranged::new(inside(offset, len), zero);
                self.start_ranged(cx, disk, pending, ranged, 0);
            }
            nbd::Command::WriteZeroes { offset, len, fua, no_hole, fast_zero } => {
                let zero = Asked::Zero { unmap: !no_hole, fua, fast: fast_zero };
                self.start_zeroes(cx, disk, pending, (offset, len), zero)?;
            }
            nbd::Command::Cache { offset, len } => {
                let Around { offset, len, .. } = Around::of(offset, len as usize);
                let range = (offset, offset + len as u64);
                self.start_ranged(cx, disk, pending, Ranged::new(range, Asked::Cache), 0);
            }
            nbd::Command::Flush => {
                let key = self.add(cx, pending, Kind::Flush, 0);
                self.request(cx, disk, key, ImageOp::Flush);
            }
            nbd::Command::BlockStatus { offset, len, req_one } => {
                let around = Around::of(offset, len as usize);
                let skip = around.edges.head as u64;
                let status = Status { len, req_one, skip };
                let key = self.add(cx, pending, Kind::Status(status), 0);
                let limit = if req_one { 1 } else { EXTENTS_MAX };
                let (offset, len) = (around.offset, around.len as u64);
                self.request(cx, disk, key, ImageOp::Extents { offset, len, limit });
            }
            nbd::Command::Disconnect => return Ok(Coming::Nothing),
        }
        Ok(Coming::Command)
    }

    fn start_read(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        pending: &Pending,
        offset: u64,
        len: u32,
        df: bool,
    ) -> Result<(), Refusal> {
        let around = Around::of(offset, len as usize);
        match self.take_buffers(cx, disk, around.len)? {
            ([Some(first), Some(second)], cost) => {
                let chunked = self.session.structured && !df;
                let stream = Stream::new(offset, len, chunked, [first, second]);
                let key = self.add(cx, pending, Kind::Stream(stream), cost);
                self.streams.push(key);
                self.go_on(cx, disk, key);
            }
            ([first, second], cost) => {
                let Some(buf) = first.or(second) else { return Ok(()) };
                let key = self.add(cx, pending, Kind::Read(offset, len), cost);
                let (offset, buf) = (around.offset, buf.slice(0, around.len));
                self.request(cx, disk, key, ImageOp::Read { offset, buf });
            }
        }
        Ok(())
    }

    /// Starts to write zeroes. What they cover of blocks at their ends is written out, when
    /// all else has gone well.
    fn start_zeroes(
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
            if let Some(buf) = lanes.into_iter().flatten().next() {
                ranged = ranged.and_parts(left, buf.slice(0, BLOCK));
            }
            paid = cost;
        }
        self.start_ranged(cx, disk, pending, ranged, paid);
        Ok(())
    }

    /// Starts a command about a range, whose buffers have cost so much.
    fn start_ranged(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        pending: &Pending,
        ranged: Ranged,
        cost: usize,
    ) {
        let key = self.add(cx, pending, Kind::Ranged(ranged), cost);
        if !self.next_piece(cx, disk, key) {
            // A trim in which no block is whole.
            self.end(key);
        }
    }

    /// The buffers of a command, unless it has to wait for them or for its disk.
    fn take_buffers(
        &mut self,
        cx: &Cx,
        disk: &mut Disk,
        len: usize,
    ) -> Result<(Lanes, usize), Refusal> {
        if !disk.core.may_begin() {
            return Err(Refusal::Admission);
        }
        let strain = disk.core.strain(cx);
        let taken = self.account.take(&cx.buffers, len, strain)?;
        disk.core.begun();
        Ok(taken)
    }

    fn add(&mut self, cx: &Cx, pending: &Pending, kind: Kind, cost: usize) -> u32 {
        let Pending { cookie, came, .. } = *pending;
        let waited = came.map_or(Nanos(0), |came| cx.now.since(came));
        let command = Command {
            cookie,
            kind,
            pieces: 0,
            error: None,
            cost,
            is_at_store: true,
            waited,
        };
        self.table.insert(command)
    }
}
