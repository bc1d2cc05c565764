//! Metrics of migrations. A migration has no row of its own: there is no end of them.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use sterna_core::Nanos;
use sterna_core::measure::Timed;
use sterna_moves::StandsFor;

use super::rows::{NONE, counters, gauges, histograms, seconds};

/// Migrations, added up.
#[derive(Debug)]
pub(super) struct Migrations {
    /// How many there are in each state.
    pub(super) states: BTreeMap<&'static str, u64>,
    /// From which datastore to which, and how many bytes.
    pub(super) copied: Vec<((String, String), u64)>,
    /// For how long they have stood still.
    pub(super) stood: Vec<(StandsFor, Nanos)>,
    /// How long guests were held.
    pub(super) holds: Timed,
    /// By disk, what its guard has kept.
    pub(super) guards: Vec<(String, f64)>,
}

impl Collector for Migrations {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let states = self.states.iter().map(|(state, many)| ([("state", *state)], *many));
        let help = "Migrations in each state, also those of disks that QEMU serves; ended \
                    ones are all that Sterna remembers.";
        gauges(encoder, ("migrations", help), states)?;
        let copied = self.copied.iter().map(|((from, to), bytes)| {
            ([("from", from.as_str()), ("to", to.as_str())], *bytes)
        });
        let help = "Bytes that were copied from one datastore to another.";
        counters(encoder, ("migration_bytes", help), copied)?;
        let stood = self.stood.iter();
        let stood = stood.map(|(why, span)| ([("reason", why.word())], seconds(*span)));
        let help = "Time in which migrations stood still, all of them added up.";
        counters(encoder, ("migration_paused_seconds", help), stood)?;
        let help = "How long a guest was held at a switch-over.";
        histograms(encoder, ("switchover_hold_seconds", help), [(NONE, self.holds)])?;
        let guards = self.guards.iter();
        let guards = guards.map(|(disk, kept)| ([("disk", disk.as_str())], *kept));
        let help = "The part of its earlier requests per second that a guarded disk has \
                    while it moves.";
        gauges(encoder, ("guard_kept_ratio", help), guards)
    }
}
