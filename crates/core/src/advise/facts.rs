//! What was measured.

use crate::Nanos;
use crate::measure::LqFit;

/// Everything that advice is given from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The datastores.
    pub datastores: Vec<Datastore>,
    /// The disks.
    pub disks: Vec<Disk>,
}

/// A datastore.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datastore {
    /// The part of its room that is taken; nothing if it cannot be asked.
    pub taken: Option<f64>,
    /// The number of the place that its room is from; equal for two datastores on one
    /// file system. Nothing if its room is its own.
    pub shared_room: Option<u64>,
    /// What its device does with a load.
    pub device: LqFit,
    /// Requests per second there, those of copies as well.
    pub iops: f64,
}

/// A disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// Which of the datastores its image is on.
    pub datastore: usize,
    /// Its reads.
    pub read: Requests,
    /// Its writes.
    pub write: Requests,
    /// Requests under way, on average.
    pub outstanding: f64,
    /// The mean time for which a request waited for admission.
    pub queue: Option<Nanos>,
    /// The mean time that it was at the device.
    pub service: Option<Nanos>,
    /// The part of the time in which it asked for something now and again.
    pub there: f64,
    /// How clients reach it.
    pub way: Way,
    /// Whether it is in a class of which something is asked.
    pub governed: bool,
    /// Whether it is being moved.
    pub moving: bool,
}

/// Reads, or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Requests {
    /// So many per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// The part that went on where one before ended; nothing if there were none.
    pub in_order: Option<f64>,
}

/// How clients reach a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Over NBD.
    Nbd,
    /// By a virtual machine's own driver.
    VhostUser,
}

impl Disk {
    /// Reads and writes per second.
    pub fn iops(&self) -> f64 {
        self.read.iops + self.write.iops
    }

    /// Bytes read and written per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.read.bytes_per_second + self.write.bytes_per_second
    }

    /// Bytes of a request on average; 0 of none.
    pub fn length(&self) -> f64 {
        if self.iops() > 0.0 { self.bytes_per_second() / self.iops() } else { 0.0 }
    }

    /// The part of its requests that went on where one before ended; nothing if none is
    /// known.
    pub fn in_order(&self) -> Option<f64> {
        let sides = [&self.read, &self.write];
        let known = || sides.iter().filter_map(|side| Some((side.iops, side.in_order?)));
        let all: f64 = known().map(|(iops, _)| iops).sum();
        let in_order: f64 = known().map(|(iops, part)| iops * part).sum();
        (all > 0.0).then(|| in_order / all)
    }
}
