//! Everything that moves are chosen from, as `core` is told of it, and what its numbers
//! stand for.

use sterna_api::{PoolTerms, RuleKind};
use sterna_core::Nanos;
use sterna_placement::hosts::{
    Amounts, Bounds, Demand, Host, Inventory, Kind, Pinned, Pool, Rule, Terms, Vm,
};
use sterna_state::{Registry, RuleRecord, SeatRecord};

use super::State;

/// Everything, and the names of it.
#[derive(Debug)]
pub(super) struct DrsScene {
    pub(super) inventory: Inventory,
    pub(super) hosts: Vec<String>,
    pub(super) pools: Vec<String>,
    pub(super) vms: Vec<String>,
    /// Those that concern VMs of which it is known where they are.
    pub(super) rules: Vec<String>,
    /// Why each VM stays, if it does.
    pub(super) stays: Vec<Option<String>>,
}

/// The place of a name among others.
pub(super) fn at(names: &[String], name: &str) -> Option<usize> {
    names.iter().position(|one| one == name)
}

impl DrsScene {
    /// What there is, and what was seen of it.
    pub(super) fn of(registry: &Registry, state: &State, now: Nanos) -> DrsScene {
        let hosts: Vec<String> =
            registry.hosts.iter().map(|it| it.name.clone()).collect();
        let pools: Vec<String> =
            registry.pools.iter().map(|it| it.name.clone()).collect();
        let place = |name: &Option<String>, names: &[String]| at(names, name.as_ref()?);
        let (mut vms, mut told_vms, mut stays) = (Vec::new(), Vec::new(), Vec::new());
        for assignment in &registry.assignments {
            let seated =
                Seated { assignment, registry, state, now, hosts: &hosts, pools: &pools };
            let Some((vm, why)) = seated.judge() else { continue };
            told_vms.push(vm);
            stays.push(why);
            vms.push(assignment.vm.clone());
        }
        let known: Vec<(String, Rule)> =
            registry.rules.iter().filter_map(|it| rule(it, &vms, &hosts)).collect();
        let (rules, told) = known.into_iter().unzip();
        let pool = |it: &sterna_state::PoolRecord| Pool {
            parent: place(&it.parent, &pools),
            cpu: terms(&it.cpu),
            memory: terms(&it.memory),
        };
        let capacity = |it: &sterna_state::HostRecord| Host {
            capacity: Amounts { cpu: it.cpu, memory: it.memory as f64 },
        };
        let inventory = Inventory {
            hosts: registry.hosts.iter().map(capacity).collect(),
            pools: registry.pools.iter().map(pool).collect(),
            vms: told_vms,
            rules: told,
        };
        DrsScene { inventory, hosts, pools, vms, rules, stays }
    }
}

/// A VM of which it is to be said where it is and whether it stays.
struct Seated<'s> {
    assignment: &'s SeatRecord,
    registry: &'s Registry,
    state: &'s State,
    now: Nanos,
    hosts: &'s [String],
    pools: &'s [String],
}

impl Seated<'_> {
    /// The VM, and why it stays; nothing if it is not known where it is.
    fn judge(&self) -> Option<(Vm, Option<String>)> {
        let name = &self.assignment.vm;
        let going = self.registry.transfers.iter().find(|one| one.vm == *name);
        // One that is on its way counts for where it goes: so that asking twice does not
        // send two into the same room.
        let on = going.map(|one| &one.design.to).or(self.assignment.host.as_ref())?;
        let seen = self.state.seen.get(name);
        let problem = match seen {
            Some(seen) => seen.problem(),
            None => Some("the VM was not checked yet".into()),
        };
        let cooldowns = self.state.cooldowns.pinned(
            self.now,
            name,
            &self.registry.cooldown_settings(),
        );
        let stuck = seen.and_then(|seen| seen.unsendable());
        let nothing = Demand {
            mean: Amounts::default(),
            deviation: Amounts::default(),
            active: 1.0,
        };
        let vm = Vm {
            host: at(self.hosts, on)?,
            pool: self.assignment.pool.as_ref().and_then(|pool| at(self.pools, pool)),
            size: seen.map(|it| it.size()).unwrap_or_default(),
            cpu: Terms::default(),
            memory: self.state.terms.get(name).copied().unwrap_or_default(),
            demand: seen.map_or(nothing, |it| it.demand()),
            pinned: match (going, &problem, stuck) {
                (Some(_), ..) => Some(Pinned::Moving),
                (None, Some(_), _) => Some(Pinned::NotSeen),
                (None, None, Some(_)) => Some(Pinned::Unsendable),
                (None, None, None) => cooldowns.map(|(pinned, _)| pinned),
            },
        };
        let moves = going.map(|one| format!("already under way, by transfer {}", one.id));
        let rests = || cooldowns.map(|(why, until)| self.rests(why, until));
        Some((vm, moves.or(problem).or_else(|| stuck.cloned()).or_else(rests)))
    }

    /// Until when it stays, in words, and because of what.
    fn rests(&self, why: Pinned, until: Nanos) -> String {
        let text = waits(why, until.since(self.now).as_secs_f64());
        let failure = self.state.failures.get(&self.assignment.vm);
        match failure.filter(|_| why == Pinned::Failed) {
            Some(failure) => format!("{text}: {failure}"),
            None => text,
        }
    }
}

/// Until when a VM stays, in words.
fn waits(why: Pinned, left: f64) -> String {
    let minutes = (left / 60.0).ceil();
    match why {
        Pinned::NotSeen => "the VM was not checked yet".into(),
        Pinned::Moving => "already under way".into(),
        Pinned::Unsendable => "QEMU cannot send this VM".into(),
        Pinned::Failed => format!(
            "a VM migration has failed recently; the VM stays for {minutes} min more"
        ),
        Pinned::Cooling => {
            format!("the VM was migrated recently, and stays for {minutes} min more")
        }
        Pinned::Foreign => format!(
            "assigned to another host without a recommendation; DRS leaves it alone for \
             {minutes} min"
        ),
    }
}

fn terms(terms: &PoolTerms) -> Terms {
    Terms { reservation: terms.reservation, limit: terms.limit, shares: terms.shares }
}

/// A rule in numbers; nothing if too few of its VMs are on known hosts to say anything.
fn rule(one: &RuleRecord, vms: &[String], hosts: &[String]) -> Option<(String, Rule)> {
    let those = |names: &[String], all: &[String]| -> Vec<usize> {
        names.iter().filter_map(|name| at(all, name)).collect()
    };
    let members = those(&one.vms, vms);
    let kind = match one.kind {
        RuleKind::Affinity => Kind::Affinity,
        RuleKind::AntiAffinity => Kind::AntiAffinity,
        RuleKind::On => Kind::On(those(&one.hosts, hosts)),
        RuleKind::NotOn => Kind::NotOn(those(&one.hosts, hosts)),
    };
    (!members.is_empty())
        .then(|| (one.name.clone(), Rule { kind, vms: members, must: one.must }))
}

/// What is asked of moves.
pub(super) fn bounds(settings: &sterna_api::DrsSettings) -> Bounds {
    Bounds {
        threshold: settings.threshold,
        moves: usize::try_from(settings.moves).unwrap_or(usize::MAX),
        ..Bounds::default()
    }
}
