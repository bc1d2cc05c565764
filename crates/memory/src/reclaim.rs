//! A host that runs short of memory takes it from its VMs, and gives it back.
//!
//! Each round looks at the host and at all VMs, has `core::memory` decide what each gives, and does
//! of that what the settings allow. A round is due every few seconds, while somebody has said that
//! Sterna is to do something, or while a balloon has something.
//!
//! `balloons` has what is recorded of them, and asks them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sterna_api::{MemoryAutomation, Result};
use sterna_core::memory::{Host, HostState, TAKE_LEAST, reclaim, reserve};
use sterna_os::lock;
use sterna_runtime::threads;
use sterna_state::MemoryTermsRecord;

use crate::Memory;
use crate::balloons::Ask;
use crate::standing::Found;
use crate::tiers::room;

/// How often it is looked while the host has its reserve and no balloon has anything.
const CALM: Duration = Duration::from_secs(10);

/// How often it is looked while it is not so: a guest that runs short is not to wait.
const PRESSED: Duration = Duration::from_secs(2);

/// What was found this long ago is not looked at anew for somebody who asks.
const FRESH: Duration = Duration::from_secs(2);

impl Memory {
    /// Begins a round if it is due, on a thread of its own: a VM that hangs must not keep others
    /// from waking.
    pub(crate) fn begin_round(self: &Arc<Self>) -> Result<()> {
        let every = {
            let standing = lock(&self.standing);
            let is_calm = standing.state == HostState::High && !standing.has_taken();
            if is_calm { CALM } else { PRESSED }
        };
        {
            let mut begun = lock(&self.round_begun);
            if begun.is_some_and(|at| at.elapsed() < every) {
                return Ok(());
            }
            *begun = Some(Instant::now());
        }
        let store = &self.storage.store;
        let is_manual = store.memory_settings()?.automation == MemoryAutomation::Manual;
        if is_manual && self.recorded_balloons()?.is_empty() {
            return Ok(());
        }
        let memory = self.clone();
        threads::start("sterna-reclaim".into(), move || {
            // One at a time: whoever asks at this moment has it looked as well.
            let Ok(_turn) = memory.round.try_lock() else { return };
            if let Err(error) = memory.look_at_host().and_then(|()| memory.act()) {
                tracing::warn!(%error, "how short of memory the host is cannot be seen");
            }
        })
    }

    /// Looks at the host and all VMs, unless that was done just now.
    pub(crate) fn look_if_old(&self) -> Result<()> {
        let _turn = lock(&self.round);
        let is_fresh = |found: &Found| found.at.elapsed() < FRESH;
        if lock(&self.standing).found.as_ref().is_some_and(is_fresh) {
            return Ok(());
        }
        self.look_at_host()
    }

    /// What the host is to keep available, in bytes.
    pub(crate) fn reserve(&self, total: u64) -> Result<u64> {
        let settings = self.storage.store.memory_settings()?;
        Ok(settings.reserve.unwrap_or_else(|| reserve(total)))
    }

