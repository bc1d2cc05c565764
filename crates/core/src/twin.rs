//! Whether two places hold the bytes of one: decided by what was read of both.
//!
//! A server can be reached under two addresses, and nothing that it says tells so. Of two
//! places that are one, every place reads the same; of a disk and an empty export it does not.
//! So some stretches are read of the first place, of the second, and of the first again.
//!
//! **Rule.** One stretch that differs proves two places: if the first place said the same
//! before and after, no write of its application came between. That is so only if the
//! application does not write the same thing again, so a stretch counts if it differs in the
//! same way [`PROOFS`] times in a row ([`proves_apart`]). Without such a stretch, one
//! that is equal and not all zeroes makes them [`Kinship::Alike`]. That is no proof: an old
//! copy of the disk is alike, too. If all that is equal is zeroes, or changed while it was
//! read, nothing is known.

/// A stretch of the first place, read twice, and of the second one, read in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The first place, before.
    pub before: Vec<u8>,
    /// The second place.
    pub other: Vec<u8>,
    /// The first place, after.
    pub after: Vec<u8>,
}

/// What two places are to each other; what says more is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kinship {
    /// Nobody can tell.
    Unknown,
    /// One place under two names, or one with a copy of the other.
    Alike,
    /// Two places.
    Apart,
}

/// Judges two places by stretches of them.
pub fn judge(readings: &[Reading]) -> Kinship {
    let mut steady = readings.iter().filter(|it| it.before == it.after);
    if steady.clone().any(|it| it.before != it.other) {
        return Kinship::Apart;
    }
    match steady.any(|it| it.before.iter().any(|byte| *byte != 0)) {
        true => Kinship::Alike,
        false => Kinship::Unknown,
    }
}

/// So many readings of a stretch must say the same.
pub const PROOFS: usize = 4;

/// Whether readings of one stretch, one after the other, prove two places: each differs, and
/// all are the same.
pub fn proves_apart(readings: &[Reading]) -> bool {
    let first = readings.first();
    readings.len() >= PROOFS
        && readings.iter().all(|it| it.before == it.after && it.before != it.other)
        && readings.iter().all(|it| Some(it) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_is_written_by_turns_proves_nothing() {
        let apart = vec![read(1, 2, 1); PROOFS];
        assert!(proves_apart(&apart) && !proves_apart(&apart[1..]));
        let by_turns: Vec<Reading> = (0..PROOFS)
            .map(|at| if at % 2 == 0 { read(1, 2, 1) } else { read(2, 1, 2) })
            .collect();
        assert!(!proves_apart(&by_turns));
    }

    fn read(before: u8, other: u8, after: u8) -> Reading {
        let [before, other, after] = [before, other, after].map(|byte| vec![byte; 8]);
        Reading { before, other, after }
    }

    #[test]
    fn one_stretch_that_differs_proves_two_places() {
        assert_eq!(judge(&[read(1, 1, 1), read(0, 0, 0), read(2, 0, 2)]), Kinship::Apart);
        assert_eq!(judge(&[read(0, 3, 0)]), Kinship::Apart);
    }

    #[test]
    fn what_the_application_writes_meanwhile_proves_nothing() {
        assert_eq!(judge(&[read(1, 2, 2), read(1, 1, 2)]), Kinship::Unknown);
        assert_eq!(judge(&[read(1, 2, 2), read(7, 7, 7)]), Kinship::Alike);
    }

    #[test]
    fn zeroes_are_everywhere_and_say_nothing() {
        assert_eq!(judge(&[read(0, 0, 0), read(0, 0, 0)]), Kinship::Unknown);
        assert_eq!(judge(&[]), Kinship::Unknown);
    }
}
