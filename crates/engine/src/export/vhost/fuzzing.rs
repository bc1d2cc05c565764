//! What the fuzz targets see of this room: requests as they lie in a guest's memory, and
//! the area of what is under way.
//!
//! Nothing is judged here. A target gets what was made of its bytes, with where in this
//! process each byte would be read or written.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};

use super::Memory;
use super::chain::{Chain, Segment};
use super::data::{Copies, scatter};
use super::inflight::{Area, Tracked};
use super::request::{What, parse};

/// A guest's memory.
pub struct Guest {
    memory: Memory,
    copies: Copies,
    host: Vec<Range<usize>>,
}

/// A request that was found there.
#[derive(Debug)]
pub struct Found {
    /// Where its status goes, in the guest's memory.
    pub status: u64,
    /// Where its data is there, of a read or a write: addresses and lengths.
    pub data: Vec<(u64, u32)>,
    /// What it asks for.
    pub asked: Asked,
}

/// What is asked for, on the disk in bytes.
#[derive(Debug)]
pub enum Asked {
    /// A read.
    Read(Vec<Piece>),
    /// A write.
    Write(Vec<Piece>),
    /// Ranges that shall read as zeroes.
    Zero(Vec<Range<u64>>),
    /// Nothing on the disk, or something that is refused.
    Else,
}

/// A piece of a read or a write.
#[derive(Debug)]
pub struct Piece {
    /// Where it is on the disk.
    pub offset: u64,
    /// How long it is.
    pub len: usize,
    /// Where its bytes are in this process, if they are in the guest's memory; else they
    /// go by way of a copy.
    pub host: Option<Vec<Range<usize>>>,
    /// Of a write that does: the copy.
    pub copy: Option<Vec<u8>>,
}

impl Guest {
    /// Memory of these parts, each with its address in the guest.
    pub fn new(parts: &[(u64, &[u8])]) -> Option<Guest> {
        let ranges: Vec<_> =
            parts.iter().map(|(at, bytes)| (GuestAddress(*at), bytes.len())).collect();
        let memory = GuestMemoryMmap::from_ranges(&ranges).ok()?;
        let mut host = Vec::new();
        for (at, bytes) in parts {
            memory.write_slice(bytes, GuestAddress(*at)).ok()?;
            let start = memory.get_host_address(GuestAddress(*at)).ok()? as usize;
            host.push(start..start + bytes.len());
        }
        Some(Guest { memory: Arc::new(memory), copies: Copies::new().ok()?, host })
    }

    /// Whether all of this is the guest's memory.
    pub fn holds(&self, host: &Range<usize>) -> bool {
        let mut at = host.start;
        while at < host.end {
            // Parts that touch in this process are still parts of the guest's memory.
            match self.host.iter().find(|part| part.contains(&at)) {
                Some(part) => at = part.end,
                None => return false,
            }
        }
        true
    }

    /// The request of a descriptor of a queue, for a disk of so many bytes.
    pub fn request(&self, table: u64, size: u16, head: u16, disk: u64) -> Option<Found> {
        let chain = Chain::walk(&self.memory, table, size, head)?;
        let request = parse(&self.memory, chain, disk)?;
        let data = match &request.what {
            What::Read { to: data, .. } | What::Write { from: data, .. } => {
                data.as_slice()
            }
            _ => &[],
        };
        let data = data.iter().map(|it| (it.at.0, it.len)).collect();
        let asked = match request.what {
            What::Read { offset, to } => Asked::Read(self.pieces(offset, &to, false)?),
            What::Write { offset, from } => {
                Asked::Write(self.pieces(offset, &from, true)?)
            }
            What::Zero(ranges) => Asked::Zero(
                ranges.iter().map(|it| it.offset..it.offset + it.len).collect(),
            ),
            What::Flush | What::Name { .. } | What::Wrong | What::Unknown => Asked::Else,
        };
        Some(Found { status: request.status.0, data, asked })
    }

    /// Bytes that were read by way of a copy go where the data of their request is, from
    /// `skip` on; false if that is not all in the memory.
    pub fn arrives(&self, data: &[(u64, u32)], skip: usize, bytes: &[u8]) -> bool {
        let segment = |&(at, len): &(u64, u32)| Segment { at: GuestAddress(at), len };
        let data: Vec<Segment> = data.iter().map(segment).collect();
        scatter(&self.memory, &data, skip, bytes).is_some()
    }

    /// A status goes where it shall; false if that is not in the memory.
    pub fn says(&self, at: u64, status: u8) -> bool {
        self.memory.write_obj(status, GuestAddress(at)).is_ok()
    }

    /// The bytes of a part of the memory.
    pub fn part(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.memory.read_slice(&mut bytes, GuestAddress(at)).expect("it is there");
        bytes
    }

    fn pieces(&self, offset: u64, data: &[Segment], fill: bool) -> Option<Vec<Piece>> {
        let pieces = self.copies.pieces(&self.memory, offset, data, fill, true)?;
        let piece = |(offset, slice): (u64, crate::buffer::Slice)| {
            let host = slice.is_shared().then(|| {
                let range = |one: &libc::iovec| {
                    let start = one.iov_base as usize;
                    start..start + one.iov_len
                };
                slice.vector().iter().map(range).collect()
            });
            let copied = fill && host.is_none();
            let copy = copied.then(|| slice.bytes().to_vec());
            Piece { offset, len: slice.len(), host, copy }
        };
        Some(pieces.map(piece).collect())
    }
}

/// An area of what is under way, in a file as a hypervisor keeps it.
pub struct Inflight {
    file: File,
    queues: u16,
    size: u16,
}

/// A queue's part of it.
pub struct Queue(Tracked);

impl Inflight {
    /// An area that begins with these bytes; none if there is none of this shape.
    pub fn new(queues: u16, size: u16, bytes: &[u8]) -> Option<Inflight> {
        let file = Area::create(queues, size).ok()?;
        let len = bytes.len().min(Area::len(queues, size) as usize);
        file.write_all_at(&bytes[..len], 0).ok()?;
        Some(Inflight { file, queues, size })
    }

    /// Takes up a queue of so many entries whose used index is this: what was under way.
    pub fn take_up(&self, index: u16, size: u16, used: u16) -> Option<(Queue, Vec<u16>)> {
        let file = self.file.try_clone().ok()?;
        let area = Area::open(file, 0, self.queues, self.size).ok()?;
        let mut queue = Queue(area.queue(index, size)?);
        let heads = queue.0.recover(used);
        Some((queue, heads))
    }
}

impl Queue {
    /// A request begins.
    pub fn start(&mut self, head: u16) {
        self.0.start(head);
    }

    /// Its answer is about to be put into the queue.
    pub fn answer(&mut self, head: u16) {
        self.0.answer(head);
    }

    /// It is there.
    pub fn answered(&mut self, head: u16, used: u16) {
        self.0.answered(head, used);
    }
}
