//! Where every VM would be, and which moves would do good there and no harm.

use super::Goal;
use super::amounts::{Amounts, Resource};
use super::bounds::Bounds;
use super::entitle::entitled;
use super::imbalance::{Imbalance, imbalance};
use super::inventory::Inventory;
use super::step::{Because, Step, Worth, gap, pays};

/// What a move costs besides its memory, in bytes: connections, and the last moment.
const LEAST_BYTES: f64 = (64 << 20) as f64;

/// A VM that is entitled to no more of its host's capacity does not matter there.
const IDLE_PART: f64 = 1e-4;

/// A load is within a host if it is no more than this above 1: floats are not exact.
const ROUNDING: f64 = 1e-9;

/// A move that may be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Possible {
    pub(super) vm: usize,
    pub(super) to: usize,
    /// The VM that comes back in its place.
    pub(super) back: Option<usize>,
    /// What it brings for each byte that it copies.
    pub(super) per_byte: f64,
    /// What it brings: it tells apart what is worth the same.
    pub(super) brings: f64,
    pub(super) worth: Worth,
}

/// Hosts and VMs, with moves that were made in thought.
#[derive(Clone, Debug)]
pub(super) struct World<'i> {
    pub(super) inventory: &'i Inventory,
    pub(super) entitled: Vec<Amounts>,
    /// What all hosts have.
    all: Amounts,
    /// What the VMs on each host are entitled to.
    sums: Vec<Amounts>,
    /// What is reserved for them.
    reserved: Vec<Amounts>,
    /// Where each VM is.
    pub(super) at: Vec<usize>,
    /// The VMs on each host, but for those that have moved in thought: these move no
    /// more.
    pub(super) on: Vec<Vec<usize>>,
    /// The rules that speak of each VM.
    pub(super) rules: Vec<Vec<usize>>,
}

