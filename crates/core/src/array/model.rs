//! The parameters of a modelled array, and the arrays that have a name.
//!
//! Where a number comes from is said at each preset: *published* is what makers and
//! studies state, *fitted* is what was chosen so that a published measurement comes
//! out, *assumed* is neither. A number that is not marked is published.

use crate::{Bytes, Nanos};

use super::device::Device;
use super::raid::{Groups, Level};

/// The bytes of a MiB, for rates.
const MIB: u64 = 1 << 20;

/// A 15K Fibre Channel disk over its full stroke; 1.7 ms of seek if only its
/// outer tracks are used. 100 MiB/s lie between the 95 and 115 MB/s of its tracks.
const FC_15K: Device = Device::Disk {
    seek: Nanos::from_micros(3000),
    revolution: Nanos::from_micros(4000),
    media: 100 * MIB,
};

/// What a read, and a write that is not cached, takes beside its devices and link;
/// assumed.
const OVERHEAD: Nanos = Nanos::from_micros(200);

/// A cached write is acknowledged in about that.
const ACK: Nanos = Nanos::from_micros(1000);

/// 4 Gbit/s Fibre Channel: 400 MB/s of payload.
const FC_4G: u64 = 380 * MIB;

/// How long a request may be passed over by a stream; fitted to the times of
/// a migration under load (a database's data disk, moved from an old array to a new).
const AGEING: Nanos = Nanos::from_millis(24);

/// An array with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// An array of about 2006: RAID-0 over seven 15K FC disks, little prefetch.
    OldFc,
    /// An array of about 2010: RAID-0 over six 15K FC disks, far prefetch.
    NewFc,
    /// Four SATA-II flash disks of the newer array, whose writes are not cached.
    SataSsd,
    /// RAID-6 (6+2) of 10K SAS disks.
    Sas10k,
    /// One 7.2K SATA disk, writes not cached.
    Sata7k,
    /// One flash disk of 2010.
    Flash2010,
    /// Two RAID-5 (4+1) and two RAID-1/0 (2+2) groups of 15K FC disks, as one pool.
    E4Fc,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 7] = [
        Preset::OldFc,
        Preset::NewFc,
        Preset::SataSsd,
        Preset::Sas10k,
        Preset::Sata7k,
        Preset::Flash2010,
        Preset::E4Fc,
    ];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Preset::OldFc => "old-fc",
            Preset::NewFc => "new-fc",
            Preset::SataSsd => "sata-ssd",
            Preset::Sas10k => "sas-10k",
            Preset::Sata7k => "sata-7k",
            Preset::Flash2010 => "flash-2010",
            Preset::E4Fc => "e4-fc",
        }
    }

    /// Its parameters.
    pub fn model(self) -> Model {
        let stripe = |data| vec![Groups { level: Level::Raid0, data, count: 1 }];
        let old_fc = Model {
            preset: self,
            device: FC_15K,
            groups: stripe(7),
            ageing: AGEING,
            // Fitted, with the ageing.
            prefetch: 4,
            cache: Bytes(512 * MIB),
            write_cache: Bytes(2500 * MIB),
            ack: ACK,
            overhead: OVERHEAD,
            // Fitted: a copy with 30 chunks in flight runs at 330 MiB/s from 4, 7
            // and 8 spindles alike, so they are not what limits it.
            link: 333 * MIB,
            hits: 0,
            coalesce: false,
        };
        match self {
            Preset::OldFc => old_fc,
            Preset::NewFc => Model {
                groups: stripe(6),
                // Fitted, as the old array's.
                prefetch: 32,
                cache: Bytes(1024 * MIB),
                write_cache: Bytes(8736 * MIB),
                // Fitted: 1.12 ms with the link's time.
                ack: Nanos::from_micros(950),
                link: FC_4G,
                ..old_fc
            },
            Preset::SataSsd => Model {
                device: Device::Flash {
                    access: Nanos::from_micros(200),
                    // SATA-II: 3 Gbit/s less coding and frames; assumed.
                    media: 240 * MIB,
                },
                groups: stripe(4),
                prefetch: 32,
                cache: Bytes(1024 * MIB),
                write_cache: Bytes(0),
                // Fitted: a write takes 1.40 ms during a copy.
                overhead: Nanos::from_micros(780),
                link: FC_4G,
                ..old_fc
            },
            Preset::Sas10k => Model {
                // 7.0 ms for a random operation; how it divides is assumed.
                device: Device::Disk {
                    seek: Nanos::from_micros(4000),
                    revolution: Nanos::from_micros(6000),
                    media: 100 * MIB,
                },
                groups: vec![Groups { level: Level::Raid6, data: 6, count: 1 }],
                prefetch: 32,
                cache: Bytes(1024 * MIB),
                write_cache: Bytes(1024 * MIB),
                // 8 Gbit/s Fibre Channel.
                link: 760 * MIB,
                ..old_fc
            },
            Preset::Sata7k => Model {
                device: Device::Disk {
                    seek: Nanos::from_micros(7700),
                    revolution: Nanos::from_micros(8333),
                    // Assumed.
                    media: 80 * MIB,
                },
                groups: stripe(1),
                // The disk's own buffer; assumed.
                cache: Bytes(16 * MIB),
                write_cache: Bytes(0),
                link: 280 * MIB,
                ..old_fc
            },
            Preset::Flash2010 => Model {
                device: Device::Flash {
                    access: Nanos::from_micros(200),
                    media: 240 * MIB,
                },
                groups: stripe(1),
                cache: Bytes(0),
                write_cache: Bytes(0),
                overhead: Nanos::from_micros(50),
                link: 280 * MIB,
                ..old_fc
            },
            Preset::E4Fc => Model {
                groups: vec![
                    Groups { level: Level::Raid5, data: 4, count: 2 },
                    Groups { level: Level::Raid10, data: 2, count: 2 },
                ],
                // Fitted: what a backup leaves to a database.
                ageing: Nanos::from_millis(60),
                prefetch: 32,
                cache: Bytes(1024 * MIB),
                write_cache: Bytes(2048 * MIB),
                link: FC_4G,
                ..old_fc
            },
        }
    }
}

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

    /// How many it has.
    pub fn spindles(&self) -> u32 {
        self.groups.iter().map(Groups::spindles).sum()
    }

    /// Random reads of so many bytes per second, at most: all spindles busy, no hit.
    pub fn random_read_peak(&self, bytes: u64) -> f64 {
        f64::from(self.spindles()) / self.device.mean_random(bytes).as_secs_f64()
    }
}
