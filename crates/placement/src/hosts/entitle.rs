//! What each VM is entitled to.
//!
//! Pools are a tree, with VMs as its leaves. Going up, each says what it wants at most
//! and what it gets in any case (its floor); going down, what a pool has is divided among
//! those in it: each gets its shares' worth, but no less than its floor and no more than
//! it wants. So what one leaves goes to those beside it first, and what a whole pool
//! leaves to those beside the pool: nothing is left over while anybody wants it.
//!
//! Memory that is held and not used costs more shares than memory that is used
//! ([`idle_price`]), so under pressure it goes to whoever uses it.

use sterna_core::entitle::{self, IDLE_TAX, Part, idle_price};

use super::amounts::{Amounts, Resource};
use super::inventory::Inventory;

/// What each VM is entitled to of all hosts together.
pub fn entitled(inventory: &Inventory) -> Vec<Amounts> {
    let all = Amounts::sum(inventory.hosts.iter().map(|host| host.capacity));
    let [cpu, memory] =
        Resource::ALL.map(|resource| divide(inventory, resource, all.get(resource)));
    cpu.into_iter().zip(memory).map(|(cpu, memory)| Amounts { cpu, memory }).collect()
}

/// Divides so much of a resource among the VMs.
fn divide(inventory: &Inventory, resource: Resource, amount: f64) -> Vec<f64> {
    let (pools, vms) = (&inventory.pools, &inventory.vms);
    // Those in each pool, and at the top, which comes last.
    let top = pools.len();
    let mut within: Vec<Vec<usize>> = vec![Vec::new(); top + 1];
    let mut parts = vec![Part::default(); top + vms.len()];
    for (at, vm) in vms.iter().enumerate() {
        let terms = vm.terms(resource);
        let price = match resource {
            Resource::Cpu => 1.0,
            Resource::Memory => idle_price(vm.demand.active, IDLE_TAX),
        };
        parts[top + at] = Part::new(terms, price, vm.wants(resource), 0.0);
        within[vm.pool.unwrap_or(top)].push(top + at);
    }
    for (at, pool) in pools.iter().enumerate().rev() {
        let sum =
            |of: fn(&Part) -> f64| within[at].iter().map(|it| of(&parts[*it])).sum();
        let (wants, below) = (sum(|part| part.wants), sum(|part| part.floor));
        let terms = pool.terms(resource);
        parts[at] = Part::new(terms, 1.0, wants, below);
        within[pool.parent.unwrap_or(top)].push(at);
    }
    let mut given = vec![0.0; parts.len()];
    let hand_out = |from: usize, amount: f64, given: &mut Vec<f64>| {
        let those: Vec<Part> = within[from].iter().map(|it| parts[*it]).collect();
        for (it, gets) in within[from].iter().zip(entitle::divide(&those, amount)) {
            given[*it] = gets;
        }
    };
    hand_out(top, amount, &mut given);
    for at in 0..pools.len() {
        let amount = given[at];
        hand_out(at, amount, &mut given);
    }
    given.split_off(top)
}
