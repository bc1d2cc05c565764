//! The record of a commit as bytes: which of them make the destination the truth.
//!
//! ```text
//!   0  magic "STERNACR"        40  when the migration began (u64)
//!   8  version (u32)           48  the source's generation (u64)
//!  12  1 prepared, 2 committed 56  the destination's generation (u64)
//!  16  migration id (u64)      64  the attempt (u64)
//!  24  disk id (u128)          72  crc32c of bytes 0..72
//! ```
//!
//! All numbers are little endian. What proves a record fits into one sector, so that a
//! crash leaves it whole or not at all. All that names the switch-over is in it: the number
//! of a migration comes again when an old state is restored, and what was recorded then is
//! no word about what is done now.
//!
//! A record that is damaged, of another switch-over, or of a version that is not known says
//! nothing. Nothing is guessed from parts of it.

use super::Found;

/// The length of a record.
pub const LEN: usize = CRC_AT + 4;

const MAGIC: &[u8; 8] = b"STERNACR";
const VERSION: u32 = 1;
const CRC_AT: usize = 72;

/// Which switch-over a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The migration's number.
    pub migration: u64,
    /// The disk's id.
    pub disk: u128,
    /// When the migration began.
    pub started: u64,
    /// The source's generation.
    pub source_generation: u64,
    /// The destination's generation.
    pub destination_generation: u64,
    /// How often it was tried to switch over.
    pub attempt: u64,
}

/// What a record says of its switch-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It was begun.
    Prepared,
    /// It was committed.
    Committed,
}

impl Says {
    const fn number(self) -> u32 {
        match self {
            Says::Prepared => 1,
            Says::Committed => 2,
        }
    }
}

impl Key {
    /// The record that says this of the switch-over.
    #[must_use]
    pub fn record(&self, says: Says) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(MAGIC);
        put(&VERSION.to_le_bytes());
        put(&says.number().to_le_bytes());
        put(&self.migration.to_le_bytes());
        put(&self.disk.to_le_bytes());
        put(&self.started.to_le_bytes());
        put(&self.source_generation.to_le_bytes());
        put(&self.destination_generation.to_le_bytes());
        put(&self.attempt.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// What bytes say of this switch-over. What follows a record does not matter.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Found {
        match bytes.first_chunk::<LEN>() {
            Some(bytes) if *bytes == self.record(Says::Committed) => Found::Committed,
            Some(bytes) if *bytes == self.record(Says::Prepared) => Found::Prepared,
            _ => Found::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Key> {
        let numbers = any::<[u64; 5]>();
        (any::<u128>(), numbers).prop_map(|(disk, [a, b, c, d, e])| Key {
            migration: a,
            disk,
            started: b,
            source_generation: c,
            destination_generation: d,
            attempt: e,
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_found_by_its_own_switch_over_alone(one in key(), other in key()) {
            for (says, found) in
                [(Says::Prepared, Found::Prepared), (Says::Committed, Found::Committed)]
            {
                let record = one.record(says);
                prop_assert_eq!(one.find(&record), found);
                let others = if one == other { found } else { Found::Nothing };
                prop_assert_eq!(other.find(&record), others);
            }
        }

        #[test]
        fn damage_never_goes_unseen(key in key(), at in 0..LEN, flip in 1u8..) {
            let mut record = key.record(Says::Committed);
            record[at] ^= flip;
            prop_assert_eq!(key.find(&record), Found::Nothing);
            prop_assert_eq!(key.find(&record[..at]), Found::Nothing);
        }
    }
}
