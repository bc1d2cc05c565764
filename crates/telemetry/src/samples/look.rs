//! What disks, classes and datastores did in one span, all seen at the same moment.

use std::sync::MutexGuard;

use sterna_api::{Device, Load, SideLoad};
use sterna_core::measure::{Side, Summary};
use sterna_core::qos::ClassId;
use sterna_core::{DiskId, Nanos};
use sterna_os::lock;

use super::{Samples, Table};
use crate::figures::micros;

/// The samples at one moment. While somebody has this, no sample is entered.
pub struct Look<'s> {
    table: MutexGuard<'s, Table>,
    span: Nanos,
}

impl Samples {
    /// Looks at the last `span`, up to a day.
    pub fn look(&self, span: Nanos) -> Look<'_> {
        Look { table: lock(&self.table), span }
    }
}

impl Look<'_> {
    /// What all disks did together.
    pub fn all(&self) -> Summary {
        let (now, span) = (self.table.now, self.span);
        let all = self.table.all.since(now, span);
        all.unwrap_or(Summary { span: span.min(now), ..Summary::default() })
    }

    /// What a disk did.
    pub fn disk(&self, disk: DiskId) -> Summary {
        self.table.disks.since(&disk, self.table.now, self.span)
    }

    /// What the disks of a class did.
    pub fn class(&self, class: ClassId) -> Summary {
        self.table.classes.since(&class, self.table.now, self.span)
    }

    /// What a datastore's device did, and what is known of that.
    pub fn datastore(&self, name: &str) -> (Summary, Option<Device>) {
        let now = self.table.now;
        let did = self.table.datastores.since(&name.to_owned(), now, self.span);
        (did, self.table.devices.get(name).map(|device| device.view(now)))
    }
}

/// A summary as the API has it.
pub fn load(summary: &Summary) -> Load {
    let micros = |span: Option<Nanos>| span.map(micros);
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
