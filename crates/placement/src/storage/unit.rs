//! What moves as one: a disk, or several that must be together and are.

use super::inventory::{Disk, Inventory};
use super::rule::must_groups;

/// Disks on one datastore that move as one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unit {
    /// In the order of their numbers.
    pub(super) disks: Vec<usize>,
    /// What they are together.
    pub(super) sum: Disk,
}

impl Unit {
    /// All units of an inventory. Disks that must be together and are not each are one of
    /// their own: to bring them together is another matter.
    pub(super) fn all(inventory: &Inventory) -> Vec<Unit> {
        let groups = must_groups(&inventory.rules);
        let place = |disk: usize| inventory.disks[disk].datastore;
        let is_whole = |group: usize| {
            groups
                .iter()
                .filter(|it| *it.1 == group)
                .all(|it| place(*it.0) == place(group))
        };
        let mut units: Vec<Unit> = Vec::new();
        let mut unit_of: Vec<Option<usize>> = vec![None; inventory.disks.len()];
        for (disk, one) in inventory.disks.iter().enumerate() {
            let group = groups.get(&disk).copied().filter(|group| is_whole(*group));
            match group.and_then(|group| unit_of[group]) {
                Some(unit) => units[unit].add(disk, one),
                None => {
                    unit_of[disk] = Some(units.len());
                    units.push(Unit { disks: vec![disk], sum: *one });
                }
            }
        }
        units
    }

    fn add(&mut self, disk: usize, one: &Disk) {
        let sum = self.sum;
        self.disks.push(disk);
        self.sum = Disk {
            datastore: sum.datastore,
            taken: sum.taken.saturating_add(one.taken),
            needs: sum.needs.saturating_add(one.needs),
            promised: sum.promised.saturating_add(one.promised),
            outstanding: sum.outstanding + one.outstanding,
            iops: sum.iops + one.iops,
            pinned: sum.pinned.or(one.pinned),
        };
    }
}
