//! What a disk's requests are like, as the API shows it.

use hdrhistogram::Histogram;
use sterna_api::{Bucket, DiskStats, Error, Pattern, RequestStats, Result, Times};
use sterna_core::DiskId;
use sterna_core::measure::{self, Buckets};
use sterna_engine::Requests;
use sterna_telemetry::figures::RECENT;
use sterna_telemetry::samples::load;

use crate::Storage;

impl Storage {
    /// What a disk's requests are like, since it was attached.
    pub fn disk_stats(&self, name: &str) -> Result<DiskStats> {
        let record = self.disk_record(name)?;
        let not_served = |problem: &str| {
            Error::unavailable(format!("disk {name} is not served: {problem}"))
                .hint(format!("see `sterna disk show {name}`"))
        };
        if let Some(problem) = self.problem_of(record.id) {
            return Err(not_served(&problem));
        }
        let profile = self.engine.profile(record.id);
        let profile = profile.map_err(|error| not_served(&error.to_string()))?;
        let stats = profile.stats;
        Ok(DiskStats {
            name: record.name,
            datastore: record.datastore,
            connections: u64::from(stats.connections),
            in_flight: u64::from(stats.in_flight),
            recent: load(&self.samples.of_disk(record.id, RECENT)),
            read: profile.read.as_deref().map(requests).unwrap_or_default(),
            write: profile.write.as_deref().map(requests).unwrap_or_default(),
            flushes: stats.flushes,
            zeroes: stats.zeroes,
            errors: stats.errors,
        })
    }

    /// The share of a disk's reads, and of its writes, that went on where the one before
    /// ended. None of a disk that is not served, and of a side without requests.
    pub fn orders(&self, disk: DiskId) -> [Option<f64>; 2] {
        self.engine.profile(disk).map_or([None; 2], |it| {
            [it.read, it.write].map(|side| side.and_then(|it| it.pattern.in_order()))
        })
    }
}

fn requests(requests: &Requests) -> RequestStats {
    RequestStats {
        operations: requests.traffic.operations,
        bytes: requests.traffic.bytes,
        response: times(requests.times.response()),
        queue: requests.times.queue().and_then(times),
        service: times(requests.times.service()),
        pattern: Some(pattern(&requests.pattern)),
    }
}

fn times(histogram: &Histogram<u64>) -> Option<Times> {
    let micros = |nanos: u64| nanos as f64 / 1e3;
    let quantile = |part| micros(histogram.value_at_quantile(part));
    (!histogram.is_empty()).then(|| Times {
        mean_us: histogram.mean() / 1e3,
        p50_us: quantile(0.50),
        p95_us: quantile(0.95),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
        max_us: micros(histogram.max()),
    })
}

fn pattern(pattern: &measure::Pattern) -> Pattern {
    let as_is = |edge| edge;
    let micros = |nanos: i64| nanos / 1000;
    Pattern {
        length: buckets(&pattern.length, as_is),
        distance: buckets(&pattern.distance, as_is),
        nearest: buckets(&pattern.nearest, as_is),
        outstanding: buckets(&pattern.outstanding, as_is),
        interval: buckets(&pattern.interval, micros),
        response: buckets(&pattern.response, micros),
    }
}

fn buckets(buckets: &Buckets, unit: impl Fn(i64) -> i64) -> Vec<Bucket> {
    buckets.iter().map(|(to, count)| Bucket { to: to.map(&unit), count }).collect()
}
