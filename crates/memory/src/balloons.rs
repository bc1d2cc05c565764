//! What balloons are asked for, and what of that is recorded.
//!
//! **Rule.** What is recorded is never less than what a balloon may have. More is recorded before
//! QEMU is asked for it, and less after QEMU was: so a daemon that is killed leaves no balloon that
//! the next one does not know of, and a state directory that is full or hangs keeps nothing from a
//! guest that is to have its memory back.
//!
//! **Turns.** A round holds the turn while it decides, records and asks, and so does a release: so
//! a round takes nothing that a wake has just given back. A daemon that stops takes nothing any
//! more.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use sterna_api::{Error, Result};
use sterna_core::memory::Balloon;
use sterna_os::lock;
use sterna_state::VmRecord;

use crate::Memory;

/// How long the daemon waits at its end for balloons to be told to give back what they have.
pub const RELEASES_WITHIN: Duration = Duration::from_secs(2);

/// For how much of that the turn is waited for: somebody may wait for a QEMU that hangs.
const TURN_WITHIN: Duration = Duration::from_millis(500);
const TURN_AGAIN: Duration = Duration::from_millis(10);

/// Balloons that have something on Sterna's word.
#[derive(Default)]
pub(crate) struct Balloons {
    turn: Mutex<()>,
    ended: AtomicBool,
    /// What is recorded of each, in bytes, by the name of its VM; nothing before that was read.
    recorded: Mutex<Option<BTreeMap<String, u64>>>,
}

/// What a balloon is to be asked for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// The VM, as it was when that was decided.
    pub(crate) vm: VmRecord,
    /// What it may have until then, in bytes.
    pub(crate) before: u64,
    /// What it is to have, in bytes.
    pub(crate) taken: u64,
}

impl Balloons {
    /// The turn of whoever takes memory; nothing once the daemon stops.
    pub(crate) fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let turn = lock(&self.turn);
        (!self.ended.load(SeqCst)).then_some(turn)
    }

    /// The turn, if it is to be had in this time.
    fn turn_within(&self, time: Duration) -> Option<MutexGuard<'_, ()>> {
        let began = Instant::now();
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
                Err(_) if began.elapsed() >= time => return None,
                Err(_) => std::thread::sleep(TURN_AGAIN),
            }
        }
    }
}

impl Memory {
    /// What is recorded of balloons, in bytes, by the names of their VMs.
    pub(crate) fn recorded_balloons(&self) -> Result<BTreeMap<String, u64>> {
        if let Some(known) = &*lock(&self.balloons.recorded) {
            return Ok(known.clone());
        }
        let read: BTreeMap<String, u64> =
            self.storage.store.balloons()?.into_iter().collect();
        Ok(lock(&self.balloons.recorded).get_or_insert(read).clone())
    }

    /// Whether balloons have something on Sterna's word, as far as this daemon knows.
    pub fn has_balloons(&self) -> bool {
        lock(&self.balloons.recorded).as_ref().is_some_and(|all| !all.is_empty())
    }

    /// Records what a balloon may have.
    pub(crate) fn record_balloon(&self, vm: &str, taken: u64) -> Result<()> {
        self.storage.store.set_balloon(vm, taken)?;
        if let Some(known) = &mut *lock(&self.balloons.recorded) {
            match taken {
                0 => known.remove(vm),
                taken => known.insert(vm.to_owned(), taken),
            };
        }
        Ok(())
    }

    /// Forgets what is recorded of VMs but of those of such a name.
    pub(crate) fn forget_balloons_but(&self, is_one: impl Fn(&str) -> bool) {
        if let Some(known) = &mut *lock(&self.balloons.recorded) {
            known.retain(|vm, _| is_one(vm));
        }
    }

