//! What machines take of their hosts.

use sterna_qemu::Usage;

use super::Vms;
use crate::store::VmRecord;

impl Vms {
    /// What each of these machines takes, or why it cannot be asked.
    pub(crate) fn usages(
        &self,
        records: &[VmRecord],
    ) -> Vec<(String, Result<Usage, String>)> {
        let asked = self.ask_all(records, |link| async move {
            let asked = async { link.machine().await?.usage().await };
            let unseen = || "QEMU's process cannot be seen from here".to_owned();
            match asked.await {
                Ok(usage) => usage.ok_or_else(unseen),
                Err(error) => Err(error.to_string()),
            }
        });
        asked.into_iter().map(|(vm, usage)| (vm.name, usage)).collect()
    }
}
