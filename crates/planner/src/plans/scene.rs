//! What there is when a plan is made, as `core` is told of it.
//!
//! What others bring to a datastore counts as being there: migrations under way, and
//! plans that are not over.

use std::collections::{HashMap, HashSet};

use sterna_api::{Error, ErrorCode, PlanEvacuation, Provision, Result};
use sterna_core::predict::Work;
use sterna_core::room::share_room;
use sterna_core::{Bytes, DiskId, Percent};
use sterna_placement::waves::{Datastore, Disk, Inventory, Pinned, Takes};
use sterna_state::{DiskRecord, PlanRecord};

use super::tiles::Grouped;
use crate::site::{Site, SiteDatastore, SiteDisk, SiteMove};

/// What `core` is told, and what its numbers stand for.
pub(super) struct PlanScene {
    pub(super) inventory: Inventory,
    pub(super) names: Vec<String>,
    /// Those on the datastore that is left.
    pub(super) disks: Vec<DiskRecord>,
    /// What each has to copy.
    pub(super) bytes: Vec<u64>,
    /// What each asks for.
    pub(super) work: Vec<Work>,
    /// Why each stays, of those that are pinned.
    pub(super) pinned: HashMap<usize, String>,
}

/// What is under way already.
struct Busy<'s> {
    /// Moves that have not ended.
    moves: Vec<&'s SiteMove>,
    /// By datastore: what plans that are not over will still bring.
    planned: HashMap<&'s str, u64>,
    /// By disk: the plan that has still to move it.
    plans: HashMap<DiskId, u64>,
}

impl<'s> Busy<'s> {
    fn of(site: &'s Site) -> Busy<'s> {
        let moves = site.moves.iter().filter(|one| one.ended.is_none()).collect();
        let mut busy = Busy { moves, planned: HashMap::new(), plans: HashMap::new() };
        let mut theirs = HashSet::new();
        for one in &site.planned {
            busy.plans.insert(one.disk, one.plan);
            theirs.extend(one.migration);
            *busy.planned.entry(&one.to).or_default() += one.needs;
        }
        // Those of plans are counted with them.
        for one in busy.moves.iter().filter(|one| !theirs.contains(&one.id)) {
            let Some([_, to]) = &one.ends else { continue };
            *busy.planned.entry(to).or_default() += one.size;
        }
        busy
    }

    /// Why a disk stays where it is, if it does.
    fn pins(&self, disk: &SiteDisk) -> Option<(Pinned, String)> {
        let id = disk.record.id;
        if let Some(one) = self.moves.iter().find(|one| one.disk == id) {
            let why = format!("the disk is already moving, by migration {}", one.id);
            return Some((Pinned::Moves, why));
        }
        if let Some(plan) = self.plans.get(&id) {
            return Some((
                Pinned::Planned,
                format!("plan {plan} moves the disk already"),
            ));
        }
        let problem = disk.problem.as_ref();
        problem.map(|why| (Pinned::NotServed, format!("the disk is not served: {why}")))
    }
}

impl PlanScene {
    /// Everything that a plan to leave a datastore is made from.
    pub(super) fn of(
        site: &Site,
        asked: &PlanEvacuation,
        grouped: &Grouped,
    ) -> Result<PlanScene> {
        let busy = Busy::of(site);
        let from = site.datastores.iter().position(|one| one.name == asked.datastore);
        let unknown = || Error::not_found("datastore", &asked.datastore);
        let from = from.ok_or_else(unknown)?;
        let end = |one| end(site, one, asked, &busy);
        let mut scene = PlanScene {
            inventory: Inventory {
                datastores: site.datastores.iter().map(end).collect(),
                disks: Vec::new(),
                groups: grouped.groups.clone(),
            },
            names: site.datastores.iter().map(|one| one.name.clone()).collect(),
            disks: Vec::new(),
            bytes: Vec::new(),
            work: Vec::new(),
            pinned: HashMap::new(),
        };
        let is_there = |disk: &&SiteDisk| disk.record.datastore == asked.datastore;
        for disk in site.disks.iter().filter(is_there) {
            scene.enter(disk, from, grouped.group_of(&disk.record.name), busy.pins(disk));
        }
        Ok(scene)
    }

