//! A datastore with the load that is on it in thought, and how it answers then.

use super::Over;
use super::bounds::Bounds;
use super::inventory::{Datastore, Disk};
use crate::measure::LqFit;

/// A line is taken to go on as far as so many times the most that was seen.
const BEYOND: f64 = 2.0;

/// A datastore under a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded<'i> {
    pub(super) datastore: &'i Datastore,
    /// Bytes that came, less those that went.
    more: f64,
    outstanding: f64,
    iops: f64,
    /// The percentile of the response times in nanoseconds, as far as it is known.
    latency: Option<f64>,
    /// How much longer it is than what the device's line says; nothing if one of them is
    /// not known.
    spread: Option<f64>,
}

impl<'i> Loaded<'i> {
    /// As it is, under the load of the disks that are on it.
    pub(super) fn of<'d>(
        datastore: &'i Datastore,
        disks: impl Iterator<Item = &'d Disk>,
    ) -> Loaded<'i> {
        let latency = datastore.latency.map(|latency| latency.0 as f64);
        let (more, outstanding, iops) = (0.0, 0.0, 0.0);
        let empty = Loaded { datastore, more, outstanding, iops, latency, spread: None };
        let loaded = disks.fold(empty, |it, disk| it.load(disk, 1.0));
        // Those who are there now have so many requests under way: that was counted.
        let expected = loaded.by_number().filter(|expected| *expected > 0.0);
        let spread = latency.zip(expected).map(|(seen, expected)| seen / expected);
        Loaded { spread, ..loaded }
    }

    /// One where nobody asked for anything answers as spread out as the one that its load
    /// comes from.
    pub(super) fn spread_as(self, source: Loaded<'_>) -> Loaded<'i> {
        let spread = if self.latency.is_none() { source.spread } else { self.spread };
        Loaded { spread, ..self }
    }

    /// With a disk more, which may take so much: no quicker than before.
    pub(super) fn with(self, disk: &Disk) -> Loaded<'i> {
        let it = Loaded { more: self.more + disk.needs as f64, ..self.load(disk, 1.0) };
        if disk.is_idle() {
            return it;
        }
        let least = self.latency.unwrap_or_default();
        Loaded { latency: it.pressed().map(|latency| latency.max(least)), ..it }
    }

    /// With a disk less: no slower than before.
    pub(super) fn without(self, disk: &Disk) -> Loaded<'i> {
        let it = Loaded { more: self.more - disk.taken as f64, ..self.load(disk, -1.0) };
        if disk.is_idle() {
            return it;
        }
        let most = self.latency.unwrap_or(f64::INFINITY);
        Loaded { latency: it.pressed().map(|latency| latency.min(most)), ..it }
    }

    fn load(self, disk: &Disk, times: f64) -> Loaded<'i> {
        let outstanding = (self.outstanding + times * disk.outstanding).max(0.0);
        let iops = (self.iops + times * disk.iops).max(0.0);
        Loaded { outstanding, iops, ..self }
    }

    /// The part of the room that is taken.
    pub(super) fn taken(&self) -> f64 {
        self.datastore.taken(self.more)
    }

    /// The percentile of the response times in nanoseconds, as far as it is known.
    pub(super) fn latency(&self) -> Option<f64> {
        self.latency
    }

    /// Whether it is known what another load would do to it.
    pub(super) fn is_known(&self) -> bool {
        self.spread.is_some()
    }

    /// How much is waited there in each second, in nanoseconds: by how much two loads differ
    /// in this is what one saves.
    pub(super) fn waits(&self) -> f64 {
        self.iops * self.latency.unwrap_or_default()
    }

    /// Whether it is over a bound.
    pub(super) fn is_over(&self, over: Over, bounds: &Bounds) -> bool {
        match over {
            Over::Space => self.taken() > bounds.space,
            Over::Latency => self.latency.is_some_and(|it| it > bounds.latency.0 as f64),
        }
    }

    /// What the device's line says of this load, in nanoseconds, for clients that have so
    /// many requests under way.
    fn by_number(&self) -> Option<f64> {
        match self.datastore.device {
            LqFit::Line(line) => (self.outstanding <= line.seen.1 * BEYOND)
                .then_some(line.unloaded.0 as f64 + line.slope * self.outstanding),
            LqFit::Flat { seen, latency } => {
                (self.outstanding <= seen.1).then_some(latency.0 as f64)
            }
            LqFit::TooFew { .. } | LqFit::NoVariation { .. } => None,
        }
    }

    /// The same by Little's law for clients that make so many a second.
    fn by_rate(&self) -> f64 {
        let LqFit::Line(line) = self.datastore.device else { return 0.0 };
        let left = 1.0 - line.slope * self.iops / 1e9;
        if left > 0.0 { line.unloaded.0 as f64 / left } else { f64::INFINITY }
    }

    /// The percentile under this load, for whichever clients fare worse.
    fn pressed(&self) -> Option<f64> {
        Some(self.by_number()?.max(self.by_rate()) * self.spread?)
    }
}
