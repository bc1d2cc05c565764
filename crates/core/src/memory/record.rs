//! What a VM needed of its memory when it woke.
//!
//! **Rule.** After each wake it is noted which granules the guest had used when it had run for 2,
//! 10 and 60 seconds. Time for which it waited for its memory does not count: a guest that stands
//! still uses little, and would come to have little that is hot. The last four wakes are kept. A
//! granule is as hot as it was in half of them: the set of what a wake needs is stable from wake to
//! wake (for microVMs, two of them have 93 % in common), its order is not.
//!
//! A granule that was never out cannot be seen to be used: it counts as it did before.

use std::collections::VecDeque;

use super::granules::{Granule, GranuleSet};
use crate::Nanos;

/// When it is noted what the guest has used: when it has run for so long since it woke.
pub const WITHIN: [Nanos; 3] =
    [Nanos::from_millis(2_000), Nanos::from_millis(10_000), Nanos::from_millis(60_000)];

/// So many wakes are kept: what a VM does changes, and an old wake says little.
pub const WAKES_KEPT: usize = 4;

/// How soon after a wake a granule is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Heat {
    /// Within 2 s.
    Hot,
    /// Within 10 s.
    Warm,
    /// Within a minute.
    Cool,
    /// Later, or never, or nobody knows.
    Cold,
}

impl Heat {
    /// All, the hottest first.
    pub const ALL: [Heat; 4] = [Heat::Hot, Heat::Warm, Heat::Cool, Heat::Cold];
}

/// Which granules one wake needed within each of [`WITHIN`]. Each set has the ones before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed(pub [GranuleSet; 3]);

impl Needed {
    /// Nothing yet, of a VM with so many granules.
    pub fn none(of: u32) -> Needed {
        Needed([GranuleSet::none(of), GranuleSet::none(of), GranuleSet::none(of)])
    }

    /// Notes that a granule was in use when the moment `at` of [`WITHIN`] had come.
    pub fn note(&mut self, granule: Granule, at: usize) {
        self.0[at..].iter_mut().for_each(|set| set.insert(granule));
    }

    fn heat(&self, granule: Granule) -> Heat {
        let at = self.0.iter().position(|set| set.has(granule));
        at.map_or(Heat::Cold, |at| Heat::ALL[at])
    }
}

/// The last wakes of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakeRecord {
    /// The newest first.
    wakes: VecDeque<Needed>,
}

impl WakeRecord {
    /// From wakes that are known, the newest first. What is beyond [`WAKES_KEPT`] is left out.
    pub fn new(wakes: impl IntoIterator<Item = Needed>) -> WakeRecord {
        WakeRecord { wakes: wakes.into_iter().take(WAKES_KEPT).collect() }
    }

    /// Adds the newest wake. If the VM has another size than it had, the older ones say
    /// nothing of its granules any more.
    pub fn add(&mut self, needed: Needed) {
        let of = needed.0[0].of();
        self.wakes.retain(|wake| wake.0[0].of() == of);
        self.wakes.push_front(needed);
        self.wakes.truncate(WAKES_KEPT);
    }

    /// How many wakes it knows.
    pub fn wakes(&self) -> usize {
        self.wakes.len()
    }

    /// How hot a granule is: as hot as in half of the wakes, or hotter.
    pub fn heat(&self, granule: Granule) -> Heat {
        let mut heats: Vec<Heat> = self.wakes.iter().map(|it| it.heat(granule)).collect();
        heats.sort_unstable();
        let half = heats.len().div_ceil(2);
        half.checked_sub(1).map_or(Heat::Cold, |at| heats[at])
    }
}
