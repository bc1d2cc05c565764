//! Totals: what disks, classes and datastores did since the daemon was started.
//!
//! The samples forget; a total only grows. A disk's own counters in the engine begin anew
//! whenever the disk is attached anew, and a disk's windows go on: so the totals are made of
//! windows, and a move, or a datastore that was away, takes nothing from them. What a disk
//! did in the last tenth of a second before it was detached is in no window, and is not
//! counted.

use std::collections::HashMap;

use sterna_core::measure::{Traffic, Window};
use sterna_core::qos::ClassId;
use sterna_core::{DiskId, Nanos};
use sterna_os::lock;

use super::{Samples, Table};

/// What one did since the daemon was started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Total {
    /// Reads.
    pub read: Traffic,
    /// Writes.
    pub write: Traffic,
    /// Flushes.
    pub flush: Traffic,
    /// Discards and write-zeroes.
    pub zero: Traffic,
    /// Requests that were answered with an error.
    pub errors: u64,
    /// Requests under way at the last sample.
    pub in_flight: u32,
    /// When the last window was added.
    until: Nanos,
}

impl Total {
    pub(super) fn add(&mut self, now: Nanos, window: &Window) {
        self.read.merge(&window.read);
        self.write.merge(&window.write);
        self.flush.merge(&window.flush);
        self.zero.merge(&window.zero);
        self.errors += window.errors;
        self.in_flight = window.in_flight;
        self.until = now;
    }

    /// As it is now: whoever was not in the last sample has nothing under way.
    fn at(mut self, now: Nanos) -> Total {
        if self.until != now {
            self.in_flight = 0;
        }
        self
    }
}

/// What all did since the daemon was started; who is in none did nothing.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Disks.
    pub disks: HashMap<DiskId, Total>,
    /// Classes; what was copied is that of the class for copies.
    pub classes: HashMap<ClassId, Total>,
    /// Datastores: the requests of their disks, and what was copied from and to them.
    pub datastores: HashMap<String, Total>,
}

impl Samples {
    /// The totals, as of the last sample.
    pub fn totals(&self) -> Totals {
        let Table { now, totals, .. } = &*lock(&self.table);
        let disks = totals.disks.iter().map(|(disk, total)| (*disk, total.at(*now)));
        Totals {
            disks: disks.collect(),
            classes: totals.classes.clone(),
            datastores: totals.datastores.clone(),
        }
    }

    /// Forgets a disk that was removed.
    pub fn forget_disk(&self, disk: DiskId) {
        lock(&self.table).totals.disks.remove(&disk);
    }
}
