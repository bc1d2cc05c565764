//! The three sizes that bind requests: minimum, preferred and maximum.
//!
//! # Invariants
//!
//! A value of [`BlockSizes`] always obeys the specification: the minimum is a power of
//! two up to 64 KiB; the preferred size is a power of two, at least 512 and at least
//! the minimum; the maximum is at least the preferred size.

use std::fmt;

use crate::limits::PAYLOAD_DEFAULT_MAX;

/// The largest minimum that the specification allows.
const MINIMUM_MAX: u32 = 1 << 16;
/// The smallest preferred size that the specification allows.
const PREFERRED_MIN: u32 = 512;

/// Size constraints of an export, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockSizes {
    minimum: u32,
    preferred: u32,
    maximum: u32,
}

impl BlockSizes {
    /// What holds where nothing was said: 1, 4096 and 32 MiB.
    pub const DEFAULT: Self =
        Self { minimum: 1, preferred: 4096, maximum: PAYLOAD_DEFAULT_MAX };

    /// Checks the three sizes against the specification.
    pub const fn new(
        minimum: u32,
        preferred: u32,
        maximum: u32,
    ) -> Result<Self, BlockSizesError> {
        if !minimum.is_power_of_two() || minimum > MINIMUM_MAX {
            return Err(BlockSizesError::Minimum(minimum));
        }
        if !preferred.is_power_of_two()
            || preferred < minimum
            || preferred < PREFERRED_MIN
        {
            return Err(BlockSizesError::Preferred(preferred));
        }
        if maximum < preferred {
            return Err(BlockSizesError::Maximum(maximum));
        }
        Ok(Self { minimum, preferred, maximum })
    }

    /// The unit of offsets and lengths.
    #[must_use]
    pub const fn minimum(self) -> u32 {
        self.minimum
    }

    /// The unit of efficient requests.
    #[must_use]
    pub const fn preferred(self) -> u32 {
        self.preferred
    }

    /// The longest payload of one request.
    #[must_use]
    pub const fn maximum(self) -> u32 {
        self.maximum
    }

    /// The same without a minimum: what holds for a client that did not ask.
    #[must_use]
    pub const fn without_minimum(self) -> Self {
        Self { minimum: 1, ..self }
    }

    /// Whether an offset or a length is a multiple of the minimum.
    #[must_use]
    pub const fn aligned(self, value: u64) -> bool {
        value & (self.minimum as u64 - 1) == 0
    }
}

impl Default for BlockSizes {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why three sizes are not [`BlockSizes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockSizesError {
    /// The minimum is not a power of two, or above 64 KiB.
    Minimum(u32),
    /// The preferred size is not a power of two, or below the minimum or 512.
    Preferred(u32),
    /// The maximum is below the preferred size.
    Maximum(u32),
}

impl fmt::Display for BlockSizesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minimum(n) => write!(
                f,
                "the minimum block size {n} is not a power of two up to {MINIMUM_MAX}"
            ),
            Self::Preferred(n) => write!(
                f,
                "the preferred block size {n} is not a power of two of at least \
                 {PREFERRED_MIN} and the minimum"
            ),
            Self::Maximum(n) => {
                write!(f, "the maximum payload {n} is below the preferred block size")
            }
        }
    }
}

impl std::error::Error for BlockSizesError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_obey_the_rules() {
        let BlockSizes { minimum, preferred, maximum } = BlockSizes::DEFAULT;
        assert_eq!(BlockSizes::new(minimum, preferred, maximum), Ok(BlockSizes::DEFAULT));
    }

    #[test]
    fn sizes_against_the_specification_are_refused() {
        for minimum in [0, 3, 1 << 17] {
            let error = BlockSizesError::Minimum(minimum);
            assert_eq!(BlockSizes::new(minimum, 1 << 17, 1 << 20), Err(error));
        }
        for (minimum, preferred) in [(1, 256), (1, 1000), (4096, 512)] {
            let error = BlockSizesError::Preferred(preferred);
            assert_eq!(BlockSizes::new(minimum, preferred, 1 << 20), Err(error));
        }
        assert_eq!(BlockSizes::new(1, 4096, 4095), Err(BlockSizesError::Maximum(4095)));
        assert!(BlockSizes::new(1 << 16, 1 << 16, u32::MAX).is_ok());
    }
}
