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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::{Sample, Tick};
    use super::*;

    const DISK: DiskId = DiskId(7);
    const OLTP: ClassId = ClassId(3);

    /// So many reads of 4 KiB that took a millisecond each.
    fn reads(count: u64, in_flight: u32) -> Window {
        let took = Nanos::from_millis(1);
        let mut window =
            Window { span: Nanos::from_millis(100), in_flight, ..Window::default() };
        for _ in 0..count {
            window.read.record(4096, took, Nanos(0), took);
            window.response.record(took);
        }
        window
    }

    fn tick(disks: impl IntoIterator<Item = (DiskId, &'static str, Window)>) -> Tick {
        let sample = |(disk, datastore, window): (DiskId, &str, Window)| Sample {
            disk,
            datastore: Some(datastore.to_owned()),
            class: Some(OLTP),
            window,
        };
        let disks = disks.into_iter().map(sample).collect();
        Tick { span: Nanos::from_millis(100), disks, copied: Vec::new() }
    }

    #[test]
    fn a_total_is_all_windows_wherever_the_disk_was() {
        let samples = Samples::default();
        samples.enter(&tick([(DISK, "fast", reads(3, 2))]));
        assert_eq!(samples.totals().disks[&DISK].in_flight, 2);
        samples.enter(&tick([(DISK, "slow", reads(4, 0))]));
        let totals = samples.totals();
        let disk = &totals.disks[&DISK];
        assert_eq!((disk.read.operations, disk.read.bytes), (7, 7 * 4096));
        assert_eq!((disk.read.steps.len(), disk.write.operations), (7, 0));
        assert_eq!(totals.classes[&OLTP].read.operations, 7);
        let of = |name: &str| totals.datastores[name].read.operations;
        assert_eq!((of("fast"), of("slow")), (3, 4));
    }

    #[test]
    fn whoever_is_not_in_the_last_sample_has_nothing_under_way() {
        let samples = Samples::default();
        samples.enter(&tick([(DISK, "fast", reads(0, 5))]));
        // It was detached, so nobody says that it has become idle.
        samples.enter(&tick([]));
        assert_eq!(samples.totals().disks[&DISK].in_flight, 0);
    }

    #[test]
    fn what_is_removed_is_forgotten_and_what_is_idle_is_not() {
        let samples = Samples::default();
        samples.enter(&tick([
            (DISK, "fast", reads(1, 0)),
            (DiskId(8), "slow", reads(1, 0)),
        ]));
        samples.tidy();
        samples.forget_disk(DISK);
        samples.forget("fast");
        let totals = samples.totals();
        assert!(
            !totals.disks.contains_key(&DISK) && totals.disks.contains_key(&DiskId(8))
        );
        let names: Vec<_> = totals.datastores.keys().collect();
        assert_eq!(names, ["slow"]);
    }

    /// The target is 1 % of a processor, 1 ms, for the totals. Run it alone, in a release
    /// build: `cargo test --release -p sterna-telemetry -- --ignored --nocapture what_a`.
    #[test]
    #[ignore = "a measurement"]
    fn what_a_sample_of_1500_busy_disks_costs() {
        const DISKS: u128 = 1500;
        const ROUNDS: u32 = 200;
        let busy = || tick((0..DISKS).map(|disk| (DiskId(disk), "fast", reads(10, 1))));
        let (samples, ticks) = (Samples::default(), busy());
        let mut totals = Totals::default();
        let (mut all, mut alone) = (Nanos(0), Nanos(0));
        for round in 0..ROUNDS {
            let start = Instant::now();
            samples.enter(&ticks);
            all = all.plus(start.elapsed().into());
            let start = Instant::now();
            for Sample { disk, window, .. } in &ticks.disks {
                let total = totals.disks.entry(*disk).or_default();
                total.add(Nanos(u64::from(round)), window);
            }
            alone = alone.plus(start.elapsed().into());
        }
        let start = Instant::now();
        let read = samples.totals().disks.len();
        let took = Nanos::from(start.elapsed());
        let each = |sum: Nanos| Nanos(sum.0 / u64::from(ROUNDS));
        println!(
            "a sample: {}, of which totals of disks: {}; reading {read}: {took}",
            each(all),
            each(alone)
        );
    }
}
