//! What machines are entitled to.

use proptest::prelude::*;
use sterna_placement::hosts::{
    Amounts, Inventory, Pool, Resource, Terms, Vm, admit, entitled, idle_price, score,
};

use super::building::{GIB, close, host, inventory, pool, vm, with_shares};
use super::random::Random;

fn cpus(inventory: &Inventory) -> Vec<f64> {
    entitled(inventory).iter().map(|it| it.cpu).collect()
}

#[track_caller]
fn are(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).for_each(|(found, expected)| close(*found, *expected));
}

fn in_pool(pool: usize, vm: Vm) -> Vm {
    Vm { pool: Some(pool), ..vm }
}

#[test]
fn shares_hold_on_two_levels() {
    // Siebert's example of Storage I/O Control, with 80 processors for 8000 IO/s.
    let machines = |first: f64| {
        [
            in_pool(0, with_shares(vm(0, first, 0.0), 1000)),
            in_pool(0, with_shares(vm(0, 64.0, 0.0), 2500)),
            in_pool(1, with_shares(vm(0, 64.0, 0.0), 500)),
            in_pool(1, with_shares(vm(0, 64.0, 0.0), 1000)),
        ]
    };
    let pools = vec![pool(3500), pool(1500)];
    let busy = Inventory {
        pools: pools.clone(),
        ..inventory(&[host(80.0, 64.0)], &machines(64.0))
    };
    are(&cpus(&busy), &[16.0, 40.0, 8.0, 16.0]);
    // What the first leaves goes to its own pool first.
    let idle = Inventory { pools, ..inventory(&[host(80.0, 64.0)], &machines(1.0)) };
    are(&cpus(&idle), &[1.0, 55.0, 8.0, 16.0]);
}

#[test]
fn weights_of_cgroups_make_the_same_parts() {
    // io.cost: A of 100 with A0 and A1 of 100 each, and B of 300.
    let tree = |b: f64| {
        let machines = [
            in_pool(0, with_shares(vm(0, 64.0, 0.0), 100)),
            in_pool(0, with_shares(vm(0, 64.0, 0.0), 100)),
            with_shares(vm(0, b, 0.0), 300),
        ];
        let hosts = [host(100.0, 64.0)];
        let pools = vec![pool(100)];
        let mut tree = Inventory { pools, ..inventory(&hosts, &machines) };
        tree.vms.iter_mut().for_each(|vm| vm.size.cpu = 100.0);
        tree.vms[0].demand.mean.cpu = 100.0;
        tree.vms[1].demand.mean.cpu = 100.0;
        tree
    };
    are(&cpus(&tree(0.0)), &[50.0, 50.0, 0.0]);
    are(&cpus(&tree(100.0)), &[12.5, 12.5, 75.0]);
}

#[test]
fn reservations_go_first_and_limits_bind() {
    // mClock's example: RD, OLTP, DM at 875 and at 1200 a second.
    let terms = |shares, reservation, limit| Terms { reservation, limit, shares };
    let one = |terms: Terms| Vm { cpu: terms, ..vm(0, 64.0, 0.0) };
    let at = |capacity: f64| {
        let machines = [
            one(terms(100, 2.5, None)),
            one(terms(200, 2.5, None)),
            one(terms(300, 0.0, Some(10.0))),
        ];
        cpus(&inventory(&[host(capacity, 1.0)], &machines))
    };
    are(&at(8.75), &[2.5, 2.5, 3.75]);
    are(&at(12.0), &[2.5, 3.8, 5.7]);
    are(&at(30.0), &[20.0 / 3.0, 40.0 / 3.0, 10.0]);
}

#[test]
fn idle_memory_costs_more_shares() {
    let prices = [1.0, 0.5, 0.1, 0.0].map(|active| idle_price(active, 0.75));
    are(&prices, &[1.0, 0.4, 1.0 / 3.7, 0.25]);
    close(idle_price(0.0, 0.0), 1.0);
    // One that uses all it holds, and one that uses nothing: four to one.
    let mut idle = vm(0, 0.0, 100.0);
    idle.demand.active = 0.0;
    let told = entitled(&inventory(&[host(1.0, 100.0)], &[vm(0, 0.0, 100.0), idle]));
    close(told[0].memory, 80.0 * GIB);
    close(told[1].memory, 20.0 * GIB);
}

#[test]
fn what_is_reserved_for_a_pool_is_not_taken_from_its_machines() {
    let reserved = Terms { reservation: 30.0, ..Terms::default() };
    let pools = vec![Pool { cpu: reserved, ..pool(1) }];
    let machines = [in_pool(0, vm(0, 64.0, 0.0)), with_shares(vm(0, 64.0, 0.0), 100_000)];
    let both = Inventory { pools, ..inventory(&[host(40.0, 1.0)], &machines) };
    are(&cpus(&both), &[30.0, 10.0]);
}