    /// Adds a disk that is to leave.
    fn enter(
        &mut self,
        disk: &SiteDisk,
        from: usize,
        group: Option<usize>,
        pinned: Option<(Pinned, String)>,
    ) {
        let SiteDisk { record, taken, work, .. } = disk;
        if let Some((_, why)) = &pinned {
            self.pinned.insert(self.disks.len(), why.clone());
        }
        let thin = record.provision == Provision::Thin;
        self.inventory.disks.push(Disk {
            from,
            size: record.size,
            needs: if thin { *taken } else { record.size },
            outstanding: work.outstanding,
            group,
            pinned: pinned.map(|(pinned, _)| pinned),
        });
        self.bytes.push(*taken);
        self.work.push(*work);
        self.disks.push(record.clone());
    }
}

/// A datastore as the state machine sees it.
fn end(
    site: &Site,
    one: &SiteDatastore,
    asked: &PlanEvacuation,
    busy: &Busy<'_>,
) -> Datastore {
    let brought = sum_of_room(site, one, &busy.planned);
    let free = one.space.map_or(0, |space| space.free.min(space.capacity));
    let on_it = site.disks.iter().filter(|disk| disk.record.datastore == one.name);
    Datastore {
        capacity: one.space.map_or(0, |space| space.capacity),
        free: free.saturating_sub(brought),
        shared_room: one.space.and_then(|space| space.room),
        takes: match one.space {
            Some(_) => takes(site, one, asked, busy),
            None => Takes::Nothing,
        },
        outstanding: on_it.map(|disk| disk.work.outstanding).sum(),
        device: one.device,
    }
}

/// Refuses a plan whose destinations have no longer the room that it was made for: it may be
/// a week old, or another plan may have been begun meanwhile.
pub(super) fn check_still_fits(record: &PlanRecord, site: &Site) -> Result<()> {
    let busy = Busy::of(site);
    let mut brings: HashMap<&str, u64> = HashMap::new();
    for one in &record.moves {
        let to = &record.design.ends[one.design.to].name;
        *brings.entry(to).or_default() += one.design.needs;
    }
    for one in &site.datastores {
        let name = one.name.as_str();
        if !brings.contains_key(name) {
            continue;
        }
        let hint = format!(
            "make a new plan: `sterna plan evacuate {}`",
            record.design.datastore
        );
        if one.is_in_maintenance {
            let message = format!("datastore {name} is in maintenance");
            return Err(Error::in_use(message).hint(hint));
        }
        // What is offline is waited for.
        let Some(space) = one.space.filter(|_| one.is_shared) else { continue };
        let room = (space.capacity as f64 * record.design.space) as u64;
        let taken = space.capacity.saturating_sub(space.free);
        let come = [&busy.planned, &brings].map(|those| sum_of_room(site, one, those));
        let come = come.into_iter().fold(0, u64::saturating_add);
        let left = room.saturating_sub(taken);
        if come > left {
            let (come, left) = (Bytes(come), Bytes(left));
            let part = Percent(record.design.space);
            let message = format!(
                "datastore {name} no longer has the room that the plan needs: {come} \
                 arrive, and {left} are free until {part} of it are used"
            );
            let hint = format!("{hint}, with --space to fill the datastores further");
            return Err(Error::new(ErrorCode::NoSpace, message).hint(hint));
        }
    }
    Ok(())
}

/// What all together will come to, of these bytes by datastore, where a datastore has its
/// room: its own, and those of others that have theirs from there.
fn sum_of_room(site: &Site, one: &SiteDatastore, bytes: &HashMap<&str, u64>) -> u64 {
    let room = |one: &SiteDatastore| one.space.and_then(|space| space.room);
    let those = site
        .datastores
        .iter()
        .filter(|other| other.name == one.name || share_room(room(one), room(other)));
    those.filter_map(|other| bytes.get(other.name.as_str())).sum()
}

/// Whether a datastore that answers takes disks of a plan.
fn takes(
    site: &Site,
    one: &SiteDatastore,
    asked: &PlanEvacuation,
    busy: &Busy<'_>,
) -> Takes {
    let name = &one.name;
    let named = asked.to.contains(name);
    let open = named || (asked.to.is_empty() && one.is_shared);
    if !open || *name == asked.datastore || one.is_in_maintenance {
        return Takes::Nothing;
    }
    if one.is_shared {
        return Takes::Any;
    }
    let has_one = site.disks.iter().any(|disk| disk.record.datastore == *name)
        || busy.moves.iter().any(|one| one.is_on(name))
        || busy.planned.contains_key(name.as_str());
    if has_one { Takes::Nothing } else { Takes::One }
}

#[cfg(test)]
mod tests;
