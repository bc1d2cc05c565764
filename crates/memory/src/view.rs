//! What people see of memory.

use sterna_api::{
    HostMemory, MemoryWorkKind, OutOnTier, Result, VmBalloon, VmMemory, VmMemoryState,
};
use sterna_core::memory::{OutGranule, WakeTime, predict, runs, streams};
use sterna_machines::VmProcess;
use sterna_os::lock;
use sterna_os::process_memory::PAGE;

use crate::guest_memory::GuestMemory;
use crate::tiers::{self, Tier, speeds};
use crate::{Memory, explain, terms};

impl Memory {
    /// The host's memory, its swap tiers, and all VMs' memory.
    pub fn show_host_memory(&self) -> Result<HostMemory> {
        let host = self.host()?;
        let (vms, tiers) = (self.storage.store.vms()?, self.tiers()?);
        let settings = self.storage.store.memory_settings()?;
        let reserve = self.reserve(host.total)?;
        let (state, short) = self.pressure(reserve, host.available);
        let scores = self.wake_scores()?;
        // All are asked at once, so that one that hangs delays no other.
        let asked = self.machines.processes_of(&vms);
        let views =
            asked.into_iter().map(|(vm, process)| self.view_of(&vm, process, &tiers));
        Ok(HostMemory {
            total: host.total,
            available: host.available,
            reserve,
            state: explain::state(state),
            settings,
            short,
            wakes_scored: scores.wakes() as u64,
            wake_error: scores.error(),
            tiers: tiers.iter().map(tiers::view).collect(),
            vms: views.collect::<Result<_>>()?,
        })
    }

    /// A VM's memory.
    pub fn show_vm_memory(&self, vm: &str) -> Result<VmMemory> {
        self.machines.vm_record(vm)?;
        self.view_of(vm, self.machines.process_of(vm), &self.tiers()?)
    }

    /// The memory of a VM that is this process, or why it is not known which it is.
    fn view_of(
        &self,
        vm: &str,
        process: Result<VmProcess>,
        tiers: &[Tier],
    ) -> Result<VmMemory> {
        let asleep_since = self.storage.store.asleep_since(vm)?;
        let work = self.work_of(vm).map(|work| work.view());
        let terms = self.terms_of(vm)?;
        let (entitled, active, balloon) = self.shares_of(vm);
        let empty = VmMemory {
            vm: vm.to_owned(),
            state: VmMemoryState::of(work.as_ref(), asleep_since.is_some()),
            asleep_since,
            size: None,
            resident: None,
            out: None,
            out_on: Vec::new(),
            wakes_known: 0,
            wake_hot_s: None,
            wake_all_s: None,
            wake_range_s: None,
            terms: terms::view(&terms),
            entitled,
            active,
            balloon,
            work,
            last_wake: lock(&self.reports).get(vm).cloned(),
            problem: lock(&self.failures).get(vm).cloned(),
        };
        match process.and_then(|process| GuestMemory::of(vm, process)) {
            Ok(guest) => self.view(&guest, tiers, empty),
            Err(error) => Ok(VmMemory { problem: Some(error.to_string()), ..empty }),
        }
    }

    /// What a VM is entitled to, how much of its memory it uses, and its balloon, when that was
    /// looked at last.
    fn shares_of(&self, vm: &str) -> (Option<u64>, Option<f64>, Option<VmBalloon>) {
        let standing = lock(&self.standing);
        let Some((found, at)) = standing.found(vm) else { return (None, None, None) };
        let (holds, due) = (&found.vms[at].1, &found.reclaim.vms[at]);
        let known = standing.known.get(vm);
        let balloon = known.and_then(|known| Some((known.taken(), known.look?.balloon?)));
        let balloon = balloon.map(|(taken, look)| VmBalloon {
            taken,
            has: look.has,
            max: holds.cap,
            guest_available: look.available.map(|it| it.0),
            reports_free: look.reports_free,
        });
        (Some(due.entitled), Some(holds.active), balloon)
    }

    fn view(
        &self,
        guest: &GuestMemory,
        tiers: &[Tier],
        view: VmMemory,
    ) -> Result<VmMemory> {
        let found = match guest.whereabouts() {
            Ok(found) => found,
            Err(error) => {
                return Ok(VmMemory { problem: Some(error.to_string()), ..view });
            }
        };
        let record = self.wake_record(&view.vm, guest.granules())?;
        let scores = self.wake_scores()?;
        let speeds = speeds(tiers);
        let streams = streams(&found.out, &record);
        let time = predict(&streams, |device| speeds.get(&device).copied());
        let on = |device: u8| {
            let tier = tiers.iter().find(|tier| tier.number == Some(device));
            tier.map(|tier| tier.record.name.clone())
        };
        let out_on = streams.iter().map(|stream| {
            let mut all: Vec<OutGranule> =
                stream.granules.iter().map(|(_, it)| *it).collect();
            all.sort_unstable_by_key(|it| it.slot);
            let pages: u64 = all.iter().map(|it| u64::from(it.pages)).sum();
            OutOnTier { tier: on(stream.device), bytes: pages * PAGE, runs: runs(&all) }
        });
        let is_out = |_: &WakeTime| !found.out.is_empty() && view.work.is_none();
        let time = time.filter(is_out);
        // What a wake has brought back is in memory, though the kernel counts it as out.
        let back = view.work.as_ref().filter(|work| work.kind == MemoryWorkKind::Wake);
        let left = back.map_or(u64::MAX, |work| work.total.saturating_sub(work.done));
        let out = found.out_bytes().min(left);
        let resident = found.present_bytes + (found.out_bytes() - out);
        Ok(VmMemory {
            size: Some(guest.size()),
            resident: Some(resident),
            out: Some(out),
            // Nor does the kernel say what of it is in memory as well.
            out_on: if back.is_some() { Vec::new() } else { out_on.collect() },
            wakes_known: record.wakes() as u64,
            wake_hot_s: time.map(|it| it.hot),
            wake_all_s: time.map(|it| it.all),
            wake_range_s: time.map(|it| scores.range(it.all).into()),
            ..view
        })
    }
}
