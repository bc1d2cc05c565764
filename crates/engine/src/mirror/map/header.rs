//! The header page of a region map file.
//!
//! Two copies, in sectors of their own; a change is written to one and made
//! durable before the other is touched, so one is whole at any time.
//!
//! ```text
//!   0  magic "STERNAMP"        32  disk id (u128)
//!   8  version (u32)           48  disk size (u64)
//!  12  region size (u32)       56  boot id (16 bytes)
//!  16  map generation (u64)    72  crc32c of bytes 0..72
//!  24  migration id (u64)
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::MapKey;
use crate::boot::BootId;
use crate::sidecar::DiskId;

/// The length of the header: a page, so that the words start at one.
pub(super) const HEADER_LEN: usize = 4096;
/// How many copies there are.
pub(super) const COPIES: usize = 2;
/// From one copy to the next.
pub(super) const COPY_STRIDE: usize = HEADER_LEN / COPIES;
/// The length of a copy.
pub(super) const COPY_LEN: usize = 76;

const MAGIC: &[u8; 8] = b"STERNAMP";
const VERSION: u32 = 1;
const CRC_AT: usize = COPY_LEN - 4;

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) key: MapKey,
    pub(super) generation: u64,
    pub(super) boot: BootId,
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
        let crc = crc32c::crc32c(&copy[..CRC_AT]);
        if &copy[..8] != MAGIC || crc.to_le_bytes() != copy[CRC_AT..COPY_LEN] {
            return Err(ReadError::Damaged);
        }
        let version = u32::from_le_bytes(field(copy, 8));
        if version != VERSION {
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
        Ok(Header { key, generation, boot: BootId(field(copy, 56)) })
    }
}

fn field<const N: usize>(copy: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&copy[at..at + N]);
    bytes
}

/// Reads the header of `file`: the first copy that is whole. They differ only
/// if a change of the boot id was cut off; then the first has the new one, and
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
