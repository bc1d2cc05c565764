//! The record of an account in the state directory.
//!
//! ```text
//!   0  magic "STERNACC"        24  disk id (u128)
//!   8  version (u32)           40  boot id (16 bytes)
//!  12  1 open, 2 ended well,   56  1 + what the file is known by (u32), 0 without
//!      3 open, and owes        60  crc32c of bytes 0..60
//!  16  generation (u64)
//! ```
//!
//! *Owes*: clients were to be told of a loss. The account's memory says of which, and to whom;
//! this and the file are for a next daemon that finds the memory gone. Version 1 did not have
//! them.
//!
//! It is less than a sector, and is overwritten in place, so that it needs no room but the
//! first time. An empty file is one that was never written.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use sterna_core::DiskId;

use crate::boot::BootId;
use crate::plain;

const LEN: usize = 64;
const CRC_AT: usize = LEN - 4;
const MAGIC: &[u8; 8] = b"STERNACC";
const VERSION: u32 = 2;
/// The oldest that can be read.
const OLDEST: u32 = 1;
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
    pub(super) says: Says,
}

/// What it says in case the memory is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Says {
    /// Clients were to be told of a loss.
    pub(super) owed: bool,
    /// What the disk's file is known by, in its mounting.
    pub(super) kernel: Option<u32>,
}

impl Record {
    fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let state: u32 = match self.state {
            State::EndedWell => 2,
            State::Open if self.says.owed => 3,
            State::Open => 1,
        };
        let kernel = self.says.kernel.map_or(0, |address| address + 1);
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&state.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.disk.0.to_le_bytes());
        bytes[40..56].copy_from_slice(&self.boot.0);
        bytes[56..60].copy_from_slice(&kernel.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; LEN]) -> Option<Record> {
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        let whole = &bytes[..8] == MAGIC && crc.to_le_bytes() == bytes[CRC_AT..];
        let (state, owed) = match u32::from_le_bytes(field(bytes, 12)) {
            1 => (State::Open, false),
            2 => (State::EndedWell, false),
            3 => (State::Open, true),
            _ => return None,
        };
        let kernel = u32::from_le_bytes(field(bytes, 56)).checked_sub(1);
        let known = (OLDEST..=VERSION).contains(&u32::from_le_bytes(field(bytes, 8)));
        (whole && known).then(|| Record {
            generation: u64::from_le_bytes(field(bytes, 16)),
            disk: DiskId(u128::from_le_bytes(field(bytes, 24))),
            boot: BootId(field(bytes, 40)),
            state,
            says: Says { owed, kernel },
        })
    }
}

fn field<const N: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// Reads it; nothing if there is none. One that is not whole is an error, and so is one whose
/// directory is not there.
pub(super) fn read(path: &Path) -> io::Result<Option<Record>> {
    let file = match plain::open_ours(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            plain::directory_of(path)?;
            return Ok(None);
        }
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
fn write_over(path: &Path, record: &Record) -> io::Result<()> {
    plain::open_ours(path, true)?.write_all_at(&record.encode(), 0)
}

/// One that has its length.
fn open_whole(path: &Path) -> Option<File> {
    let file = plain::open_ours(path, true).ok()?;
    let len = file.metadata().ok()?.len();
    (len == LEN as u64).then_some(file)
}

/// The record of an account that is in use.
#[derive(Debug)]
pub(super) struct Written {
    path: PathBuf,
    record: Mutex<Record>,
    /// Somebody has it say that something is owed, or it does.
    is_asked_for: AtomicBool,
}

impl Written {
    pub(super) fn new(path: PathBuf, record: Record) -> Written {
        let is_asked_for = AtomicBool::new(record.says.owed);
        Written { path, record: Mutex::new(record), is_asked_for }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Something is owed: a thread notes it, as the state directory may hang. Not durably, as
    /// after another boot it says nothing.
    pub(super) fn says_owed(self: &Arc<Self>) {
        if self.is_asked_for.swap(true, Ordering::Relaxed) {
            return;
        }
        let written = Arc::clone(self);
        let note = move || written.note_owed();
        let name = "sterna-account".to_owned();
        if thread::Builder::new().name(name).spawn(note).is_err() {
            self.is_asked_for.store(false, Ordering::Relaxed);
        }
    }

    /// Notes that something is owed. Blocks.
    pub(super) fn note_owed(&self) {
        let mut record = self.lock();
        if record.state != State::Open {
            return;
        }
        record.says.owed = true;
        // The memory says it, too: that is seldom gone.
        if let Err(error) = write_over(&self.path, &record) {
            tracing::debug!(%error, "cannot note that clients are owed something");
            self.is_asked_for.store(false, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account has ended well. Gives its generation.
    pub(super) fn ends_well(&self) -> io::Result<u64> {
        let mut record = self.lock();
        let ended = Record { state: State::EndedWell, ..*record };
        write_over(&self.path, &ended)?;
        *record = ended;
        Ok(ended.generation)
    }
}

/// A number that no other account of this machine has.
pub(super) fn new_generation() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
