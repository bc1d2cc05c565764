//! What DRS sees and advises, as the API shows it, and why, in words.

use sterna_api::{
    DrsAdvice, DrsExplanation, DrsGoal, DrsMove, DrsStatus, Error, HostVerdict, JudgedVm,
    MoveWorth, Result, StayingVm,
};
use sterna_core::{Nanos, Percent};
use sterna_os::lock;
use sterna_placement::hosts::{
    self, Amounts, Because, Goal, Inventory, Recommended, Refused, Resource, Worth,
    entitled, explain, imbalance, score, waits,
};
use sterna_state::Registry;

use super::State;
use super::hosts::view_hosts;
use super::rules::holds;
use super::scene::{DrsScene, at, bounds};
use crate::Planner;

/// In the API's form.
pub(super) fn amounts(it: Amounts) -> sterna_api::Amounts {
    sterna_api::Amounts { cpu: it.cpu, memory: it.memory }
}

fn differ(it: hosts::Imbalance) -> sterna_api::Imbalance {
    let hosts::Imbalance { deviation, of, variation } = it;
    sterna_api::Imbalance { deviation, of: amounts(of), variation }
}

fn worth(it: Worth) -> MoveWorth {
    let Worth { benefit, cost, risk, seconds } = it;
    MoveWorth { benefit, cost, risk, seconds }
}

fn goal(it: Goal) -> DrsGoal {
    match it {
        Goal::Must(_) => DrsGoal::Must,
        Goal::Relieve(Resource::Memory) => DrsGoal::Memory,
        Goal::Relieve(Resource::Cpu) => DrsGoal::Cpu,
        Goal::Should(_) => DrsGoal::Should,
        Goal::Even => DrsGoal::Even,
    }
}

/// The hosts' loads.
pub(super) fn loads(inventory: &Inventory) -> Vec<Amounts> {
    let mut sums = vec![Amounts::default(); inventory.hosts.len()];
    for (vm, given) in inventory.vms.iter().zip(entitled(inventory)) {
        sums[vm.host] = sums[vm.host].plus(given);
    }
    sums.iter().zip(&inventory.hosts).map(|(sum, host)| sum.over(host.capacity)).collect()
}

impl DrsScene {
    fn imbalance(&self) -> sterna_api::Imbalance {
        let hosts = &self.inventory.hosts;
        let capacities: Vec<Amounts> = hosts.iter().map(|host| host.capacity).collect();
        differ(imbalance(&loads(&self.inventory), &capacities))
    }

    fn judged(&self) -> Vec<JudgedVm> {
        let (given, loads) = (entitled(&self.inventory), loads(&self.inventory));
        let judge = |(at, name): (usize, &String)| {
            let vm = &self.inventory.vms[at];
            let score = score(vm, given[at], loads[vm.host]);
            let unseen = vm.pinned == Some(hosts::Pinned::NotSeen);
            JudgedVm {
                vm: name.clone(),
                host: self.hosts[vm.host].clone(),
                pool: vm.pool.map(|pool| self.pools[pool].clone()),
                size: amounts(vm.size),
                demand: amounts(vm.demand.mean),
                entitled: amounts(given[at]),
                score: (!unseen).then_some(score),
                stays: self.stays[at].clone(),
            }
        };
        self.vms.iter().enumerate().map(judge).collect()
    }

    /// What a move is for, in words.
    pub(super) fn aim(&self, goal: Goal, host: usize) -> String {
        let host = &self.hosts[host];
        match goal {
            Goal::Must(rule) => {
                format!("rule {} must hold, but is violated", self.rules[rule])
            }
            Goal::Should(rule) => {
                format!("rule {} should hold, but is violated", self.rules[rule])
            }
            Goal::Relieve(resource) => {
                format!("{host} has too little {} for its VMs", word(resource))
            }
            Goal::Even => "the hosts' loads differ".into(),
        }
    }

    fn moved(&self, one: &Recommended, held: bool) -> DrsMove {
        let both = [Some(one.vm), one.back].into_iter().flatten();
        let bytes: f64 = both.map(|vm| self.inventory.vms[vm].demand.mean.memory).sum();
        DrsMove {
            vm: self.vms[one.vm].clone(),
            from: self.hosts[one.from].clone(),
            to: self.hosts[one.to].clone(),
            back: one.back.map(|back| self.vms[back].clone()),
            goal: goal(one.goal),
            reason: self.aim(one.goal, one.from),
            priority: one.priority,
            held: held || !waits(one.goal),
            bytes: bytes.max(0.0) as u64,
            worth: worth(one.worth),
            source: one.loads.map(|loads| amounts(loads[0])),
            destination: one.loads.map(|loads| amounts(loads[1])),
            imbalance: one.imbalance.map(differ),
        }
    }

    fn staying(&self, one: &Refused) -> StayingVm {
        let to = one.to.map(|to| self.hosts[to].clone());
        StayingVm {
            vm: self.vms[one.vm].clone(),
            host: self.hosts[self.inventory.vms[one.vm].host].clone(),
            goal: goal(one.goal),
            reason: self.reason(one.vm, one.because, to.as_deref()),
            to,
        }
    }