    /// Has balloons take or give: those that give first, so that nothing keeps memory from a guest
    /// that needs it. Each VM is on its own; gives those of which it is not known whether they were
    /// asked, and why.
    pub(crate) fn ask_balloons(&self, all: Vec<Ask>) -> Vec<(String, Error)> {
        let (take, give): (Vec<Ask>, Vec<Ask>) =
            all.into_iter().partition(|ask| ask.taken > ask.before);
        let mut failed = self.tell_balloons(&give, true);
        let is_recorded = |ask: &Ask| {
            let recorded = self.record_balloon(&ask.vm.name, ask.taken);
            if let Err(error) = &recorded {
                let vm = &ask.vm.name;
                tracing::warn!(vm, %error, "a balloon takes nothing: it cannot be recorded");
                self.balloon_of(vm, |balloon| balloon.has_only(ask.before));
            }
            recorded.is_ok()
        };
        let take: Vec<Ask> = take.into_iter().filter(is_recorded).collect();
        failed.extend(self.tell_balloons(&take, false));
        failed
    }

    /// Tells QEMUs what their balloons are to have, and records it afterwards if that is wanted.
    fn tell_balloons(&self, asked: &[Ask], records: bool) -> Vec<(String, Error)> {
        let amounts: Vec<(VmRecord, u64)> =
            asked.iter().map(|ask| (ask.vm.clone(), ask.taken)).collect();
        let mut failed = Vec::new();
        for (vm, set) in self.machines.set_balloons(&amounts) {
            let Some(ask) = asked.iter().find(|ask| ask.vm.name == vm) else { continue };
            let (before, taken) = (ask.before, ask.taken);
            match set {
                Ok(()) => {
                    tracing::info!(vm, before, taken, "a balloon was asked for memory");
                    if records && let Err(error) = self.record_balloon(&vm, taken) {
                        tracing::warn!(vm, %error, "that a balloon has less is not recorded");
                    }
                }
                Err(error) => {
                    // It is not known whether it was asked: what is recorded counts.
                    if let Some(known) = lock(&self.standing).known.get_mut(&vm) {
                        known.balloon = None;
                    }
                    tracing::warn!(vm, %error, "a balloon could not be asked");
                    failed.push((vm, error));
                }
            }
        }
        failed
    }

    /// Gives a VM back all that its balloon may have.
    pub(crate) fn release_balloon(&self, vm: &str) -> Result<()> {
        let may_have = || -> Result<u64> {
            let recorded = self.recorded_balloons()?.get(vm).copied().unwrap_or(0);
            let mut taken = 0;
            self.balloon_of(vm, |balloon| taken = balloon.taken());
            Ok(recorded.max(taken))
        };
        // Nobody waits for others' turns who has nothing to get back.
        if may_have()? == 0 {
            return Ok(());
        }
        let _turn = lock(&self.balloons.turn);
        let before = may_have()?;
        self.balloon_of(vm, |balloon| {
            balloon.release();
        });
        let ask = Ask { vm: self.machines.vm_record(vm)?, before, taken: 0 };
        match self.ask_balloons(vec![ask]).pop() {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// Gives all back that balloons may have, and takes nothing any more: the daemon ends. If the
    /// state directory hangs, it hangs as well: then the next daemon gives it back.
    pub fn release_balloons(&self) {
        self.balloons.ended.store(true, SeqCst);
        let turn = self.balloons.turn_within(TURN_WITHIN);
        let all = lock(&self.balloons.recorded).clone().unwrap_or_default();
        let records = match self.storage.store.vms() {
            Ok(records) => records,
            Err(error) => {
                tracing::warn!(%error, "which VMs there are is not known: balloons stay");
                return;
            }
        };
        let release = |vm: VmRecord| {
            let before = *all.get(&vm.name)?;
            Some(Ask { vm, before, taken: 0 })
        };
        let all: Vec<Ask> = records.into_iter().filter_map(release).collect();
        // Somebody who has the turn may be asking one of them for memory at this moment: what is
        // recorded stays then, and the next daemon gives it back.
        self.tell_balloons(&all, turn.is_some());
    }

    /// Changes what is known of a VM's balloon, if anything is.
    fn balloon_of(&self, vm: &str, change: impl FnOnce(&mut Balloon)) {
        let mut standing = lock(&self.standing);
        let known = standing.known.get_mut(vm).and_then(|known| known.balloon.as_mut());
        if let Some(balloon) = known {
            change(balloon);
        }
    }
}
