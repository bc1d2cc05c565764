//! The cooldown of VMs, which keeps them from being moved to and fro.
//!
//! **Hold.** Loads must have differed, or a host must have had too little, for some rounds
//! in a row before anything moves because of it: most of what is seen once is gone in the
//! next round. A rule that must hold waits for nothing.
//!
//! **Cooldown.** A VM that has moved stays for a while. If it moves again soon after
//! that, it stays twice as long, and so on: what looked like a good move each time was
//! none. So it is with one of which a move has failed: what was in the way is likely to
//! be in the way of the next one.
//!
//! **One writer.** A VM that is on another host than where it was put, or last seen, has
//! been moved by somebody else: a person, or another balancer. It is left alone for long
//! enough that two who balance do not move it in turns.

use std::collections::BTreeMap;

use super::inventory::Pinned;
use sterna_core::Nanos;

/// A VM moves again soon if less than so many times what it had to stay has passed. With
/// two, one that moves every now and then could do so four times an hour.
const SOON: u64 = 4;

/// A VM of which a move has failed stays for so long at least, however short the cooldown
/// is: what is tried again at once fails again.
const FAILED_LEAST: Nanos = Nanos::from_secs(60);

/// How many rounds DRS waits, and how long VMs stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CooldownSettings {
    /// For so many rounds in a row something must not be right.
    pub rounds: u32,
    /// A VM that has moved stays for so long.
    pub cooldown: Nanos,
    /// And at most for so long, however often it has.
    pub longest: Nanos,
    /// One that somebody else has moved is left alone for so long.
    pub foreign: Nanos,
}

impl Default for CooldownSettings {
    /// Three rounds; ten minutes to a day; an hour.
    fn default() -> CooldownSettings {
        CooldownSettings {
            rounds: 3,
            cooldown: Nanos::from_secs(600),
            longest: Nanos::from_secs(24 * 3600),
            foreign: Nanos::from_secs(3600),
        }
    }
}

/// What is known of a VM's moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmHistory {
    /// The host where it was put or seen last.
    pub host: String,
    /// When it was moved as recommended.
    pub moved: Option<Nanos>,
    /// How many times in a row soon after the last time.
    pub times: u32,
    /// When somebody else moved it.
    pub foreign: Option<Nanos>,
    /// When a move of it failed, if none has succeeded since.
    pub failed: Option<Nanos>,
}

/// What is known of all VMs' moves, and for how long something was not right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cooldowns {
    rounds: u32,
    histories: BTreeMap<String, VmHistory>,
}

impl Cooldowns {
    /// What is known of VMs.
    pub fn histories(&self) -> impl Iterator<Item = (&String, &VmHistory)> {
        self.histories.iter()
    }

    /// What is known of a VM.
    pub fn history(&self, vm: &str) -> Option<&VmHistory> {
        self.histories.get(vm)
    }

    /// It was known before, and is again.
    pub fn recall(&mut self, vm: String, known: VmHistory) {
        self.histories.insert(vm, known);
    }

    /// A VM is on a host. Says whether somebody else has moved it there.
    pub fn see(&mut self, now: Nanos, vm: &str, host: &str) -> bool {
        let new = || VmHistory {
            host: host.into(),
            moved: None,
            times: 0,
            foreign: None,
            failed: None,
        };
        let known = self.histories.entry(vm.to_owned()).or_insert_with(new);
        let is_foreign = known.host != host;
        if is_foreign {
            host.clone_into(&mut known.host);
            known.foreign = Some(now);
        }
        is_foreign
    }

    /// A VM has moved as it was recommended.
    pub fn moved(&mut self, now: Nanos, vm: &str, to: &str, hold: &CooldownSettings) {
        self.see(now, vm, to);
        let Some(known) = self.histories.get_mut(vm) else { return };
        let soon =
            |at: Nanos| now.since(at).0 < stays(known.times, hold).0.saturating_mul(SOON);
        known.times = if known.moved.is_some_and(soon) { known.times + 1 } else { 1 };
        known.moved = Some(now);
        (known.foreign, known.failed) = (None, None);
    }

    /// A move of a VM has failed: it is on the host where it was.
    pub fn failed(&mut self, now: Nanos, vm: &str, host: &str, hold: &CooldownSettings) {
        self.see(now, vm, host);
        let Some(known) = self.histories.get_mut(vm) else { return };
        let hold = at_least(hold);
        let soon = |at: Nanos| {
            now.since(at).0 < stays(known.times, &hold).0.saturating_mul(SOON)
        };
        let last = known.failed.max(known.moved);
        known.times = if last.is_some_and(soon) { known.times + 1 } else { 1 };
        known.failed = Some(now);
    }

    /// Forgets the VMs that are not among these.
    pub fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.histories.retain(|vm, _| is_there(vm));
    }

    /// A round is over in which something was not right, or all was.
    pub fn round(&mut self, not_right: bool) {
        self.rounds = if not_right { self.rounds.saturating_add(1) } else { 0 };
    }

    /// For how many rounds in a row something was not right.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Whether that is long enough.
    pub fn is_held(&self, hold: &CooldownSettings) -> bool {
        self.rounds >= hold.rounds
    }

    /// Why a VM stays for now, and until when.
    pub fn pinned(
        &self,
        now: Nanos,
        vm: &str,
        hold: &CooldownSettings,
    ) -> Option<(Pinned, Nanos)> {
        let known = self.histories.get(vm)?;
        let foreign = known.foreign.map(|at| (Pinned::Foreign, at.plus(hold.foreign)));
        let usual = stays(known.times, hold);
        let cooling = known.moved.map(|at| (Pinned::Cooling, at.plus(usual)));
        let failed = known
            .failed
            .map(|at| (Pinned::Failed, at.plus(stays(known.times, &at_least(hold)))));
        let mut all = [foreign, failed, cooling].into_iter().flatten();
        all.find(|(_, until)| now < *until)
    }
}

/// How long what is waited after a move that failed.
fn at_least(hold: &CooldownSettings) -> CooldownSettings {
    let least = |span: Nanos| span.max(FAILED_LEAST);
    CooldownSettings {
        cooldown: least(hold.cooldown),
        longest: least(hold.longest),
        ..*hold
    }
}

/// How long a VM stays that has moved so many times in a row.
fn stays(times: u32, hold: &CooldownSettings) -> Nanos {
    let doubled = 1_u64.checked_shl(times.saturating_sub(1)).unwrap_or(u64::MAX);
    Nanos(hold.cooldown.0.saturating_mul(doubled)).min(hold.longest)
}
