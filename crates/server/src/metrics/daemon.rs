//! Metrics of the daemon itself.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use sterna_core::measure::Timed;

use super::rows::{NONE, counters, gauges, histograms};

/// The daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    /// How long changes of the state took.
    pub(super) commits: Timed,
    /// Requests of the API, by path and status.
    pub(super) requests: Vec<((String, u16), u64)>,
}

impl Collector for Daemon {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        let help = "The version of the daemon; always 1.";
        gauges(encoder, ("build_info", help), [(version, 1u32)])?;
        let help = "How long a change of the state took until it was durable.";
        histograms(encoder, ("store_commit_seconds", help), [(NONE, self.commits)])?;
        let requests = self.requests.iter().map(|((route, code), many)| {
            ([("route", route.clone()), ("code", code.to_string())], *many)
        });
        let help = "Requests of the API that were answered.";
        counters(encoder, ("api_requests", help), requests)
    }
}
