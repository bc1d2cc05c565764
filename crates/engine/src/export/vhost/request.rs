//! What a guest asks for, out of the memory of its request.
//!
//! A request has a head (what, and from which sector on), its data, and at the end of
//! what we may write a byte for the status. How the guest cuts this into stretches is
//! up to it.

use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_IN,
    VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
};
use vm_memory::{GuestAddress, GuestMemoryMmap};

use super::chain::{Chain, Segment, length, take_front, take_last};
use super::config::SECTOR;
use super::{BYTES_MAX, RANGES_MAX};
use crate::export::MARK_PIECE;

/// The longest read or write: ten times what Linux asks for, and what may be under way of
/// a device in all.
const REQUEST_MAX: u64 = BYTES_MAX as u64;

/// A flag of a request for zeroes: the space may go.
const UNMAP: u32 = 1;

/// A request, and where its status goes.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) status: GuestAddress,
    pub(super) what: What,
}

/// What is asked for. Ranges are within the disk, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    Read {
        offset: u64,
        to: Vec<Segment>,
    },
    Write {
        offset: u64,
        from: Vec<Segment>,
    },
    Flush,
    /// The disk's name.
    Name {
        to: Vec<Segment>,
    },
    Zero(Vec<Zero>),
    /// Something that makes no sense, or is not on the disk.
    Wrong,
    /// Something that nobody has offered.
    Unknown,
}

/// A range that shall read as zeroes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Zero {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) unmap: bool,
}

/// The request of a chain, for a disk of so many bytes; none if there is not even a
/// place for a status.
pub(super) fn parse(
    memory: &GuestMemoryMmap<()>,
    chain: Chain,
    size: u64,
) -> Option<Request> {
    let Chain { mut given, mut room } = chain;
    let status = take_last(&mut room)?;
    let what = match take_front::<16>(memory, &mut given) {
        Some(head) => what(memory, head, given, room, size),
        None => What::Wrong,
    };
    Some(Request { status, what })
}

fn what(
    memory: &GuestMemoryMmap<()>,
    head: [u8; 16],
    given: Vec<Segment>,
    room: Vec<Segment>,
    size: u64,
) -> What {
    let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let sector = u64_at(&head, 8);
    let on_disk = |data: &[Segment]| {
        let (offset, len) = (sector.checked_mul(SECTOR)?, length(data));
        let fits = offset.checked_add(len)? <= size && len <= REQUEST_MAX;
        (fits && len > 0 && len.is_multiple_of(SECTOR)).then_some(offset)
    };
    match kind {
        VIRTIO_BLK_T_IN => match on_disk(&room) {
            Some(offset) => What::Read { offset, to: room },
            None => What::Wrong,
        },
        VIRTIO_BLK_T_OUT => match on_disk(&given) {
            Some(offset) => What::Write { offset, from: given },
            None => What::Wrong,
        },
        VIRTIO_BLK_T_FLUSH => What::Flush,
        VIRTIO_BLK_T_GET_ID => What::Name { to: room },
        VIRTIO_BLK_T_DISCARD => zeroes(memory, given, size, true),
        VIRTIO_BLK_T_WRITE_ZEROES => zeroes(memory, given, size, false),
        _ => What::Unknown,
    }
}

/// The ranges of a discard, or of a request for zeroes. What is discarded reads as
/// zeroes afterwards, so that it does so on every image.
fn zeroes(
    memory: &GuestMemoryMmap<()>,
    mut given: Vec<Segment>,
    size: u64,
    discard: bool,
) -> What {
    let mut ranges = Vec::new();
    while let Some(range) = take_front::<16>(memory, &mut given) {
        let sectors = u32::from_le_bytes([range[8], range[9], range[10], range[11]]);
        let flags = u32::from_le_bytes([range[12], range[13], range[14], range[15]]);
        let len = u64::from(sectors) * SECTOR;
        let offset = u64_at(&range, 0).checked_mul(SECTOR);
        let end = offset.and_then(|offset| offset.checked_add(len));
        let fits = end.is_some_and(|end| end <= size);
        let known = flags & !UNMAP == 0 && !(discard && flags != 0);
        let (Some(offset), true) = (offset, fits && known) else { return What::Wrong };
        if len > MARK_PIECE || ranges.len() >= RANGES_MAX {
            return What::Wrong;
        }
        if len > 0 {
            ranges.push(Zero { offset, len, unmap: discard || flags & UNMAP != 0 });
        }
    }
    if given.is_empty() { What::Zero(ranges) } else { What::Wrong }
}

fn u64_at(bytes: &[u8; 16], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
