//! Figures that others publish.

use sterna_placement::hosts::{
    Amounts, Because, Inventory, advise, explain, imbalance, variation,
};

use super::building::{close, eager, host, inventory, vm};

const MIB: f64 = (1_u64 << 20) as f64;

/// Three nodes of Proxmox's own test, with what they have.
fn proxmox(maxcpu: [f64; 3], maxmem: [f64; 3]) -> f64 {
    let used = [(1.7, 12_334.0), (15.184, 529.0), (5.2, 9381.0)];
    let capacities: Vec<Amounts> =
        (0..3).map(|at| host(maxcpu[at], maxmem[at]).capacity).collect();
    let loads: Vec<Amounts> = used
        .iter()
        .zip(&capacities)
        .map(|((cpu, mib), all)| Amounts { cpu: *cpu, memory: mib * MIB }.over(*all))
        .collect();
    imbalance(&loads, &capacities).variation
}

#[test]
fn the_imbalance_of_proxmox_is_shown_as_proxmox_does() {
    close(proxmox([16.0; 3], [64.0; 3]), 0.489_395_472_462_824_7);
    let mixed = proxmox([16.0, 32.0, 24.0], [128.0, 96.0, 64.0]);
    close(mixed, 0.330_260_130_568_673_54);
}

#[test]
fn moves_that_make_proxmoxs_example_worse_are_refused() {
    // The machine of 0.7 processors and 8 GiB, and all else that is on the three nodes.
    let rest = |host, cpu, mib: f64| vm(host, cpu, mib / 1024.0);
    let machines = [
        vm(0, 0.7, 8.0),
        rest(0, 1.0, 12_334.0 - 8192.0),
        rest(1, 15.184, 529.0),
        rest(2, 5.2, 9381.0),
    ];
    let all = inventory(&[host(16.0, 64.0); 3], &machines);
    let after = |to: usize| {
        let mut moved = all.clone();
        moved.vms[0].host = to;
        let loads: Vec<Amounts> = (0..3)
            .map(|at| {
                let on_it = moved.vms.iter().filter(|vm| vm.host == at);
                let sum = Amounts::sum(on_it.map(|vm| vm.demand.mean));
                sum.over(moved.hosts[at].capacity)
            })
            .collect();
        let capacities: Vec<Amounts> =
            moved.hosts.iter().map(|host| host.capacity).collect();
        imbalance(&loads, &capacities).variation
    };
    assert!((after(1) - 0.7240).abs() < 5e-5, "{}", after(1));
    assert!((after(2) - 0.5973).abs() < 5e-5, "{}", after(2));
    let (_, why) = explain(&all, &eager(), 0);
    let refusals = [Err(Because::Here), Err(Because::NoGain), Err(Because::NoGain)];
    assert_eq!(why, refusals);
    let advised = advise(&all, &eager());
    assert!(advised.moves.iter().all(|one| one.vm != 0), "{advised:#?}");
}

#[test]
fn the_imbalance_of_cloudstack_is_the_coefficient_of_variation() {
    let close = |values: &[f64], expected: f64| {
        assert!((variation(values) - expected).abs() < 5e-5, "{values:?}");
    };
    close(&[1000.0, 2000.0], 0.3333);
    close(&[512.0, 2048.0], 0.6);
    close(&[1024.0, 1536.0], 0.2);
    close(&[], 0.0);
    close(&[0.0, 0.0], 0.0);
}

#[test]
fn what_cloudstacks_example_moves_is_moved() {
    // 512 MiB of 2048 go over, and no more: 1024 and 1536 come nearest.
    let machines = [512.0; 5].map(|mib| vm(1, 0.0, mib / 1024.0));
    let mut all: Inventory = inventory(&[host(4.0, 4.0); 2], &machines);
    all.vms[0].host = 0;
    let advised = advise(&all, &eager());
    assert_eq!(advised.moves.len(), 1, "{advised:#?}");
    let [before, after] = advised.moves[0].imbalance;
    assert!((before.variation - 0.6).abs() < 1e-9, "{before:?}");
    assert!((after.variation - 0.2).abs() < 1e-9, "{after:?}");
}
