//! What kind of application a disk has, by its requests.

use super::facts::Disk;

/// With fewer requests per second nothing depends on where they go.
const IDLE_IOPS: f64 = 1.0;

/// Of requests in order, so many make a stream that an array reads ahead of...
const IN_ORDER: f64 = 0.7;

/// ... and of so few, it has nothing to read ahead.
const AT_RANDOM: f64 = 0.3;

/// A log is written, and hardly ever read.
const WRITTEN: f64 = 0.9;

/// Its writes are shorter than those of whoever copies something.
const LOG_LENGTH: f64 = (256 << 10) as f64;

/// What a disk's requests are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// It asks for too little to tell.
    Idle,
    /// Requests go anywhere: tables, indexes, a file server.
    Random,
    /// Short writes, each where the one before ended: a database's log.
    Log,
    /// Requests in order: a backup, a scan, a copy.
    Stream,
    /// Some of this, and some of that.
    Mixed,
}

impl Nature {
    /// What a disk is like.
    pub fn of(disk: &Disk) -> Nature {
        let Some(in_order) = disk.in_order() else { return Nature::Idle };
        let written = disk.write.iops / disk.iops().max(f64::MIN_POSITIVE);
        match in_order {
            _ if disk.iops() < IDLE_IOPS => Nature::Idle,
            IN_ORDER.. if written >= WRITTEN && disk.length() < LOG_LENGTH => Nature::Log,
            IN_ORDER.. => Nature::Stream,
            ..AT_RANDOM => Nature::Random,
            _ => Nature::Mixed,
        }
    }

    /// Whether it has an array read or write one place after another.
    pub fn is_in_order(self) -> bool {
        matches!(self, Nature::Log | Nature::Stream)
    }
}
