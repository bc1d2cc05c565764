//! What machines take of their hosts, and what would keep QEMU from sending them.

use sterna_qemu::{Drive, Machine, QemuError, Run, Usage};
use sterna_state::VmRecord;

use super::Vms;

/// What decides whether a machine can be sent from QEMU to QEMU.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Whether the machine runs.
    pub run: Run,
    /// Its disks, as QEMU has them.
    pub drives: Vec<Drive>,
    /// Why QEMU cannot send it, in its words. libvirt is not asked: it moves its machines
    /// itself.
    pub blocked: Vec<String>,
}

impl Standing {
    /// Asks a machine.
    pub async fn of(machine: &Machine) -> Result<Standing, QemuError> {
        let blocked = match machine.direct() {
            Some(qemu) => qemu.unsendable().await?,
            None => Vec::new(),
        };
        let (run, drives) = (machine.run().await?, machine.drives().await?);
        Ok(Standing { run, drives, blocked })
    }
}

/// What a machine takes and how it stands, or why it cannot be asked.
pub(crate) type Seen = Result<(Usage, Standing), String>;

impl Vms {
    /// What each of these machines takes and how it stands, or why it cannot be asked.
    pub fn usages(&self, records: &[VmRecord]) -> Vec<(String, Seen)> {
        let asked = self.ask_all(records, |link| async move {
            let asked = async {
                let machine = link.machine().await?;
                Ok::<_, QemuError>((
                    machine.usage().await?,
                    Standing::of(&machine).await?,
                ))
            };
            let unseen = || "Sterna cannot see QEMU's process from here".to_owned();
            match asked.await {
                Ok((usage, stands)) => Ok((usage.ok_or_else(unseen)?, stands)),
                Err(error) => Err(error.to_string()),
            }
        });
        asked.into_iter().map(|(vm, usage)| (vm.name, usage)).collect()
    }
}
