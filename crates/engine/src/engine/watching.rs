//! Whether reads of a server come back to a disk that is served here (`disk::watch`).

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use sterna_core::DiskId;

use super::Engine;

/// A question that some disks have been asked.
#[derive(Debug)]
pub struct WatchedReads {
    id: u64,
    disks: Vec<DiskId>,
}

impl Engine {
    /// From now on, those of these disks that are served look for these reads.
    pub fn watch_reads(&self, disks: &[DiskId], reads: &[Range<u64>]) -> WatchedReads {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let watches = |disk: &&DiskId| {
            let reads = reads.to_vec();
            self.on_disk(**disk, move |disk, _| disk.core.watches.begin(id, reads))
                .is_ok()
        };
        WatchedReads { id, disks: disks.iter().filter(watches).copied().collect() }
    }

    /// The disk that (nearly) all of the reads have come to, if there is one.
    pub fn reads_came(&self, watched: WatchedReads) -> Option<DiskId> {
        let WatchedReads { id, disks } = watched;
        let ended = |disk: &DiskId| {
            self.on_disk(*disk, move |disk, _| disk.core.watches.end(id)).unwrap_or(false)
        };
        // All are asked: none is to look on.
        let came: Vec<DiskId> = disks.into_iter().filter(ended).collect();
        came.first().copied()
    }
}
