//! The header page of a region map file.
//!
//! Two copies, in sectors of their own; a change is written to one and made
//! durable before the other is touched, so one is whole at any time.
//!
//! ```text
//!   0  magic "STERNAMP"        32  disk id (u128)        72  the map's own storage
//!   8  version (u32)           48  disk size (u64)       96  the source's, and its size
//!  12  region size (u32)       56  boot id (16 bytes)   128  the destination's, and its size
//!  16  map generation (u64)                             160  crc32c of bytes 0..160
//!  24  migration id (u64)
//! ```
//!
//! A storage is three words (u64): its kind (0 unknown, 1 a file system, 2 a device), its
//! number, and the file's; see `core::mirror::Storage`. Version 1 had a checksum in their
//! place, version 2 was itself what a kill left: such a map says nothing of its time, and is
//! not believed.
//!
//! Between the copies, at [`WROTE_AT`], is a word that says when something was last written
//! to either image: milliseconds since 1970 in its lower 44 bits, and above them 20 bits of
//! the crc32c of map generation and milliseconds. It is stored as the words of regions are.
//! At [`COPIED_AT`] is such a word of the destination alone.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use sterna_core::mirror::{Origin, Past, Present, Storage};
use sterna_core::{DiskId, Nanos};

use super::MapKey;
use crate::boot::BootId;

/// The length of the header: a page, so that the words start at one.
pub(super) const HEADER_LEN: usize = 4096;
/// How many copies there are.
pub(super) const COPIES: usize = 2;
/// From one copy to the next.
pub(super) const COPY_STRIDE: usize = HEADER_LEN / COPIES;
/// The length of a copy.
pub(super) const COPY_LEN: usize = 164;
/// Where the time of the last write is.
pub(super) const WROTE_AT: usize = 1024;
/// Where that of the last write to the destination is.
pub(super) const COPIED_AT: usize = WROTE_AT + 8;
/// Bytes of both.
pub(super) const TIMES_LEN: usize = 16;

const MAGIC: &[u8; 8] = b"STERNAMP";
const VERSION: u32 = 3;
const CRC_AT: usize = COPY_LEN - 4;

/// The versions before, and where the checksum of the first was.
const EARLIER: [u32; 2] = [1, 2];
const FIRST_CRC_AT: usize = 72;

/// Bits of the last write's time.
const TIME_BITS: u32 = 44;

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) key: MapKey,
    pub(super) generation: u64,
    pub(super) boot: BootId,
    /// Where all was; of an earlier version's map it is not known.
    pub(super) places: Option<Places>,
}

/// Where the map and the images were when the map was last taken up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) map: Storage,
    pub(super) source: Origin,
    pub(super) destination: Origin,
}

/// Why there is no header.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    Damaged,
    Version(u32),
}

