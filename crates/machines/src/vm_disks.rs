//! Which disks of VMs a datastore has: files that QEMU serves itself.
//!
//! They are as VMs were last seen with them, also those of a VM that is off: the files stay.
//! Sterna has no record of such a disk, so a datastore that has only these would look empty
//! to somebody who is about to unplug it.

use std::slice::from_ref;

use sterna_api::{Error, Result};
use sterna_state::{Step, VmMoveRecord};

use super::images::Sight;
use super::look::datastore_of;
use crate::Machines;

impl Machines {
    /// The disks of VMs that are on a datastore, as VM/DEVICE.
    pub fn vm_disks_on(&self, datastore: &str) -> Result<Vec<String>> {
        let there = self.sights_on(datastore)?;
        Ok(there.iter().map(|one| format!("{}/{}", one.vm, one.device)).collect())
    }

    /// The commands that move these disks away.
    pub fn ways_off(&self, datastore: &str) -> Result<Vec<String>> {
        let there = self.sights_on(datastore)?;
        let way = |Sight { vm, device, .. }: &Sight| {
            format!("`sterna vm move {vm} {device} --to DATASTORE`")
        };
        Ok(there.iter().map(way).collect())
    }

    /// Refuses a datastore that VMs have disks on.
    pub(super) fn check_no_vm_disk_on(&self, datastore: &str) -> Result<()> {
        self.look_at_all_vms()?;
        let there = self.vm_disks_on(datastore)?;
        let Some(way) = self.ways_off(datastore)?.into_iter().next() else {
            return Ok(());
        };
        let (vm, _) = there[0].split_once('/').unwrap_or_default();
        let message =
            format!("datastore {datastore} holds disks of VMs: {}", there.join(", "));
        Err(Error::in_use(message).hint(format!(
            "move each of them away ({way}); or have Sterna forget each VM, which \
             continues (`sterna vm remove {vm}`)"
        )))
    }

    fn sights_on(&self, datastore: &str) -> Result<Vec<Sight>> {
        let handle = self.storage.handle(datastore)?;
        let record = from_ref(handle.record());
        let mut there = self.sights();
        for last in self.storage.store.last_vm_moves()? {
            there.iter_mut().for_each(|sight| follow(sight, &last));
        }
        there.retain(|one| datastore_of(record, &one.image).is_some());
        there.sort_by(|a, b| (&a.vm, &a.device).cmp(&(&b.vm, &b.device)));
        Ok(there)
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
    use sterna_api::{Application, Guard};
    use sterna_state::VmMoveKind;

    use super::*;

    /// A move of web's vda that ended at 15.
    fn moved() -> VmMoveRecord {
        VmMoveRecord {
            id: 1,
            kind: VmMoveKind::Move,
            vm: "web".into(),
            device: "vda".into(),
            size: 512,
            format: "raw".into(),
            from: "fast".into(),
            source: "/fast/web.raw".into(),
            source_file: None,
            to: "slow".into(),
            destination: "/slow/web.raw".into(),
            destination_file: None,
            rate: None,
            guard: Guard::default(),
            step: Step::Completed,
            paused: false,
            cancel: false,
            started: 10,
            ended: Some(15),
            note: None,
            application: Application::default(),
            report: None,
            unclear: false,
        }
    }

    #[test]
    fn a_disk_that_was_seen_before_its_move_ended_is_where_it_was_moved() {
        let image_after = |device: &str, at: u64, last: &VmMoveRecord| {
            let (vm, device) = ("web".into(), device.into());
            let mut sight = Sight { vm, device, image: "/fast/web.raw".into(), at };
            follow(&mut sight, last);
            sight.image
        };
        assert_eq!(image_after("vda", 15, &moved()), "/slow/web.raw");
        assert_eq!(image_after("vda", 16, &moved()), "/fast/web.raw", "it is back");
        assert_eq!(image_after("vdb", 15, &moved()), "/fast/web.raw", "another disk");
        let unclear = VmMoveRecord { step: Step::Cancelled, unclear: true, ..moved() };
        assert_eq!(image_after("vda", 15, &unclear), "/fast/web.raw");
    }
}
