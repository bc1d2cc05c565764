//! Where the granules of a VM are, and in which order they come back.
//!
//! **Rule.** What is needed first comes first; of what is equally hot, each tier gives its
//! granules in the order of its swap slots. On a disk that order decides: 128 MiB that came back
//! in the order of addresses took more than 12 s from one spindle, and 7 s in the order of slots.

use super::granules::Granule;
use super::record::{Heat, WakeRecord};

/// A granule of which at least one page is on a swap device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutGranule {
    /// Which.
    pub granule: Granule,
    /// The swap device, as the kernel numbers them.
    pub device: u8,
    /// The lowest slot of its pages there, in pages.
    pub slot: u64,
    /// How many of its pages are out: at most 16, of 4 KiB.
    pub pages: u8,
}

/// What comes back from one device, in its order: the hottest first, and by slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// The swap device.
    pub device: u8,
    /// The granules, with how hot each is.
    pub granules: Vec<(Heat, OutGranule)>,
}

/// The streams in which these granules come back, one of each device, by device.
pub fn streams(out: &[OutGranule], record: &WakeRecord) -> Vec<Stream> {
    let mut all: Vec<(Heat, OutGranule)> =
        out.iter().map(|one| (record.heat(one.granule), *one)).collect();
    all.sort_unstable_by_key(|(heat, it)| (it.device, *heat, it.slot, it.granule));
    let of_device = |same: &[(Heat, OutGranule)]| Stream {
        device: same[0].1.device,
        granules: same.to_vec(),
    };
    all.chunk_by(|one, next| one.1.device == next.1.device).map(of_device).collect()
}

/// In how many runs of slots these lie, read in this order.
pub fn runs<'a>(granules: impl IntoIterator<Item = &'a OutGranule>) -> u64 {
    let mut runs = 0;
    let mut next = None;
    for one in granules {
        if next != Some(one.slot) {
            runs += 1;
        }
        next = Some(one.slot + u64::from(one.pages));
    }
    runs
}
