//! A request's descriptors: where in the guest's memory it lies.
//!
//! Written for both ways in which a request comes to us: out of the queue, and, after a
//! restart, by its number alone. The guest may have written anything there; a chain that
//! goes in circles ends where its table does.

use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

use super::SEGMENTS_MAX;

/// A stretch of the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) at: GuestAddress,
    pub(super) len: u32,
}

/// What a request consists of.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// What the guest has written for us.
    pub(super) given: Vec<Segment>,
    /// Where we may write.
    pub(super) room: Vec<Segment>,
}

impl Chain {
    /// The request that begins with a descriptor of a queue; none if it cannot be one.
    pub(super) fn walk(
        memory: &GuestMemoryMmap<()>,
        table: u64,
        size: u16,
        head: u16,
    ) -> Option<Chain> {
        let mut chain = Chain::default();
        let (mut table, mut size, mut next) = (GuestAddress(table), size, head);
        let (mut left, mut indirect) = (size, false);
        while left > 0 && next < size {
            let at = GuestAddress(table.0.checked_add(u64::from(next) * DESCRIPTOR)?);
            let descriptor: Descriptor = memory.read_obj(at).ok()?;
            if descriptor.refers_to_indirect_table() {
                let bytes = u64::from(descriptor.len());
                if indirect || !bytes.is_multiple_of(DESCRIPTOR) {
                    return None;
                }
                size = u16::try_from(bytes / DESCRIPTOR).ok()?;
                (table, next, left, indirect) = (descriptor.addr(), 0, size, true);
                continue;
            }
            chain.add(&descriptor)?;
            if !descriptor.has_next() {
                return Some(chain);
            }
            next = descriptor.next();
            left -= 1;
        }
        None
    }

    fn add(&mut self, descriptor: &Descriptor) -> Option<()> {
        let segment = Segment { at: descriptor.addr(), len: descriptor.len() };
        segment.at.0.checked_add(u64::from(segment.len))?;
        if self.given.len() + self.room.len() >= SEGMENTS_MAX {
            return None;
        }
        match descriptor.is_write_only() {
            true => self.room.push(segment),
            // What we may write comes last.
            false if !self.room.is_empty() => return None,
            false => self.given.push(segment),
        }
        Some(())
    }
}

/// Bytes of a descriptor.
const DESCRIPTOR: u64 = size_of::<Descriptor>() as u64;

/// Takes the first bytes off; none, and nothing is taken, if there are not so many.
pub(super) fn take_front<const N: usize>(
    memory: &GuestMemoryMmap<()>,
    segments: &mut Vec<Segment>,
) -> Option<[u8; N]> {
    if length(segments) < N as u64 {
        return None;
    }
    let (mut taken, mut at) = ([0; N], 0);
    while at < N {
        let first = segments.first_mut()?;
        let len = (first.len as usize).min(N - at);
        memory.read_slice(&mut taken[at..at + len], first.at).ok()?;
        first.at.0 += len as u64;
        first.len -= len as u32;
        at += len;
        if first.len == 0 {
            segments.remove(0);
        }
    }
    Some(taken)
}

/// Takes the last byte off: where it is.
pub(super) fn take_last(segments: &mut Vec<Segment>) -> Option<GuestAddress> {
    while segments.last()?.len == 0 {
        segments.pop();
    }
    let last = segments.last_mut()?;
    last.len -= 1;
    let at = GuestAddress(last.at.0 + u64::from(last.len));
    segments.retain(|segment| segment.len > 0);
    Some(at)
}

/// Bytes in all.
pub(super) fn length(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.len)).sum()
}
