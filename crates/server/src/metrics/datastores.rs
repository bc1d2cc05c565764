//! Metrics of datastores.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use sterna_telemetry::samples::Total;

use super::ops::{times, used};
use super::rows::{gauges, histograms};

/// A datastore.
#[derive(Debug)]
pub(super) struct DatastoreRow {
    pub(super) name: String,
    /// It can be used, and answers in time.
    pub(super) is_online: bool,
    /// Its free bytes and its capacity, if images share them, and it says them in time.
    pub(super) space: Option<(u64, u64)>,
    pub(super) total: Total,
}

/// All datastores.
#[derive(Debug)]
pub(super) struct Datastores(pub(super) Vec<DatastoreRow>);

impl Collector for Datastores {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let response = self.0.iter().flat_map(|it| {
            let name = it.name.as_str();
            used(&it.total).map(move |(op, traffic)| {
                ([("datastore", name), ("op", op)], times(&traffic))
            })
        });
        let help = "Response times of a datastore: of its disks' requests, and of what was \
                    copied from it and to it.";
        histograms(encoder, ("datastore_response_seconds", help), response)?;
        let figure = |of: fn((u64, u64)) -> u64| {
            let known = move |it: &DatastoreRow| it.space.map(of);
            self.0.iter().filter_map(move |it| {
                Some(([("datastore", it.name.as_str())], known(it)?))
            })
        };
        let help = "Free bytes; absent while the datastore does not say them, and for \
                    devices and exports.";
        gauges(encoder, ("datastore_free_bytes", help), figure(|(free, _)| free))?;
        let help = "All bytes; absent while the datastore does not say them, and for \
                    devices and exports.";
        gauges(encoder, ("datastore_capacity_bytes", help), figure(|(_, all)| all))?;
        let online = self
            .0
            .iter()
            .map(|it| ([("datastore", it.name.as_str())], u32::from(it.is_online)));
        let help = "1 if the datastore can be used and answers in time, else 0.";
        gauges(encoder, ("datastore_online", help), online)
    }
}
