//! The arrays that have a name.
//!
//! Where a number comes from is said at each preset: *published* is what makers and
//! studies state, *fitted* is what was chosen so that a published measurement comes
//! out, *assumed* is neither. A number that is not marked is published.

use crate::{Bytes, Nanos};

use super::device::Device;
use super::model::Model;
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

/// SATA-II flash of 2010: 0.15 to 0.25 ms. The flash disks of that time whose inside is published
/// get at ten places at a time (Intel's X25, 2008: ten channels, 240 to 250 MB/s). What 3 Gbit/s
/// leave of its rate after coding and frames is assumed.
const FLASH: Device =
    Device::Flash { access: Nanos::from_micros(200), channels: 10, media: 240 * MIB };

/// What a read, and a write that is not cached, takes beside its devices and link;
/// assumed.
const OVERHEAD: Nanos = Nanos::from_micros(200);

/// A cached write is acknowledged in about that.
const ACK: Nanos = Nanos::from_micros(1000);

/// 4 Gbit/s Fibre Channel: 400 MB/s of payload.
const FC_4G: u64 = 380 * MIB;

/// SATA-II: 3 Gbit/s, 8b/10b coded.
const SATA_2: u64 = 280 * MIB;

/// How long a request may be passed over by a stream; fitted to the times of
/// a migration under load (a database's data disk, moved from an old array to a new).
const AGEING: Nanos = Nanos::from_millis(24);

/// An array with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// An older array: RAID-0 over seven 15K FC disks, little prefetch.
    OldFc,
    /// A newer array: RAID-0 over six 15K FC disks, far prefetch.
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
        match self {
            Preset::OldFc => old_fc(self),
            Preset::NewFc => new_fc(self),
            Preset::SataSsd => sata_ssd(self),
            Preset::Sas10k => sas_10k(self),
            Preset::Sata7k => sata_7k(self),
            Preset::Flash2010 => flash_2010(self),
            Preset::E4Fc => e4_fc(self),
        }
    }
}

/// So many spindles in a plain stripe.
fn stripe(data: u32) -> Vec<Groups> {
    vec![Groups { level: Level::Raid0, data, count: 1 }]
}

fn old_fc(preset: Preset) -> Model {
    Model {
        preset,
        device: FC_15K,
        groups: stripe(7),
        ageing: AGEING,
        // Fitted, with the ageing.
        prefetch: 4,
        cache: Bytes(512 * MIB),
        write_cache: Bytes(2500 * MIB),
        ack: ACK,
        overhead: OVERHEAD,
        // Fitted: a copy with 30 chunks in flight runs at 330 MiB/s from 4, 7 and 8
        // spindles alike, so they are not what limits it.
        link: 333 * MIB,
        hits: 0,
        coalesce: false,
    }
}

fn new_fc(preset: Preset) -> Model {
    Model {
        groups: stripe(6),
        // Fitted, as the old array's.
        prefetch: 32,
        cache: Bytes(1024 * MIB),
        write_cache: Bytes(8736 * MIB),
        // Fitted: 1.12 ms with the link's time.
        ack: Nanos::from_micros(950),
        link: FC_4G,
        ..old_fc(preset)
    }
}

fn sata_ssd(preset: Preset) -> Model {
    Model {
        device: FLASH,
        groups: stripe(4),
        write_cache: Bytes(0),
        // Fitted: a write takes 1.40 ms during a copy.
        overhead: Nanos::from_micros(780),
        ..new_fc(preset)
    }
}

fn sas_10k(preset: Preset) -> Model {
    Model {
        // 7.0 ms for a random operation; how it divides is assumed.
        device: Device::Disk {
            seek: Nanos::from_micros(4000),
            revolution: Nanos::from_micros(6000),
            media: 100 * MIB,
        },
        groups: vec![Groups { level: Level::Raid6, data: 6, count: 1 }],
        // Assumed, and the caches.
        prefetch: 32,
        cache: Bytes(1024 * MIB),
        write_cache: Bytes(1024 * MIB),
        // 8 Gbit/s Fibre Channel.
        link: 760 * MIB,
        ..old_fc(preset)
    }
}

fn sata_7k(preset: Preset) -> Model {
    Model {
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
        link: SATA_2,
        ..old_fc(preset)
    }
}

fn flash_2010(preset: Preset) -> Model {
    Model {
        device: FLASH,
        groups: stripe(1),
        cache: Bytes(0),
        write_cache: Bytes(0),
        // Assumed: no array is in between.
        overhead: Nanos::from_micros(50),
        link: SATA_2,
        ..old_fc(preset)
    }
}

fn e4_fc(preset: Preset) -> Model {
    Model {
        groups: vec![
            Groups { level: Level::Raid5, data: 4, count: 2 },
            Groups { level: Level::Raid10, data: 2, count: 2 },
        ],
        // Assumed, and the caches and the link.
        prefetch: 32,
        cache: Bytes(1024 * MIB),
        write_cache: Bytes(2048 * MIB),
        link: FC_4G,
        ..old_fc(preset)
    }
}
