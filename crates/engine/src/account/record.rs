//! The record of an account in the state directory.
//!
//! ```text
//!   0  magic "STERNACC"        24  disk id (u128)
//!   8  version (u32)           40  boot id (16 bytes)
//!  12  1 open, 2 ended well    56  zero (u32)
//!  16  generation (u64)        60  crc32c of bytes 0..60
//! ```
//!
//! It is less than a sector, and is overwritten in place, so that it needs no room but the
//! first time. An empty file is one that was never written.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sterna_core::DiskId;

use crate::boot::BootId;
use crate::plain;

const LEN: usize = 64;
const CRC_AT: usize = LEN - 4;
const MAGIC: &[u8; 8] = b"STERNACC";
const VERSION: u32 = 1;
/// Only for the daemon.
const MODE: u32 = 0o600;

/// What has become of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A daemon has taken it up, and has not ended well.
    Open,
    /// All was flushed and told.
    EndedWell,
}

/// What the record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) generation: u64,
    pub(super) disk: DiskId,
    pub(super) boot: BootId,
    pub(super) state: State,
}

impl Record {
    fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let state: u32 = match self.state {
            State::Open => 1,
            State::EndedWell => 2,
        };
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&state.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.disk.0.to_le_bytes());
        bytes[40..56].copy_from_slice(&self.boot.0);
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; LEN]) -> Option<Record> {
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        let whole = &bytes[..8] == MAGIC && crc.to_le_bytes() == bytes[CRC_AT..];
        let state = match u32::from_le_bytes(field(bytes, 12)) {
            1 => State::Open,
            2 => State::EndedWell,
            _ => return None,
        };
        let known = u32::from_le_bytes(field(bytes, 8)) == VERSION;
        (whole && known).then(|| Record {
            generation: u64::from_le_bytes(field(bytes, 16)),
            disk: DiskId(u128::from_le_bytes(field(bytes, 24))),
            boot: BootId(field(bytes, 40)),
            state,
        })
    }
}

fn field<const N: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// Reads it; nothing if there is none. One that is not whole is an error.
pub(super) fn read(path: &Path) -> io::Result<Option<Record>> {
    let file = match plain::open_ours(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let len = file.metadata()?.len();
    if len == 0 {
        return Ok(None);
    }
    let mut bytes = [0; LEN];
    file.read_exact_at(&mut bytes, 0)?;
    let record = Record::decode(&bytes).filter(|_| len == LEN as u64);
    record.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Writes it, durably, in place where there is one.
pub(super) fn write(path: &Path, record: &Record) -> io::Result<()> {
    match open_whole(path) {
        Some(file) => {
            file.write_all_at(&record.encode(), 0)?;
            file.sync_data()
        }
        None => plain::replace(path, &record.encode(), MODE),
    }
}

/// Writes it over one that is there. Not durably: after another boot it says nothing.
pub(super) fn write_over(path: &Path, record: &Record) -> io::Result<()> {
    plain::open_ours(path, true)?.write_all_at(&record.encode(), 0)
}

/// One that has its length.
fn open_whole(path: &Path) -> Option<File> {
    let file = plain::open_ours(path, true).ok()?;
    let len = file.metadata().ok()?.len();
    (len == LEN as u64).then_some(file)
}

/// A number that no other account of this machine has.
pub(super) fn new_generation() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
