//! What is moved, from where to where, beside what.

use std::fmt;

use sterna_core::array::Model;

use super::parameters::OLD_READ;

/// The bytes of a GiB.
const GIB: u64 = 1 << 30;

/// A link that takes no time: the array's own is elsewhere (`storage`).
const NO_LINK: &str = "link=1T";

/// A disk of the virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disk {
    /// The database's data: random reads.
    Data,
    /// One of the four that its indexes are striped over: random reads.
    Index(usize),
    /// Its log: sequential writes.
    Log,
}

impl Disk {
    /// All of them.
    pub const ALL: [Disk; 6] = [
        Disk::Data,
        Disk::Index(0),
        Disk::Index(1),
        Disk::Index(2),
        Disk::Index(3),
        Disk::Log,
    ];

    /// Index disks.
    pub const INDEXES: usize = 4;

    /// Its size in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Disk::Data => 600 * GIB,
            Disk::Index(_) => 80 * GIB,
            Disk::Log => 50 * GIB,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Disk::Data => "data",
            Disk::Index(_) => "index",
            Disk::Log => "log",
        }
    }

    /// Its place among all of them.
    pub(super) fn number(self) -> usize {
        match self {
            Disk::Data => 0,
            Disk::Index(number) => 1 + number,
            Disk::Log => 1 + Disk::INDEXES,
        }
    }

    /// The pool that it is on at an array, behind a link that takes no time. Small
    /// disks are on the outer tracks.
    pub(super) fn model(self, array: Side) -> Model {
        let model = match (array, self) {
            (Side::Old, Disk::Data) => "old-fc?spindles=7",
            (Side::Old, Disk::Index(_)) => "old-fc?spindles=8&seek=1.7ms",
            (Side::Old, Disk::Log) => "old-fc?spindles=4&seek=1.7ms",
            (Side::New, Disk::Data) => "new-fc?spindles=6",
            (Side::New, Disk::Index(_)) => "sata-ssd?spindles=4",
            (Side::New, Disk::Log) => "new-fc?spindles=4&seek=1.7ms",
        };
        let read = match array {
            Side::Old => format!("&overhead={}ns", OLD_READ.0),
            Side::New => String::new(),
        };
        let text = format!("{model}{read}&{NO_LINK}");
        text.parse().expect("these are arrays and parameters that there are")
    }
}

/// An array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The old one.
    Old,
    /// The new one.
    New,
}

impl Side {
    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::Old => Side::New,
            Side::New => Side::Old,
        }
    }
}

/// What the virtual machine does meanwhile. (One that is on and idle asks nothing
/// of this model, and so is as one that is off.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// Nothing: it is off.
    Off,
    /// A quarter of the cores.
    Low,
    /// Nine tenths of them.
    High,
}

impl Load {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Load::Off => "VM off",
            Load::Low => "low load",
            Load::High => "high load",
        }
    }
}

/// One run: a disk moves, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Where all disks are at first.
    pub from: Side,
    /// The disk that goes to the other array; none is the run to compare with.
    pub disk: Option<Disk>,
    /// What the virtual machine does.
    pub load: Load,
}

impl Scene {
    /// The study's, in the order in which it is told: from the old array to the
    /// new one in each state, and back at high load.
    pub fn all() -> Vec<Scene> {
        let loads = [
            (Side::Old, Load::Off),
            (Side::Old, Load::Low),
            (Side::Old, Load::High),
            (Side::New, Load::High),
        ];
        let disks = [None, Some(Disk::Data), Some(Disk::Index(0)), Some(Disk::Log)];
        let scenes = loads.into_iter().flat_map(|(from, load)| {
            disks.into_iter().map(move |disk| Scene { from, disk, load })
        });
        scenes.filter(|it| it.disk.is_some() || it.load != Load::Off).collect()
    }

    /// The same without the move.
    #[must_use]
    pub fn alone(self) -> Scene {
        Scene { disk: None, ..self }
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.from == Side::New { "back: " } else { "" };
        let disk = self.disk.map(|disk| format!(", {}", disk.name()));
        f.pad(&format!("{way}{}{}", self.load.name(), disk.unwrap_or_default()))
    }
}
