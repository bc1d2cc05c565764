//! What machines ask for, and what they are entitled to of it.
//!
//! It does not depend on where machines are: so it is the same with DRS and without, and
//! reckoned once for both. Chance is drawn for all machines each minute, running or not.
//!
//! A machine that does not run is entitled to what it would ask for: what it misses counts.

use sterna_core::Nanos;
use sterna_placement::hosts::{Amounts, Demand, Host, Inventory, Terms, Vm, entitled};
use sterna_workload::random::Random;

use super::scenario::Scenario;
use crate::dice::part;

/// A number that is as likely anywhere from -1 to 1 has one over the root of three as its
/// standard deviation.
const SPREAD: f64 = 1.732_050_807_568_877_2;

/// What machines ask for at a time.
pub(super) struct Load<'s> {
    scenario: &'s Scenario,
    random: Random,
    /// What each asks for.
    pub(super) asked: Vec<Amounts>,
    /// What each is entitled to.
    pub(super) entitled: Vec<Amounts>,
    /// What `core` is told of it.
    inventory: Inventory,
}

impl<'s> Load<'s> {
    pub(super) fn new(scenario: &'s Scenario) -> Load<'s> {
        let vm = |vm: usize| {
            let it = &scenario.vms[vm];
            told(scenario.profile(vm).size, it.host, it.pool, Amounts::default())
        };
        let vms: Vec<Vm> = (0..scenario.vms.len()).map(vm).collect();
        Load {
            scenario,
            random: Random::new(scenario.seed),
            asked: vec![Amounts::default(); vms.len()],
            entitled: vec![Amounts::default(); vms.len()],
            inventory: Inventory {
                vms,
                pools: scenario.pools.clone(),
                ..Inventory::default()
            },
        }
    }

    /// A minute begins: machines ask for what they do then.
    pub(super) fn minute(&mut self, now: Nanos) {
        let scenario = self.scenario;
        let moment = scenario.moment(now);
        let levels: Vec<f64> =
            scenario.profiles.iter().map(|it| it.shape.level(moment)).collect();
        for (at, vm) in scenario.vms.iter().enumerate() {
            let (profile, level) = (&scenario.profiles[vm.profile], levels[vm.profile]);
            let chance = SPREAD * (2.0 * part(&mut self.random) - 1.0);
            let cpu = profile.demand.cpu * level * (1.0 + profile.varies * chance);
            let held = profile.keeps + (1.0 - profile.keeps) * level;
            let memory = profile.demand.memory * held;
            self.asked[at] = Amounts { cpu: cpu.clamp(0.0, profile.size.cpu), memory };
            self.inventory.vms[at].demand.mean = self.asked[at];
        }
    }

    /// What they are entitled to of the hosts that there are now.
    pub(super) fn entitle(&mut self, up: &[bool]) {
        let hosts = self.scenario.hosts.iter().zip(up).filter(|(_, up)| **up);
        self.inventory.hosts =
            hosts.map(|(host, _)| Host { capacity: host.capacity }).collect();
        self.entitled = entitled(&self.inventory);
    }
}

/// A machine as `core` is told of it, with what it asks for.
pub(super) fn told(size: Amounts, host: usize, pool: Option<usize>, mean: Amounts) -> Vm {
    Vm {
        host,
        pool,
        size,
        cpu: Terms::default(),
        memory: Terms::default(),
        demand: Demand { mean, deviation: Amounts::default(), active: 1.0 },
        pinned: None,
    }
}