    /// Why a VM does not go to a host, in words.
    fn reason(&self, vm: usize, because: Because, to: Option<&str>) -> String {
        let to = to.unwrap_or("another host");
        match because {
            Because::Pinned(_) => {
                let stays = self.stays[vm].clone();
                stays.unwrap_or_else(|| "the VM that would come back stays".into())
            }
            Because::Here => "there is no other host".into(),
            Because::Rule(rule) => {
                format!("at {to} rule {} would be violated", self.rules[rule])
            }
            Because::Reserved(resource) => {
                format!("at {to} more {} would be reserved than {to} has", word(resource))
            }
            Because::Full(resource, part) => format!(
                "{to} would have too little {}: {} of what it has",
                word(resource),
                Percent(part)
            ),
            Because::Idle => "its load is too small to matter".into(),
            Because::NoGain => {
                format!("with the VM at {to}, the loads would differ as much or more")
            }
            Because::Little(part) => format!(
                "the move to {to} would remove only {:.1}% of the imbalance",
                part * 100.0
            ),
            Because::Dear(worth) => format!(
                "the copy to {to} would cost more than the move brings: {:.1} against \
                 {:.1}",
                worth.cost, worth.benefit
            ),
            Because::Risky(worth) => format!(
                "the VM's demand varies so much that a move to {to} could cost more \
                 than it brings: {:.1} less {:.1}, against {:.1}",
                worth.benefit, worth.risk, worth.cost
            ),
            Because::NothingWrong => "there is no problem within the threshold".into(),
        }
    }
}

fn word(resource: Resource) -> &'static str {
    match resource {
        Resource::Cpu => "processor time",
        Resource::Memory => "memory",
    }
}

impl Planner {
    /// What is known of DRS, under its lock.
    pub(super) fn with_drs<T>(
        &self,
        work: impl FnOnce(&Registry, &mut State) -> T,
    ) -> Result<T> {
        let registry = self.drs.ledger.read()?;
        let mut state = lock(&self.drs.state);
        state.settle(&registry);
        Ok(work(&registry, &mut state))
    }

    /// Everything that DRS sees.
    pub fn drs_status(&self) -> Result<DrsStatus> {
        let vms = self.vm_names()?;
        self.with_drs(|registry, state| {
            let scene = DrsScene::of(registry, state, super::round::now());
            let broken = registry.rules.iter().filter(|rule| !holds(registry, rule));
            let elsewhere = vms.into_iter().filter(|vm| at(&scene.vms, vm).is_none());
            DrsStatus {
                settings: registry.settings,
                imbalance: scene.imbalance(),
                hosts: view_hosts(registry, &scene),
                vms: scene.judged(),
                elsewhere: elsewhere.collect(),
                broken: broken.map(|rule| rule.name.clone()).collect(),
                rounds: state.cooldowns.rounds(),
                looked: state.looked,
            }
        })
    }

    /// What should move, and why the rest should not.
    pub fn drs_advice(&self) -> Result<DrsAdvice> {
        self.with_drs(|registry, state| {
            let (scene, advice) = state.advice(registry, super::round::now());
            state.tell(&scene, &advice);
            let held = state.cooldowns.is_held(&registry.cooldown_settings());
            DrsAdvice {
                settings: registry.settings,
                imbalance: scene.imbalance(),
                rounds: state.cooldowns.rounds(),
                moves: advice.moves.iter().map(|one| scene.moved(one, held)).collect(),
                staying: advice.refused.iter().map(|one| scene.staying(one)).collect(),
            }
        })
    }

    /// Why a VM is where it is.
    pub fn explain_vm(&self, vm: &str) -> Result<DrsExplanation> {
        self.machines.vm_record(vm)?;
        let explained = self.with_drs(|registry, state| {
            let (scene, advice) = state.advice(registry, super::round::now());
            let at = at(&scene.vms, vm)?;
            let bounds = bounds(&registry.settings);
            let (aim, verdicts) = explain(&scene.inventory, &bounds, at);
            let held = state.cooldowns.is_held(&registry.cooldown_settings());
            let mut moves = advice.moves.iter();
            let mine = moves.find(|one| one.vm == at || one.back == Some(at));
            let verdict = |(host, verdict): (&String, &Result<Worth, Because>)| {
                let may = verdict.is_ok();
                let reason = match verdict {
                    Ok(worth) => format!(
                        "possible: brings {:.1}, costs {:.1}; the copy takes about {}",
                        worth.benefit,
                        worth.cost,
                        Nanos((worth.seconds * 1e9) as u64)
                    ),
                    Err(Because::Here) => "the VM is there".into(),
                    Err(because) => scene.reason(at, *because, Some(host)),
                };
                HostVerdict { host: host.clone(), may, reason }
            };
            Some(DrsExplanation {
                vm: scene.judged().swap_remove(at),
                goal: goal(aim),
                recommended: mine.map(|one| scene.moved(one, held)),
                hosts: scene.hosts.iter().zip(&verdicts).map(verdict).collect(),
            })
        })?;
        explained.ok_or_else(|| {
            let message = format!("the host of VM {vm} is unknown");
            Error::invalid(message)
                .hint(format!("record the host: `sterna host assign HOST {vm}`"))
        })
    }
}
