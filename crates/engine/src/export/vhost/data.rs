//! Where the bytes of a request are.
//!
//! Data is read and written in the guest's own memory, however many stretches it lies
//! in. Only where they are not whole sectors (some firmware, and guests that mean harm)
//! does it go by way of a copy: part of a sector in one place and part in another no
//! device takes, and the page cache would put old bytes around it (see `image::file`).
//! Copies are made in memory that is the device's own: where that is used up, its queues
//! wait for answers. So a device never waits for memory that others hold.

use std::io;

use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend};

use super::Memory;
use super::chain::{Segment, length};
use super::config::SECTOR;
use crate::buffer::{Buf, Pool, Slice};
use crate::export::PIECE;

/// Copies of what does not lie in whole sectors: four of the longest pieces.
const COPIES: usize = 4 << 20;

/// A device's memory for copies.
pub(super) struct Copies(Pool);

impl Copies {
    pub(super) fn new() -> io::Result<Copies> {
        Ok(Copies(Pool::new(COPIES)?))
    }

    /// Data in pieces, each with its place on the disk, and filled if that is asked for.
    /// None, if there is no memory now; what is alone gets it in any case.
    pub(super) fn pieces(
        &self,
        memory: &Memory,
        offset: u64,
        data: &[Segment],
        fill: bool,
        alone: bool,
    ) -> Option<std::vec::IntoIter<(u64, Slice)>> {
        let whole = in_place(memory, data);
        let mut pieces = Vec::new();
        let (mut at, len) = (0, length(data) as usize);
        while at < len {
            let step = (len - at).min(PIECE);
            let buf = match &whole {
                Some(whole) => whole.part(at, step),
                None => self.get(step, alone)?.slice(0, step),
            };
            pieces.push((offset + at as u64, buf));
            at += step;
        }
        if whole.is_none() && fill {
            for (from, buf) in &pieces {
                let skip = (from - offset) as usize;
                buf.with_mut(|bytes| gather(memory, data, skip, bytes))?;
            }
        }
        Some(pieces.into_iter())
    }

    fn get(&self, len: usize, alone: bool) -> Option<Buf> {
        let own = || Pool::single(len).ok();
        self.0.get(len).or_else(|| alone.then(own).flatten())
    }
}

/// The guest's memory itself, if each segment lies in one stretch of ours, of whole
/// sectors.
fn in_place(memory: &Memory, data: &[Segment]) -> Option<Slice> {
    let mut vector = Vec::with_capacity(data.len());
    for segment in data {
        let stretch = memory.get_slice(segment.at, segment.len as usize).ok()?;
        let start = stretch.ptr_guard_mut().as_ptr();
        vector.push(libc::iovec { iov_base: start.cast(), iov_len: stretch.len() });
    }
    let owner = memory.clone();
    // SAFETY: so many bytes are mapped at each, and they are as long as the memory is
    // referred to.
    let slice = unsafe { Slice::shared(vector, owner) };
    slice.is_aligned(SECTOR as u32).then_some(slice)
}

/// Copies data from `skip` on out of its segments.
fn gather(memory: &Memory, data: &[Segment], skip: usize, to: &mut [u8]) -> Option<()> {
    let mut at = 0;
    for (segment, from, len) in parts(data, skip, to.len()) {
        let address = GuestAddress(segment.at.0 + from as u64);
        memory.read_slice(&mut to[at..at + len], address).ok()?;
        at += len;
    }
    Some(())
}

/// Copies data into its segments, from `skip` on.
pub(super) fn scatter(
    memory: &Memory,
    data: &[Segment],
    skip: usize,
    from: &[u8],
) -> Option<()> {
    let mut at = 0;
    for (segment, to, len) in parts(data, skip, from.len()) {
        let address = GuestAddress(segment.at.0 + to as u64);
        memory.write_slice(&from[at..at + len], address).ok()?;
        at += len;
    }
    Some(())
}

/// The parts of segments that hold so many bytes from `skip` on.
fn parts(
    data: &[Segment],
    mut skip: usize,
    mut len: usize,
) -> impl Iterator<Item = (Segment, usize, usize)> {
    data.iter().filter_map(move |segment| {
        let from = skip.min(segment.len as usize);
        skip -= from;
        let part = (segment.len as usize - from).min(len);
        len -= part;
        (part > 0).then_some((*segment, from, part))
    })
}
