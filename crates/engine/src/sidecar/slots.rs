//! The sidecar beside an image file, as bytes: two slots, of which one is the truth.
//!
//! The file has its whole length from the beginning, and a new record is written over the
//! older of the two slots. So a sidecar can be changed where there is no room left, as
//! before the source of a switch-over that a crash has ended is served; and whatever
//! becomes of a write, the other slot is whole and says what was there before. (A file
//! system that copies what is written, such as btrfs, needs room for that all the same.)
//!
//! Each slot is a block of [`SLOT_LEN`] bytes, so that a write of one never rewrites what
//! is in the other. It begins with a record as everywhere, with version 2 and this behind
//! the name; the rest of the slot is zero:
//!
//! ```text
//! 288  sequence (u64): grows by one with each write; the newest whole slot counts
//! 296  number of the image's file (u64)       312  origin (u32)
//! 304  when that file was made (u64, ns)      316  zeroes, then the checksum
//! ```
//!
//! The number is 0 where nothing is known of the file. Files of version 1, which are a
//! single record of 512 bytes, are read as well; [`Said::is_old`] then.

use super::Beside;
use super::{Identity, RECORD_LEN, SidecarError, seal, u32_at, u64_at};

/// The length of a slot: a page, and a block of most file systems.
pub const SLOT_LEN: usize = 4096;
/// The length of the file.
pub const FILE_LEN: usize = 2 * SLOT_LEN;
/// The version of a record in a slot.
pub(super) const VERSION: u32 = 2;

const SEQUENCE_AT: usize = 288;
const NUMBER_AT: usize = 296;
const MADE_AT: usize = 304;
const ORIGIN_AT: usize = 312;

/// The bytes of a slot.
pub type Slot = [u8; SLOT_LEN];

/// Where an image's file comes from, as seen from whoever wrote the sidecar last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// An older Sterna has not said so.
    #[default]
    Unknown,
    /// Sterna has made it, for the disk that it is of.
    Made,
    /// It was there before: it was imported, or kept by an earlier migration. A migration
    /// that comes to nothing does not remove it.
    Found,
}

impl Origin {
    const fn code(self) -> u32 {
        match self {
            Origin::Unknown => 0,
            Origin::Made => 1,
            Origin::Found => 2,
        }
    }

    const fn from_code(code: u32) -> Option<Origin> {
        match code {
            0 => Some(Origin::Unknown),
            1 => Some(Origin::Made),
            2 => Some(Origin::Found),
            _ => None,
        }
    }
}

/// What is said of an image in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Whose bytes it holds.
    pub identity: Identity,
    /// Which file it is, if that is known.
    pub beside: Option<Beside>,
    /// Where the file comes from.
    pub origin: Origin,
}

/// What a sidecar file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What it says.
    pub record: Record,
    /// How often it was written. 0 in a file of version 1.
    pub sequence: u64,
    /// The slot that says so.
    slot: usize,
}

impl Said {
    /// Whether the file has no slots yet.
    pub fn is_old(&self) -> bool {
        self.sequence == 0
    }

    /// Where the next record is to be written, and with which sequence.
    pub(super) fn next(&self) -> (u64, u64) {
        let other = if self.slot == 0 { SLOT_LEN } else { 0 };
        (other as u64, self.sequence.saturating_add(1))
    }
}

/// What the bytes of a sidecar file say.
pub fn decode(bytes: &[u8]) -> Result<Said, SidecarError> {
    match bytes.len() {
        RECORD_LEN => decode_old(bytes),
        FILE_LEN => {
            let (first, second) = bytes.split_at(SLOT_LEN);
            newest(decode_slot(first, 0), decode_slot(second, 1))
        }
        _ => Err(SidecarError::Damaged("it has the wrong length")),
    }
}

