//! Metrics of memory: of the host, of swap tiers, and of VMs.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue};
use sterna_api::{HostMemoryState, MemoryTop, SwapTierTop, VmMemoryState, VmMemoryTop};
use sterna_memory::WakeTotals;

use super::rows::{NONE, counters, gauges};

/// Memory, as the kernel counts it.
#[derive(Debug)]
pub(super) struct Memory {
    /// Nothing if the kernel does not say.
    pub(super) top: Option<MemoryTop>,
    pub(super) wakes: WakeTotals,
}

impl Collector for Memory {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        if let Some(top) = &self.top {
            host(encoder, top)?;
            tiers(encoder, &top.tiers)?;
            vms(encoder, &top.vms)?;
        }
        wakes(encoder, &self.wakes)
    }
}

fn host(encoder: &mut DescriptorEncoder<'_>, top: &MemoryTop) -> fmt::Result {
    let mut gauge =
        |name, help, value: u64| gauges(encoder, (name, help), [(NONE, value)]);
    gauge("host_memory_bytes", "All memory of the host.", top.total)?;
    let help = "What programs could have without swapping, by the kernel's estimate.";
    gauge("host_memory_available_bytes", help, top.available)?;
    let help = "What is to stay available.";
    gauge("host_memory_reserve_bytes", help, top.reserve)?;
    let help = "How short of memory the host is: 0 high, 1 soft, 2 hard, 3 low.";
    gauge("host_memory_state", help, number(top.state))?;
    let help = "What the host lacks that no VM on it gives.";
    gauge("host_memory_short_bytes", help, top.short)
}

/// A state as a number, the worst the highest.
fn number(state: HostMemoryState) -> u64 {
    match state {
        HostMemoryState::High => 0,
        HostMemoryState::Soft => 1,
        HostMemoryState::Hard => 2,
        HostMemoryState::Low => 3,
    }
}

fn tiers(encoder: &mut DescriptorEncoder<'_>, tiers: &[SwapTierTop]) -> fmt::Result {
    let label = |it: &SwapTierTop| [("tier", it.tier.clone())];
    let size = tiers.iter().map(|it| (label(it), it.size));
    gauges(encoder, ("swap_tier_size_bytes", "The size of a swap tier."), size)?;
    let used = tiers.iter().map(|it| (label(it), it.used));
    let help = "How much of a swap tier is in use.";
    gauges(encoder, ("swap_tier_used_bytes", help), used)?;
    let in_use = tiers.iter().map(|it| (label(it), u32::from(it.in_use)));
    let help = "1 if the kernel swaps to the tier, else 0.";
    gauges(encoder, ("swap_tier_in_use", help), in_use)?;
    let of_device = |it: &SwapTierTop| {
        Some([("tier", it.tier.clone()), ("device", it.device.clone()?)])
    };
    let reads = tiers.iter().filter_map(|it| Some((of_device(it)?, it.reads?)));
    let help = "Reads of a tier's device, of a file's that of its file system, since the host \
                was started.";
    counters(encoder, ("swap_device_reads", help), reads)?;
    let times = tiers.iter().filter_map(|it| Some((of_device(it)?, it.read_s?)));
    let help = "How long these reads took, added up.";
    counters(encoder, ("swap_device_read_seconds", help), times)?;
    let writes = tiers.iter().filter_map(|it| Some((of_device(it)?, it.writes?)));
    let help = "Writes of a tier's device since the host was started.";
    counters(encoder, ("swap_device_writes", help), writes)
}

/// One figure of each VM of which it is known.
fn of_vms<V: EncodeGaugeValue>(
    vms: &[VmMemoryTop],
    value: impl Fn(&VmMemoryTop) -> Option<V>,
) -> impl Iterator<Item = ([(&'static str, String); 1], V)> {
    vms.iter().filter_map(move |vm| Some(([("vm", vm.vm.clone())], value(vm)?)))
}

fn vms(encoder: &mut DescriptorEncoder<'_>, vms: &[VmMemoryTop]) -> fmt::Result {
    let help = "What a VM's process has in memory.";
    let resident = of_vms(vms, |vm| vm.resident);
    gauges(encoder, ("vm_memory_resident_bytes", help), resident)?;
    let help = "How much of a VM's process is on swap.";
    gauges(encoder, ("vm_memory_out_bytes", help), of_vms(vms, |vm| vm.out))?;
    let help = "What a VM's balloon has; absent unless Sterna has looked lately.";
    gauges(encoder, ("vm_memory_balloon_bytes", help), of_vms(vms, |vm| vm.balloon))?;
    let help = "What a VM is entitled to; absent unless Sterna has looked lately.";
    gauges(encoder, ("vm_memory_entitled_bytes", help), of_vms(vms, |vm| vm.entitled))?;
    let is_asleep = |vm: &VmMemoryTop| u32::from(vm.state == VmMemoryState::Asleep);
    let help = "1 if the VM sleeps, else 0.";
    let asleep = of_vms(vms, |vm| Some(is_asleep(vm)));
    gauges(encoder, ("vm_memory_asleep", help), asleep)?;
    let faults = of_vms(vms, |vm| vm.faults);
    let help = "How often a VM's process had to wait for a page to be read since it was \
                started.";
    counters(encoder, ("vm_major_faults", help), faults)
}

fn wakes(encoder: &mut DescriptorEncoder<'_>, totals: &WakeTotals) -> fmt::Result {
    let help = "Wakes of VMs that have ended.";
    counters(encoder, ("vm_wakes", help), [(NONE, totals.wakes)])?;
    let help = "How long wakes held guests, added up.";
    counters(encoder, ("vm_wake_held_seconds", help), [(NONE, totals.held_s)])?;
    let help = "Bytes that wakes brought back.";
    counters(encoder, ("vm_wake_bytes", help), [(NONE, totals.bytes)])?;
    let help = "Bytes that a wake could not read from swap.";
    counters(encoder, ("vm_wake_failed_bytes", help), [(NONE, totals.failed)])
}
