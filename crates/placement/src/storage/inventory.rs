//! What there is: datastores, and disks on them.

use super::cooldown::Cooldown;
use super::rule::Rule;
use sterna_core::Nanos;
use sterna_core::measure::LqFit;
use sterna_core::room::share_room;

/// Everything that moves are chosen from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// The datastores.
    pub datastores: Vec<Datastore>,
    /// The disks.
    pub disks: Vec<Disk>,
    /// Which of them belong together, and which do not.
    pub rules: Vec<Rule>,
}

/// A datastore.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datastore {
    /// Its size, in bytes. 0 if it cannot be asked: then nothing goes there.
    pub capacity: u64,
    /// What is left.
    pub free: u64,
    /// Datastores with the same number have their room from one file system: what one takes
    /// is gone for all. Nothing if its room is its own.
    pub shared_room: Option<u64>,
    /// Of the response times there, the 95th percentile; nothing where nobody asked for
    /// anything.
    pub latency: Option<Nanos>,
    /// Their mean.
    pub mean: Option<Nanos>,
    /// What its device does with a load.
    pub device: LqFit,
    /// Whether disks move from it or to it, or did in the time that response times are of:
    /// then these are of two loads, and say nothing of either.
    pub settling: bool,
    /// Whether more disks may come: a device that is all one image's takes none.
    pub takes_disks: bool,
}

/// A disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// Which of the datastores its image is on.
    pub datastore: usize,
    /// What its image takes there, in bytes: what a move copies and frees.
    pub taken: u64,
    /// What it may need at the destination, in bytes: with thin provisioning as much as it
    /// takes now.
    pub needs: u64,
    /// What it may still come to take, beyond that.
    pub promised: u64,
    /// Requests under way, on average.
    pub outstanding: f64,
    /// Requests per second.
    pub iops: f64,
    /// Why it stays, if it does.
    pub pinned: Option<Pinned>,
}

/// Why a disk stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinned {
    /// It is not served, so nothing is known of it.
    NotServed,
    /// Its datastore does not say what it has, so nobody knows what a move would bring.
    Away,
    /// It moves already.
    Moves,
    /// It has moved not long ago.
    Moved(Cooldown),
}

/// A disk with more under way, on average, asks for something that matters...
const IDLE_OUTSTANDING: f64 = 0.01;

/// ... and so does one with more requests per second: where it is they may be quick.
const IDLE_IOPS: f64 = 1.0;

impl Disk {
    /// Whether it does not matter what it asks for.
    pub(super) fn is_idle(&self) -> bool {
        self.outstanding <= IDLE_OUTSTANDING && self.iops <= IDLE_IOPS
    }
}

impl Inventory {
    /// The other datastores that have their room from where this one has it.
    pub fn mates(&self, at: usize) -> impl Iterator<Item = usize> {
        let room = |at: usize| self.datastores[at].shared_room;
        let others = (0..self.datastores.len()).filter(move |other| *other != at);
        others.filter(move |other| share_room(room(at), room(*other)))
    }
}

impl Datastore {
    /// The part of its room that is taken if so many bytes more are.
    pub(super) fn taken(&self, more: f64) -> f64 {
        let capacity = self.capacity as f64;
        if capacity > 0.0 { (capacity - self.free as f64 + more) / capacity } else { 0.0 }
    }
}