impl Header {
    /// One copy.
    pub(super) fn encode(&self) -> [u8; COPY_LEN] {
        let mut copy = [0; COPY_LEN];
        copy[..8].copy_from_slice(MAGIC);
        copy[8..12].copy_from_slice(&VERSION.to_le_bytes());
        copy[12..16].copy_from_slice(&self.key.region.to_le_bytes());
        copy[16..24].copy_from_slice(&self.generation.to_le_bytes());
        copy[24..32].copy_from_slice(&self.key.migration.to_le_bytes());
        copy[32..48].copy_from_slice(&self.key.disk.0.to_le_bytes());
        copy[48..56].copy_from_slice(&self.key.size.to_le_bytes());
        copy[56..72].copy_from_slice(&self.boot.0);
        let Places { map, source, destination } = self.places.unwrap_or_default();
        put_storage(&mut copy[72..96], map);
        for (at, origin) in [(96, source), (128, destination)] {
            put_storage(&mut copy[at..at + 24], origin.storage);
            copy[at + 24..at + 32].copy_from_slice(&origin.size.to_le_bytes());
        }
        let crc = crc32c::crc32c(&copy[..CRC_AT]);
        copy[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        copy
    }

    /// The whole page.
    pub(super) fn page(&self) -> [u8; HEADER_LEN] {
        let mut page = [0; HEADER_LEN];
        for copy in 0..COPIES {
            page[copy * COPY_STRIDE..][..COPY_LEN].copy_from_slice(&self.encode());
        }
        page
    }

    fn decode(copy: &[u8]) -> Result<Header, ReadError> {
        let version = u32::from_le_bytes(field(copy, 8));
        let crc_at = if version == EARLIER[0] { FIRST_CRC_AT } else { CRC_AT };
        let crc = crc32c::crc32c(&copy[..crc_at]);
        if &copy[..8] != MAGIC || crc.to_le_bytes() != copy[crc_at..crc_at + 4] {
            return Err(ReadError::Damaged);
        }
        if version != VERSION && !EARLIER.contains(&version) {
            return Err(ReadError::Version(version));
        }
        let key = MapKey {
            migration: u64::from_le_bytes(field(copy, 24)),
            disk: DiskId(u128::from_le_bytes(field(copy, 32))),
            size: u64::from_le_bytes(field(copy, 48)),
            region: u32::from_le_bytes(field(copy, 12)),
        };
        if key.size == 0 || key.region == 0 {
            return Err(ReadError::Damaged);
        }
        let generation = u64::from_le_bytes(field(copy, 16));
        let places = (version == VERSION).then(|| Places {
            map: storage(copy, 72),
            source: origin(copy, 96),
            destination: origin(copy, 128),
        });
        Ok(Header { key, generation, boot: BootId(field(copy, 56)), places })
    }

    /// What the map says of its time, with the words of its last writes.
    pub(super) fn past(&self, times: &[u8; TIMES_LEN]) -> Option<Past> {
        let Places { map, source, destination } = self.places?;
        let time = |at| self.time(u64::from_le_bytes(field(times, at)));
        let (wrote, copied) = (time(0)?, time(COPIED_AT - WROTE_AT)?);
        Some(Past { boot: self.boot.0, map, source, destination, wrote, copied })
    }

    /// The map is one of these from now on.
    pub(super) fn adopt(&mut self, present: &Present) {
        self.boot = BootId(present.boot);
        self.places = Some(Places {
            map: present.map,
            source: present.source.origin,
            destination: present.destination.origin,
        });
    }

    /// The word that says that something was written then.
    pub(super) fn word_of_time(&self, time: Nanos) -> u64 {
        let millis = (time.0 / 1_000_000) & ((1 << TIME_BITS) - 1);
        self.check_of_time(millis) << TIME_BITS | millis
    }

    /// When the word says that something was written; nothing if it is not whole.
    fn time(&self, word: u64) -> Option<Nanos> {
        let millis = word & ((1 << TIME_BITS) - 1);
        let whole = word >> TIME_BITS == self.check_of_time(millis);
        whole.then_some(Nanos(millis * 1_000_000))
    }

    fn check_of_time(&self, millis: u64) -> u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..].copy_from_slice(&millis.to_le_bytes());
        u64::from(crc32c::crc32c(&bytes)) >> (TIME_BITS - 32)
    }
}

fn put_storage(to: &mut [u8], storage: Storage) {
    let words = match storage {
        Storage::Unknown => [0, 0, 0],
        Storage::Mounted { instance, file } => [1, instance, file],
        Storage::Device { sequence } => [2, sequence, 0],
    };
    for (to, word) in to.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
}

fn storage(copy: &[u8], at: usize) -> Storage {
    let word = |at| u64::from_le_bytes(field(copy, at));
    match word(at) {
        1 => Storage::Mounted { instance: word(at + 8), file: word(at + 16) },
        2 => Storage::Device { sequence: word(at + 8) },
        _ => Storage::Unknown,
    }
}

fn origin(copy: &[u8], at: usize) -> Origin {
    let size = u64::from_le_bytes(field(copy, at + 24));
    Origin { storage: storage(copy, at), size }
}

fn field<const N: usize>(copy: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&copy[at..at + N]);
    bytes
}

/// Reads the header of `file`: the first copy that is whole. They differ only
/// if a change was cut off; then the first has the new one, and
/// what had to be done before that was durable.
pub(super) fn read(file: &File) -> Result<Header, ReadError> {
    let mut page = [0; HEADER_LEN];
    match file.read_exact_at(&mut page, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(ReadError::Damaged);
        }
        Err(error) => return Err(ReadError::Io(error)),
    }
    let first = Header::decode(&page[..COPY_LEN]);
    match (first, Header::decode(&page[COPY_STRIDE..][..COPY_LEN])) {
        (Err(ReadError::Damaged), second) => second,
        (first, _) => first,
    }
}
