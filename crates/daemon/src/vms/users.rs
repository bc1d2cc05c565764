//! Which machine uses a disk of ours.
//!
//! A disk without a client may be in use all the same: QEMU connects again only with the
//! next request of its guest, and a guest that rests may make none for hours after the
//! daemon was restarted. So machines are asked, or, if one does not answer, what it said
//! last counts.

use sterna_engine::DiskId;
use sterna_qemu::QemuError;

use crate::daemon::{Daemon, lock};
use crate::error::{DaemonError, Result};
use crate::store::DiskRecord;

impl Daemon {
    /// Refuses a disk that a machine has which is known and on.
    pub(crate) fn check_no_vm_uses(&self, disk: &DiskRecord) -> Result<()> {
        let Some(vm) = self.vm_that_uses(disk.id)? else { return Ok(()) };
        let name = &disk.name;
        let message = format!(
            "disk {name} is used by {vm}, which connects again with its next request"
        );
        let hint = format!("see `sterna vm show {vm}`, and take the disk from it first");
        Err(DaemonError::in_use(message).hint(hint))
    }

    fn vm_that_uses(&self, disk: DiskId) -> Result<Option<String>> {
        let records = self.store.vms()?;
        let asked = self.vms.ask_all(&records, |link| async move {
            let machine = link.machine().await?;
            if !machine.run().await?.on {
                return Ok(Vec::new());
            }
            let drives = machine.drives().await?;
            Ok::<_, QemuError>(drives.into_iter().map(|drive| drive.image).collect())
        });
        for (vm, images) in asked {
            let images = match images {
                Err(error) if error.is_silent() => self.last_images_of(&vm.name),
                images => images.unwrap_or_default(),
            };
            for image in images {
                if self.disk_behind(&image)?.is_some_and(|found| found.id == disk) {
                    return Ok(Some(vm.name));
                }
            }
        }
        Ok(None)
    }

    /// The images of a machine when it last answered.
    fn last_images_of(&self, vm: &str) -> Vec<String> {
        let sights = lock(&self.vms.sights);
        sights.get(vm).map(|sight| sight.last_images()).unwrap_or_default()
    }
}
