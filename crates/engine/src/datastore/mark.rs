//! The mark of a directory, by which a datastore knows its own file system again.
//!
//! A path says nothing of what is mounted there: where a file system has gone, or
//! comes late, the empty mount point below it is found, which can be written to, and
//! hides what it has got as soon as the file system is back. So a datastore's
//! directory has a small file, `.sterna-datastore`, with a random number, and whoever
//! knows the number can tell whether it is there.
//!
//! The number is the directory's own. It is not changed while it can be read, whoever
//! adds the directory: another Sterna may know it by it.
//!
//! A record is [`RECORD_LEN`] bytes, little endian:
//!
//! ```text
//!   0  magic "STERNADS"   12  reserved, zero (u32)   32  crc32c of bytes 0..32
//!   8  version (u32)      16  number (u128)
//! ```

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use sterna_core::Mark;

use crate::plain;

/// The file in the directory. It begins with a dot, as no image does.
pub(super) const FILE: &str = ".sterna-datastore";

/// It is no secret, and for another Sterna's user as well.
const MODE: u32 = 0o644;

/// The length of a record.
pub const RECORD_LEN: usize = 36;
const MAGIC: &[u8; 8] = b"STERNADS";
const VERSION: u32 = 1;
const NUMBER_AT: usize = 16;
const CRC_AT: usize = RECORD_LEN - 4;

/// Why a mark cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// There is none.
    #[error("the datastore's mark is missing there")]
    Missing,
    /// Not whole.
    #[error("the mark there is damaged ({0})")]
    Damaged(&'static str),
    /// A record from the future.
    #[error("the mark there has version {0}, this Sterna knows only {VERSION}")]
    Version(u32),
    /// The file cannot be read.
    #[error("the mark there cannot be read: {0}")]
    Io(io::Error),
}

/// The record of a mark.
pub fn encode(mark: Mark) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    record[..8].copy_from_slice(MAGIC);
    record[8..12].copy_from_slice(&VERSION.to_le_bytes());
    record[NUMBER_AT..CRC_AT].copy_from_slice(&mark.0.to_le_bytes());
    let crc = crc32c::crc32c(&record[..CRC_AT]);
    record[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    record
}

/// What a record says.
pub fn decode(record: &[u8]) -> Result<Mark, MarkError> {
    if record.len() != RECORD_LEN {
        return Err(MarkError::Damaged("it has the wrong length"));
    }
    let u32_at = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&record[at..at + 4]);
        u32::from_le_bytes(bytes)
    };
    if &record[..8] != MAGIC {
        return Err(MarkError::Damaged("it is something else"));
    }
    if crc32c::crc32c(&record[..CRC_AT]) != u32_at(CRC_AT) {
        return Err(MarkError::Damaged("its checksum is wrong"));
    }
    // Only behind the checksum: a version that nobody wrote is damage.
    if u32_at(8) != VERSION {
        return Err(MarkError::Version(u32_at(8)));
    }
    let mut number = [0; 16];
    number.copy_from_slice(&record[NUMBER_AT..CRC_AT]);
    Ok(Mark(u128::from_le_bytes(number)))
}

/// The mark of a directory.
pub fn read(directory: &Path) -> Result<Mark, MarkError> {
    let mut bytes = Vec::new();
    let read = plain::open_ours(&directory.join(FILE), false)
        .and_then(|file| file.take(RECORD_LEN as u64 + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(MarkError::Missing),
        Err(error) if error.kind() == io::ErrorKind::Other => {
            Err(MarkError::Damaged("it is a link, or no regular file"))
        }
        Err(error) => Err(MarkError::Io(error)),
        Ok(_) => decode(&bytes),
    }
}

/// Gives a directory a mark, if it has none that can be read, or that which this one is
/// `instead_of`: atomic, and durable when it returns. Gives the mark that it has then: of
/// several daemons who do so at the same time one comes first.
pub fn give(mark: Mark, directory: &Path, instead_of: Option<Mark>) -> io::Result<Mark> {
    let path = directory.join(FILE);
    // Its name is nobody else's.
    let own = directory.join(format!("{FILE}.{mark}"));
    plain::replace(&own, &encode(mark), MODE)?;
    let given = match fs::hard_link(&own, &path) {
        Ok(()) => Ok(()),
        Err(_) if read(directory).is_ok_and(|it| Some(it) != instead_of) => Ok(()),
        // A damaged one, or something else; or a file system without links.
        Err(_) => fs::rename(&own, &path),
    };
    // After the rename it is gone.
    let _ = fs::remove_file(&own);
    given?;
    plain::sync_directory_of(&path)?;
    read(directory).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(number in any::<u128>()) {
            let mark = Mark(number);
            prop_assert_eq!(decode(&encode(mark)).unwrap(), mark);
        }

        #[test]
        fn damage_never_goes_unseen(
            number in any::<u128>(), at in 0..RECORD_LEN, flip in 1u8..,
        ) {
            let mut record = encode(Mark(number));
            record[at] ^= flip;
            prop_assert!(matches!(decode(&record), Err(MarkError::Damaged(_))));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..RECORD_LEN + 8),
        ) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_version_from_the_future_is_told_from_damage() {
        let mut record = encode(Mark(7));
        record[8] = 9;
        let crc = crc32c::crc32c(&record[..CRC_AT]);
        record[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(decode(&record), Err(MarkError::Version(9))));
    }

    #[test]
    fn a_directory_has_one_mark_whoever_comes_first() {
        let directory = tempfile::tempdir().unwrap();
        let read = || read(directory.path());
        let give = |number| give(Mark(number), directory.path(), None).unwrap();
        assert!(matches!(read(), Err(MarkError::Missing)));
        for number in [1, 2] {
            assert_eq!(give(number), Mark(1));
        }
        // Nothing else is left behind.
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        fs::write(directory.path().join(FILE), b"STERNADS").unwrap();
        assert!(matches!(read(), Err(MarkError::Damaged(_))));
        assert_eq!(give(3), Mark(3));
        assert_eq!(read().unwrap(), Mark(3));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
