//! DRS in a hall: it looks at machines, and has them moved.
//!
//! It is told what the daemon is told: what each machine has used since the last look, what
//! it holds of memory, and where it is. What is made of that is `core`'s. A host that is
//! away is none, as if somebody had said so with `host remove`; a machine that somebody
//! else has started on another host was moved by somebody else.

use std::collections::{BTreeMap, BTreeSet};

use sterna_core::Nanos;
use sterna_placement::hosts::{
    Acted, Advice, Amounts, Because, Carrier, Cooldowns, Host, Inventory, Kind, Pinned,
    Recommended, Rule, Uses, act, advise, waits,
};

use super::copies::Copy;
use super::load::told;
use super::scenario::Scenario;
use super::world::{Seat, World};

/// What DRS knows.
pub(super) struct Drs {
    cooldowns: Cooldowns,
    uses: Vec<Uses>,
    /// What each machine had used by the last look; nothing if it runs since then only.
    then: Vec<Option<f64>>,
    looked: Nanos,
    /// When the next round is due.
    pub(super) next: Nanos,
    /// Machines that stayed, and why.
    stayed: BTreeSet<(&'static str, usize)>,
}

/// A hall as `core` is told of it, and what its numbers stand for.
struct View {
    inventory: Inventory,
    hosts: Vec<usize>,
    vms: Vec<usize>,
}

impl Drs {
    pub(super) fn new(scenario: &Scenario) -> Drs {
        let mut drs = Drs {
            cooldowns: Cooldowns::default(),
            uses: vec![Uses::default(); scenario.vms.len()],
            then: vec![Some(0.0); scenario.vms.len()],
            looked: Nanos(0),
            next: scenario.drs.round,
            stayed: BTreeSet::new(),
        };
        for vm in &scenario.vms {
            drs.cooldowns.see(Nanos(0), &vm.name, &scenario.hosts[vm.host].name);
        }
        drs
    }

    /// A machine was started on a host.
    pub(super) fn started(&mut self, all: &Scenario, now: Nanos, vm: usize, host: usize) {
        self.cooldowns.see(now, &all.vms[vm].name, &all.hosts[host].name);
        self.uses[vm].forget();
        self.then[vm] = None;
    }

    /// It has come to the host where it was to go.
    pub(super) fn moved(&mut self, all: &Scenario, now: Nanos, vm: usize, to: usize) {
        let (vm, to) = (&all.vms[vm].name, &all.hosts[to].name);
        self.cooldowns.moved(now, vm, to, &all.drs.hold);
    }

    /// It has not, and is where it was.
    pub(super) fn failed(&mut self, all: &Scenario, now: Nanos, vm: usize, host: usize) {
        let (vm, host) = (&all.vms[vm].name, &all.hosts[host].name);
        self.cooldowns.failed(now, vm, host, &all.drs.hold);
    }

    /// How many machines stayed at some time, for each reason.
    pub(super) fn stayed(self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for (why, _) in self.stayed {
            *counts.entry(why).or_default() += 1;
        }
        counts
    }

    /// All machines are looked at, and what should move is, if it is wished.
    pub(super) fn round(&mut self, world: &mut World<'_>) {
        let settings = &world.scenario.drs;
        self.next = world.now.plus(settings.round);
        self.look(world);
        let view = self.view(world);
        let advice = advise(&view.inventory, &settings.bounds);
        self.cooldowns.round(advice.moves.iter().any(|one| waits(one.goal)));
        let held = self.cooldowns.is_held(&settings.hold);
        let under_way = world.copies.0.len();
        self.note(&view, &advice);
        let mut order = Order { view: &view, world, refused: None };
        let acted = act(&advice, settings.wish, held, under_way, &mut order);
        let (Acted::Refused(one, _), Some(why)) = (acted, order.refused) else { return };
        *world.side.refused.entry(why).or_default() += 1;
        let (vm, from) = (view.vms[one.vm], view.hosts[one.from]);
        self.failed(world.scenario, world.now, vm, from);
    }

    /// What machines have used since the last look.
    fn look(&mut self, world: &World<'_>) {
        let span = world.now.since(self.looked).as_secs_f64();
        for (vm, seat) in world.seats.iter().enumerate() {
            let Seat::On(_) = seat else { continue };
            let used = world.used[vm];
            if let Some(then) = self.then[vm].replace(used) {
                let memory = world.given[vm].memory;
                self.uses[vm].add(Amounts { cpu: (used - then) / span, memory });
            }
        }
        self.looked = world.now;
    }

