//! What there is when a plan is made, as `core` is told of it.
//!
//! What others bring to a datastore counts as being there: migrations under way, and
//! plans that are not over.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sterna_api::{Error, ErrorCode, PlanEvacuation, Provision, Result};
use sterna_core::measure::LqFit;
use sterna_core::place::share_room;
use sterna_core::place::waves::{Datastore, Disk, Inventory, Pinned, Takes};
use sterna_core::predict::Work;
use sterna_core::{Bytes, Percent};
use sterna_engine::DiskId;

use super::tiles::Grouped;
use crate::daemon::Daemon;
use crate::figures::RECENT;
use crate::shelf::{Found, Shelf};
use crate::store::{DiskRecord, MigrationRecord, PlanRecord};

/// What `core` is told, and what its numbers stand for.
pub(super) struct Scene {
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
struct Busy {
    migrations: Vec<MigrationRecord>,
    /// By datastore: what plans that are not over will still bring.
    planned: HashMap<String, u64>,
    /// By disk: the plan that has still to move it.
    plans: HashMap<DiskId, u64>,
}

impl Daemon {
    /// Everything that a plan to leave a datastore is made from.
    pub(super) fn scene_of_plan(
        &self,
        asked: &PlanEvacuation,
        grouped: &Grouped,
    ) -> Result<Scene> {
        let busy = self.busy()?;
        let all = self.store.disks()?;
        let (mut names, mut datastores) = (Vec::new(), Vec::new());
        let looks = self.look_at_shelves();
        for (shelf, found) in &looks {
            let name = shelf.name();
            let space = found.as_ref().ok();
            let brought = sum_of_room(&looks, (shelf, found), &busy.planned);
            let free = space.map_or(0, |space| space.free.min(space.capacity));
            let on_it = all.iter().filter(|disk| disk.datastore == name);
            datastores.push(Datastore {
                capacity: space.map_or(0, |space| space.capacity),
                free: free.saturating_sub(brought),
                shared_room: space.and_then(|space| space.room),
                takes: match space {
                    Some(_) => takes(shelf, asked, &all, &busy),
                    None => Takes::Nothing,
                },
                outstanding: on_it.map(|disk| self.work_of(disk).outstanding).sum(),
                device: self.samples.device(name).unwrap_or(LqFit::TooFew { points: 0 }),
            });
            names.push(name.to_owned());
        }
        let from = names.iter().position(|name| *name == asked.datastore);
        let unknown = || Error::not_found("datastore", &asked.datastore);
        let from = from.ok_or_else(unknown)?;
        let mut scene = Scene {
            inventory: Inventory {
                datastores,
                disks: Vec::new(),
                groups: grouped.groups.clone(),
            },
            names,
            disks: Vec::new(),
            bytes: Vec::new(),
            work: Vec::new(),
            pinned: HashMap::new(),
        };
        let mut leaving = all;
        leaving.retain(|disk| disk.datastore == asked.datastore);
        for disk in leaving {
            self.enter(&mut scene, disk, from, grouped, &busy)?;
        }
        Ok(scene)
    }

    /// Adds a disk that is to leave.
    fn enter(
        &self,
        scene: &mut Scene,
        disk: DiskRecord,
        from: usize,
        grouped: &Grouped,
        busy: &Busy,
    ) -> Result<()> {
        let at = scene.disks.len();
        // Where nobody answers it is not asked what an image takes.
        let answers = scene.inventory.datastores[from].capacity > 0;
        let bytes = if answers { self.to_copy(&disk) } else { disk.size };
        let work = self.work_of(&disk);
        let pinned = self.pinned(&disk, busy)?;
        if let Some((_, why)) = &pinned {
            scene.pinned.insert(at, why.clone());
        }
        scene.inventory.disks.push(Disk {
            from,
            size: disk.size,
            needs: if disk.provision == Provision::Thin { bytes } else { disk.size },
            outstanding: work.outstanding,
            group: grouped.group_of(&disk.name),
            pinned: pinned.map(|(pinned, _)| pinned),
        });
        scene.bytes.push(bytes);
        scene.work.push(work);
        scene.disks.push(disk);
        Ok(())
    }

    fn work_of(&self, disk: &DiskRecord) -> Work {
        Work::of(&self.samples.of_disk(disk.id, RECENT))
    }

