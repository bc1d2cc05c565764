//! Whether datastores can keep what is reserved on them.
//!
//! What a datastore does is known where it is shaped. Where it is not known, every
//! reservation is accepted, and said to be unproven.
//!
//! A change is refused only if it makes things worse: where too much is reserved
//! already, less can be asked for in steps.

use std::collections::BTreeSet;

use sterna_core::qos::ClassId;
use sterna_core::qos::policy::{Basis, Capacity, Oversold, Plan, Unproven, admit};

use super::book::{Book, Entry};
use crate::daemon::Daemon;
use crate::error::{DaemonError, Result};
use crate::shelf::Shelf;
use crate::store::DiskRecord;

impl Daemon {
    /// Refuses what `next` would reserve for a class beyond what its datastores do.
    pub(super) fn check_admission(&self, next: &Book, class: ClassId) -> Result<()> {
        let disks = self.store.disks()?;
        let now = self.book();
        for name in datastores_of(next, class, &disks) {
            let Ok(shelf) = self.shelf(name) else { continue };
            let Err(after) = judge(next, &shelf, &disks) else { continue };
            let better = |before: &Oversold| {
                after.sum == before.sum.with(after.sum.number())
                    && after.sum.number() <= before.sum.number()
            };
            if judge(&now, &shelf, &disks).as_ref().is_err_and(better) {
                continue;
            }
            let message = format!("datastore {name} cannot keep that: {after}");
            let hint =
                "reserve less, or move disks of these classes to another datastore";
            return Err(DaemonError::invalid(message).hint(hint));
        }
        Ok(())
    }

    /// What cannot be told of a class's reservations, or has become too much.
    pub(crate) fn reservation_notes(&self, class: ClassId) -> Result<Vec<String>> {
        let (disks, book) = (self.store.disks()?, self.book());
        let mut notes = Vec::new();
        for name in datastores_of(&book, class, &disks) {
            let Ok(shelf) = self.shelf(name) else { continue };
            match judge(&book, &shelf, &disks) {
                Ok(unproven) => {
                    notes.extend(
                        unproven.iter().map(|it| format!("datastore {name}: {it}")),
                    );
                }
                Err(oversold) => notes.push(format!("datastore {name}: {oversold}")),
            }
        }
        Ok(notes)
    }

    /// More is reserved on this datastore than it does.
    pub(crate) fn oversold(
        &self,
        shelf: &Shelf,
        disks: &[DiskRecord],
    ) -> Option<Oversold> {
        judge(&self.book(), shelf, disks).err()
    }
}

/// The datastores on which a class may want what is reserved for it; none if nothing
/// is.
fn datastores_of<'a>(
    book: &Book,
    class: ClassId,
    disks: &'a [DiskRecord],
) -> BTreeSet<&'a str> {
    let Some(entry) = book.get(class).filter(|entry| entry.plan().reserves()) else {
        return BTreeSet::new();
    };
    let on = disks.iter().filter(|disk| is_concerned(entry, disk));
    on.map(|disk| disk.datastore.as_str()).collect()
}

/// Copies read and write wherever there are disks.
fn is_concerned(entry: &Entry, disk: &DiskRecord) -> bool {
    entry.is_built_in() || entry.disks.contains(&disk.id)
}

fn judge(
    book: &Book,
    shelf: &Shelf,
    disks: &[DiskRecord],
) -> Result<Vec<Unproven>, Oversold> {
    let on_it = |entry: &&Entry| {
        let mut here = disks.iter().filter(|disk| disk.datastore == shelf.name());
        here.any(|disk| is_concerned(entry, disk))
    };
    let concerned = book.entries().filter(on_it);
    let plans: Vec<(&str, Plan)> =
        concerned.map(|entry| (entry.record.name.as_str(), entry.plan())).collect();
    let classes: Vec<_> = plans.iter().map(|(name, plan)| (*name, plan)).collect();
    admit(&classes, capacity(shelf).as_ref())
}

/// What a datastore does, as far as that is known.
fn capacity(shelf: &Shelf) -> Option<Capacity> {
    let shape = shelf.record().shape?;
    Some(Capacity {
        bytes: shape.bytes_per_second,
        requests: shape.iops,
        basis: Basis::Shape,
    })
}
