//! What is known of every region, in the form that a crash would need.
//!
//! Two bits for each region. The map never says `Synced` while a write to the
//! region is in flight on either side, nor before the destination has been flushed after
//! it: such a region is stored as `Late` and becomes `Synced` again with the flush. So
//! whoever finds the map after a kill can take it at its word, whatever the destination
//! has forgotten that it was not made to keep.

use std::ops::Range;

/// What the map holds for a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Stored {
    /// The destination has never been written here.
    Absent = 0,
    /// The destination may hold anything here; to be copied (again).
    Late = 1,
    /// Both images hold the same bytes, and a flush of the destination covers them.
    Synced = 2,
    /// Was `Synced` before the power failed, or on storage that is not known to be the
    /// same any more: read both sides and compare.
    Suspect = 3,
}

impl Stored {
    /// The state behind two bits; the upper bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Stored::Absent,
            1 => Stored::Late,
            2 => Stored::Synced,
            _ => Stored::Suspect,
        }
    }

    /// What the state is worth after a power loss. What the file system had not
    /// written is gone, of the images as of the map, which may therefore be older
    /// than the images are: "synced" has to be proved, and "never written" is not
    /// certain any more.
    pub const fn after_power_loss(self) -> Self {
        match self {
            Stored::Synced | Stored::Suspect => Stored::Suspect,
            Stored::Absent | Stored::Late => Stored::Late,
        }
    }
}

/// The map of regions: memory, as far as `core` knows; the engine puts a
/// checksummed, memory-mapped file behind it.
pub trait RegionMap {
    /// How many regions there are.
    fn regions(&self) -> u64;

    /// What is stored for `region`, which is below `regions()`.
    fn get(&self, region: u64) -> Stored;

    /// Stores `stored` for `region`. Takes effect at once, also for a process
    /// that finds the map after this one was killed.
    fn set(&mut self, region: u64, stored: Stored);

    /// Stores `stored` for each of `regions`, all of them the disk's.
    fn set_run(&mut self, regions: Range<u64>, stored: Stored) {
        for region in regions {
            self.set(region, stored);
        }
    }

    /// Gives every region the state that is worth believing where neither the map nor the
    /// destination is known to be what it was (see [`Stored::after_power_loss`]).
    fn distrust(&mut self) {
        for region in 0..self.regions() {
            self.set(region, self.get(region).after_power_loss());
        }
    }

    /// Stores `stored` for every region that is stored as `Synced`.
    fn replace_synced(&mut self, stored: Stored) {
        for region in 0..self.regions() {
            if self.get(region) == Stored::Synced {
                self.set(region, stored);
            }
        }
    }

    /// How many of `regions` are not stored as `Synced`.
    fn count_not_synced(&self, regions: Range<u64>) -> u64 {
        regions.filter(|&region| self.get(region) != Stored::Synced).count() as u64
    }

    /// The first of `regions`, all of them the disk's, that is not stored as `Synced`.
    fn next_not_synced(&self, mut regions: Range<u64>) -> Option<u64> {
        regions.find(|&region| self.get(region) != Stored::Synced)
    }

    /// Whether what was set is there for whoever finds the map after a kill. Once it is
    /// not, all that is set from then on is only in this map.
    fn is_kept(&self) -> bool {
        true
    }

    /// Tries to have it kept again, all of it.
    fn keep_again(&mut self) {}
}

/// A map in plain memory, for tests and simulations.
#[derive(Clone, Debug)]
pub struct MemoryMap(Vec<Stored>);

impl MemoryMap {
    /// A map of `regions` regions, all `stored`.
    pub fn new(regions: u64, stored: Stored) -> Self {
        MemoryMap(vec![stored; usize::try_from(regions).expect("fits in memory")])
    }
}

impl RegionMap for MemoryMap {
    fn regions(&self) -> u64 {
        self.0.len() as u64
    }

    fn get(&self, region: u64) -> Stored {
        self.0[region as usize]
    }

    fn set(&mut self, region: u64, stored: Stored) {
        self.0[region as usize] = stored;
    }
}
