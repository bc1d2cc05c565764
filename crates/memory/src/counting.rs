//! What the kernel counts of the host, the swap tiers and the VMs, looked at every two seconds by
//! the task that watches VMs that sleep. No VM is asked: the counters are those of the process that
//! the VM had when it was last looked at, and of its devices. So metrics and `top` answer from what
//! was read last, whatever hangs.
//!
//! **What the kernel does not count.** Of a device it has the number of reads and the time that
//! they took together: a mean can be had of that, and no percentile. Under KVM the kernel waits for
//! some pages in the guest's stead, on threads of its own: such waits are among the host's faults,
//! and not among those of the VM's process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sterna_api::{
    Error, MemoryTop, Result, SwapTierTop, VmMemoryState, VmMemoryTop, WakeReport,
};
use sterna_core::memory::{HostState, reserve};
use sterna_machines::SeenProcess;
use sterna_os::block_device::BlockDevice;
use sterna_os::memory::HostMemory;
use sterna_os::{clock, lock};

use crate::Memory;
use crate::counts::{Counts, Recent};
use crate::explain;
use crate::tiers::Tier;

/// How often the counters are read: a little less than the time between two looks of a task that
/// has nobody to watch, so that each of these reads them.
const EVERY: Duration = Duration::from_millis(1900);

/// What was read this long ago says nothing of now, in milliseconds: nobody could read it since.
const OLD_MS: u64 = 30_000;

/// What is remembered of the counters.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    recent: Recent,
    read: Option<Instant>,
    last: Option<Arc<Counted>>,
    wakes: WakeTotals,
}

/// What was found when the counters were read.
#[derive(Debug)]
struct Counted {
    at_ms: u64,
    reserve: u64,
    tiers: Vec<SwapTierTop>,
    vms: Vec<VmMemoryTop>,
}

/// Wakes of all VMs, added up since the daemon was started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WakeTotals {
    /// How many have ended.
    pub wakes: u64,
    /// How long they held guests, in seconds.
    pub held_s: f64,
    /// Bytes that they brought back.
    pub bytes: u64,
    /// Bytes that could not be read.
    pub failed: u64,
}

impl WakeTotals {
    fn add(&mut self, wake: &WakeReport) {
        self.wakes += 1;
        self.held_s += wake.held_ms / 1e3;
        self.bytes += wake.bytes;
        self.failed += wake.failed;
    }
}

impl Memory {
    /// Reads the counters, if it is time to.
    pub(crate) fn count(&self) -> Result<()> {
        let is_due = |read: Instant| read.elapsed() >= EVERY;
        if !lock(&self.counting).read.is_none_or(is_due) {
            return Ok(());
        }
        // What cannot be read now is not read again at once.
        lock(&self.counting).read = Some(Instant::now());
        let tiers = self.tiers()?;
        let total = sterna_os::memory::host().map_err(Error::unavailable)?.total;
        let reserve = self.reserve(total)?;
        let asleep = self.storage.store.asleep_vms()?;
        let seen = self.machines.seen_processes();
        let devices: Vec<Option<BlockDevice>> = tiers.iter().map(device_of).collect();
        let counts = counts(&devices, &seen);
        let mut counting = lock(&self.counting);
        counting.recent.add(counts.clone());
        let with_device = tiers.iter().zip(&devices);
        let tiers = with_device.map(|(tier, device)| {
            let name = device.as_ref().map(BlockDevice::name);
            tier_top(tier, name, &counts, &counting.recent)
        });
        let tiers = tiers.collect();
        let vms = self.count_vms(&seen, &asleep, &counts, &counting.recent);
        let at_ms = clock::now_ms();
        counting.last = Some(Arc::new(Counted { at_ms, reserve, tiers, vms }));
        counting.read = Some(Instant::now());
        Ok(())
    }

    /// The counters are to be read anew now: something has changed.
    pub(crate) fn count_again(&self) {
        lock(&self.counting).read = None;
        self.waker.wake();
    }

    /// The VMs of which a process was seen, or that were looked at lately.
    fn count_vms(
        &self,
        seen: &[(String, SeenProcess)],
        asleep: &[String],
        counts: &Counts,
        recent: &Recent,
    ) -> Vec<VmMemoryTop> {
        let mut vms: BTreeMap<String, VmMemoryTop> = BTreeMap::new();
        let top = |vm: &str| VmMemoryTop {
            vm: vm.to_owned(),
            state: self.state_of(vm, asleep.iter().any(|one| one == vm)),
            size: None,
            resident: None,
            out: None,
            balloon: None,
            entitled: None,
            faults: None,
            faults_per_s: None,
        };
        for (vm, process) in seen {
            let Some(counted) = counts.vms.get(vm) else { continue };
            vms.insert(
                vm.clone(),
                VmMemoryTop {
                    size: Some(process.memory),
                    resident: Some(counted.resident),
                    out: Some(counted.out),
                    faults: Some(counted.faults),
                    faults_per_s: recent.faults_of(vm),
                    ..top(vm)
                },
            );
        }
        let standing = lock(&self.standing);
        let Some(found) = standing.found_lately() else {
            return vms.into_values().collect();
        };
        for ((vm, holds), due) in found.vms.iter().zip(&found.reclaim.vms) {
            let vm = &vm.name;
            let one = vms.entry(vm.clone()).or_insert_with(|| top(vm));
            let look = standing.known.get(vm).and_then(|known| known.look);
            one.entitled = Some(due.entitled);
            one.size = Some(holds.size);
            one.resident = one.resident.or(Some(holds.resident));
            one.out = one.out.or(look.and_then(|look| look.out));
            one.balloon = look.and_then(|look| look.balloon).map(|balloon| balloon.has);
        }
        drop(standing);
        vms.into_values().collect()
    }

