//! What machines take of their hosts.

use sterna_qemu::Usage;
use tokio::task::JoinSet;

use super::Vms;
use crate::store::VmRecord;

impl Vms {
    /// What each of these machines takes, or why it cannot be asked. All are asked at
    /// once: several that hang take no longer than one.
    pub(crate) fn usages(
        &self,
        records: &[VmRecord],
    ) -> Vec<(String, Result<Usage, String>)> {
        let mut looks = JoinSet::new();
        for record in records {
            let link = self.link(&record.reach);
            let name = record.name.clone();
            let look = async move {
                let asked = async { link.machine().await?.usage().await };
                let unseen = || "QEMU's process cannot be seen from here".to_owned();
                let usage = match asked.await {
                    Ok(usage) => usage.ok_or_else(unseen),
                    Err(error) => Err(error.to_string()),
                };
                (name, usage)
            };
            looks.spawn_on(look, &self.runtime);
        }
        self.runtime.block_on(looks.join_all())
    }
}
