//! What VMs take of their hosts, and what would keep QEMU from sending them.

use sterna_qemu::{Drive, QemuError, Run, Usage, VmHandle};
use sterna_state::VmRecord;

use crate::Machines;

/// What decides whether a VM can migrate from QEMU to QEMU.
#[derive(Clone, Debug)]
pub struct VmMigrationFacts {
    /// Whether the VM runs.
    pub run: Run,
    /// Its disks, as QEMU has them.
    pub drives: Vec<Drive>,
    /// Why QEMU cannot send it, in its words. libvirt is not asked: it moves its VMs
    /// itself.
    pub blocked: Vec<String>,
}

impl VmMigrationFacts {
    /// Asks a VM.
    pub async fn of(vm: &VmHandle) -> Result<VmMigrationFacts, QemuError> {
        let blocked = match vm.direct() {
            Some(qemu) => qemu.unsendable().await?,
            None => Vec::new(),
        };
        let (run, drives) = (vm.run().await?, vm.drives().await?);
        Ok(VmMigrationFacts { run, drives, blocked })
    }
}

/// What a VM takes and what decides whether it can migrate, or why it cannot be asked.
pub(crate) type Seen = Result<(Usage, VmMigrationFacts), String>;

impl Machines {
    /// What each of these VMs takes and what decides whether it can migrate, or why it cannot
    /// be asked.
    pub fn usages(&self, records: &[VmRecord]) -> Vec<(String, Seen)> {
        let asked = self.vms.ask_all(records, |link| async move {
            let asked = async {
                let vm = link.vm().await?;
                Ok::<_, QemuError>((vm.usage().await?, VmMigrationFacts::of(&vm).await?))
            };
            let unseen = || "Sterna cannot see QEMU's process from here".to_owned();
            match asked.await {
                Ok((usage, facts)) => Ok((usage.ok_or_else(unseen)?, facts)),
                Err(error) => Err(error.to_string()),
            }
        });
        asked.into_iter().map(|(vm, usage)| (vm.name, usage)).collect()
    }
}
