//! What something did over time, as the API shows it in charts.

use std::time::Instant;

use sterna_api::Columns;
use sterna_core::measure::{Point, Timeline};
use sterna_core::qos::ClassId;
use sterna_core::{DiskId, Nanos};
use sterna_os::{clock, lock};

use super::{Samples, Table};
use crate::figures::micros;

/// Whose chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// All disks together.
    All,
    /// A disk.
    Disk(DiskId),
    /// The disks of a class.
    Class(ClassId),
    /// A datastore's device: its disks, and what is copied from and to it.
    Datastore(String),
}

impl Table {
    fn timeline(&self, of: &Subject) -> Option<&Timeline> {
        match of {
            Subject::All => Some(&self.all),
            Subject::Disk(disk) => self.disks.0.get(disk),
            Subject::Class(class) => self.classes.0.get(class),
            Subject::Datastore(name) => self.datastores.0.get(name),
        }
    }
}

impl Samples {
    /// What something did between two moments (milliseconds since 1970), in `most` points at
    /// most. Nothing is known of more than a day ago.
    pub fn chart(&self, of: &Subject, from_ms: u64, to_ms: u64, most: usize) -> Columns {
        self.drawn(of, [from_ms, to_ms], |timeline, from, to| {
            timeline.points(from, to, most)
        })
    }

    /// The same in windows of one length.
    pub fn even_chart(
        &self,
        of: &Subject,
        from_ms: u64,
        to_ms: u64,
        most: usize,
    ) -> Columns {
        self.drawn(of, [from_ms, to_ms], |timeline, from, to| {
            timeline.even_points(from, to, most)
        })
    }

    fn drawn(
        &self,
        of: &Subject,
        ends_ms: [u64; 2],
        draw: impl Fn(&Timeline, Nanos, Nanos) -> Vec<Point>,
    ) -> Columns {
        let clock = Clock::new(self.epoch);
        let [from, to] = ends_ms.map(|ms| clock.of_daemon(ms));
        let table = lock(&self.table);
        let points = table.timeline(of).map(|it| draw(it, from, to));
        drop(table);
        columns(&points.unwrap_or_default(), &clock)
    }
}

/// The two clocks: the daemon's own, which runs evenly, and the one of people.
struct Clock {
    epoch_ms: u64,
}

impl Clock {
    fn new(epoch: Instant) -> Clock {
        let ago_ms = epoch.elapsed().as_millis() as u64;
        Clock { epoch_ms: clock::now_ms().saturating_sub(ago_ms) }
    }

    fn of_daemon(&self, ms: u64) -> Nanos {
        Nanos(ms.saturating_sub(self.epoch_ms).saturating_mul(1_000_000))
    }

    fn of_people(&self, at: Nanos) -> u64 {
        self.epoch_ms + at.0 / 1_000_000
    }
}

fn columns(points: &[Point], clock: &Clock) -> Columns {
    let micros = |span: Option<Nanos>| span.map(micros);
    let mut all = Columns::default();
    for Point { start, end, windows, did } in points {
        all.start_ms.push(clock.of_people(*start));
        all.end_ms.push(clock.of_people(*end));
        all.windows.push(*windows);
        all.read_iops.push(did.per_second(did.read.operations as f64));
        all.write_iops.push(did.per_second(did.write.operations as f64));
        all.read_bytes_s.push(did.per_second(did.read.bytes));
        all.write_bytes_s.push(did.per_second(did.write.bytes));
        all.p50_us.push(micros(did.p50));
        all.p99_us.push(micros(did.p99));
        all.max_us.push(micros(did.max));
        all.queue_us.push(micros(did.queue));
        all.service_us.push(micros(did.service));
        all.outstanding.push(did.outstanding());
    }
    all
}
