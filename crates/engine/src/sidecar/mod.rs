//! The sidecar: what an image says about itself.
//!
//! Every image has a small record beside it: whose bytes these are, of which
//! generation, and whether they are the truth. With it a lost state directory
//! can be rebuilt, and a stale image is never taken for the truth: of two
//! images of one disk that both claim to be active, the higher generation is
//! right.
//!
//! A record is [`RECORD_LEN`] bytes, little endian, so that it fits a sector:
//!
//! ```text
//!   0  magic "STERNASC"      32  size         52  name length (u16)
//!   8  version (u32)         40  generation   54  reserved, zero (u16)
//!  12  reserved, zero (u32)  48  role (u32)   56  name (UTF-8), then zeroes
//!  16  disk id (u128)                        508  crc32c of bytes 0..508
//! ```
//!
//! On a device or an export it lives in the last block ([`trailer`]). Beside a file it is
//! in a file of its own ([`file`]), in slots, with more about that file ([`slots`]).

mod beside;
pub mod file;
pub mod slots;
pub mod trailer;

use std::fmt;
use std::io;
use std::path::PathBuf;

use sterna_core::DiskId;

pub use self::beside::Beside;

/// The length of a record: one sector, the unit that a disk writes whole.
pub const RECORD_LEN: usize = 512;
/// The longest disk name in bytes: the name of an image file, with its
/// suffixes, still fits the 255 bytes that file systems take.
pub const MAX_NAME: usize = 230;
/// The highest generation. A thousand switch-overs a second take eight thousand years
/// to get there; and there is room for adding to it, and in SQLite's signed integers.
pub const MAX_GENERATION: u64 = 1 << 48;

const MAGIC: &[u8; 8] = b"STERNASC";
const VERSION: u32 = 1;
const NAME_AT: usize = 56;
const CRC_AT: usize = RECORD_LEN - 4;

/// The generation of a disk that is made. The copy of a move has a higher one.
pub const FIRST: u64 = 1;

/// What an image is to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The truth, unless another active image has a higher generation.
    Active,
    /// The destination of a migration that is not done.
    Partial,
    /// Was the truth once; kept because the user asked for it.
    Retired,
}

impl Role {
    const fn code(self) -> u32 {
        match self {
            Role::Active => 1,
            Role::Partial => 2,
            Role::Retired => 3,
        }
    }

    const fn from_code(code: u32) -> Option<Role> {
        match code {
            1 => Some(Role::Active),
            2 => Some(Role::Partial),
            3 => Some(Role::Retired),
            _ => None,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Active => "active",
            Role::Partial => "partial",
            Role::Retired => "retired",
        })
    }
}

/// Whose bytes an image holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The disk.
    pub id: DiskId,
    /// What people call it; at most [`MAX_NAME`] bytes.
    pub name: String,
    /// The disk's size in bytes.
    pub size: u64,
    /// Grows by one with each switch-over; the higher one is right.
    pub generation: u64,
    /// What the image is to the disk.
    pub role: Role,
}

