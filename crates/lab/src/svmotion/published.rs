//! What the study published, for the tables to stand beside ours.
//!
//! Storage vMotion of a SQL Server database, VMware 2012: data disk 600 GB, index disks
//! of 80 GB, log disk 50 GB, from an old array to a new one. What it does not state is
//! not here.

use super::plan::{Disk, State};

/// The published figures of one migration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Published {
    /// How long it took, in seconds.
    pub(super) seconds: Option<f64>,
    /// Whether it had not ended by then.
    pub(super) unfinished: bool,
    /// Orders a second meanwhile.
    pub(super) orders_per_s: Option<f64>,
}

/// The size of the disk that a published time is of.
pub(super) fn size(disk: Disk) -> f64 {
    let gib = match disk {
        Disk::Data => 600.0,
        Disk::Index => 80.0,
        Disk::Wal => 50.0,
    };
    gib * f64::from(1 << 30)
}

/// What was published of a disk's migration in a load state, from old to new.
pub(super) fn migration(disk: Disk, state: State) -> Published {
    let (seconds, orders_per_s) = match (disk, state) {
        (Disk::Data, State::Off) => (Some(1843.0), None),
        (Disk::Data, State::Low) => (Some(2250.0), Some(87.92)),
        (Disk::Data, State::High) => (Some(3731.0), Some(427.0)),
        (Disk::Index, State::Off) => (Some(258.0), None),
        (Disk::Index, State::High) => (Some(318.0), Some(404.78)),
        (Disk::Wal, State::Off) => (Some(155.0), None),
        _ => (None, None),
    };
    let unfinished = (disk, state) == (Disk::Data, State::High);
    Published { seconds, unfinished, orders_per_s }
}

/// Orders a second without a migration.
pub(super) fn orders_without(state: State) -> Option<f64> {
    match state {
        State::Off | State::Idle => None,
        State::Low => Some(89.41),
        State::High => Some(455.27),
    }
}

/// What an order costs the processors, in millions of cycles.
pub(super) fn megacycles_per_order(state: State) -> Option<f64> {
    match state {
        State::Off | State::Idle => None,
        State::Low => Some(33.68),
        State::High => Some(24.57),
    }
}

/// What the migration cost the processors for each 64 KiB, in thousands of cycles.
pub(super) const KILOCYCLES_PER_CHUNK: f64 = 110.0;
/// The latency of the copy's reads at the source, with nothing else going on, in
/// milliseconds.
pub(super) const SOURCE_READ_MS: f64 = 4.5;
/// That of its writes at the destination.
pub(super) const DESTINATION_WRITE_MS: f64 = 1.0;
