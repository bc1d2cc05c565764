//! A round: all VMs are looked at, and what should move.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sterna_api::Result;
use sterna_core::Nanos;
use sterna_os::{clock, lock};
use sterna_placement::hosts::{Advice, advise, waits};
use sterna_qemu::Usage;
use sterna_runtime::tasks::Task;
use sterna_state::Registry;

use super::State;
use super::scene::{DrsScene, bounds};
use crate::Planner;

/// How often it is looked whether a round is due: another span between rounds holds soon.
const TICK: Duration = Duration::from_millis(250);

/// Looks at VMs, round for round.
pub fn looking(planner: &Arc<Planner>) -> Task {
    let mut began: Option<Instant> = None;
    let look = move |planner: &Arc<Planner>| {
        let every = Duration::from_secs(lock(&planner.drs.state).round_s);
        if began.is_some_and(|began| began.elapsed() < every) {
            return Ok(());
        }
        began = Some(Instant::now());
        planner.look_round()
    };
    Task::every("drs", "check which VMs should migrate", TICK, planner, look)
}

/// The time, as moves are kept with it.
pub(super) fn now() -> Nanos {
    Nanos::from_secs(clock::now())
}

impl State {
    /// Takes over what is kept of VMs' moves, and forgets VMs that are gone.
    pub(super) fn settle(&mut self, registry: &Registry) {
        let trails = || {
            registry
                .assignments
                .iter()
                .filter_map(|it| Some((it.vm.as_str(), it.history.as_ref()?)))
        };
        let kept: HashSet<&str> = trails().map(|(vm, _)| vm).collect();
        self.cooldowns.keep(|vm| kept.contains(vm));
        trails().for_each(|(vm, history)| {
            self.cooldowns.recall(vm.to_owned(), history.known());
        });
        let placed: HashSet<&str> = registry
            .assignments
            .iter()
            .filter(|assignment| assignment.host.is_some())
            .map(|assignment| assignment.vm.as_str())
            .collect();
        self.seen.retain(|vm, _| placed.contains(vm.as_str()));
    }

    /// A VM was looked at: what it uses, and why it cannot be sent anywhere, if it
    /// cannot; or why it could not be asked.
    fn look(&mut self, vm: String, at: Instant, looked: Looked) {
        let seen = self.seen.entry(vm).or_default();
        match looked {
            Ok((usage, unsendable)) => {
                seen.look(at, usage);
                seen.keep(unsendable);
            }
            Err(problem) => seen.fail(problem),
        }
    }

    /// Ends a round: what should be done by all that was seen.
    fn judge(&mut self, registry: &Registry, now: Nanos) -> Judged {
        self.settle(registry);
        let (scene, advice) = self.advice(registry, now);
        self.cooldowns.round(advice.moves.iter().any(|one| waits(one.goal)));
        let held = self.cooldowns.is_held(&registry.cooldown_settings());
        self.round_s = registry.settings.round_s;
        Judged { scene, advice, held }
    }

    /// What there is, and what should be done.
    pub(super) fn advice(&self, registry: &Registry, now: Nanos) -> (DrsScene, Advice) {
        let scene = DrsScene::of(registry, self, now);
        let advice = advise(&scene.inventory, &bounds(&registry.settings));
        (scene, advice)
    }
}

/// What was seen of a VM in a round.
type Looked = std::result::Result<(Usage, Option<String>), String>;

/// What a round came to.
struct Judged {
    scene: DrsScene,
    advice: Advice,
    /// Whether moves that can wait have been recommended for long enough.
    held: bool,
}

/// How long what somebody was told to move counts as recommended: as long as a VM is left
/// alone that moves where nothing recommended that.
const TOLD: Nanos = Nanos::from_secs(3600);

impl State {
    /// Somebody was told to move these.
    pub(super) fn tell(&mut self, scene: &DrsScene, advice: &Advice) {
        let went =
            |vm: usize, to: usize| (scene.vms[vm].clone(), scene.hosts[to].clone());
        for one in &advice.moves {
            self.told.insert(went(one.vm, one.to), now());
            if let Some(back) = one.back {
                self.told.insert(went(back, one.from), now());
            }
        }
    }

    /// Whether somebody was told, not long ago, to move a VM to a host. That holds for
    /// one move.
    pub(super) fn was_told(&mut self, vm: &str, host: &str) -> bool {
        let now = now();
        self.told.retain(|_, at| now.since(*at) < TOLD);
        let told = self.told.keys().any(|(one, to)| one == vm && to == host);
        self.told.retain(|(one, _), _| one != vm);
        told
    }
}

impl Planner {
    fn look_round(&self) -> Result<()> {
        let registry = self.drs.ledger.read()?;
        let on_a_host = |vm: &str| {
            registry
                .assignments
                .iter()
                .any(|assignment| assignment.vm == vm && assignment.host.is_some())
        };
        let mut records = self.storage.store.vms()?;
        records.retain(|vm| on_a_host(&vm.name));
        let usages = self.machines.usages(&records);
        let terms = self.storage.store.memory_terms()?;
        let at = Instant::now();
        let judged = usages.into_iter().map(|(vm, looked)| {
            let judge = |(usage, facts)| (usage, self.machines.unsendable(&vm, &facts));
            let looked = looked.map(judge);
            (vm, looked)
        });
        let judged: Vec<_> = judged.collect();
        let mut state = lock(&self.drs.state);
        state.settle(&registry);
        state.terms = terms.into_iter().map(|(vm, it)| (vm, it.into())).collect();
        judged.into_iter().for_each(|(vm, looked)| state.look(vm, at, looked));
        // VMs may have moved while they were asked.
        let registry = self.drs.ledger.read()?;
        state.looked = Some(clock::now());
        let Judged { scene, advice, held } = state.judge(&registry, now());
        drop(state);
        self.act_on(&registry, &scene, &advice, held)
    }
}

#[cfg(test)]
mod tests;
