//! Thousands of worlds in virtual time: what is recommended is carried out, round by round.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_placement::hosts::{
    Advice, Amounts, Bounds, CooldownSettings, Cooldowns, Goal, Inventory, Kind,
    Recommended, Resource, Rule, Vm, admit, advise, clash, entitled, imbalance,
};

use super::building::{GIB, eager, host, inventory, rule, vm};
use super::random::Random;

const ROUND: Nanos = Nanos::from_secs(60);

/// Any hosts, machines and rules that can be kept together.
fn any_world(random: &mut Random) -> Inventory {
    let hosts: Vec<_> = (0..2 + random.below(5))
        .map(|_| {
            let times = if random.one_in(3) { 2.0 } else { 1.0 };
            host(16.0 * times, 64.0 * times)
        })
        .collect();
    let vms: Vec<Vm> = (0..2 + random.below(24))
        .map(|_| {
            let at = random.below(hosts.len() as u64) as usize;
            let mut one = vm(at, random.unit() * 4.0, 0.5 + random.unit() * 12.0);
            one.size = Amounts { cpu: 4.0, memory: 16.0 * GIB };
            one.demand.deviation.cpu = random.unit() * 0.3;
            one
        })
        .collect();
    let mut all = inventory(&hosts, &vms);
    for _ in 0..random.below(4) {
        let mut those: Vec<usize> = (0..2 + random.below(2))
            .map(|_| random.below(vms.len() as u64) as usize)
            .collect();
        those.sort_unstable();
        those.dedup();
        let some = vec![random.below(hosts.len() as u64) as usize];
        let kind = match random.below(4) {
            0 => Kind::Affinity,
            1 => Kind::AntiAffinity,
            2 => Kind::On(some),
            _ => Kind::NotOn(some),
        };
        let mut rules: Vec<Rule> = all.rules.clone();
        rules.push(rule(kind, &those, random.one_in(2)));
        if clash(&rules, vms.len(), hosts.len()).is_none() {
            all.rules = rules;
        }
    }
    all
}

/// How bad it is, the most important first: what must hold and does not, what hosts lack,
/// what should hold and does not, and how much loads differ.
fn badness(all: &Inventory) -> [f64; 4] {
    let given = entitled(all);
    let mut loads = vec![Amounts::default(); all.hosts.len()];
    for (vm, given) in all.vms.iter().zip(given) {
        loads[vm.host] = loads[vm.host].plus(given.over(all.hosts[vm.host].capacity));
    }
    let lacks = Resource::ALL.map(|resource| {
        loads.iter().map(|load| (load.get(resource) - 1.0).max(0.0)).sum::<f64>()
    });
    let capacities: Vec<Amounts> = all.hosts.iter().map(|host| host.capacity).collect();
    let broken = |must| {
        let those = all.rules.iter().filter(|rule| rule.must == must);
        those.map(|rule| broken(rule, all)).sum::<usize>() as f64
    };
    let differ = imbalance(&loads, &capacities).deviation;
    [broken(true), lacks.iter().sum(), broken(false), differ]
}

fn broken(rule: &Rule, all: &Inventory) -> usize {
    let mut hosts: Vec<usize> = rule.vms.iter().map(|vm| all.vms[*vm].host).collect();
    hosts.sort_unstable();
    let count = |host: usize| hosts.iter().filter(|it| **it == host).count();
    match &rule.kind {
        Kind::On(on) => hosts.iter().filter(|host| !on.contains(host)).count(),
        Kind::NotOn(not) => hosts.iter().filter(|host| not.contains(host)).count(),
        Kind::Affinity => {
            hosts.len() - hosts.iter().map(|host| count(*host)).max().unwrap_or(0)
        }
        Kind::AntiAffinity => {
            let all = hosts.len();
            hosts.dedup();
            all - hosts.len()
        }
    }
}

fn make(all: &mut Inventory, one: &Recommended) {
    all.vms[one.vm].host = one.to;
    if let Some(back) = one.back {
        all.vms[back].host = one.from;
    }
}