    /// Why a disk stays where it is, if it does.
    fn pinned(&self, disk: &DiskRecord, busy: &Busy) -> Result<Option<(Pinned, String)>> {
        let moves = busy.migrations.iter().find(|one| one.disk == disk.id);
        let moves = match moves.map(|one| one.id) {
            Some(id) => Some(id),
            None => self.vm_move_of(disk.id)?.map(|one| one.id),
        };
        Ok(if let Some(id) = moves {
            Some((
                Pinned::Moves,
                format!("the disk is already moving, by migration {id}"),
            ))
        } else if let Some(plan) = busy.plans.get(&disk.id) {
            Some((Pinned::Planned, format!("plan {plan} moves the disk already")))
        } else {
            let problem = self.problem_of(disk.id);
            problem
                .map(|why| (Pinned::NotServed, format!("the disk is not served: {why}")))
        })
    }

    /// Refuses a plan whose destinations have no longer the room that it was made for: it
    /// may be a week old, or another plan may have been begun meanwhile.
    pub(super) fn check_still_fits(
        &self,
        record: &PlanRecord,
        shelves: &[(Arc<Shelf>, Found)],
    ) -> Result<()> {
        let busy = self.busy()?;
        let mut brings: HashMap<String, u64> = HashMap::new();
        for one in &record.moves {
            let to = record.design.ends[one.design.to].name.clone();
            *brings.entry(to).or_default() += one.design.needs;
        }
        for (shelf, found) in shelves {
            let name = shelf.name();
            if !brings.contains_key(name) {
                continue;
            }
            let hint = format!(
                "make a new plan: `sterna plan evacuate {}`",
                record.design.datastore
            );
            if shelf.is_in_maintenance() {
                let message = format!("datastore {name} is in maintenance");
                return Err(Error::in_use(message).hint(hint));
            }
            // What is offline is waited for.
            let space = found.as_ref().ok().filter(|_| shelf.is_shared());
            let Some(space) = space else { continue };
            let room = (space.capacity as f64 * record.design.space) as u64;
            let taken = space.capacity.saturating_sub(space.free);
            let come = [&busy.planned, &brings];
            let come = come.map(|those| sum_of_room(shelves, (shelf, found), those));
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

    fn busy(&self) -> Result<Busy> {
        let mut migrations = self.migration_records()?;
        migrations.retain(|one| !one.step.ended());
        let mut busy =
            Busy { migrations, planned: HashMap::new(), plans: HashMap::new() };
        let mut theirs = HashSet::new();
        for one in self.still_planned() {
            busy.plans.insert(one.disk, one.plan);
            theirs.extend(one.migration);
            *busy.planned.entry(one.to).or_default() += one.needs;
        }
        // Those of plans are counted with them.
        for one in busy.migrations.iter().filter(|one| !theirs.contains(&one.id)) {
            *busy.planned.entry(one.to.datastore.clone()).or_default() += one.size;
        }
        Ok(busy)
    }
}

/// What all together will come to, of these bytes by datastore, where a datastore has its
/// room: its own, and those of others that have theirs from there.
fn sum_of_room(
    shelves: &[(Arc<Shelf>, Found)],
    (shelf, found): (&Arc<Shelf>, &Found),
    bytes: &HashMap<String, u64>,
) -> u64 {
    let room = |found: &Found| found.as_ref().ok().and_then(|space| space.room);
    let those = shelves.iter().filter(|(one, its)| {
        Arc::ptr_eq(one, shelf) || share_room(room(found), room(its))
    });
    those.filter_map(|(one, _)| bytes.get(one.name())).sum()
}

/// Whether a datastore that answers takes disks of a plan.
fn takes(
    shelf: &Shelf,
    asked: &PlanEvacuation,
    disks: &[DiskRecord],
    busy: &Busy,
) -> Takes {
    let name = shelf.name();
    let named = asked.to.iter().any(|to| to == name);
    let open = named || (asked.to.is_empty() && shelf.is_shared());
    if !open || name == asked.datastore || shelf.is_in_maintenance() {
        return Takes::Nothing;
    }
    if shelf.is_shared() {
        return Takes::Any;
    }
    let has_one = disks.iter().any(|disk| disk.datastore == name)
        || busy.migrations.iter().any(|one| one.is_on(name))
        || busy.planned.contains_key(name);
    if has_one { Takes::Nothing } else { Takes::One }
}
