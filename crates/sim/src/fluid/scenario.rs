//! A scenario: what there is, what it does, and what is moved.
//!
//! Plain values. People write scenarios as TOML (`text`); names are numbers here, of the
//! thing in its list.

use sterna_core::array::Model;
use sterna_core::schedule::{Moment, Schedule};

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is.
    pub title: String,
    /// What it shows.
    pub about: String,
    /// The second of the week at which it begins.
    pub starts: Moment,
    /// How long it lasts at least, in seconds; past that until the last wave has ended.
    pub length: f64,
    /// Whether machines whose wave is still to come work on when the first has begun.
    pub waiting_work: bool,
    /// How disks are copied.
    pub copier: Copier,
    /// The arrays.
    pub arrays: Vec<ArrayPlan>,
    /// The links.
    pub links: Vec<LinkPlan>,
    /// The datastores.
    pub datastores: Vec<Datastore>,
    /// How many hosts there are.
    pub hosts: u32,
    /// Machines that a host moves at once at most.
    pub host_copies: u32,
    /// Bytes per second of each host's link, for its copies.
    pub host_link: Option<f64>,
    /// What machines do.
    pub profiles: Vec<Profile>,
    /// The machines.
    pub vms: Vec<Vm>,
    /// What is moved, one after the other.
    pub waves: Vec<Wave>,
    /// What goes wrong.
    pub failures: Vec<Failure>,
}

/// How disks are copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copier {
    /// Chunks under way.
    pub in_flight: u32,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// Seconds of a chunk beside arrays and links.
    pub fixed: f64,
}

/// An array.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayPlan {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub model: Model,
    /// Data spindles that a stream is spread over; all, if nothing is said.
    pub width: Option<u32>,
    /// Whether destaging is sorted by place.
    pub sorted: bool,
}

/// A link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    /// Its name.
    pub name: String,
    /// Bytes per second.
    pub rate: f64,
}

/// A datastore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datastore {
    /// Its name.
    pub name: String,
    /// The name without a number, which it shares with others of its kind.
    pub kind: String,
    /// The array that it is on.
    pub array: usize,
    /// The link to it, if it is not the array's alone.
    pub link: Option<usize>,
    /// Whether writes become full stripes in a new place before they get to the array.
    pub coalesces: bool,
    /// Whether what is zero takes no room and is not read or written.
    pub thin: bool,
    /// Machines that are moved from or to it at once at most.
    pub copies: u32,
}

/// What a machine does.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Requests per second that it wants; endless if as many as it can get.
    pub iops: f64,
    /// Requests under way at most.
    pub outstanding: u32,
    /// Bytes of a request.
    pub bytes: f64,
    /// The part of them that reads.
    pub reads: f64,
    /// The part of them that is at random places.
    pub random: f64,
    /// Bytes of all its disks.
    pub size: u64,
    /// Bytes that are written before it begins; the rest is zero.
    pub written: u64,
    /// How many disks it has, all alike.
    pub disks: u32,
    /// When it works in full; always, if nothing is said.
    pub busy: Option<Schedule>,
    /// The part of its requests that it wants at other times.
    pub idle: f64,
}

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vm {
    /// The tile or the set that it belongs to.
    pub set: usize,
    /// What it does.
    pub profile: usize,
    /// Where its disks are.
    pub datastore: usize,
    /// Where it runs.
    pub host: usize,
}

/// Machines that are moved together.
#[derive(Clone, Debug, PartialEq)]
pub struct Wave {
    /// Its name.
    pub name: String,
    /// Not before this second.
    pub at: f64,
    /// The machines, in the order in which they start, with their destinations.
    pub moves: Vec<(usize, usize)>,
    /// Whether they stand still meanwhile.
    pub stopped: bool,
    /// When they are copied; always, if nothing is said.
    pub window: Option<Schedule>,
    /// Bytes per second of each copy at most.
    pub limit: Option<f64>,
}

/// Something that goes wrong with an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The array.
    pub array: usize,
    /// From this second on.
    pub at: f64,
    /// For so many.
    pub lasts: f64,
    /// How many times slower its spindles are meanwhile; nothing if it answers nothing.
    pub slower: Option<f64>,
}

impl Scenario {
    /// Bytes of all machines' disks.
    pub fn bytes(&self) -> u64 {
        self.vms.iter().map(|vm| self.profiles[vm.profile].size).sum()
    }

    /// How many disks there are.
    pub fn disks(&self) -> u64 {
        self.vms.iter().map(|vm| u64::from(self.profiles[vm.profile].disks)).sum()
    }
}
