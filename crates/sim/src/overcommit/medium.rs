//! What the memory is swapped to.

use std::fmt;

use sterna_core::array::Model;

/// A swap device of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Medium {
    /// A flash disk in the host.
    Flash,
    /// RAID-0 of four 15K Fibre Channel disks.
    Fc,
    /// RAID-0 of two SATA disks.
    Sata,
}

impl Medium {
    /// All of them, the fastest first.
    pub const ALL: [Medium; 3] = [Medium::Flash, Medium::Fc, Medium::Sata];

    /// Whether it turns.
    pub fn is_disk(self) -> bool {
        self != Medium::Flash
    }

    /// The array: a preset, with as many spindles as the study had.
    pub fn array(self) -> &'static str {
        match self {
            Medium::Flash => "flash-2010",
            Medium::Fc => "old-fc?spindles=4",
            Medium::Sata => "sata-7k?spindles=2",
        }
    }

    /// The modelled array.
    pub(super) fn model(self) -> Model {
        self.array().parse().expect("these are arrays and parameters that there are")
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Medium::Flash => "flash",
            Medium::Fc => "FC",
            Medium::Sata => "SATA",
        })
    }
}
