//! Disks that have a place and no record yet: their image is being made.
//!
//! Whoever looks whether a device or a server is free goes by the records of disks and
//! moves (`own_disk`, `twins`), one at a time (`Storage::placing`). Filling an image with
//! zeroes takes minutes, in which others must find places elsewhere. So a disk that is being
//! filled claims its place: whoever looks finds it here as if it were recorded. Its sidecar
//! does not say it to them all: a disk that fills its place has none there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sterna_core::DiskId;
use sterna_os::lock;
use sterna_state::DiskRecord;

type All = Arc<Mutex<HashMap<DiskId, DiskRecord>>>;

/// All disks whose image is being made.
#[derive(Debug, Default)]
pub(crate) struct Placements {
    all: All,
}

/// The place of a disk that is not recorded yet; given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Placement {
    all: All,
    disk: DiskId,
}

impl Placements {
    /// Takes a place, which the caller has found to be free, until the disk is recorded.
    pub(crate) fn take(&self, disk: &DiskRecord) -> Placement {
        lock(&self.all).insert(disk.id, disk.clone());
        Placement { all: self.all.clone(), disk: disk.id }
    }

    /// The disks that are being made now.
    pub(crate) fn all(&self) -> Vec<DiskRecord> {
        lock(&self.all).values().cloned().collect()
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.disk);
    }
}

#[cfg(test)]
mod tests {
    use sterna_state::examples::disk;

    use super::*;

    #[test]
    fn a_place_is_taken_until_whoever_took_it_gives_it_up() {
        let placements = Placements::default();
        let names = || {
            let mut names: Vec<String> =
                placements.all().into_iter().map(|it| it.name).collect();
            names.sort();
            names
        };
        let (a, b) = (disk("a", "one"), disk("b", "two"));
        let first = placements.take(&a);
        let _second = placements.take(&b);
        assert_eq!(names(), ["a", "b"]);
        drop(first);
        assert_eq!(names(), ["b"]);
    }
}
