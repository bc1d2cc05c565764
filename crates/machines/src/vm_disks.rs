//! Which disks of VMs a datastore has: files that QEMU serves itself.
//!
//! They are as VMs were last seen with them, also those of a VM that is off: the files stay.
//! Sterna has no record of such a disk, so a datastore that has only these would look empty
//! to somebody who is about to unplug it.

use std::slice::from_ref;

use sterna_api::{Error, Result};

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
        there.retain(|one| datastore_of(record, &one.image).is_some());
        there.sort_by(|a, b| (&a.vm, &a.device).cmp(&(&b.vm, &b.device)));
        Ok(there)
    }
}
