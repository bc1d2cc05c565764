//! Where the elements of a LUN are: RAID groups, and the stripe over all of them.
//!
//! An array is one pool: a LUN goes over all of its groups in elements of 64 KiB,
//! row by row, and within a group over its data members; parity moves on by a member
//! every row. A group's part of a row is a *stripe*: what a full-stripe write writes.
//! LUNs are address spaces: the same place of two LUNs is two places of a spindle.
//!
//! A small write costs a read and a write on the data's member and on each parity's
//! (4 operations for RAID-5, 6 for RAID-6), or a write on both of a mirror (2). A
//! stripe that is written whole costs a write on each member.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Bytes of an element: what stays on one spindle. The arrays of 2005 to 2012 whose
/// measurements the presets explain have 64 KiB.
pub(super) const ELEMENT: u64 = 64 << 10;

/// Spindles of an array at most: more than any one array of that time has in a pool.
pub const SPINDLES_MAX: u32 = 1024;

/// How a group is redundant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Not at all.
    Raid0,
    /// Each data member has a mirror.
    Raid10,
    /// One member's worth of parity.
    Raid5,
    /// Two members' worth of parity.
    Raid6,
}

/// RAID groups of one kind: `5:4+1x2` is two groups of RAID-5 with four data members
/// and one of parity, `0:7` one of RAID-0 with seven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// How they are redundant.
    pub level: Level,
    /// Data members of each, above zero.
    pub data: u32,
    /// How many there are, above zero.
    pub count: u32,
}

impl Groups {
    /// Members for parity, or mirrors, of each.
    pub fn redundant(&self) -> u32 {
        match self.level {
            Level::Raid0 => 0,
            Level::Raid10 => self.data,
            Level::Raid5 => 1,
            Level::Raid6 => 2,
        }
    }

    /// Spindles of all of them.
    pub fn spindles(&self) -> u32 {
        (self.data + self.redundant()) * self.count
    }
}

/// The text does not say RAID groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseGroupsError;

impl fmt::Display for ParseGroupsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("groups are written as 0:7, 10:2+2, 5:4+1x2 or 6:6+2")
    }
}

impl std::error::Error for ParseGroupsError {}

impl FromStr for Groups {
    type Err = ParseGroupsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (level, members) = text.split_once(':').ok_or(ParseGroupsError)?;
        let level = match level {
            "0" => Level::Raid0,
            "10" => Level::Raid10,
            "5" => Level::Raid5,
            "6" => Level::Raid6,
            _ => return Err(ParseGroupsError),
        };
        let number = |text: &str| {
            let number = text.parse().map_err(|_| ParseGroupsError)?;
            (1..=SPINDLES_MAX).contains(&number).then_some(number).ok_or(ParseGroupsError)
        };
        let (members, count) = members.split_once('x').unwrap_or((members, "1"));
        let (data, redundant) = match members.split_once('+') {
            Some((data, redundant)) => (number(data)?, number(redundant)?),
            None => (number(members)?, 0),
        };
        let groups = Groups { level, data, count: number(count)? };
        if groups.redundant() == redundant && groups.spindles() <= SPINDLES_MAX {
            Ok(groups)
        } else {
            Err(ParseGroupsError)
        }
    }
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Raid0 => "0",
            Level::Raid10 => "10",
            Level::Raid5 => "5",
            Level::Raid6 => "6",
        };
        write!(f, "{level}:{}", self.data)?;
        if self.redundant() > 0 {
            write!(f, "+{}", self.redundant())?;
        }
        if self.count > 1 {
            write!(f, "x{}", self.count)?;
        }
        Ok(())
    }
}

/// An element of a LUN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Element {
    pub(super) lun: u32,
    pub(super) number: u64,
}

/// A group's part of a row of a LUN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Stripe {
    pub(super) lun: u32,
    pub(super) row: u64,
    pub(super) group: usize,
}

/// One group of the pool.
#[derive(Clone, Debug)]
struct Group {
    level: Level,
    /// Data members, and members for parity or mirrors.
    data: u64,
    redundant: u64,
    /// Its first spindle.
    spindle: u64,
    /// Its first element in each row.
    element: u64,
}

impl Group {
    /// The spindle of the group's data member `k` in a row: parity comes first and
    /// moves on with the row. Mirrors stay where they are.
    fn member(&self, row: u64, k: u64) -> usize {
        let at = match self.level {
            Level::Raid0 | Level::Raid10 => k,
            Level::Raid5 | Level::Raid6 => {
                (row + self.redundant + k) % (self.data + self.redundant)
            }
        };
        (self.spindle + at) as usize
    }
}

/// All groups of the pool.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    groups: Vec<Group>,
    /// Elements of a row.
    row: u64,
    spindles: u64,
}

