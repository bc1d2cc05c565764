//! Metrics of classes, and of what was promised to them.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use sterna_service_levels::Kept;
use sterna_telemetry::samples::Total;

use super::ops::{times, used};
use super::rows::{counters, gauges, histograms, seconds};

/// What a promise is called that no policy makes.
const RESERVATION: &str = "reservation";

/// Classes by name, with what their disks did, and all promises.
#[derive(Debug)]
pub(super) struct Classes {
    pub(super) rows: Vec<(String, Total)>,
    pub(super) promises: Vec<Kept>,
}

impl Classes {
    fn each<V>(
        &self,
        value: impl Fn(&Kept) -> Option<V>,
    ) -> impl Iterator<Item = ([(&'static str, String); 2], V)> {
        self.promises.iter().filter_map(move |kept| {
            let policy = kept.policy.map_or(RESERVATION.into(), |it| it.to_string());
            Some(([("class", kept.class.clone()), ("policy", policy)], value(kept)?))
        })
    }
}

impl Collector for Classes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let response = self.rows.iter().flat_map(|(class, total)| {
            used(total).map(move |(op, traffic)| {
                ([("class", class.as_str()), ("op", op)], times(&traffic))
            })
        });
        let help = "Response times of a class's disks; of the class `migration`, those of \
                    what is copied.";
        histograms(encoder, ("class_response_seconds", help), response)?;
        let help = "The part of a promise that the class had in the last second, from 0 to \
                    1; absent while the promise is not in force.";
        gauges(encoder, ("policy_kept_ratio", help), self.each(|kept| kept.part))?;
        let help = "Time in which the class had less than was promised.";
        let missed = self.each(|kept| Some(seconds(kept.missed)));
        counters(encoder, ("policy_missed_seconds", help), missed)
    }
}
