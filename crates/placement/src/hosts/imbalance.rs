//! How much loads differ, in two measures side by side.
//!
//! Ours is the standard deviation of the hosts' loads, for processors and memory, each
//! host counting for what it has: so the mean is the same wherever VMs are, and what a
//! move changes depends on its two hosts alone. The other is the coefficient of variation
//! of the mean of both loads, by which operators know Proxmox and CloudStack.

use super::amounts::{Amounts, Resource};

/// How much loads differ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Imbalance {
    /// The root of the mean square of the two below: what moves lower.
    pub deviation: f64,
    /// The standard deviation of the hosts' loads.
    pub of: Amounts,
    /// The coefficient of variation of the mean of both loads.
    pub variation: f64,
}

/// The imbalance of hosts with these loads and of this capacity.
pub fn imbalance(loads: &[Amounts], capacities: &[Amounts]) -> Imbalance {
    let of = Amounts::of(|resource| deviation(loads, capacities, resource));
    let means: Vec<f64> =
        loads.iter().map(|load| f64::midpoint(load.cpu, load.memory)).collect();
    Imbalance {
        deviation: (f64::midpoint(of.cpu * of.cpu, of.memory * of.memory)).sqrt(),
        of,
        variation: variation(&means),
    }
}

fn deviation(loads: &[Amounts], capacities: &[Amounts], resource: Resource) -> f64 {
    let both = || {
        let loads = loads.iter().map(|load| load.get(resource));
        loads.zip(capacities.iter().map(|all| all.get(resource)))
    };
    let all: f64 = both().map(|(_, capacity)| capacity).sum();
    if all <= 0.0 {
        return 0.0;
    }
    let mean: f64 = both().map(|(load, capacity)| load * capacity).sum::<f64>() / all;
    let square = |(load, capacity): (f64, f64)| capacity * (load - mean) * (load - mean);
    (both().map(square).sum::<f64>() / all).sqrt()
}

/// The coefficient of variation: the standard deviation over the mean; 0 of nothing.
pub fn variation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    if mean <= 0.0 {
        return 0.0;
    }
    let square = |value: &f64| (value - mean) * (value - mean);
    (values.iter().map(square).sum::<f64>() / count).sqrt() / mean
}
