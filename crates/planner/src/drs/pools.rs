//! Resource pools, as the API's requests see them.

use sterna_api::{AskTerms, ChangePool, CreatePool, Error, Pool, PoolTerms, Result};
use sterna_machines::claim_of;
use sterna_os::clock;
use sterna_placement::hosts::{Amounts, entitled};
use sterna_state::{Entry, PoolRecord, Registry, SeatRecord};
use sterna_storage::datastores::check_name;

use super::hosts::check_admission;
use super::scene::{DrsScene, at};
use super::view::amounts;
use crate::Planner;

/// Pools at most: more than anybody can keep an eye on.
const POOLS_MAX: usize = 256;

/// Shares at most. A part of a millionth is nothing.
const SHARES_MAX: u32 = 1_000_000;

impl Planner {
    /// All pools, each behind the one that it is in.
    pub fn list_pools(&self) -> Result<Vec<Pool>> {
        let (registry, scene) = self.drs_scene()?;
        Ok(view_pools(&registry, &scene))
    }

    /// One pool.
    pub fn show_pool(&self, name: &str) -> Result<Pool> {
        let found = self.list_pools()?.into_iter().find(|pool| pool.name == name);
        found.ok_or_else(|| Error::not_found("pool", name))
    }

    /// Creates a pool.
    pub fn create_pool(&self, request: &CreatePool) -> Result<Pool> {
        let name = &request.name;
        check_name("pool", name)?;
        let record = PoolRecord {
            name: name.clone(),
            parent: request.parent.clone(),
            cpu: terms(PoolTerms::default(), &request.cpu)?,
            memory: terms(PoolTerms::default(), &request.memory)?,
            created: clock::now(),
        };
        self.drs.ledger.change(&mut |registry| {
            if registry.pools.iter().any(|pool| pool.name == *name) {
                return Err(Error::exists("pool", name));
            }
            if registry.pools.len() >= POOLS_MAX {
                let message = format!("there are {POOLS_MAX} pools already");
                return Err(Error::invalid(message).hint("delete one first"));
            }
            if let Some(parent) = &record.parent {
                pool_of(registry, parent)?;
            }
            let mut next = registry.clone();
            next.pools.push(record.clone());
            check_admission(&next)?;
            Ok(vec![Entry::Pool(record.clone())])
        })?;
        tracing::info!(pool = name, "pool created");
        self.show_pool(name)
    }

    /// Changes a pool: all that is asked, or nothing.
    pub fn change_pool(&self, name: &str, request: &ChangePool) -> Result<Pool> {
        let named = [&request.add, &request.remove];
        let mut claims = Vec::new();
        for vm in named.into_iter().flatten() {
            claims.push(self.storage.claims.shared(claim_of(vm))?);
            self.machines.vm_record(vm)?;
        }
        self.drs.ledger.change(&mut |registry| {
            let old = pool_of(registry, name)?;
            let (cpu, memory) =
                (terms(old.cpu, &request.cpu)?, terms(old.memory, &request.memory)?);
            let record = PoolRecord { cpu, memory, ..old.clone() };
            let mut next = registry.clone();
            next.pools.iter_mut().filter(|pool| pool.name == name).for_each(|pool| {
                pool.clone_from(&record);
            });
            check_admission(&next)?;
            let mut entries = vec![Entry::Pool(record)];
            if let Some(vm) = &request.add {
                let pool = Some(name.to_owned());
                entries.push(Entry::Assignment(SeatRecord {
                    pool,
                    ..assignment_of(registry, vm)
                }));
            }
            if let Some(vm) = &request.remove {
                let assignment = assignment_of(registry, vm);
                if assignment.pool.as_deref() != Some(name) {
                    let message = format!("vm {vm} is not in pool {name}");
                    let hint = format!("see `sterna drs pool show {name}`");
                    return Err(Error::invalid(message).hint(hint));
                }
                entries.push(Entry::Assignment(SeatRecord { pool: None, ..assignment }));
            }
            Ok(entries)
        })?;
        tracing::info!(pool = name, "pool changed");
        self.show_pool(name)
    }

    /// Deletes a pool that no pool is in.
    pub fn delete_pool(&self, name: &str) -> Result<Pool> {
        let gone = self.show_pool(name)?;
        self.drs.ledger.change(&mut |registry| {
            let inside = |pool: &&PoolRecord| pool.parent.as_deref() == Some(name);
            if let Some(inner) = registry.pools.iter().find(inside) {
                let message = format!("pool {} is in pool {name}", inner.name);
                let hint = format!(
                    "delete that pool first: `sterna drs pool delete {}`",
                    inner.name
                );
                return Err(Error::in_use(message).hint(hint));
            }
            Ok(vec![Entry::RemovePool(name.to_owned())])
        })?;
        tracing::info!(pool = name, "pool deleted");
        Ok(gone)
    }
}

fn pool_of<'r>(registry: &'r Registry, name: &str) -> Result<&'r PoolRecord> {
    let found = registry.pools.iter().find(|pool| pool.name == name);
    found.ok_or_else(|| Error::not_found("pool", name))
}

fn assignment_of(registry: &Registry, vm: &str) -> SeatRecord {
    let new = || SeatRecord { vm: vm.to_owned(), host: None, pool: None, history: None };
    registry
        .assignments
        .iter()
        .find(|assignment| assignment.vm == vm)
        .cloned()
        .unwrap_or_else(new)
}

/// What becomes of terms if this is asked for.
fn terms(old: PoolTerms, asked: &AskTerms) -> Result<PoolTerms> {
    let new = PoolTerms {
        reservation: asked.reservation.unwrap_or(old.reservation),
        limit: asked.limit.unwrap_or(old.limit),
        shares: asked.shares.unwrap_or(old.shares),
    };
    let amounts = [Some(new.reservation), new.limit];
    if amounts.into_iter().flatten().any(|it| !it.is_finite() || it < 0.0) {
        let message = "a reservation or limit is below zero, or not a number";
        return Err(Error::invalid(message).hint("give 0 or more"));
    }
    if new.limit.is_some_and(|limit| limit < new.reservation) {
        let message = "the limit is below the reservation";
        return Err(Error::invalid(message).hint("raise the limit, or reserve less"));
    }
    if !(1..=SHARES_MAX).contains(&new.shares) {
        let message = format!("a pool cannot have {} shares", new.shares);
        return Err(Error::invalid(message)
            .hint(format!("give 1 to {SHARES_MAX}; 1000 is usual")));
    }
    Ok(new)
}

fn view_pools(registry: &Registry, scene: &DrsScene) -> Vec<Pool> {
    let given = entitled(&scene.inventory);
    let mut sums = vec![Amounts::default(); registry.pools.len()];
    for (vm, given) in scene.inventory.vms.iter().zip(given) {
        let mut pool = vm.pool;
        while let Some(at) = pool {
            sums[at] = sums[at].plus(given);
            pool = scene.inventory.pools[at].parent;
        }
    }
    let view = |record: &PoolRecord| {
        let inside = |assignment: &&SeatRecord| {
            assignment.pool.as_deref() == Some(record.name.as_str())
        };
        Pool {
            name: record.name.clone(),
            parent: record.parent.clone(),
            cpu: record.cpu,
            memory: record.memory,
            vms: registry
                .assignments
                .iter()
                .filter(inside)
                .map(|assignment| assignment.vm.clone())
                .collect(),
            entitled: at(&scene.pools, &record.name)
                .map_or_else(Default::default, |at| amounts(sums[at])),
            created: record.created,
        }
    };
    registry.pools.iter().map(view).collect()
}