    fn state_of(&self, vm: &str, is_asleep: bool) -> VmMemoryState {
        VmMemoryState::of(self.work_of(vm).map(|work| work.view()).as_ref(), is_asleep)
    }

    /// The host's memory now. What of VMs that sleep is in memory as well counts as available: the
    /// kernel frees it for whoever needs the room.
    pub(crate) fn host(&self) -> Result<HostMemory> {
        let host = sterna_os::memory::host().map_err(Error::unavailable)?;
        let counted = lock(&self.counting).last.clone();
        let asleep = counted.iter().flat_map(|counted| &counted.vms);
        let asleep = asleep.filter(|vm| vm.state == VmMemoryState::Asleep);
        let copies = host.swap_cached.min(asleep.filter_map(|vm| vm.out).sum());
        Ok(HostMemory { available: host.available + copies, ..host })
    }

    /// The host's memory now, and what the counters said when they were read last.
    pub fn top(&self) -> Result<MemoryTop> {
        let host = self.host()?;
        let (counted, window, faults_per_s) = {
            let counting = lock(&self.counting);
            let recent = &counting.recent;
            let is_new =
                |one: &Arc<Counted>| clock::now_ms().abs_diff(one.at_ms) < OLD_MS;
            let last = counting.last.clone().filter(is_new);
            (last, recent.window(), recent.faults_per_s())
        };
        let reserve =
            counted.as_ref().map_or_else(|| reserve(host.total), |it| it.reserve);
        let (state, short) = self.pressure(reserve, host.available);
        let (tiers, vms) = match &counted {
            Some(counted) => (counted.tiers.clone(), counted.vms.clone()),
            None => (Vec::new(), Vec::new()),
        };
        Ok(MemoryTop {
            at_ms: counted.map_or_else(clock::now_ms, |counted| counted.at_ms),
            window_s: window.as_secs_f64(),
            total: host.total,
            available: host.available,
            reserve,
            state: explain::state(state),
            short,
            faults_per_s,
            tiers,
            vms,
        })
    }

    /// How short a host is that has so much available, and what nobody on it gives, if that was
    /// looked at lately.
    pub(crate) fn pressure(&self, reserve: u64, available: u64) -> (HostState, u64) {
        let standing = lock(&self.standing);
        let state = standing.state.next(reserve, available);
        let short = standing.found_lately().map_or(0, |found| found.reclaim.short);
        (state, if state == HostState::High { 0 } else { short })
    }

    /// A wake has ended.
    pub(crate) fn count_wake(&self, wake: &WakeReport) {
        lock(&self.counting).wakes.add(wake);
    }

    /// Wakes of all VMs since the daemon was started.
    pub fn wake_totals(&self) -> WakeTotals {
        lock(&self.counting).wakes
    }
}

/// The device of a tier, or the one of its file system; nothing if neither is there.
fn device_of(tier: &Tier) -> Option<BlockDevice> {
    BlockDevice::of(Path::new(&tier.record.path)).ok()
}

fn counts(devices: &[Option<BlockDevice>], seen: &[(String, SeenProcess)]) -> Counts {
    let of_device = |device: &BlockDevice| Some((device.name(), device.counts().ok()?));
    let of_vm = |(vm, seen): &(String, SeenProcess)| Some((vm.clone(), seen.counts()?));
    Counts {
        at: Instant::now(),
        faults: sterna_os::memory::reads().ok().map(|reads| reads.faults),
        devices: devices.iter().flatten().filter_map(of_device).collect(),
        vms: seen.iter().filter_map(of_vm).collect(),
    }
}

fn tier_top(
    tier: &Tier,
    device: Option<String>,
    counts: &Counts,
    recent: &Recent,
) -> SwapTierTop {
    let counted = device.as_ref().and_then(|name| counts.devices.get(name));
    let rates = device.as_ref().and_then(|name| recent.device(name));
    SwapTierTop {
        tier: tier.record.name.clone(),
        size: tier.record.size,
        used: tier.swap.as_ref().map_or(0, |swap| swap.used),
        in_use: tier.swap.is_some(),
        device: device.filter(|_| counted.is_some()),
        whole_device: tier.record.datastore.is_none(),
        reads: counted.map(|it| it.reads),
        read_s: counted.map(|it| it.read_time.as_secs_f64()),
        writes: counted.map(|it| it.writes),
        reads_per_s: rates.map(|it| it.reads_per_s),
        writes_per_s: rates.map(|it| it.writes_per_s),
        read_us: rates.and_then(|it| it.read).map(|it| it.as_secs_f64() * 1e6),
    }
}