    /// Everything that runs, as `core` is told of it.
    fn view(&self, world: &World<'_>) -> View {
        let scenario = world.scenario;
        let hosts: Vec<usize> = (0..world.up.len()).filter(|it| world.up[*it]).collect();
        let host_at = places(&hosts, world.up.len());
        let (mut vms, mut machines) = (Vec::new(), Vec::new());
        for (vm, seat) in world.seats.iter().enumerate() {
            let Seat::On(host) = *seat else { continue };
            let going = world.copies.of(vm);
            let Some(at) = host_at[going.map_or(host, |copy| copy.to)] else { continue };
            let (it, uses) = (&scenario.vms[vm], &self.uses[vm]);
            let demand = uses.demand();
            let mut machine =
                told(scenario.profile(vm).size, at, it.pool, Amounts::default());
            machine.demand = demand;
            let cooling =
                || self.cooldowns.pinned(world.now, &it.name, &scenario.drs.hold);
            machine.pinned = match (going, uses.are_enough()) {
                (Some(_), _) => Some(Pinned::Moving),
                (None, false) => Some(Pinned::NotSeen),
                (None, true) => cooling().map(|(pinned, _)| pinned),
            };
            machines.push(machine);
            vms.push(vm);
        }
        let vm_at = places(&vms, world.seats.len());
        let capacity = |host: &usize| Host { capacity: scenario.hosts[*host].capacity };
        let inventory = Inventory {
            hosts: hosts.iter().map(capacity).collect(),
            pools: scenario.pools.clone(),
            vms: machines,
            rules: scenario.rules.iter().map(|it| rule(it, &vm_at, &host_at)).collect(),
        };
        View { inventory, hosts, vms }
    }

    /// Which machines stay, and why.
    fn note(&mut self, view: &View, advice: &Advice) {
        let stay = advice.refused.iter().map(|it| (why(it.because), view.vms[it.vm]));
        self.stayed.extend(stay);
    }
}

/// The place of each of these numbers among them.
fn places(numbers: &[usize], all: usize) -> Vec<Option<usize>> {
    let mut places = vec![None; all];
    for (place, number) in numbers.iter().enumerate() {
        places[*number] = Some(place);
    }
    places
}

/// A rule of what there is now. It keeps its place, if nobody is left of whom it speaks.
fn rule(rule: &Rule, vms: &[Option<usize>], hosts: &[Option<usize>]) -> Rule {
    let those = |numbers: &[usize], places: &[Option<usize>]| {
        numbers.iter().filter_map(|number| places[*number]).collect::<Vec<usize>>()
    };
    let kind = match &rule.kind {
        Kind::On(on) => Kind::On(those(on, hosts)),
        Kind::NotOn(not) => Kind::NotOn(those(not, hosts)),
        same @ (Kind::Affinity | Kind::AntiAffinity) => same.clone(),
    };
    Rule { kind, vms: those(&rule.vms, vms), must: rule.must }
}

/// Who moves machines here.
struct Order<'o, 's> {
    view: &'o View,
    world: &'o mut World<'s>,
    /// Why the move could not begin.
    refused: Option<&'static str>,
}

impl Carrier for Order<'_, '_> {
    fn carry(&mut self, one: &Recommended) -> Result<(), String> {
        let (from, to) = (self.view.hosts[one.from], self.view.hosts[one.to]);
        let goes = Some((one.vm, from, to));
        let comes = one.back.map(|back| (back, to, from));
        let legs: Vec<(usize, usize, usize)> = [goes, comes]
            .into_iter()
            .flatten()
            .map(|(vm, from, to)| (self.view.vms[vm], from, to))
            .collect();
        self.check(&legs).map_err(|why| {
            self.refused = Some(why);
            why.to_owned()
        })?;
        for (vm, from, to) in legs {
            let (bytes, now) = (self.world.given[vm].memory, self.world.now);
            let hosts = &self.world.scenario.hosts;
            let rate = hosts[from].link.min(hosts[to].link);
            let takes = Nanos((bytes / rate * 1e9) as u64);
            let (goal, ends) = (one.goal, now.plus(takes));
            self.world.begin(Copy { vm, from, to, goal, bytes, began: now, ends });
        }
        Ok(())
    }
}

impl Order<'_, '_> {
    /// Whether machines can go from host to host, all together.
    fn check(&self, legs: &[(usize, usize, usize)]) -> Result<(), &'static str> {
        for (vm, from, to) in legs {
            for host in [*from, *to] {
                let most = self.world.scenario.hosts[host].copies as usize;
                if self.world.copies.at(host) + legs.len() > most {
                    return Err("two would change places, and a host moves only one");
                }
            }
            // Nothing has left yet when it comes.
            if self.world.given[*vm].memory > self.world.room(*to) {
                return Err("the host has no room for its memory while it is copied");
            }
        }
        Ok(())
    }
}

/// Why a machine stays, in words.
fn why(because: Because) -> &'static str {
    match because {
        Because::Pinned(Pinned::NotSeen) => "the VM was not checked often enough yet",
        Because::Pinned(Pinned::Moving) => "already under way",
        Because::Pinned(Pinned::Unsendable) => "QEMU cannot send this VM",
        Because::Pinned(Pinned::Cooling) => "the VM was migrated recently",
        Because::Pinned(Pinned::Foreign) => "somebody else has moved it not long ago",
        Because::Pinned(Pinned::Failed) => "a VM migration has failed recently",
        Because::Here => "there is no other host",
        Because::Rule(_) => "a rule would be broken",
        Because::Reserved(_) => "reservations would not fit there",
        Because::Full(..) => "the other host would be too full",
        Because::Idle => "it asks for nothing that matters",
        Because::NoGain => "loads would differ no less",
        Because::Little(_) => "it would even out too little",
        Because::Dear(_) => "it costs more than it brings",
        Because::Risky(_) => "it may cost more than it brings",
        Because::NothingWrong => "nothing is to be put right",
    }
}
