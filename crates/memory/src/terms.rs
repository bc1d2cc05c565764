//! What VMs are promised of the host's memory, and what Sterna does by itself: what people say.

use sterna_api::{
    ChangeMemory, ChangeMemoryTerms, Error, MemorySettings, MemoryTerms, Result, VmMemory,
};
use sterna_core::Bytes;
use sterna_os::lock;
use sterna_state::MemoryTermsRecord;

use crate::Memory;

/// Shares of a VM. More of them only makes those of the others matter less.
const SHARES_MOST: u32 = 1_000_000;

/// A wake of which more is allowed needs no promise.
const WAKE_WITHIN_MOST_S: f64 = 3600.0;

impl Memory {
    /// Changes when the host counts as short of memory, and what Sterna does then.
    pub fn change_memory(&self, request: &ChangeMemory) -> Result<MemorySettings> {
        let _turn = lock(&self.terms_turn);
        let old = self.storage.store.memory_settings()?;
        let total = sterna_os::memory::host().map_err(Error::unavailable)?.total;
        if let Some(reserve) = request.reserve.filter(|reserve| *reserve > total) {
            let message = format!("the host has no {} to keep available", Bytes(reserve));
            return Err(
                Error::invalid(message).hint(format!("give {} at most", Bytes(total)))
            );
        }
        let new = MemorySettings {
            automation: request.automation.unwrap_or(old.automation),
            reserve: match request.reserve {
                None => old.reserve,
                Some(0) => None,
                some => some,
            },
        };
        self.storage.store.set_memory_settings(&new)?;
        // The next round begins at once.
        *lock(&self.round_begun) = None;
        self.count_again();
        tracing::info!(?new, "settings of memory changed");
        Ok(new)
    }

    /// Changes what a VM is promised of the host's memory, and held to.
    pub fn change_terms(
        &self,
        vm: &str,
        request: &ChangeMemoryTerms,
    ) -> Result<VmMemory> {
        let _turn = lock(&self.terms_turn);
        self.machines.vm_record(vm)?;
        let new = changed(self.terms_of(vm)?, request);
        let host = sterna_os::memory::host().map_err(Error::unavailable)?;
        let promised = self.promised_to_others(vm)?;
        let size = self.size_of(vm);
        check(&new, request, size, host.total, promised)?;
        self.storage.store.set_memory_terms(vm, new)?;
        *lock(&self.round_begun) = None;
        self.waker.wake();
        tracing::info!(vm, ?new, "what a VM is promised of memory changed");
        self.show_vm_memory(vm)
    }

    /// What a VM is promised and held to.
    pub(crate) fn terms_of(&self, vm: &str) -> Result<MemoryTermsRecord> {
        let all = self.storage.store.memory_terms()?;
        let of_vm = all.into_iter().find(|(name, _)| name == vm);
        Ok(of_vm.map_or_else(MemoryTermsRecord::default, |it| it.1))
    }

    /// What is reserved for all other VMs, in bytes.
    fn promised_to_others(&self, vm: &str) -> Result<u64> {
        let all = self.storage.store.memory_terms()?;
        let others = all.iter().filter(|(name, _)| name != vm);
        Ok(others.map(|(_, terms)| terms.reservation).sum())
    }

    /// How much memory a VM has, in bytes, if it can be asked.
    fn size_of(&self, vm: &str) -> Option<u64> {
        let record = self.machines.vm_record(vm).ok()?;
        let (_, look) = self.machines.looks_at_memory(&[record]).pop()?;
        Some(look.ok()?.usage.memory)
    }
}

/// The terms with what was asked.
fn changed(old: MemoryTermsRecord, request: &ChangeMemoryTerms) -> MemoryTermsRecord {
    MemoryTermsRecord {
        reservation: request.reservation.unwrap_or(old.reservation),
        limit: match request.limit {
            None => old.limit,
            Some(0) => None,
            some => some,
        },
        shares: request.shares.unwrap_or(old.shares),
        balloon_max: request.balloon_max.or(old.balloon_max),
        wake_within_ms: match request.wake_within_s {
            None => old.wake_within_ms,
            Some(within) if within <= 0.0 => None,
            Some(within) => Some(((within * 1e3).round() as u64).max(1)),
        },
    }
}

/// Refuses what makes no sense or cannot be kept.
fn check(
    new: &MemoryTermsRecord,
    request: &ChangeMemoryTerms,
    size: Option<u64>,
    host: u64,
    promised: u64,
) -> Result<()> {
    let refuse = |message: String, hint: String| Err(Error::invalid(message).hint(hint));
    if *request == ChangeMemoryTerms::default() {
        return refuse(
            "nothing was said that is to change".into(),
            "give --reservation, --limit, --shares, --balloon-max or --wake-within"
                .into(),
        );
    }
    if !(1..=SHARES_MOST).contains(&new.shares) {
        return refuse(
            format!("{} is out of range for shares", new.shares),
            format!("give 1 to {SHARES_MOST}"),
        );
    }
    if request.wake_within_s.is_some_and(|it| !(0.0..=WAKE_WITHIN_MOST_S).contains(&it)) {
        return refuse(
            "this is out of range for the time of a wake".into(),
            format!("give {WAKE_WITHIN_MOST_S} s at most, or 0 for any time"),
        );
    }
    if let Some(limit) = new.limit.filter(|limit| *limit < new.reservation) {
        return refuse(
            format!(
                "the limit, {}, is below the reservation, {}",
                Bytes(limit),
                Bytes(new.reservation)
            ),
            "raise the limit, or lower the reservation".into(),
        );
    }
    for (what, value) in [
        ("a reservation", Some(new.reservation)),
        ("a balloon's maximum", new.balloon_max),
    ] {
        if let (Some(value), Some(size)) = (value, size)
            && value > size
        {
            return refuse(
                format!(
                    "{} is too much for {what}: the VM has {}",
                    Bytes(value),
                    Bytes(size)
                ),
                format!("give {} at most", Bytes(size)),
            );
        }
    }
    let left = host.saturating_sub(promised);
    if new.reservation > left {
        return refuse(
            format!(
                "{} cannot be reserved: the host has {}, and {} are reserved for other VMs",
                Bytes(new.reservation),
                Bytes(host),
                Bytes(promised)
            ),
            format!("reserve {} at most, or lower another reservation", Bytes(left)),
        );
    }
    Ok(())
}

/// The terms as people see them.
pub(crate) fn view(terms: &MemoryTermsRecord) -> MemoryTerms {
    MemoryTerms {
        reservation: terms.reservation,
        limit: terms.limit,
        shares: terms.shares,
        balloon_max: terms.balloon_max,
        wake_within_s: terms.wake_within_ms.map(|it| it as f64 / 1e3),
    }
}