impl<'i> World<'i> {
    /// As it is.
    pub(super) fn of(inventory: &'i Inventory) -> World<'i> {
        let hosts = inventory.hosts.len();
        let mut world = World {
            inventory,
            entitled: entitled(inventory),
            all: Amounts::sum(inventory.hosts.iter().map(|host| host.capacity)),
            sums: vec![Amounts::default(); hosts],
            reserved: vec![Amounts::default(); hosts],
            at: inventory.vms.iter().map(|vm| vm.host).collect(),
            on: vec![Vec::new(); hosts],
            rules: vec![Vec::new(); inventory.vms.len()],
        };
        for (at, vm) in inventory.vms.iter().enumerate() {
            world.sums[vm.host] = world.sums[vm.host].plus(world.entitled[at]);
            world.reserved[vm.host] = world.reserved[vm.host].plus(world.floor(at));
            world.on[vm.host].push(at);
        }
        for (at, rule) in inventory.rules.iter().enumerate() {
            rule.vms.iter().for_each(|vm| world.rules[*vm].push(at));
        }
        world
    }

    fn floor(&self, vm: usize) -> Amounts {
        let vm = &self.inventory.vms[vm];
        Amounts::of(|resource| vm.terms(resource).reservation)
    }

    fn capacity(&self, host: usize) -> Amounts {
        self.inventory.hosts[host].capacity
    }

    /// A host's load.
    pub(super) fn load(&self, host: usize) -> Amounts {
        self.sums[host].over(self.capacity(host))
    }

    /// How much loads differ.
    pub(super) fn imbalance(&self) -> Imbalance {
        let loads: Vec<Amounts> =
            (0..self.on.len()).map(|host| self.load(host)).collect();
        let hosts = &self.inventory.hosts;
        let capacities: Vec<Amounts> = hosts.iter().map(|host| host.capacity).collect();
        imbalance(&loads, &capacities)
    }

    /// How far a rule is from being kept.
    pub(super) fn broken(&self, rule: usize) -> usize {
        self.inventory.rules[rule].broken(|vm| self.at[vm])
    }

    /// Makes a move, in thought.
    pub(super) fn make(&mut self, one: &Possible) {
        let from = self.at[one.vm];
        self.put(one.vm, one.to);
        one.back.into_iter().for_each(|back| self.put(back, from));
    }

    fn put(&mut self, vm: usize, to: usize) {
        let from = std::mem::replace(&mut self.at[vm], to);
        let (takes, floor) = (self.entitled[vm], self.floor(vm));
        self.sums[from] = self.sums[from].minus(takes);
        self.sums[to] = self.sums[to].plus(takes);
        self.reserved[from] = self.reserved[from].minus(floor);
        self.reserved[to] = self.reserved[to].plus(floor);
        self.on[from].retain(|other| *other != vm);
    }

    /// Whether a VM should go to a host, and one from there come back in its place.
    pub(super) fn consider(
        &self,
        vm: usize,
        to: usize,
        back: Option<usize>,
        goal: Goal,
        bounds: &Bounds,
    ) -> Result<Possible, Because> {
        if self.at[vm] == to {
            return Err(Because::Here);
        }
        for vm in [Some(vm), back].into_iter().flatten() {
            if let Some(pinned) = self.inventory.vms[vm].pinned {
                return Err(Because::Pinned(pinned));
            }
        }
        let step = self.step(vm, to, back);
        self.keeps_rules(vm, to, back, goal)?;
        self.fits(vm, back, to, &step)?;
        let (brings, worth) = match goal {
            Goal::Must(_) | Goal::Should(_) => {
                // What it does to the loads tells apart hosts that are as good.
                let worth = step.worth(bounds, gap);
                (1.0 + step.gain(self.all).clamp(-0.5, 0.5), worth)
            }
            Goal::Relieve(resource) => relieves(&step, resource, bounds)?,
            Goal::Even => self.evens(&step, bounds)?,
        };
        let per_byte = brings / (step.bytes + LEAST_BYTES);
        Ok(Possible { vm, to, back, per_byte, brings, worth })
    }

    fn step(&self, vm: usize, to: usize, back: Option<usize>) -> Step {
        let hosts = [self.at[vm], to];
        let both = || [Some(vm), back].into_iter().flatten();
        let comes = back.map_or(Amounts::default(), |back| self.entitled[back]);
        let vms = &self.inventory.vms;
        // Two vary independently of each other, at worst.
        let varies = both().map(|vm| vms[vm].demand.deviation);
        Step {
            capacity: hosts.map(|host| self.capacity(host)),
            load: hosts.map(|host| self.load(host)),
            shift: self.entitled[vm].minus(comes),
            varies: Amounts::sum(varies),
            bytes: both().map(|vm| vms[vm].bytes()).sum(),
        }
    }

    /// No rule is broken more than before; one that should hold may be for one that must.
    /// The rule that is to be put right is broken less.
    fn keeps_rules(
        &self,
        vm: usize,
        to: usize,
        back: Option<usize>,
        goal: Goal,
    ) -> Result<(), Because> {
        let from = self.at[vm];
        let after = |other: usize| match other {
            other if other == vm => to,
            other if Some(other) == back => from,
            other => self.at[other],
        };
        let comes = back.into_iter().flat_map(|back| &self.rules[back]);
        for rule in self.rules[vm].iter().chain(comes) {
            let one = &self.inventory.rules[*rule];
            let (was, is) = (self.broken(*rule), one.broken(after));
            let aim = matches!(goal, Goal::Must(it) | Goal::Should(it) if it == *rule);
            let gives_way = !one.must && matches!(goal, Goal::Must(_));
            if (aim && is >= was) || (is > was && !gives_way) {
                return Err(Because::Rule(*rule));
            }
        }
        Ok(())
    }

    /// Reservations fit, and no load is above 1 that was not; one that was, is not higher.
    fn fits(
        &self,
        vm: usize,
        back: Option<usize>,
        to: usize,
        step: &Step,
    ) -> Result<(), Because> {
        let goes = self.floor(vm);
        let comes = back.map_or(Amounts::default(), |back| self.floor(back));
        let (from, after) = (self.at[vm], step.after());
        for resource in Resource::ALL {
            let more = goes.get(resource) - comes.get(resource);
            for (at, (host, more)) in [(from, -more), (to, more)].into_iter().enumerate()
            {
                let has = self.capacity(host).get(resource);
                let reserved = self.reserved[host].get(resource) + more;
                if more > 0.0 && reserved > has {
                    return Err(Because::Reserved(resource));
                }
                let [was, is] = [step.load[at], after[at]].map(|it| it.get(resource));
                if is > 1.0 + ROUNDING && is > was + ROUNDING {
                    return Err(Because::Full(resource, is));
                }
            }
        }
        Ok(())
    }

    /// What a move brings that evens loads out.
    fn evens(&self, step: &Step, bounds: &Bounds) -> Result<(f64, Worth), Because> {
        let of_it = step.shift.over(step.capacity[0]);
        if of_it.cpu.abs() < IDLE_PART && of_it.memory.abs() < IDLE_PART {
            return Err(Because::Idle);
        }
        let (gain, possible) = (step.gain(self.all), step.possible(self.all));
        if gain <= 0.0 || possible <= 0.0 {
            return Err(Because::NoGain);
        }
        let worth = step.worth(bounds, gap);
        if gain < bounds.margin * possible {
            return Err(Because::Little(gain / possible));
        }
        Ok((gain, pays(worth)?))
    }
}

/// What a move brings to a host that has too little of something.
fn relieves(
    step: &Step,
    resource: Resource,
    bounds: &Bounds,
) -> Result<(f64, Worth), Because> {
    let too_much = |loads: [Amounts; 2]| {
        loads.iter().map(|load| (load.get(resource) - 1.0).max(0.0)).sum::<f64>()
    };
    let brings = too_much(step.load) - too_much(step.after());
    if brings <= ROUNDING {
        return Err(Because::NoGain);
    }
    Ok((brings, pays(step.worth(bounds, too_much))?))
}
