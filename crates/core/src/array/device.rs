//! What one spindle (or flash device) takes for one operation.
//!
//! A disk pays a seek and part of a revolution, then moves bytes at the rate of its
//! media; what follows the operation before it pays for the bytes alone. Flash pays
//! the same access every time, but gets at several places at a time: a channel is busy
//! from the beginning of an operation to its end, and the bytes of one after the other
//! pass at the rate of the media.

use crate::Nanos;

use crate::dice::Dice;

/// A seek takes between these parts of its mean.
const SEEK_SPREAD: (f64, f64) = (0.4, 1.6);

/// An access of flash takes between these parts of its mean: 0.15 to 0.25 ms
/// about 0.20 ms.
const ACCESS_SPREAD: (f64, f64) = (0.75, 1.25);

/// A device of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// A disk that turns.
    Disk {
        /// The mean seek between two random places.
        seek: Nanos,
        /// One turn.
        revolution: Nanos,
        /// Bytes per second under the head, above zero.
        media: u64,
    },
    /// Flash.
    Flash {
        /// The mean time to get at random bytes, read or write.
        access: Nanos,
        /// Operations at a time, above zero.
        channels: u32,
        /// Bytes per second in and out, above zero.
        media: u64,
    },
}

impl Device {
    /// Bytes per second of its media.
    pub fn media(&self) -> u64 {
        match self {
            Device::Disk { media, .. } | Device::Flash { media, .. } => *media,
        }
    }

    /// Operations that it does at a time.
    pub fn channels(&self) -> u32 {
        match self {
            Device::Disk { .. } => 1,
            Device::Flash { channels, .. } => (*channels).max(1),
        }
    }

    /// How long it takes from the end of one random operation on so many bytes to the end of the
    /// next one, in the mean, if it always has as many at a time as it can do: the bytes of one
    /// pass while it gets at those of others.
    pub fn mean_random_busy(&self, bytes: u64) -> Nanos {
        let each = self.mean_random(bytes).0 / u64::from(self.channels());
        Nanos(each).max(self.transfer(bytes))
    }

    /// The mean of a random operation on so many bytes, alone.
    pub fn mean_random(&self, bytes: u64) -> Nanos {
        let access = match self {
            Device::Disk { seek, revolution, .. } => seek.0 + revolution.0 / 2,
            Device::Flash { access, .. } => access.0,
        };
        Nanos(access).plus(self.transfer(bytes))
    }

    /// What so many bytes take once their place is found.
    fn transfer(&self, bytes: u64) -> Nanos {
        span(bytes, self.media())
    }

    /// How long an operation on so many bytes takes to get at them, and then to move them. `gap`
    /// are the bytes that turn by before its place, if it follows the operation before it.
    pub(super) fn service(
        &self,
        bytes: u64,
        gap: Option<u64>,
        dice: &mut Dice,
    ) -> (Nanos, Nanos) {
        let access = match (self, gap) {
            (Device::Disk { .. }, Some(gap)) => {
                return (Nanos(0), self.transfer(gap + bytes));
            }
            (Device::Disk { seek, revolution, .. }, None) => {
                seek.0 as f64 * dice.between(SEEK_SPREAD.0, SEEK_SPREAD.1)
                    + dice.between(0.0, revolution.0 as f64)
            }
            (Device::Flash { access, .. }, _) => {
                access.0 as f64 * dice.between(ACCESS_SPREAD.0, ACCESS_SPREAD.1)
            }
        };
        (Nanos(access as u64), self.transfer(bytes))
    }
}

/// What so many bytes take at so many a second.
pub(super) fn span(bytes: u64, per_second: u64) -> Nanos {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(per_second.max(1));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