    /// Looks, and finds what each VM gets and gives.
    fn look_at_host(&self) -> Result<()> {
        let records = self.storage.store.vms()?;
        let looks = self.machines.looks_at_memory(&records);
        let host = self.host()?;
        let reserve = self.reserve(host.total)?;
        let all_terms = self.storage.store.memory_terms()?;
        let is_known = |vm: &str| records.iter().any(|record| record.name == vm);
        self.forget_balloons_but(is_known);
        let balloons = self.recorded_balloons()?;
        let asleep = self.storage.store.asleep_vms()?;
        let has_room = room(&self.tiers()?, self.going_out()) >= TAKE_LEAST;
        let terms_of = |vm: &str| {
            let one = all_terms.iter().find(|(name, _)| name == vm);
            one.map_or_else(MemoryTermsRecord::default, |it| it.1)
        };
        let mut gone = Vec::new();
        let mut standing = lock(&self.standing);
        let now = standing.now();
        standing.forget_but(is_known);
        let mut vms = Vec::new();
        for (record, look) in looks {
            let vm = record.name.clone();
            let terms = terms_of(&vm);
            let recorded = balloons.get(&vm).copied().unwrap_or(0);
            let stays = standing.stays(&vm);
            let began = standing.began();
            let known = standing.known.entry(vm.clone()).or_default();
            match look {
                Ok(look) => known.see(began, look, &terms, recorded),
                Err(error) => known.fail(error.to_string()),
            }
            if recorded > 0 && known.has_no_balloon() {
                gone.push(vm.clone());
            }
            let work = self.work_of(&vm);
            let sleeps = asleep.contains(&vm) && work.is_none();
            let can_sleep = has_room && work.is_none() && !stays;
            vms.extend(
                known.holds(now, &terms, sleeps, can_sleep).map(|it| (record, it)),
            );
        }
        let available = host.available;
        standing.state = standing.state.next(reserve, available);
        let asked = Host { reserve, available, going: self.going_out() };
        let holds: Vec<_> = vms.iter().map(|(_, holds)| *holds).collect();
        let reclaim = reclaim(standing.state, asked, &holds);
        standing.found = Some(Found { at: Instant::now(), available, vms, reclaim });
        drop(standing);
        for vm in gone {
            // The VM was started anew without one.
            if let Err(error) = self.record_balloon(&vm, 0) {
                tracing::warn!(vm, %error, "that a VM has no balloon is not recorded");
            }
        }
        Ok(())
    }

    /// Does what was found, as far as the settings allow.
    fn act(self: &Arc<Self>) -> Result<()> {
        let automation = self.storage.store.memory_settings()?.automation;
        let Some(found) = lock(&self.standing).found.clone() else { return Ok(()) };
        self.act_by_balloons(&found, automation)?;
        if automation == MemoryAutomation::Full {
            self.act_by_swap(&found)?;
        }
        Ok(())
    }

    fn act_by_balloons(&self, found: &Found, automation: MemoryAutomation) -> Result<()> {
        let Some(_turn) = self.balloons.turn() else { return Ok(()) };
        let recorded = self.recorded_balloons()?;
        // One that was removed meanwhile, and another one added by its name, is another VM.
        let still = self.storage.store.vms()?;
        let mut asked = Vec::new();
        for ((vm, _), due) in found.vms.iter().zip(&found.reclaim.vms) {
            if !still.contains(vm) {
                continue;
            }
            let wanted = match automation {
                MemoryAutomation::Manual => 0,
                _ if self.work_of(&vm.name).is_some() => 0,
                _ => due.balloon,
            };
            let mut standing = lock(&self.standing);
            let now = standing.now();
            let Some(known) = standing.known.get_mut(&vm.name) else { continue };
            let (before, says) = (known.taken(), known.says);
            let Some(balloon) = &mut known.balloon else { continue };
            let recorded = recorded.get(&vm.name).copied().unwrap_or(0);
            let (before, taken) = match balloon.step(now, says, wanted) {
                Some(taken) => (before.max(recorded), taken),
                // What was asked of an earlier QEMU of this VM, or by a daemon that was killed.
                None if before == 0 && recorded > 0 => (recorded, 0),
                None => continue,
            };
            asked.push(Ask { vm: vm.clone(), before, taken });
        }
        if !asked.is_empty() {
            self.ask_balloons(asked);
        }
        Ok(())
    }

    fn act_by_swap(self: &Arc<Self>, found: &Found) -> Result<()> {
        let dues = found.vms.iter().zip(&found.reclaim.vms);
        for ((vm, _), due) in dues.filter(|(_, due)| due.out > 0) {
            let out = due.out.min(room(&self.tiers()?, self.going_out()));
            if out < TAKE_LEAST {
                continue;
            }
            let vm = &vm.name;
            tracing::info!(
                vm,
                bytes = out,
                "the host is short: an idle VM goes to sleep"
            );
            if let Err(error) = self.begin_sleep(vm, false, Some(out)) {
                tracing::warn!(vm, %error, "an idle VM cannot go to sleep");
                lock(&self.standing).keep_awake(vm);
            }
        }
        Ok(())
    }
}
