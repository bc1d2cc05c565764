//! What should move, and what should not.

use sterna_core::Nanos;
use sterna_placement::hosts::{
    Because, Bounds, Goal, Pinned, Resource, Terms, Vm, advise, explain,
};

use super::building::{GIB, ask, eager, host, inventory, moves, refusal, vm};

#[test]
fn nothing_moves_where_loads_are_even() {
    let machines = [vm(0, 4.0, 16.0), vm(1, 4.2, 16.0)];
    let advice = ask(&inventory(&[host(16.0, 64.0); 2], &machines));
    assert!(advice.moves.is_empty() && advice.refused.is_empty(), "{advice:#?}");
}

#[test]
fn load_goes_from_the_fullest_host_to_the_emptiest() {
    let machines = [vm(0, 4.0, 8.0), vm(0, 4.0, 8.0), vm(0, 4.0, 8.0), vm(1, 4.0, 8.0)];
    let advice = ask(&inventory(&[host(16.0, 64.0); 3], &machines));
    assert_eq!(moves(&advice), [(0, 2)], "{advice:#?}");
    let one = &advice.moves[0];
    assert_eq!((one.from, one.goal, one.back), (0, Goal::Even, None));
    assert!(one.imbalance[1].deviation < one.imbalance[0].deviation);
    assert!(one.worth.benefit > one.worth.cost, "{one:#?}");
    // 8 GiB at 1.1 GB/s.
    assert!((7.7..7.9).contains(&one.worth.seconds), "{one:#?}");
}

#[test]
fn of_two_that_help_as_much_the_smaller_one_is_copied() {
    let machines = [vm(0, 4.0, 16.0), vm(0, 4.0, 1.0), vm(1, 0.0, 15.0)];
    let advice = ask(&inventory(&[host(16.0, 640.0); 2], &machines));
    assert_eq!(moves(&advice), [(1, 1)], "{advice:#?}");
}

#[test]
fn a_host_without_enough_memory_is_relieved_before_its_machines_swap() {
    let machines = [vm(0, 1.0, 40.0), vm(0, 1.0, 30.0), vm(1, 8.0, 10.0)];
    let mut all = inventory(&[host(16.0, 64.0); 2], &machines);
    let advice = ask(&all);
    let first = &advice.moves[0];
    assert_eq!((first.goal, first.priority), (Goal::Relieve(Resource::Memory), 2));
    assert_eq!((first.vm, first.to), (1, 1), "the smaller one is enough: {advice:#?}");
    // Where no other host has the room, that is said.
    all.vms[2].demand.mean.memory = 40.0 * GIB;
    let advice = ask(&all);
    assert!(advice.moves.is_empty(), "{advice:#?}");
    let Because::Full(Resource::Memory, part) = refusal(&advice, 1) else {
        panic!("{advice:#?}");
    };
    assert!(part > 1.0, "{part}");
}

#[test]
fn what_the_threshold_does_not_ask_for_stays() {
    let machines = [vm(0, 6.0, 8.0), vm(0, 2.0, 8.0), vm(1, 4.0, 8.0)];
    let all = inventory(&[host(16.0, 64.0); 2], &machines);
    let eager = advise(&all, &eager());
    assert_eq!((eager.moves.len(), eager.moves[0].priority), (1, 5), "{eager:#?}");
    let usual = advise(&all, &Bounds::default());
    assert!(usual.moves.is_empty() && usual.refused.is_empty(), "{usual:#?}");
    let (goal, why) = explain(&all, &Bounds::default(), 1);
    assert_eq!((goal, why[1]), (Goal::Even, Err(Because::NothingWrong)));
}

#[test]
fn a_copy_that_costs_more_than_it_brings_is_refused() {
    // A machine that is nearly all memory, on hosts that have loads for a moment only.
    let machines = [vm(0, 2.0, 100.0), vm(0, 6.0, 100.0)];
    let mut all = inventory(&[host(16.0, 4096.0); 2], &machines);
    all.vms.iter_mut().for_each(|vm| vm.size.memory = 4096.0 * GIB);
    let bounds = Bounds { stable: Nanos::from_secs(20), ..eager() };
    let advice = advise(&all, &bounds);
    assert!(advice.moves.is_empty(), "{advice:#?}");
    let Because::Dear(worth) = refusal(&advice, 0) else { panic!("{advice:#?}") };
    assert!(worth.cost > worth.benefit && worth.seconds > 90.0, "{worth:?}");
    assert!(!advise(&all, &eager()).moves.is_empty());
}

#[test]
fn a_machine_that_asks_now_for_much_and_now_for_nothing_is_a_risk() {
    let machines = [vm(0, 2.0, 1.0), vm(0, 6.0, 9.0), vm(1, 4.0, 10.0)];
    let mut all = inventory(&[host(16.0, 512.0); 2], &machines);
    all.vms[1].pinned = Some(Pinned::Cooling);
    assert_eq!(moves(&ask(&all)), [(0, 1)]);
    // While it asks for nothing, nothing is won.
    all.vms[0].demand.deviation.cpu = 2.0;
    let advice = ask(&all);
    let Because::Risky(worth) = refusal(&advice, 0) else { panic!("{advice:#?}") };
    assert!(worth.benefit > worth.cost, "{worth:?}");
    assert!(worth.benefit - worth.risk <= worth.cost, "{worth:?}");
}

#[test]
fn what_is_reserved_must_fit_where_a_machine_goes() {
    let reserved = Terms { reservation: 9.0, ..Terms::default() };
    let reserving = |host, cpu| Vm { cpu: reserved, ..vm(host, cpu, 4.0) };
    let machines = [reserving(0, 8.0), reserving(1, 0.0), vm(0, 1.0, 4.0)];
    let advice = ask(&inventory(&[host(16.0, 64.0); 2], &machines));
    assert!(advice.moves.iter().all(|one| one.vm != 0), "{advice:#?}");
    let (_, why) = explain(&inventory(&[host(16.0, 64.0); 2], &machines), &eager(), 0);
    assert_eq!(why[1], Err(Because::Reserved(Resource::Cpu)));
}

#[test]
fn two_machines_change_places_where_one_cannot_go() {
    // One with memory alone and one with processors alone: neither fits beside the other.
    let machines =
        [vm(0, 10.0, 1.0), vm(0, 5.0, 60.0), vm(1, 0.5, 62.5), vm(1, 1.0, 1.0)];
    let advice = ask(&inventory(&[host(16.0, 64.0); 2], &machines));
    let exchange = advice.moves.iter().find(|one| one.back.is_some());
    let exchange = exchange.unwrap_or_else(|| panic!("{advice:#?}"));
    let [before, after] = exchange.imbalance;
    assert!(after.deviation < before.deviation, "{exchange:#?}");
}

#[test]
fn a_machine_that_stays_is_told_why() {
    let machines = [Pinned::NotSeen, Pinned::Cooling, Pinned::Foreign]
        .map(|pinned| Vm { pinned: Some(pinned), ..vm(0, 4.0, 16.0) });
    let advice = ask(&inventory(&[host(16.0, 64.0); 2], &machines));
    assert!(advice.moves.is_empty(), "{advice:#?}");
    assert_eq!(refusal(&advice, 0), Because::Pinned(Pinned::NotSeen));
    assert_eq!(refusal(&advice, 2), Because::Pinned(Pinned::Foreign));
}
