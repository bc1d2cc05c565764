//! Which process each VM was when it was last looked at, so that what the kernel counts of it
//! can be read without a word to QEMU.

use std::collections::HashMap;

use sterna_os::lock;
use sterna_os::process_counts::ProcessCounts;
use sterna_qemu::{Process, VmHandle};
use sterna_state::VmRecord;

use crate::Machines;

/// The process that has a VM's memory, as it was when the VM was last looked at: it may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenProcess {
    /// QEMU's.
    pub process: Process,
    /// How much memory the VM had when the process was first seen, in bytes.
    pub memory: u64,
}

impl SeenProcess {
    /// The process of a VM that is on, if it is on this host. It costs QEMU or libvirt some
    /// questions, unless it is still the one that is known.
    pub(super) async fn of(
        vm: &VmHandle,
        known: Option<SeenProcess>,
    ) -> Option<SeenProcess> {
        let is_still = |one: &SeenProcess| match vm {
            VmHandle::Direct(_) => vm.listener() == Some(one.process),
            VmHandle::Managed(_) => one.process.is_there(),
        };
        if let Some(known) = known.filter(is_still) {
            return Some(known);
        }
        let process = vm.process().await.ok()??;
        let memory = vm.memory_size().await.ok()??;
        Some(SeenProcess { process, memory })
    }

    /// How many bytes of it are on swap, if it is still there.
    pub(super) fn out(self) -> Option<u64> {
        Some(self.counts()?.out)
    }

    /// What the kernel counts of its memory, if it is still there.
    pub fn counts(self) -> Option<ProcessCounts> {
        let Process { pid, started } = self.process;
        ProcessCounts::of_process(pid, started).ok()
    }
}

impl Machines {
    /// Takes note of what was found of these VMs. One that could not be asked may be there.
    pub(super) fn note_processes<'a>(
        &self,
        found: impl Iterator<Item = (&'a VmRecord, Option<SeenProcess>)>,
    ) {
        let found = found.filter_map(|(vm, process)| Some((vm.name.clone(), process?)));
        lock(&self.vms.processes).extend(found);
    }

    /// The processes of these VMs that were seen, by how the VMs are reached.
    pub(super) fn processes_by_reach(
        &self,
        records: &[VmRecord],
    ) -> HashMap<String, SeenProcess> {
        let seen = lock(&self.vms.processes);
        let of = |vm: &VmRecord| Some((vm.reach.to_string(), *seen.get(&vm.name)?));
        records.iter().filter_map(of).collect()
    }

    /// Forgets those of VMs that are not known any more.
    pub(super) fn forget_processes(&self, is_gone: impl Fn(&str) -> bool) {
        lock(&self.vms.processes).retain(|vm, _| !is_gone(vm));
    }

    /// The processes of all VMs of which one was seen, by the VMs' names.
    pub fn seen_processes(&self) -> Vec<(String, SeenProcess)> {
        let seen = lock(&self.vms.processes);
        seen.iter().map(|(vm, process)| (vm.clone(), *process)).collect()
    }
}
