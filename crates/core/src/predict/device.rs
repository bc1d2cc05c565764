//! How fast a copy goes before the first one: a guess, by what devices have shown.
//!
//! The line of a device (latency against requests under way) says how many requests of the
//! usual size it does at most. A copy asks for larger ones, which take longer: as much as
//! `1 + bytes / 64 KiB` to the tiny ones, which holds for disks and arrays of the last
//! twenty years by a factor of two or three. It goes as fast as the slower of its ends.
//!
//! What it leaves out is what makes it a guess: that arrays read ahead and gather writes, and
//! that links are full all at once.

use super::speed::{Source, Speed};

/// Bytes that take as long as coming to a place for them does.
const PLACE: f64 = (64 << 10) as f64;

/// Bytes in a request of a copy.
const COPIED: f64 = (1 << 20) as f64;

/// How far off that is where both ends are known.
const DOUBT_BOTH: f64 = 1.0;

/// And where one is.
const DOUBT_ONE: f64 = 1.3;

/// What a device has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// Requests per second that no load exceeds.
    pub peak: f64,
    /// Bytes in one of them.
    pub size: f64,
}

impl Shown {
    /// Bytes per second of a copy; nothing if the figures are none.
    fn copies(self) -> Option<f64> {
        let times = (1.0 + COPIED / PLACE) / (1.0 + self.size.max(0.0) / PLACE);
        let rate = self.peak / times * COPIED;
        Some(rate).filter(|rate| rate.is_finite() && *rate > 0.0)
    }
}

impl Speed {
    /// What the devices at the two ends say; nothing if neither says anything.
    pub fn guessed(from: Option<Shown>, to: Option<Shown>) -> Option<Speed> {
        let [from, to] = [from, to].map(|end| end.and_then(Shown::copies));
        let likely = from.into_iter().chain(to).reduce(f64::min)?;
        let both = from.is_some() && to.is_some();
        Some(Speed {
            likely,
            doubt: if both { DOUBT_BOTH } else { DOUBT_ONE },
            read: from.unwrap_or(likely).max(likely),
            source: Source::Devices,
            habits: Vec::new(),
            known: Vec::new(),
        })
    }
}
