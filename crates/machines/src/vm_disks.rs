//! Which disks of VMs a datastore has: files that QEMU serves itself.
//!
//! They are as VMs were last seen with them, also those of a VM that is off: the files stay.
//! Sterna has no record of such a disk, so a datastore that has only these would look empty
//! to somebody who is about to unplug it.

use std::fmt;
use std::slice::from_ref;

use sterna_api::{Error, Result};
use sterna_state::{Step, VmMoveRecord};

use super::images::Sight;
use super::look::datastore_of;
use crate::Machines;

/// A disk of a VM that QEMU serves from a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VmDisk {
    /// The VM.
    pub vm: String,
    /// The disk's name in the VM.
    pub device: String,
}

impl VmDisk {
    /// The command that moves the disk away.
    pub fn way_off(&self) -> String {
        let VmDisk { vm, device } = self;
        format!("`sterna vm move {vm} {device} --to DATASTORE`")
    }
}

impl fmt::Display for VmDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.vm, self.device)
    }
}

impl Machines {
    /// The disks of VMs that are on a datastore, by their names.
    pub fn vm_disks_on(&self, datastore: &str) -> Result<Vec<VmDisk>> {
        let handle = self.storage.handle(datastore)?;
        let record = from_ref(handle.record());
        let mut there = self.sights();
        for last in self.storage.store.last_vm_moves()? {
            there.iter_mut().for_each(|sight| follow(sight, &last));
        }
        there.retain(|one| datastore_of(record, &one.image).is_some());
        there.sort_by(|a, b| (&a.vm, &a.device).cmp(&(&b.vm, &b.device)));
        let named = |Sight { vm, device, .. }| VmDisk { vm, device };
        Ok(there.into_iter().map(named).collect())
    }

    /// Refuses a datastore that VMs have disks on.
    pub(super) fn check_no_vm_disk_on(&self, datastore: &str) -> Result<()> {
        self.look_at_all_vms()?;
        let there = self.vm_disks_on(datastore)?;
        let Some(first) = there.first() else { return Ok(()) };
        let names: Vec<String> = there.iter().map(VmDisk::to_string).collect();
        let message =
            format!("datastore {datastore} holds disks of VMs: {}", names.join(", "));
        Err(Error::in_use(message).hint(format!(
            "move each of them away ({}); or have Sterna forget each VM, which continues \
             (`sterna vm remove {}`)",
            first.way_off(),
            first.vm
        )))
    }
}

/// Takes note of a move in what was seen before. A look that began before the end of the move
/// says nothing of where the disk is since. (Ends are known to the second.)
fn follow(sight: &mut Sight, last: &VmMoveRecord) {
    let is_of_disk = sight.vm == last.vm && sight.device == last.device;
    let is_before = last.ended.is_some_and(|ended| sight.at <= ended);
    if last.step == Step::Completed && is_of_disk && is_before {
        sight.image.clone_from(&last.destination);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::vm_move;

    #[test]
    fn a_disk_that_was_seen_before_its_move_ended_is_where_it_was_moved() {
        // It ended at 15.
        let moved = vm_move(1, "/fast/web.raw", "/slow/web.raw");
        let image_after = |device: &str, at: u64, last: &VmMoveRecord| {
            let (vm, device) = ("web".into(), device.into());
            let mut sight = Sight { vm, device, image: "/fast/web.raw".into(), at };
            follow(&mut sight, last);
            sight.image
        };
        assert_eq!(image_after("vda", 15, &moved), "/slow/web.raw");
        assert_eq!(image_after("vda", 16, &moved), "/fast/web.raw", "it is back");
        assert_eq!(image_after("vdb", 15, &moved), "/fast/web.raw", "another disk");
        let unclear =
            VmMoveRecord { step: Step::Cancelled, unclear: true, ..moved.clone() };
        assert_eq!(image_after("vda", 15, &unclear), "/fast/web.raw");
    }
}
