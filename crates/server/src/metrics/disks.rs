//! Metrics of disks: sums and counts only, as there are many disks.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use sterna_core::Nanos;
use sterna_telemetry::samples::Total;

use super::ops::{Op, ops, used};
use super::rows::{counters, gauges, summaries};

/// A disk.
#[derive(Debug)]
pub(super) struct DiskRow {
    pub(super) name: String,
    pub(super) is_served: bool,
    pub(super) is_hurt: bool,
    pub(super) total: Total,
}

/// All disks, as they are when they are read.
#[derive(Debug)]
pub(super) struct Disks(pub(super) Vec<DiskRow>);

impl Disks {
    /// A row for each kind of request of each disk.
    fn each<'d, I: IntoIterator<Item = Op>, V>(
        &'d self,
        kinds: impl Fn(&'d Total) -> I,
        value: impl Fn(&Op) -> V,
    ) -> impl Iterator<Item = ([(&'static str, &'d str); 2], V)> {
        self.0.iter().flat_map(move |disk| {
            let all: Vec<_> = kinds(&disk.total)
                .into_iter()
                .map(|op| ([("disk", disk.name.as_str()), ("op", op.0)], value(&op)))
                .collect();
            all
        })
    }

    /// The times, for which the library has no kind of metric.
    pub(super) fn write_times(&self, text: &mut String) -> fmt::Result {
        let times =
            |of: fn(&Op) -> Nanos| self.each(used, move |op| (of(op), op.1.operations));
        let response = (
            "sterna_disk_response_seconds",
            "Time from a request's arrival to its answer.",
        );
        summaries(text, response, times(|op| op.1.response))?;
        let queue = (
            "sterna_disk_queue_seconds",
            "The part of the response time that requests waited for admission.",
        );
        summaries(text, queue, times(|op| op.1.queue))
    }
}

impl Collector for Disks {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let requests = ("disk_requests", "Requests that were answered without an error.");
        counters(encoder, requests, self.each(ops, |op| op.1.operations))?;
        let bytes = ("disk_bytes", "Bytes that were read, written or zeroed.");
        let moves = |total| used(total).filter(|op| op.0 != "flush");
        counters(encoder, bytes, self.each(moves, |op| op.1.bytes))?;
        let errors = self.0.iter().map(|it| ([("disk", &*it.name)], it.total.errors));
        let help = "Requests that were answered with an error.";
        counters(encoder, ("disk_errors", help), errors)?;
        let served = || self.0.iter().filter(|it| it.is_served);
        let in_flight = served().map(|it| ([("disk", &*it.name)], it.total.in_flight));
        let help = "Requests that are being carried out; absent while the disk is not \
                    served.";
        gauges(encoder, ("disk_in_flight", help), in_flight)?;
        let hurt = served().map(|it| ([("disk", &*it.name)], u32::from(it.is_hurt)));
        let help = "1 if requests take longer than usual, or than is promised, else 0; \
                    absent while the disk is not served.";
        gauges(encoder, ("disk_hurt", help), hurt)
    }
}