/// Carries advice out move by move; each must do what it is for and nothing worse.
fn carry_out(all: &mut Inventory, advice: &Advice) -> Result<(), TestCaseError> {
    for one in &advice.moves {
        let before = badness(all);
        make(all, one);
        let after = badness(all);
        let aim = match one.goal {
            Goal::Must(_) => 0,
            Goal::Relieve(_) => 1,
            Goal::Should(_) => 2,
            Goal::Even => 3,
        };
        let said = || format!("{one:#?}\n{before:?}\n{after:?}");
        prop_assert!(after[aim] < before[aim], "no better: {}", said());
        for more in 0..aim {
            prop_assert!(after[more] <= before[more] + 1e-9, "worse: {}", said());
        }
        // What differs is said as it is.
        prop_assert!((one.imbalance[1].deviation - after[3]).abs() < 1e-9, "{}", said());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_move_makes_anything_worse_that_comes_before_it(seed in any::<u64>()) {
        let mut all = any_world(&mut Random::new(seed));
        let bounds = Bounds { moves: 40, ..eager() };
        let advice = advise(&all, &bounds);
        carry_out(&mut all, &advice)?;
        prop_assert_eq!(admit(&all), Ok(()));
    }

    #[test]
    fn with_the_same_loads_it_comes_to_rest(seed in any::<u64>()) {
        let mut all = any_world(&mut Random::new(seed));
        for _ in 0..all.vms.len() * 4 {
            let advice = advise(&all, &eager());
            if advice.moves.is_empty() {
                return Ok(());
            }
            advice.moves.iter().for_each(|one| make(&mut all, one));
        }
        prop_assert!(false, "it goes on and on: {:#?}", advise(&all, &eager()).moves);
    }
}

/// A world whose machines ask for now more, now less, for some hours.
struct Trace {
    random: Random,
    all: Inventory,
    cooldowns: Cooldowns,
    hold: CooldownSettings,
    now: Nanos,
    /// When each machine was moved.
    moved: Vec<Vec<Nanos>>,
}

impl Trace {
    fn new(seed: u64) -> Trace {
        let mut random = Random::new(seed);
        let all = any_world(&mut random);
        let moved = vec![Vec::new(); all.vms.len()];
        let (cooldowns, hold) = (Cooldowns::default(), CooldownSettings::default());
        Trace { random, all, cooldowns, hold, now: Nanos(0), moved }
    }

    fn name(vm: usize) -> String {
        format!("vm{vm}")
    }

    /// A round: loads change, and what is recommended is carried out.
    fn round(&mut self) {
        self.now = self.now.plus(ROUND);
        for at in 0..self.all.vms.len() {
            if self.random.one_in(20) {
                self.all.vms[at].demand.mean.cpu = self.random.unit() * 4.0;
            }
            let host = format!("host{}", self.all.vms[at].host);
            self.cooldowns.see(self.now, &Trace::name(at), &host);
            let pinned = self.cooldowns.pinned(self.now, &Trace::name(at), &self.hold);
            self.all.vms[at].pinned = pinned.map(|(pinned, _)| pinned);
        }
        let bounds = Bounds::default();
        let advice = advise(&self.all, &bounds);
        let waits = |one: &Recommended| !matches!(one.goal, Goal::Must(_));
        self.cooldowns.round(advice.moves.iter().any(waits));
        let held = self.cooldowns.is_held(&self.hold);
        for one in advice.moves.iter().filter(|one| held || !waits(one)) {
            make(&mut self.all, one);
            for (vm, to) in
                [Some((one.vm, one.to)), one.back.map(|back| (back, one.from))]
                    .into_iter()
                    .flatten()
            {
                self.moved[vm].push(self.now);
                let to = format!("host{to}");
                self.cooldowns.moved(self.now, &Trace::name(vm), &to, &self.hold);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn nothing_is_moved_to_and_fro_while_loads_change(seed in any::<u64>()) {
        let mut trace = Trace::new(seed);
        (0..240).for_each(|_| trace.round());
        for moved in &trace.moved {
            for two in moved.windows(2) {
                let passed = two[1].since(two[0]);
                prop_assert!(passed >= trace.hold.cooldown, "after {passed}: {moved:?}");
            }
            // 10, then 20, then 40 minutes: three in an hour at most.
            let hour = Nanos::from_secs(3600);
            for from in moved {
                let within = moved.iter().filter(|at| **at >= *from && at.since(*from) < hour);
                prop_assert!(within.count() <= 3, "{moved:?}");
            }
        }
    }
}
