//! What a swap device does: the measured speeds that tiers are ranked and wakes are predicted by.

use super::granules::GRANULE;
use super::place::{OutGranule, Stream, runs};
use super::record::Heat;
use crate::Nanos;

/// What a swap device was measured to do while nobody else used it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierSpeed {
    /// How long one granule takes at a random place, alone.
    pub access: Nanos,
    /// What it reads in order, in bytes per second.
    pub sequential: f64,
}

/// A tier is slower than another only if its access takes longer by this factor: less is within
/// what two measurements of one device differ by.
pub const TIERS_APART: f64 = 1.5;

/// The kernel fills devices of the highest priority first. The fastest tier has this one, and
/// each next tier one less; swap that Sterna did not add has a negative one, unless somebody has
/// said otherwise.
pub const PRIORITY_TOP: i16 = 1000;

impl TierSpeed {
    /// How long a granule takes that follows the one before it.
    pub(super) fn follows(&self) -> f64 {
        GRANULE as f64 / self.sequential.max(1.0)
    }

    /// What it costs to begin at another place, in seconds.
    pub fn seek(&self) -> f64 {
        (self.access.as_secs_f64() - self.follows()).max(0.0)
    }

    /// How long a page takes at a random place, alone.
    pub fn page(&self) -> Nanos {
        Nanos(((self.seek() + PAGE as f64 / self.sequential.max(1.0)) * 1e9) as u64)
    }

    /// How many bytes that lie together come back within such a time, in order.
    pub fn within(&self, time: Nanos) -> u64 {
        let left = (time.as_secs_f64() - self.seek()).max(0.0);
        (left * self.sequential) as u64
    }

    /// How long granules take in this order, in seconds.
    pub fn read<'a>(&self, granules: impl IntoIterator<Item = &'a OutGranule>) -> f64 {
        let all: Vec<&OutGranule> = granules.into_iter().collect();
        let pages: u64 = all.iter().map(|it| u64::from(it.pages)).sum();
        let bytes = (pages * PAGE) as f64;
        runs(all.iter().copied()) as f64 * self.seek() + bytes / self.sequential.max(1.0)
    }
}

/// Pages of 4 KiB in a granule.
pub const PAGES_PER_GRANULE: u64 = 16;

/// Bytes of a page.
pub(super) const PAGE: u64 = GRANULE / PAGES_PER_GRANULE;

/// How long a wake takes, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WakeTime {
    /// Until what is needed at once is back: the guest is slow as long.
    pub hot: f64,
    /// Until all is back.
    pub all: f64,
}

/// How long the streams of a wake take, each on its own device: the longest counts. If the record
/// knows of nothing hot, nobody knows what is needed at once, and all of it may be.
pub fn predict(
    streams: &[Stream],
    speed: impl Fn(u8) -> Option<TierSpeed>,
) -> Option<WakeTime> {
    let mut time = WakeTime::default();
    for stream in streams {
        let speed = speed(stream.device)?;
        let of = |most: Heat| {
            let wanted = stream.granules.iter().filter(move |(heat, _)| *heat <= most);
            speed.read(wanted.map(|(_, granule)| granule))
        };
        time.hot = time.hot.max(of(Heat::Hot));
        time.all = time.all.max(of(Heat::Cold));
    }
    if !streams.iter().flat_map(|it| &it.granules).any(|(heat, _)| *heat == Heat::Hot) {
        time.hot = time.all;
    }
    Some(time)
}

/// The priorities of tiers, the fastest first: those that are not apart have the same one, so
/// that the kernel spreads over them.
pub fn priorities(tiers: &[TierSpeed]) -> Vec<i16> {
    let mut by_speed: Vec<usize> = (0..tiers.len()).collect();
    by_speed.sort_by(|one, other| {
        let access = |at: &usize| tiers[*at].access;
        access(one).cmp(&access(other))
    });
    let mut priorities = vec![0; tiers.len()];
    let (mut priority, mut first) = (PRIORITY_TOP, None::<f64>);
    for at in by_speed {
        let access = tiers[at].access.as_secs_f64();
        match first {
            Some(fastest) if access <= fastest * TIERS_APART => {}
            Some(_) => {
                priority -= 1;
                first = Some(access);
            }
            None => first = Some(access),
        }
        priorities[at] = priority;
    }
    priorities
}
