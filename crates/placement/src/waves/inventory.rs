//! What there is: datastores, disks that are to leave them, and groups of these.

use super::setup::Group;
use sterna_core::measure::LqFit;

/// Everything that destinations are chosen from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// The datastores.
    pub datastores: Vec<Datastore>,
    /// The disks that are to be elsewhere.
    pub disks: Vec<Disk>,
    /// The groups that disks belong to.
    pub groups: Vec<Group>,
}

/// Whether a datastore takes disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// None: it is not to be gone to, does not answer, or is all one image's already.
    Nothing,
    /// One, which gets all of it.
    One,
    /// As many as there is room for.
    Any,
}

/// A datastore.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datastore {
    /// Its size, in bytes.
    pub capacity: u64,
    /// What is left.
    pub free: u64,
    /// Datastores with the same number have their room from one file system: what one takes
    /// is gone for all. Nothing if its room is its own.
    pub shared_room: Option<u64>,
    /// Whether it takes disks.
    pub takes: Takes,
    /// Requests under way there, on average, of all disks.
    pub outstanding: f64,
    /// What its device does with a load.
    pub device: LqFit,
}

/// A disk that is to be elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// Which of the datastores its image is on.
    pub from: usize,
    /// Its size, in bytes.
    pub size: u64,
    /// What it may need at the destination, in bytes: with thin provisioning as much as
    /// it takes now.
    pub needs: u64,
    /// Requests under way, on average.
    pub outstanding: f64,
    /// Which of the groups it is in.
    pub group: Option<usize>,
    /// Why it stays, if it does.
    pub pinned: Option<Pinned>,
}

/// Why a disk stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinned {
    /// It is not served, so nothing is known of it.
    NotServed,
    /// It moves already.
    Moves,
    /// Another plan moves it.
    Planned,
}
