//! Who does what, as the API shows it.

use std::time::{SystemTime, UNIX_EPOCH};

use sterna_api::{Load, NO_CLASS, Result, SideLoad, Top, TopBy, TopRow};
use sterna_core::Nanos;
use sterna_core::measure::{Side, Summary};
use sterna_core::qos::ClassId;
use sterna_os::lock;

use super::{Table, window};
use crate::daemon::Daemon;

/// The longest span that can be asked for, in seconds: what is kept.
const LONGEST_S: f64 = 3600.0;
/// The shortest: a sample.
const SHORTEST_S: f64 = 0.1;

impl Daemon {
    /// Who did what in the last `window_s` seconds.
    pub(crate) fn top(&self, by: TopBy, window_s: f64) -> Result<Top> {
        let span = window(window_s, SHORTEST_S, LONGEST_S)?;
        let disks = self.store.disks()?;
        let book = self.book();
        let shelves = self.all_shelves();
        let served = disks.iter().filter(|disk| self.problem_of(disk.id).is_none());
        let served: Vec<_> = served.collect();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let table = lock(&self.samples.table);
        let row = |name: &str, summary: &Summary| TopRow {
            name: name.into(),
            load: load(summary),
            device: None,
        };
        let now = table.now;
        let mut rows: Vec<TopRow> = match by {
            TopBy::Disk => {
                let of = |id| table.disks.since(id, now, span);
                served.iter().map(|disk| row(&disk.name, &of(&disk.id))).collect()
            }
            TopBy::Class => {
                let of = |id| table.classes.since(id, now, span);
                let records = book.entries().map(|entry| &entry.record);
                let classes = records.map(|class| row(&class.name, &of(&class.id)));
                classes.chain([row(NO_CLASS, &of(&ClassId::OTHERS))]).collect()
            }
            TopBy::Datastore => {
                let names = shelves.iter().map(|shelf| shelf.name());
                names.map(|name| table.datastore_row(name, span)).collect()
            }
        };
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Top {
            by,
            at_ms: since_1970.map_or(0, |since| since.as_millis() as u64),
            disks: served.len() as u64,
            migrations: lock(&self.jobs).len() as u64,
            total: load(
                &table
                    .all
                    .since(now, span)
                    .unwrap_or(Summary { span: span.min(now), ..Summary::default() }),
            ),
            rows,
        })
    }
}

impl Table {
    fn datastore_row(&self, name: &str, span: Nanos) -> TopRow {
        let summary = self.datastores.since(&name.to_owned(), self.now, span);
        let device = self.devices.get(name).map(|device| device.view(self.now));
        TopRow { name: name.into(), load: load(&summary), device }
    }
}

/// A summary as the API has it.
pub(crate) fn load(summary: &Summary) -> Load {
    let micros = |span: Option<Nanos>| span.map(|span| span.0 as f64 / 1e3);
    let side = |side: &Side| SideLoad {
        iops: summary.per_second(side.operations as f64),
        bytes_per_second: summary.per_second(side.bytes),
        response_us: micros(side.response),
    };
    Load {
        window_s: summary.span.as_secs_f64(),
        read: side(&summary.read),
        write: side(&summary.write),
        flushes: summary.per_second(summary.flushes),
        queue_us: micros(summary.queue),
        service_us: micros(summary.service),
        p50_us: micros(summary.p50),
        p95_us: micros(summary.p95),
        p99_us: micros(summary.p99),
        max_us: micros(summary.max),
        outstanding: summary.outstanding(),
        in_flight: u64::from(summary.in_flight),
    }
}
