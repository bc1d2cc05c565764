//! Numbers by which disks and directories are known, in files and in the state.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// The name of a disk that never changes and is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskId(pub u128);

impl fmt::Display for DiskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for DiskId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(DiskId)
    }
}

/// The number of a datastore's directory that no other directory has. It is written in
/// the directory, so that the directory is known again by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub u128);

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Mark {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Mark)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_shown_is_read_the_same(number in any::<u128>()) {
            prop_assert_eq!(DiskId(number).to_string().parse(), Ok(DiskId(number)));
            prop_assert_eq!(Mark(number).to_string().parse(), Ok(Mark(number)));
        }
    }
}