#[test]
fn more_than_there_is_cannot_be_reserved() {
    let reserving = |cpu: f64, parent: Option<usize>| Pool {
        parent,
        cpu: Terms { reservation: cpu, ..Terms::default() },
        ..pool(1000)
    };
    let with =
        |pools: Vec<Pool>| Inventory { pools, ..inventory(&[host(16.0, 1.0)], &[]) };
    assert_eq!(admit(&with(vec![reserving(10.0, None), reserving(6.0, None)])), Ok(()));
    let over =
        admit(&with(vec![reserving(10.0, None), reserving(7.0, None)])).unwrap_err();
    assert_eq!((over.resource, over.pool), (Resource::Cpu, None));
    assert_eq!((over.reserved, over.has), (17.0, 16.0));
    let inner = vec![reserving(4.0, None), reserving(5.0, Some(0))];
    assert_eq!(admit(&with(inner)).unwrap_err().pool, Some(0));
}

#[test]
fn a_score_is_the_part_of_what_it_asks_for_that_a_machine_gets() {
    let one = vm(0, 4.0, 8.0);
    let all = Amounts { cpu: 4.0, memory: 8.0 * GIB };
    let load = |cpu| Amounts { cpu, memory: 0.5 };
    close(score(&one, all, load(0.7)), 100.0);
    close(score(&one, all, load(2.0)), 50.0);
    close(score(&one, Amounts { cpu: 1.0, ..all }, load(0.7)), 25.0);
    close(score(&vm(0, 0.0, 0.0), Amounts::default(), load(2.0)), 100.0);
}

/// Any tree with any machines in it.
fn any_tree(seed: u64) -> Inventory {
    let mut random = Random::new(seed);
    let terms = |random: &mut Random, scale: f64| {
        let reservation =
            if random.one_in(3) { random.unit() * 4.0 * scale } else { 0.0 };
        let limit = random.one_in(4).then(|| reservation + random.unit() * 8.0 * scale);
        Terms { reservation, limit, shares: 1 + random.below(4000) as u32 }
    };
    let mut pools: Vec<Pool> = Vec::new();
    for at in 0..random.below(6) as usize {
        let parent =
            (at > 0 && random.one_in(2)).then(|| random.below(at as u64) as usize);
        let (cpu, memory) = (terms(&mut random, 1.0), terms(&mut random, GIB));
        pools.push(Pool { parent, cpu, memory });
    }
    let vms = (0..1 + random.below(20)).map(|_| {
        let inside = !pools.is_empty() && random.one_in(2);
        let pool = inside.then(|| random.below(pools.len() as u64) as usize);
        let mut one = vm(0, random.unit() * 10.0, random.unit() * 10.0);
        one.demand.active = random.unit();
        let (cpu, memory) = (terms(&mut random, 1.0), terms(&mut random, GIB));
        Vm { pool, cpu, memory, ..one }
    });
    let vms: Vec<Vm> = vms.collect();
    let hosts = [host(random.unit() * 60.0, random.unit() * 60.0)];
    Inventory { hosts: hosts.into(), pools, vms, rules: Vec::new() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nobody_gets_more_than_there_is_or_than_he_wants_or_less_than_is_reserved(
        seed in any::<u64>(),
    ) {
        let all = any_tree(seed);
        let given = entitled(&all);
        let admitted = admit(&all).is_ok();
        for resource in Resource::ALL {
            let has = all.hosts[0].capacity.get(resource);
            let sum: f64 = given.iter().map(|it| it.get(resource)).sum();
            prop_assert!(sum <= has * (1.0 + 1e-9), "{sum} of {has}");
            let mut wanted = 0.0;
            for (vm, given) in all.vms.iter().zip(&given) {
                let terms = if resource == Resource::Cpu { vm.cpu } else { vm.memory };
                let given = given.get(resource);
                let asked = vm.demand.mean.get(resource).min(vm.size.get(resource));
                let most = asked.min(terms.limit.unwrap_or(f64::INFINITY));
                wanted += most;
                prop_assert!(given <= most * (1.0 + 1e-9));
                let tight = all.pools.iter().any(|pool| {
                    pool.cpu.limit.is_some() || pool.memory.limit.is_some()
                });
                if admitted && !tight {
                    let floor = terms.reservation.min(most);
                    prop_assert!(given >= floor * (1.0 - 1e-9), "{given} of {floor}");
                }
            }
            // Nothing is left over while somebody without a limit above him wants it.
            if all.pools.iter().all(|pool| pool.cpu.limit.or(pool.memory.limit).is_none()) {
                let scale = 1e-9 * has.max(1.0);
                prop_assert!((sum - wanted.min(has)).abs() <= scale, "{sum} {wanted} {has}");
            }
        }
    }
}