impl Layout {
    pub(super) fn new(groups: &[Groups]) -> Layout {
        let mut layout = Layout { groups: Vec::new(), row: 0, spindles: 0 };
        for kind in groups {
            for _ in 0..kind.count {
                let (data, redundant) = (kind.data.into(), kind.redundant().into());
                layout.groups.push(Group {
                    level: kind.level,
                    data,
                    redundant,
                    spindle: layout.spindles,
                    element: layout.row,
                });
                layout.spindles += data + redundant;
                layout.row += data;
            }
        }
        layout
    }

    pub(super) fn spindles(&self) -> usize {
        self.spindles as usize
    }

    /// The stripe of an element, and which of its data members it is.
    fn find(&self, element: Element) -> (Stripe, u64) {
        let (row, at) = (element.number / self.row, element.number % self.row);
        let group = self.groups.partition_point(|group| group.element <= at) - 1;
        (Stripe { lun: element.lun, row, group }, at - self.groups[group].element)
    }

    pub(super) fn stripe(&self, element: Element) -> Stripe {
        self.find(element).0
    }

    /// The numbers of a stripe's elements.
    pub(super) fn elements(&self, stripe: Stripe) -> Range<u64> {
        let group = &self.groups[stripe.group];
        let first = stripe.row.saturating_mul(self.row).saturating_add(group.element);
        first..first.saturating_add(group.data)
    }

    /// Where an element can be read: its spindle, and its mirror's.
    pub(super) fn copies(&self, element: Element) -> (usize, Option<usize>) {
        let (stripe, k) = self.find(element);
        let group = &self.groups[stripe.group];
        let primary = group.member(stripe.row, k);
        let mirrored = group.level == Level::Raid10;
        (primary, mirrored.then(|| primary + group.data as usize))
    }

    /// The spindles that a small write of an element is for, each once for each
    /// operation that it costs there.
    pub(super) fn small_write(&self, element: Element) -> Vec<usize> {
        let (primary, mirror) = self.copies(element);
        let stripe = self.stripe(element);
        let group = &self.groups[stripe.group];
        let mut spindles = vec![primary];
        match group.level {
            Level::Raid0 => {}
            Level::Raid10 => spindles.extend(mirror),
            Level::Raid5 | Level::Raid6 => {
                spindles.extend(self.parity(stripe));
                spindles.extend_from_within(..);
            }
        }
        spindles
    }

    /// The spindles of a stripe's parity.
    fn parity(&self, stripe: Stripe) -> impl Iterator<Item = usize> {
        let group = &self.groups[stripe.group];
        let members = group.data + group.redundant;
        (0..group.redundant)
            .map(move |p| (group.spindle + (stripe.row + p) % members) as usize)
    }

    /// The spindles of a stripe, each for one element.
    pub(super) fn full_write(&self, stripe: Stripe) -> Range<usize> {
        let group = &self.groups[stripe.group];
        let first = group.spindle as usize;
        first..first + (group.data + group.redundant) as usize
    }

    /// Data members of a group.
    pub(super) fn data(&self, group: usize) -> u64 {
        self.groups[group].data
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &[&str]) -> Layout {
        let groups: Vec<Groups> = text.iter().map(|text| text.parse().unwrap()).collect();
        Layout::new(&groups)
    }

    #[test]
    fn groups_are_read_as_people_write_them() {
        let groups: Groups = "5:4+1x2".parse().unwrap();
        assert_eq!(groups, Groups { level: Level::Raid5, data: 4, count: 2 });
        assert_eq!((groups.spindles(), groups.to_string()), (10, "5:4+1x2".into()));
        assert_eq!("0:7".parse::<Groups>().unwrap().to_string(), "0:7");
        for wrong in ["", "5", "5:4", "5:4+2", "10:2+1", "0:0", "0:7+1", "1:2", "0:2000"]
        {
            assert_eq!(wrong.parse::<Groups>(), Err(ParseGroupsError), "{wrong}");
        }
    }

    #[test]
    fn a_small_write_costs_what_its_level_is_known_for() {
        let cost = |text: &str| {
            let element = Element { lun: 0, number: 17 };
            layout(&[text]).small_write(element).len()
        };
        assert_eq!(
            [cost("0:7"), cost("10:2+2"), cost("5:4+1"), cost("6:6+2")],
            [1, 2, 4, 6]
        );
    }

    #[test]
    fn every_element_has_a_place_of_its_own() {
        let layout = layout(&["5:4+1x2", "10:2+2x2", "6:6+2"]);
        assert_eq!(layout.spindles(), 26);
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..10 * 18 {
            let element = Element { lun: 0, number };
            let stripe = layout.stripe(element);
            assert!(layout.elements(stripe).contains(&number));
            let (primary, mirror) = layout.copies(element);
            for spindle in [primary].into_iter().chain(mirror) {
                assert!(layout.full_write(stripe).contains(&spindle));
                assert!(seen.insert((stripe.row, spindle)), "{number}");
            }
            if mirror.is_none() {
                let parity = layout.parity(stripe).collect::<Vec<_>>();
                assert!(!parity.contains(&primary), "{number}: data on parity");
            }
        }
    }
}
