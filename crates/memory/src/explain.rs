//! Why a VM has the memory that it has, and what it would have to give.

use sterna_api::{
    Error, ErrorCode, HostMemoryState, MemoryAutomation, MemoryExplanation, MemoryMeans,
    MemoryMeansKind, Result,
};
use sterna_core::memory::{Due, Holds, HostState, TierSpeed};
use sterna_core::{Bytes, Nanos};
use sterna_machines::BalloonLook;
use sterna_os::lock;

use crate::Memory;
use crate::terms;
use crate::tiers::{Tier, free};

impl Memory {
    /// Explains a VM's memory.
    pub fn explain(&self, vm: &str) -> Result<MemoryExplanation> {
        self.machines.vm_record(vm)?;
        self.look_if_old()?;
        let tiers = self.tiers()?;
        let settings = self.storage.store.memory_settings()?;
        let total = sterna_os::memory::host().map_err(Error::unavailable)?.total;
        let reserve = self.reserve(total)?;
        let terms = self.terms_of(vm)?;
        let standing = lock(&self.standing);
        let known = standing.known.get(vm);
        let Some((found, at)) = standing.found(vm) else {
            let why = known.and_then(|known| known.problem.clone());
            let why = why.unwrap_or_else(|| "it has not been looked at".into());
            return Err(Error::new(
                ErrorCode::Unavailable,
                format!("nothing is known of the memory of VM {vm}: {why}"),
            )
            .hint("see `sterna vm show`"));
        };
        let (holds, due) = (&found.vms[at].1, &found.reclaim.vms[at]);
        let balloon = known.and_then(|known| known.look?.balloon);
        let means = vec![
            free_pages(balloon),
            by_balloon(holds, due, balloon),
            by_swap(holds, due, &tiers),
            by_migration(found.reclaim.short),
        ];
        let all = found.vms.iter().map(|(_, one)| u64::from(one.terms.shares)).sum();
        Ok(MemoryExplanation {
            vm: vm.to_owned(),
            state: state(standing.state),
            available: found.available,
            reserve,
            lacks: found.reclaim.lacks,
            short: found.reclaim.short,
            room: found.reclaim.room,
            terms: terms::view(&terms),
            all_shares: all,
            size: holds.size,
            resident: holds.resident,
            wants: due.wants,
            active: holds.active,
            idle_s: holds.idle.as_secs_f64(),
            price: due.price,
            entitled: due.entitled,
            says: says(vm, standing.state, settings.automation, holds, due),
            means,
            automation: settings.automation,
        })
    }
}

/// How short of memory the host is, as people see it.
pub(crate) fn state(state: HostState) -> HostMemoryState {
    match state {
        HostState::High => HostMemoryState::High,
        HostState::Soft => HostMemoryState::Soft,
        HostState::Hard => HostMemoryState::Hard,
        HostState::Low => HostMemoryState::Low,
    }
}

fn free_pages(balloon: Option<BalloonLook>) -> MemoryMeans {
    let cost = match balloon.map(|it| it.reports_free) {
        None => "the VM has no balloon device, which would report free pages",
        Some(Some(true)) => "the guest reports free pages by itself, which costs nothing",
        Some(Some(false)) => {
            "off: it would cost nothing with `-device \
             virtio-balloon-pci,free-page-reporting=on`"
        }
        Some(None) => "it is not known whether the guest reports free pages",
    };
    let means = MemoryMeansKind::FreePages;
    MemoryMeans { means, can_give: None, gives: 0, cost: cost.into() }
}

fn by_balloon(holds: &Holds, due: &Due, balloon: Option<BalloonLook>) -> MemoryMeans {
    let most = holds.cap.saturating_sub(holds.taken).min(holds.spare);
    let (can_give, cost) = match balloon {
        None => {
            (None, "none: QEMU must be started with `-device virtio-balloon-pci`".into())
        }
        Some(it) if it.available.is_none() => (
            None,
            "the guest does not say what it has: its balloon driver is missing".into(),
        ),
        Some(_) => {
            let (has, cap, spare) = (holds.taken, holds.cap, holds.spare);
            let [has, cap, spare] = [has, cap, spare].map(Bytes);
            let cost = format!(
                "the guest's caches; it has {has} of {cap} that it may take, and the guest can do \
                 without {spare} more"
            );
            (Some(most), cost)
        }
    };
    MemoryMeans {
        means: MemoryMeansKind::Balloon,
        can_give,
        gives: due.balloon.saturating_sub(holds.taken),
        cost,
    }
}

fn by_swap(holds: &Holds, due: &Due, tiers: &[Tier]) -> MemoryMeans {
    let room = free(tiers);
    let keeps = due.entitled.max(holds.terms.reservation as u64);
    let most = holds.resident.saturating_sub(keeps).min(room);
    let fastest = tiers.iter().find(|tier| tier.number.is_some());
    let (can_give, cost) = match fastest {
        None => {
            (None, "no tier: `sterna swap add NAME --on DATASTORE --size SIZE`".into())
        }
        Some(_) if !holds.can_sleep => (
            None,
            "its memory cannot go out: Sterna must run as root on the VM's host".into(),
        ),
        Some(tier) => {
            let (time, name) = (comes_back(tier.speed()), &tier.record.name);
            (Some(most), format!("a wake; 1 GiB takes {time} to come back from {name}"))
        }
    };
    MemoryMeans { means: MemoryMeansKind::Swap, can_give, gives: due.out, cost }
}

/// How long a GiB takes in order.
fn comes_back(speed: TierSpeed) -> Nanos {
    Nanos((f64::from(1 << 30) / speed.sequential.max(1.0) * 1e9) as u64)
}

fn by_migration(short: u64) -> MemoryMeans {
    let cost = match short {
        0 => "not needed: VMs here give what the host lacks".to_owned(),
        short => format!(
            "{} cannot be had on this host: `sterna drs` shows which VM could go to another one",
            Bytes(short)
        ),
    };
    MemoryMeans { means: MemoryMeansKind::Migration, can_give: None, gives: 0, cost }
}

fn says(
    vm: &str,
    state: HostState,
    automation: MemoryAutomation,
    holds: &Holds,
    due: &Due,
) -> String {
    let by_balloon = due.balloon.saturating_sub(holds.taken);
    let back = holds.taken.saturating_sub(due.balloon);
    let does = |level: MemoryAutomation, word: &str| match automation >= level {
        true => String::new(),
        false => format!("; Sterna does it itself with `sterna memory auto {word}`"),
    };
    match (by_balloon, due.out) {
        (0, 0) if back > 0 => {
            format!("VM {vm} gets {} back from its balloon.", Bytes(back))
        }
        (0, 0) if state == HostState::High => {
            format!("The host has its reserve: VM {vm} gives nothing.")
        }
        (0, 0) => format!(
            "VM {vm} gives nothing: it holds no more than it is entitled to, or no \
                           means gets it."
        ),
        (0, out) => format!(
            "VM {vm} is idle and has {} to give to swap{}.",
            Bytes(out),
            does(MemoryAutomation::Full, "full")
        ),
        (balloon, _) => format!(
            "VM {vm} has {} to give by its balloon{}.",
            Bytes(balloon),
            does(MemoryAutomation::Partial, "partial")
        ),
    }
}
