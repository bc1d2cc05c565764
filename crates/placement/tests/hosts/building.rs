//! Hosts and machines, in few words.

use sterna_placement::hosts::{
    Advice, Amounts, Because, Bounds, Demand, Host, Inventory, Kind, Pool, Rule, Terms,
    Vm, advise,
};

pub(crate) const GIB: f64 = (1_u64 << 30) as f64;

/// A host of so many processors and GiB.
pub(crate) fn host(cpu: f64, gib: f64) -> Host {
    Host { capacity: Amounts { cpu, memory: gib * GIB } }
}

/// A machine of 64 processors and 512 GiB on a host, which uses so many of them.
pub(crate) fn vm(host: usize, cpu: f64, gib: f64) -> Vm {
    Vm {
        host,
        pool: None,
        size: Amounts { cpu: 64.0, memory: 512.0 * GIB },
        cpu: Terms::default(),
        memory: Terms::default(),
        demand: Demand {
            mean: Amounts { cpu, memory: gib * GIB },
            deviation: Amounts::default(),
            active: 1.0,
        },
        pinned: None,
    }
}

/// With so many shares of both.
pub(crate) fn with_shares(vm: Vm, shares: u32) -> Vm {
    let terms = |terms: Terms| Terms { shares, ..terms };
    Vm { cpu: terms(vm.cpu), memory: terms(vm.memory), ..vm }
}

/// A pool at the top with so many shares.
pub(crate) fn pool(shares: u32) -> Pool {
    let terms = Terms { shares, ..Terms::default() };
    Pool { parent: None, cpu: terms, memory: terms }
}

pub(crate) fn rule(kind: Kind, vms: &[usize], must: bool) -> Rule {
    Rule { kind, vms: vms.into(), must }
}

pub(crate) fn inventory(hosts: &[Host], vms: &[Vm]) -> Inventory {
    let (hosts, vms) = (hosts.into(), vms.into());
    Inventory { hosts, vms, ..Inventory::default() }
}

/// Bounds at which everything that matters at all is recommended.
pub(crate) fn eager() -> Bounds {
    Bounds { threshold: 5, ..Bounds::default() }
}

pub(crate) fn ask(inventory: &Inventory) -> Advice {
    advise(inventory, &eager())
}

/// Which machines should go where.
pub(crate) fn moves(advice: &Advice) -> Vec<(usize, usize)> {
    advice.moves.iter().map(|one| (one.vm, one.to)).collect()
}

/// Why a machine stays.
#[track_caller]
pub(crate) fn refusal(advice: &Advice, vm: usize) -> Because {
    let found = advice.refused.iter().find(|one| one.vm == vm);
    found.unwrap_or_else(|| panic!("nothing is said of {vm}: {advice:#?}")).because
}

#[track_caller]
pub(crate) fn close(found: f64, expected: f64) {
    let near = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
    assert!(near, "{found}, expected {expected}");
}
