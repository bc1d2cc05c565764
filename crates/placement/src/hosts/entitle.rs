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

use super::amounts::{Amounts, Resource};
use super::inventory::{Inventory, Terms};

/// What part of a VM's idle memory may be taken for others: ESX Server's 75 %.
const IDLE_TAX: f64 = 0.75;

/// What a share is worth for memory of which this part is in use, against memory that is
/// in use as a whole: 1 for all, a quarter for none, with a tax of 0.75.
pub fn idle_price(active: f64, tax: f64) -> f64 {
    let idle = 1.0 - active.clamp(0.0, 1.0);
    let costs = 1.0 / (1.0 - tax.clamp(0.0, 0.99));
    1.0 / (1.0 - idle + costs * idle)
}

/// What each VM is entitled to of all hosts together.
pub fn entitled(inventory: &Inventory) -> Vec<Amounts> {
    let all = Amounts::sum(inventory.hosts.iter().map(|host| host.capacity));
    let [cpu, memory] =
        Resource::ALL.map(|resource| divide(inventory, resource, all.get(resource)));
    cpu.into_iter().zip(memory).map(|(cpu, memory)| Amounts { cpu, memory }).collect()
}

/// One who gets a part of something.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    shares: f64,
    floor: f64,
    wants: f64,
}

impl Part {
    /// From what it can use and what is below it.
    fn new(terms: &Terms, shares: f64, wants: f64, below: f64) -> Part {
        let wants = wants.min(terms.limit.unwrap_or(f64::INFINITY));
        let floor = terms.reservation.max(below).min(wants);
        Part { shares, floor, wants }
    }
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
        let shares = f64::from(terms.shares.max(1)) * price;
        parts[top + at] = Part::new(terms, shares, vm.wants(resource), 0.0);
        within[vm.pool.unwrap_or(top)].push(top + at);
    }
    for (at, pool) in pools.iter().enumerate().rev() {
        let sum =
            |of: fn(&Part) -> f64| within[at].iter().map(|it| of(&parts[*it])).sum();
        let (wants, below) = (sum(|part| part.wants), sum(|part| part.floor));
        let terms = pool.terms(resource);
        parts[at] = Part::new(terms, f64::from(terms.shares.max(1)), wants, below);
        within[pool.parent.unwrap_or(top)].push(at);
    }
    let mut given = vec![0.0; parts.len()];
    let hand_out = |from: usize, amount: f64, given: &mut Vec<f64>| {
        let those: Vec<Part> = within[from].iter().map(|it| parts[*it]).collect();
        let level = level(&those, amount);
        for it in &within[from] {
            given[*it] = level.of(&parts[*it]);
        }
    };
    hand_out(top, amount, &mut given);
    for at in 0..pools.len() {
        let amount = given[at];
        hand_out(at, amount, &mut given);
    }
    given.split_off(top)
}

/// How much each gets.
#[derive(Clone, Copy, Debug)]
enum Level {
    /// Not even the floors can be had: this part of each.
    Floors(f64),
    /// So much for each share.
    Shares(f64),
}

impl Level {
    fn of(&self, part: &Part) -> f64 {
        match self {
            Level::Floors(times) => part.floor * times,
            Level::Shares(each) => (each * part.shares).clamp(part.floor, part.wants),
        }
    }
}

/// How much each of these gets of so much.
fn level(parts: &[Part], amount: f64) -> Level {
    let floors: f64 = parts.iter().map(|part| part.floor).sum();
    if floors > amount {
        return Level::Floors((amount / floors).max(0.0));
    }
    // Where each begins to get more than its floor, and where it has all that it wants.
    let begins = parts.iter().map(|part| (part.floor / part.shares, part.shares));
    let ends = parts.iter().map(|part| (part.wants / part.shares, -part.shares));
    let mut events: Vec<(f64, f64)> = begins.chain(ends).collect();
    events.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut at, mut given, mut rises) = (0.0, floors, 0.0_f64);
    for (next, change) in events {
        let more = rises.max(0.0) * (next - at);
        if more > 0.0 && given + more >= amount {
            return Level::Shares(at + (amount - given) / rises);
        }
        (at, given, rises) = (next, given + more, rises + change);
    }
    Level::Shares(at)
}
