//! The parameters of a modelled array.

use crate::{Bytes, Nanos};

use super::device::Device;
use super::preset::Preset;
use super::raid::Groups;

/// The parameters of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The array that it differs from by its parameters only.
    pub(super) preset: Preset,
    /// Its spindles.
    pub(super) device: Device,
    /// How they are grouped, all of them one pool.
    pub(super) groups: Vec<Groups>,
    /// How long a stream may pass over a request.
    pub(super) ageing: Nanos,
    /// Elements of 64 KiB that are fetched ahead of a stream.
    pub(super) prefetch: u32,
    /// Room for them.
    pub(super) cache: Bytes,
    /// Room for writes that are acknowledged before they are on the spindles; zero:
    /// none is.
    pub(super) write_cache: Bytes,
    /// What a cached write takes beside the link.
    pub(super) ack: Nanos,
    /// What anything else takes beside the link and the spindles.
    pub(super) overhead: Nanos,
    /// Bytes per second of controller and link, in and out together.
    pub(super) link: u64,
    /// Random reads of a hundred that need no spindle.
    pub(super) hits: u32,
    /// Whether random writes become full stripes in a new place.
    pub(super) coalesce: bool,
}

impl Model {
    /// The array that it differs from by its parameters only.
    pub fn preset(&self) -> Preset {
        self.preset
    }

    /// Its spindles, or flash devices.
    pub fn device(&self) -> Device {
        self.device
    }

    /// How they are grouped.
    pub fn groups(&self) -> &[Groups] {
        &self.groups
    }

    /// Elements of 64 KiB that are fetched ahead of a stream.
    pub fn prefetch(&self) -> u32 {
        self.prefetch
    }

    /// Whether writes are acknowledged before they are on the spindles.
    pub fn caches_writes(&self) -> bool {
        self.write_cache > Bytes(0)
    }

    /// What a cached write takes beside the link.
    pub fn ack(&self) -> Nanos {
        self.ack
    }

    /// What anything else takes beside the link and the spindles.
    pub fn overhead(&self) -> Nanos {
        self.overhead
    }

    /// Bytes per second of controller and link, in and out together.
    pub fn link(&self) -> u64 {
        self.link
    }

    /// The part of random reads that needs no spindle.
    pub fn hits(&self) -> f64 {
        f64::from(self.hits) / 100.0
    }

    /// Whether random writes become full stripes in a new place.
    pub fn coalesces(&self) -> bool {
        self.coalesce
    }

    /// How many it has.
    pub fn spindles(&self) -> u32 {
        self.groups.iter().map(Groups::spindles).sum()
    }

    /// Random reads of so many bytes per second, at most: all spindles busy, no hit.
    pub fn random_read_peak(&self, bytes: u64) -> f64 {
        f64::from(self.spindles()) / self.device.mean_random_busy(bytes).as_secs_f64()
    }
}
