//! How long it takes for many. Run in release:
//! `cargo test --release -p sterna-placement --test hosts speed -- --ignored --nocapture`

use std::io::Write;
use std::time::Instant;

use sterna_placement::hosts::{Bounds, Inventory, Vm, advise};

use super::building::{host, inventory, vm};
use super::random::Random;

/// Half of the hosts have one in so many of the machines.
fn hall(hosts: usize, vms: usize, uneven: u64) -> Inventory {
    let mut random = Random::new(4711);
    let hosts = vec![host(64.0, 512.0); hosts];
    let vms: Vec<Vm> = (0..vms)
        .map(|_| {
            let half = hosts.len() as u64 / 2;
            let low = if random.one_in(uneven) { half } else { 0 };
            let at = (low + random.below(half)) as usize;
            vm(at, random.unit() * 3.0, 1.0 + random.unit() * 30.0)
        })
        .collect();
    inventory(&hosts, &vms)
}

#[test]
#[ignore = "a measurement"]
fn ten_thousand_machines_on_five_hundred_hosts() {
    // As many as are recommended at once unless somebody asks for more, and at most; where
    // half of the hosts have three quarters of the machines, or all have as many.
    for (moves, uneven) in [(10, 4), (100, 4), (10, 2), (100, 2)] {
        let all = hall(500, 10_000, uneven);
        let began = Instant::now();
        let advice = advise(&all, &Bounds { moves, threshold: 5, ..Bounds::default() });
        let took = began.elapsed();
        let last = advice.moves.last().expect("something moves");
        let _ = writeln!(
            std::io::stderr(),
            "{} moves in {took:.1?}: deviation {:.3} to {:.3}",
            advice.moves.len(),
            advice.moves[0].imbalance[0].deviation,
            last.imbalance[1].deviation
        );
        assert!(took.as_secs() < 10, "{took:?}");
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel's view");
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    let _ = writeln!(std::io::stderr(), "{}", peak.unwrap_or_default());
}