/// What the bytes of a sidecar file said before they were written last; nothing if the
/// other slot does not have that whole.
pub fn decode_before(bytes: &[u8]) -> Option<Record> {
    let now = decode(bytes).ok().filter(|said| !said.is_old())?;
    let (first, second) = bytes.split_at_checked(SLOT_LEN)?;
    let (other, slot) = if now.slot == 0 { (second, 1) } else { (first, 0) };
    let before = decode_slot(other, slot).ok()?;
    (before.sequence.checked_add(1) == Some(now.sequence)).then_some(before.record)
}

/// The truth of two slots. A slot of a newer Sterna is not passed over: it was written last.
fn newest(
    first: Result<Said, SidecarError>,
    second: Result<Said, SidecarError>,
) -> Result<Said, SidecarError> {
    match (first, second) {
        (Ok(first), Ok(second)) => {
            Ok(if second.sequence > first.sequence { second } else { first })
        }
        (Err(SidecarError::Version(version)), _)
        | (_, Err(SidecarError::Version(version))) => Err(SidecarError::Version(version)),
        (Ok(said), Err(_)) | (Err(_), Ok(said)) => Ok(said),
        // The file is there, so its zeroes are damage.
        (Err(SidecarError::Missing), Err(SidecarError::Missing)) => {
            Err(SidecarError::Damaged("all zeroes"))
        }
        (Err(SidecarError::Missing), Err(error)) | (Err(error), Err(_)) => Err(error),
    }
}

fn decode_old(bytes: &[u8]) -> Result<Said, SidecarError> {
    let identity = match Identity::decode(bytes) {
        Err(SidecarError::Missing) => Err(SidecarError::Damaged("all zeroes")),
        decoded => decoded,
    }?;
    let record = Record { identity, beside: None, origin: Origin::Unknown };
    Ok(Said { record, sequence: 0, slot: 0 })
}

fn decode_slot(bytes: &[u8], slot: usize) -> Result<Said, SidecarError> {
    let identity = Identity::decode_as(VERSION, bytes)?;
    let Some(bytes) = bytes.first_chunk::<RECORD_LEN>() else {
        return Err(SidecarError::Damaged("too short"));
    };
    let sequence = u64_at(bytes, SEQUENCE_AT);
    if sequence == 0 {
        return Err(SidecarError::Damaged("no such sequence"));
    }
    let beside =
        Beside { number: u64_at(bytes, NUMBER_AT), made: u64_at(bytes, MADE_AT) };
    let origin = Origin::from_code(u32_at(bytes, ORIGIN_AT))
        .ok_or(SidecarError::Damaged("no such origin"))?;
    let beside = Some(beside).filter(|beside| beside.number != 0);
    Ok(Said { record: Record { identity, beside, origin }, sequence, slot })
}

/// The slot for a record.
pub fn encode(record: &Record, sequence: u64) -> Result<Slot, SidecarError> {
    let mut bytes = record.identity.encode_as(VERSION)?;
    let beside = record.beside.unwrap_or(Beside { number: 0, made: 0 });
    bytes[SEQUENCE_AT..NUMBER_AT].copy_from_slice(&sequence.to_le_bytes());
    bytes[NUMBER_AT..MADE_AT].copy_from_slice(&beside.number.to_le_bytes());
    bytes[MADE_AT..ORIGIN_AT].copy_from_slice(&beside.made.to_le_bytes());
    bytes[ORIGIN_AT..ORIGIN_AT + 4].copy_from_slice(&record.origin.code().to_le_bytes());
    seal(&mut bytes);
    let mut slot = [0; SLOT_LEN];
    slot[..RECORD_LEN].copy_from_slice(&bytes);
    Ok(slot)
}

/// The bytes of a new file.
pub(super) fn encode_file(record: &Record) -> Result<[u8; FILE_LEN], SidecarError> {
    let mut file = [0; FILE_LEN];
    file[..SLOT_LEN].copy_from_slice(&encode(record, 1)?);
    Ok(file)
}
