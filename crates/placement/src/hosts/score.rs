//! How much of what a VM asks for it gets, from 0 to 100.

use super::amounts::{Amounts, Resource};
use super::inventory::Vm;

/// The score of a VM that is entitled to so much, on a host of this load: of what it
/// wants least of is given, the part that it has. A host with too much gives all its VMs
/// the same part of what they are entitled to.
pub fn score(vm: &Vm, entitled: Amounts, load: Amounts) -> f64 {
    let part = |resource: Resource| {
        let asked = vm.demand.mean.get(resource).min(vm.size.get(resource));
        let has = entitled.get(resource) / load.get(resource).max(1.0);
        if asked > 0.0 { (has / asked).clamp(0.0, 1.0) } else { 1.0 }
    };
    100.0 * part(Resource::Cpu).min(part(Resource::Memory))
}
