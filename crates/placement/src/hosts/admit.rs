//! Whether what is reserved can be had.

use super::amounts::{Amounts, Resource};
use super::inventory::Inventory;

/// More is reserved than there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Oversold {
    /// Of what.
    pub resource: Resource,
    /// In which pool; nothing at the top.
    pub pool: Option<usize>,
    /// So much is reserved in it.
    pub reserved: f64,
    /// So much it has: what is reserved for the pool, or what all hosts have.
    pub has: f64,
}

/// Refuses reservations that cannot all be kept: those in a pool come out of the pool's,
/// and those at the top out of what the hosts have.
pub fn admit(inventory: &Inventory) -> Result<(), Oversold> {
    let all = Amounts::sum(inventory.hosts.iter().map(|host| host.capacity));
    for resource in Resource::ALL {
        let top = inventory.pools.len();
        let mut reserved = vec![0.0; top + 1];
        for pool in &inventory.pools {
            reserved[pool.parent.unwrap_or(top)] += pool.terms(resource).reservation;
        }
        for vm in &inventory.vms {
            reserved[vm.pool.unwrap_or(top)] += vm.terms(resource).reservation;
        }
        for (at, reserved) in reserved.into_iter().enumerate() {
            let pool = inventory.pools.get(at);
            let has = pool.map_or(all.get(resource), |it| it.terms(resource).reservation);
            if reserved > has {
                let pool = pool.map(|_| at);
                return Err(Oversold { resource, pool, reserved, has });
            }
        }
    }
    Ok(())
}
