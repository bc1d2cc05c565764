//! Which VM uses a disk of ours.
//!
//! A disk without a client may be in use all the same: QEMU connects again only with the
//! next request of its guest, and a guest that rests may make none for hours after the
//! daemon was restarted. So VMs are asked, or, if one does not answer, what it said last
//! counts.

use sterna_api::{Error, Result};
use sterna_os::lock;
use sterna_qemu::QemuError;
use sterna_state::DiskRecord;

use super::ours::is_called;
use crate::Machines;

/// Who uses a disk.
enum User {
    /// No VM that is known.
    Nobody,
    /// This VM.
    Vm(String),
    /// Nobody knows, as this one cannot be asked, and why.
    Unknown(String, String),
}

impl Machines {
    /// Refuses a disk that a VM has which is known and on.
    pub(crate) fn check_no_vm_uses(&self, disk: &DiskRecord) -> Result<()> {
        let name = &disk.name;
        let (message, hint) = match self.user_of(disk)? {
            User::Nobody => return Ok(()),
            User::Vm(vm) => (
                format!("{vm} uses disk {name}, and reconnects with its next request"),
                format!(
                    "remove the disk from the VM first (`sterna vm show {vm}`); or, if \
                     the VM no longer exists: `sterna vm remove {vm}`"
                ),
            ),
            User::Unknown(vm, why) => (
                format!("{vm} may use disk {name}, but does not answer: {why}"),
                format!(
                    "find out why the VM does not answer; or, if the VM no longer \
                     exists: `sterna vm remove {vm}`"
                ),
            ),
        };
        Err(Error::in_use(message).hint(hint))
    }

    fn user_of(&self, disk: &DiskRecord) -> Result<User> {
        let records = self.storage.store.vms()?;
        let asked = self.vms.ask_all(&records, |link| async move {
            let vm = link.vm().await?;
            if !vm.run().await?.on {
                return Ok(Vec::new());
            }
            let drives = vm.drives().await?;
            Ok::<_, QemuError>(drives.into_iter().map(|drive| drive.image).collect())
        });
        let mut unknown = None;
        for (vm, images) in asked {
            let images: Vec<String> = match images {
                Ok(images) => images,
                // It is off.
                Err(error) if error.is_gone() => continue,
                Err(error) => match self.last_images_of(&vm.name) {
                    Some(images) => images,
                    None => {
                        unknown.get_or_insert((vm.name, error.to_string()));
                        continue;
                    }
                },
            };
            let is_it = |image: &String| {
                self.name_behind(image).is_some_and(|name| is_called(disk, &name))
            };
            if images.iter().any(is_it) {
                return Ok(User::Vm(vm.name));
            }
        }
        Ok(unknown.map_or(User::Nobody, |(vm, why)| User::Unknown(vm, why)))
    }

    /// The images of a VM when it last answered, if it has since this daemon began.
    fn last_images_of(&self, vm: &str) -> Option<Vec<String>> {
        lock(&self.vms.last_seen).get(vm)?.last_images()
    }
}