/// Why a record cannot be written or read. What to do about one that is missing or
/// not whole is for the caller to say, who knows the names that the command takes.
#[derive(Debug, thiserror::Error)]
pub enum SidecarError {
    /// There is none.
    #[error("there is no sidecar")]
    Missing,
    /// Other bytes where a record should be.
    #[error("the data there is not a sidecar")]
    Foreign,
    /// Not whole.
    #[error("the sidecar is damaged ({0})")]
    Damaged(&'static str),
    /// A record from the future.
    #[error(
        "the sidecar has version {0}, and this Sterna knows versions up to {known}; \
         upgrade Sterna",
        known = slots::VERSION
    )]
    Version(u32),
    /// The name does not fit.
    #[error("the disk name is {0} bytes long; choose one of 1 to {MAX_NAME} bytes")]
    Name(usize),
    /// Nobody counts that far.
    #[error("there is no generation {0}; the highest is {MAX_GENERATION}")]
    Generation(u64),
    /// The file cannot be read or written.
    #[error("cannot {what} the sidecar {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Identity {
    /// The record for this identity.
    pub fn encode(&self) -> Result<[u8; RECORD_LEN], SidecarError> {
        let mut record = self.encode_as(VERSION)?;
        seal(&mut record);
        Ok(record)
    }

    /// The record of a version, without its checksum.
    fn encode_as(&self, version: u32) -> Result<[u8; RECORD_LEN], SidecarError> {
        let name = self.name.as_bytes();
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(SidecarError::Name(name.len()));
        }
        if self.generation > MAX_GENERATION {
            return Err(SidecarError::Generation(self.generation));
        }
        let mut record = [0; RECORD_LEN];
        record[..8].copy_from_slice(MAGIC);
        record[8..12].copy_from_slice(&version.to_le_bytes());
        record[16..32].copy_from_slice(&self.id.0.to_le_bytes());
        record[32..40].copy_from_slice(&self.size.to_le_bytes());
        record[40..48].copy_from_slice(&self.generation.to_le_bytes());
        record[48..52].copy_from_slice(&self.role.code().to_le_bytes());
        // At most MAX_NAME, which fits.
        record[52..54].copy_from_slice(&(name.len() as u16).to_le_bytes());
        record[NAME_AT..NAME_AT + name.len()].copy_from_slice(name);
        Ok(record)
    }

    /// What a record says. Bytes that are all zero are no record.
    pub fn decode(record: &[u8]) -> Result<Identity, SidecarError> {
        Identity::decode_as(VERSION, record)
    }

    /// What a record of a version says.
    fn decode_as(version: u32, record: &[u8]) -> Result<Identity, SidecarError> {
        let Some(record) = record.first_chunk::<RECORD_LEN>() else {
            return Err(SidecarError::Damaged("too short"));
        };
        if record.iter().all(|&byte| byte == 0) {
            return Err(SidecarError::Missing);
        }
        if &record[..8] != MAGIC {
            return Err(SidecarError::Foreign);
        }
        if crc32c::crc32c(&record[..CRC_AT]) != u32_at(record, CRC_AT) {
            return Err(SidecarError::Damaged("its checksum is wrong"));
        }
        // Only behind the checksum: a version that nobody wrote is damage.
        if u32_at(record, 8) != version {
            return Err(SidecarError::Version(u32_at(record, 8)));
        }
        let role = Role::from_code(u32_at(record, 48))
            .ok_or(SidecarError::Damaged("no such role"))?;
        let len = usize::from(u16::from_le_bytes([record[52], record[53]]));
        if len == 0 || len > MAX_NAME {
            return Err(SidecarError::Damaged("its name has no valid length"));
        }
        let name = std::str::from_utf8(&record[NAME_AT..NAME_AT + len])
            .map_err(|_| SidecarError::Damaged("its name is not UTF-8"))?;
        let generation = u64_at(record, 40);
        if generation > MAX_GENERATION {
            return Err(SidecarError::Damaged("there is no such generation"));
        }
        let id = u128::from(u64_at(record, 24)) << 64 | u128::from(u64_at(record, 16));
        Ok(Identity {
            id: DiskId(id),
            name: name.into(),
            size: u64_at(record, 32),
            generation,
            role,
        })
    }
}

/// Gives a record its checksum.
fn seal(record: &mut [u8; RECORD_LEN]) {
    let crc = crc32c::crc32c(&record[..CRC_AT]);
    record[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

fn u32_at(record: &[u8; RECORD_LEN], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&record[at..at + 4]);
    u32::from_le_bytes(bytes)
}

fn u64_at(record: &[u8; RECORD_LEN], at: usize) -> u64 {
    u64::from(u32_at(record, at + 4)) << 32 | u64::from(u32_at(record, at))
}

#[cfg(test)]
mod tests;
