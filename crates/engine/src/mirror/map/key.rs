//! What a region map is about.

use sterna_core::DiskId;

/// What a map is about; a map of something else is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapKey {
    /// The migration.
    pub migration: u64,
    /// The disk that it moves.
    pub disk: DiskId,
    /// The disk's size in bytes.
    pub size: u64,
    /// The size of a region in bytes.
    pub region: u32,
}

impl MapKey {
    /// How many regions the disk has; the last one may be shorter.
    pub fn regions(&self) -> u64 {
        self.size.div_ceil(u64::from(self.region.max(1)))
    }
}
