//! A datastore with the load that is on it in thought, and how it answers then.
//!
//! Of a fast device that has little to do no line is ever learned: its limits are never
//! near. So a device that answers and has no line is taken to serve one request at a time,
//! which is the worst that a device can do, when load comes to it. When load leaves it,
//! the same guess would promise too much: then it is said to be no slower, which is sure,
//! and nothing else leaves it before it was seen what that has brought. So it is with one
//! that is so full of requests that it has never shown how it does with fewer.

use super::Over;
use super::bounds::Bounds;
use super::inventory::{Datastore, Disk};
use sterna_core::Nanos;
use sterna_core::measure::{Line, LqFit};

/// A line is taken to go on as far as so many times the most that was seen.
const BEYOND: f64 = 2.0;

/// How many times the mean the 95th percentile is, where nothing else is known: that of
/// waits which end at any moment alike.
const EXPONENTIAL: f64 = 3.0;

/// A datastore under a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded<'i> {
    pub(super) datastore: &'i Datastore,
    /// Bytes that came, less those that went, there and where the room is the same.
    more: f64,
    outstanding: f64,
    iops: f64,
    /// The percentile of the response times in nanoseconds, as far as it is known.
    latency: Option<f64>,
    /// What is known of the device.
    device: LqFit,
    /// Whether that is a guess, since it has no line.
    is_guessed: bool,
    /// Something has left it, and it is not known what that brings.
    is_left: bool,
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
        let empty = Loaded {
            datastore,
            more: 0.0,
            outstanding: 0.0,
            iops: 0.0,
            latency,
            device: datastore.device,
            is_guessed: false,
            is_left: false,
            spread: None,
        };
        let loaded = disks.fold(empty, |it, disk| it.load(disk, 1.0));
        let guess = guessed(datastore, loaded.outstanding);
        let device = guess.unwrap_or(datastore.device);
        let loaded = Loaded { device, is_guessed: guess.is_some(), ..loaded };
        // Those who are there now have so many requests under way: that was counted.
        let expected = loaded.by_number().filter(|expected| *expected > 0.0);
        let spread = latency.zip(expected).map(|(seen, expected)| seen / expected);
        Loaded { spread, ..loaded }
    }

    /// One where nobody asked for anything answers as spread out as the one that its load
    /// comes from, as far as that is known.
    pub(super) fn spread_as(self, source: Loaded<'_>) -> Loaded<'i> {
        let spread = match self.latency {
            None => source.spread.or(Some(EXPONENTIAL)),
            Some(_) => self.spread,
        };
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
        match it.pressed().filter(|_| !self.is_guessed) {
            Some(latency) => Loaded { latency: Some(latency.min(most)), ..it },
            None => Loaded { is_left: true, ..it },
        }
    }

    /// With so many bytes more, or less, that others have taken of the same room.
    pub(super) fn take(self, bytes: f64) -> Loaded<'i> {
        Loaded { more: self.more + bytes, ..self }
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

    /// Whether more may leave it before it is looked at again.
    pub(super) fn may_be_left(&self) -> bool {
        !self.is_left
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
        match self.device {
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
        let LqFit::Line(line) = self.device else { return 0.0 };
        let left = 1.0 - line.slope * self.iops / 1e9;
        if left > 0.0 { line.unloaded.0 as f64 / left } else { f64::INFINITY }
    }

    /// The percentile under this load, for whichever clients fare worse.
    fn pressed(&self) -> Option<f64> {
        Some(self.by_number()?.max(self.by_rate()) * self.spread?)
    }
}

/// A line for a device that answers and has none: one request at a time. Of one that takes
/// so long with so many under way, each waits for those before it.
fn guessed(datastore: &Datastore, outstanding: f64) -> Option<LqFit> {
    let has_none =
        matches!(datastore.device, LqFit::TooFew { .. } | LqFit::NoVariation { .. });
    let mean = datastore.mean.filter(|mean| has_none && *mean > Nanos(0))?;
    let alone = mean.0 as f64 / (1.0 + outstanding);
    Some(LqFit::Line(Line {
        unloaded: Nanos(alone as u64),
        slope: alone,
        slope_error: alone,
        points: 1,
        // It is as good at any load.
        seen: (0.0, f64::INFINITY),
    }))
}
