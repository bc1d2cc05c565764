//! What is asked of VMs for their memory: which process has it, which threads run the guest, how
//! much of it is where, and what their balloons have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use sterna_api::{Error, Result};
use sterna_core::DiskId;
use sterna_qemu::{BalloonLook, Drive, MemoryLook, Process, QemuError, Usage};
use sterna_state::VmRecord;

use crate::Machines;
use crate::link::Link;
use crate::processes::SeenProcess;

/// The process that has a VM's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmProcess {
    /// QEMU's.
    pub process: Process,
    /// Its threads that run the guest's processors; none of a guest that stands still.
    pub processors: Vec<i32>,
    /// How much memory the VM has, in bytes.
    pub memory: u64,
}

/// What was seen of a VM's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmLook {
    /// What it takes of its host.
    pub usage: Usage,
    /// Its balloon, if it has one.
    pub balloon: Option<BalloonLook>,
    /// How many bytes of its process are on swap; nothing where that cannot be seen.
    pub out: Option<u64>,
    /// Which process it is, if that was seen.
    pub process: Option<Process>,
    /// When it answered.
    pub at: Instant,
}

impl Machines {
    /// The disks of this daemon that a VM uses, as far as it can be asked.
    pub fn served_disks_of(&self, vm: &str) -> Result<Vec<DiskId>> {
        let link = self.vms.link(&self.vm_record(vm)?.reach);
        let drives = self.vms.runtime.block_on(async { link.vm().await?.drives().await });
        let drives: Vec<Drive> = drives.map_err(Error::unavailable)?;
        let ours = drives.iter().map(|drive| self.disk_behind(&drive.image));
        let ours = ours.collect::<Result<Vec<_>>>()?;
        Ok(ours.into_iter().flatten().map(|disk| disk.id).collect())
    }

    /// How much of the memory of each of these VMs is where, or why they cannot be asked. One whose
    /// asking was broken off, as the daemon ends, is missing.
    pub fn looks_at_memory(
        &self,
        records: &[VmRecord],
    ) -> Vec<(VmRecord, Result<VmLook>)> {
        let known = Arc::new(self.processes_by_reach(records));
        self.vms.ask_all_in_turn(records, |link| {
            let known = known.get(&link.reach().to_string()).copied();
            async move {
                look(&link, known).await.map_err(Error::unavailable)?.ok_or_else(unseen)
            }
        })
    }

    /// Has the balloons of these VMs take or give until they have so many bytes. All are asked at
    /// once; says what became of it, by name.
    pub fn set_balloons(&self, all: &[(VmRecord, u64)]) -> Vec<(String, Result<()>)> {
        let records: Vec<VmRecord> =
            all.iter().map(|(record, _)| record.clone()).collect();
        let taken: BTreeMap<String, u64> = all
            .iter()
            .map(|(record, taken)| (record.reach.to_string(), *taken))
            .collect();
        let asked = self.vms.ask_all_in_turn(&records, |link| {
            let taken = taken.get(&link.reach().to_string()).copied().unwrap_or_default();
            async move {
                let set = async { link.vm().await?.set_balloon(taken).await };
                set.await.map_err(Error::unavailable)
            }
        });
        asked.into_iter().map(|(vm, set)| (vm.name, set)).collect()
    }

    /// The process that has a VM's memory.
    pub fn process_of(&self, vm: &str) -> Result<VmProcess> {
        let link = self.vms.link(&self.vm_record(vm)?.reach);
        process_of(vm, self.vms.runtime.block_on(process(link)))
    }

    /// The processes of these VMs, by name. All are asked at once: one that hangs delays none.
    pub fn processes_of(&self, records: &[VmRecord]) -> Vec<(String, Result<VmProcess>)> {
        let asked = self.vms.ask_all_in_turn(records, process);
        let named = |(vm, asked): (VmRecord, Asked)| {
            let process = process_of(&vm.name, asked);
            (vm.name, process)
        };
        asked.into_iter().map(named).collect()
    }
}

/// What is seen of a VM's memory, if it was known to be this process; nothing where it cannot be
/// seen.
async fn look(
    link: &Link,
    known: Option<SeenProcess>,
) -> std::result::Result<Option<VmLook>, QemuError> {
    let vm = link.vm().await?;
    let Some(MemoryLook { usage, balloon }) = vm.memory().await? else { return Ok(None) };
    let at = Instant::now();
    let process = SeenProcess::of(&vm, known).await;
    let out = process.and_then(SeenProcess::out);
    let process = process.map(|seen| seen.process);
    Ok(Some(VmLook { usage, balloon, out, process, at }))
}

fn unseen() -> Error {
    Error::unavailable("Sterna cannot see QEMU's process from here")
}

/// What QEMU says of its process, if that can be seen from here.
type Asked = std::result::Result<Option<VmProcess>, QemuError>;

async fn process(link: Arc<Link>) -> Asked {
    let handle = link.vm().await?;
    let found = handle.process().await?.zip(handle.memory_size().await?);
    let Some((process, memory)) = found else { return Ok(None) };
    let processors = match handle.run().await?.running {
        true => {
            let threads = handle.processor_threads(process).await?;
            threads.into_iter().filter_map(|it| it.try_into().ok()).collect()
        }
        false => Vec::new(),
    };
    Ok(Some(VmProcess { process, processors, memory }))
}

fn process_of(vm: &str, asked: Asked) -> Result<VmProcess> {
    asked.map_err(Error::unavailable)?.ok_or_else(|| {
        Error::unavailable(format!("Sterna does not see the process of VM {vm}")).hint(
            "the VM must run on this host, and Sterna beside it: not in a container",
        )
    })
}
