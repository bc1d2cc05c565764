//! Datastores, disks and rules, as `core` is told of them; and its numbers in names again.

use std::collections::HashMap;

use sterna_api::{
    DatastoreLoad, JudgedDatastore, OverBound, Provision, RecommendedMove, Result,
    SpaceTrend, StayingDisk,
};
use sterna_core::predict::{Terms, Work};
use sterna_core::room::share_room;
use sterna_core::{DiskId, Nanos};
use sterna_placement::storage::{
    Bounds, Cooldown, Datastore, Disk, Fared, Inventory, Over, PastMove, Pinned,
    Recommended, Refused, Side, Strength, Why,
};
use sterna_state::{DiskRecord, StorageRuleRecord};

use super::reasons::reason;
use super::rules::rules_of;
use crate::Planner;
use crate::plans::StillPlanned;
use crate::site::{Site, SiteDatastore, SiteDisk};

/// Why a datastore takes no disk of which nothing else is known.
pub(super) const AWAY: &str = "it does not answer";

/// What `core` is told, and what its numbers stand for.
pub(super) struct StorageDrsScene {
    pub(super) inventory: Inventory,
    pub(super) names: Vec<String>,
    pub(super) disks: Vec<DiskRecord>,
    /// Why a datastore takes no disks, if it does not though it may answer.
    pub(super) closed: Vec<Option<&'static str>>,
    /// Which are in maintenance.
    maintenance: Vec<bool>,
    /// Which do not say what they have.
    away: Vec<bool>,
    rules: Vec<String>,
    /// The datastores that disks are leaving now.
    pub(super) left: Vec<usize>,
}

impl StorageDrsScene {
    /// As if no disk rested because it has moved.
    pub(super) fn wake(&mut self) {
        for disk in &mut self.inventory.disks {
            disk.pinned = disk.pinned.filter(|why| !matches!(why, Pinned::Moved(_)));
        }
    }
}

/// The datastores in their order, as the state machine sees them.
struct Ends {
    datastores: Vec<Datastore>,
    /// Where each is, by its name.
    at: HashMap<String, usize>,
}

impl Ends {
    fn of(site: &Site) -> Ends {
        // A wait that policies ask for is none of the storage's.
        // The room of a device or an export is its one image's, and is judged by no bound.
        let capacity = |one: &SiteDatastore| {
            one.space.filter(|_| one.is_shared).map_or(0, |space| space.capacity)
        };
        let end = |one: &SiteDatastore| Datastore {
            capacity: capacity(one),
            free: one.space.map_or(0, |space| space.free.min(capacity(one))),
            shared_room: one.space.and_then(|space| space.room),
            latency: one.did.at_device().p95,
            mean: Fared::of(&one.did).mean,
            device: one.device,
            settling: false,
            takes_disks: one.is_shared && !one.is_in_maintenance,
        };
        let names = site.datastores.iter().map(|one| one.name.clone());
        Ends {
            datastores: site.datastores.iter().map(end).collect(),
            at: names.enumerate().map(|(at, name)| (name, at)).collect(),
        }
    }

    fn at(&self, name: &str) -> Option<usize> {
        self.at.get(name).copied()
    }
}

impl StorageDrsScene {
    /// What moves are chosen from, and what holds of disks by these rules. A datastore counts
    /// as settling if a move of the last `window` has to do with it.
    pub(super) fn of(
        site: Site,
        window: Nanos,
        rules: &[StorageRuleRecord],
    ) -> StorageDrsScene {
        let mut ends = Ends::of(&site);
        let Site { now, datastores, disks: mut seen, moves, planned } = site;
        seen.retain(|disk| ends.at(&disk.record.datastore).is_some());
        let place = |disk: &SiteDisk| {
            let at = ends.at(&disk.record.datastore)?;
            Some(placed(disk, at, datastores[at].space.is_some()))
        };
        let mut disks: Vec<Disk> = seen.iter().filter_map(place).collect();
        let at: HashMap<DiskId, usize> =
            seen.iter().enumerate().map(|(at, disk)| (disk.record.id, at)).collect();
        let mut past: HashMap<usize, Vec<PastMove>> = HashMap::new();
        let mut left = Vec::new();
        for one in &moves {
            let Some([from, to]) = &one.ends else { continue };
            let both = [ends.at(from), ends.at(to)];
            let ago = one.ended.map(|ended| Nanos::from_secs(now.saturating_sub(ended)));
            if ago.is_none_or(|ago| ago < window) {
                both.iter().flatten().for_each(|at| ends.datastores[*at].settling = true);
            }
            match (at.get(&one.disk), ago) {
                (Some(disk), Some(ago)) if one.has_moved => {
                    past.entry(*disk)
                        .or_default()
                        .push(PastMove { ago, ours: one.is_balancing });
                }
                (Some(disk), None) => {
                    left.extend(both[0]);
                    moves_away(&mut disks[*disk], both, &mut ends.datastores);
                }
                _ => {}
            }
        }
        leave_to_plans(&planned, &at, &mut disks, &mut ends);
        for (disk, past) in past {
            let rests = Cooldown::of(&past).map(Pinned::Moved);
            disks[disk].pinned = disks[disk].pinned.or(rests);
        }
        let closed =
            datastores.iter().zip(&ends.datastores).map(|(one, end)| closed(one, end));
        let records: Vec<DiskRecord> = seen.into_iter().map(|disk| disk.record).collect();
        StorageDrsScene {
            closed: closed.collect(),
            inventory: Inventory {
                datastores: ends.datastores,
                disks,
                rules: rules_of(rules, &records),
            },
            maintenance: datastores.iter().map(|one| one.is_in_maintenance).collect(),
            away: datastores.iter().map(|one| one.space.is_none()).collect(),
            names: datastores.into_iter().map(|one| one.name).collect(),
            disks: records,
            rules: rules.iter().map(|rule| rule.name.clone()).collect(),
            left,
        }
    }
}

/// Why a datastore takes no disks, if it does not though it may answer.
fn closed(one: &SiteDatastore, end: &Datastore) -> Option<&'static str> {
    match (one.is_in_maintenance, one.is_shared) {
        (true, _) => Some("it is in maintenance"),
        (false, false) => Some("it holds a single disk"),
        // Of those that would take some, only a plan keeps them.
        (false, true) => (!end.takes_disks).then_some("a plan empties it"),
    }
}

/// What plans under way have still to move stays, and counts where it will be; to what they
/// empty nothing goes.
fn leave_to_plans(
    planned: &[StillPlanned],
    at: &HashMap<DiskId, usize>,
    disks: &mut [Disk],
    ends: &mut Ends,
) {
    for one in planned {
        if let Some(from) = ends.at(&one.empties) {
            ends.datastores[from].takes_disks = false;
        }
        let Some(disk) = at.get(&one.disk).map(|at| &mut disks[*at]) else { continue };
        // What moves already counts at its destination.
        if disk.pinned != Some(Pinned::Moves) {
            disk.pinned = Some(Pinned::Moves);
            if let Some(to) = ends.at(&one.to) {
                with_mates(&mut ends.datastores, to, |there| {
                    there.free = there.free.saturating_sub(one.needs);
                });
            }
        }
    }
}

/// A disk on the datastore at this place, which answers or not.
fn placed(disk: &SiteDisk, datastore: usize, answers: bool) -> Disk {
    let SiteDisk { record, taken, work, problem } = disk;
    let response = work.response.as_secs_f64();
    let thin = record.provision == Provision::Thin;
    Disk {
        datastore,
        taken: *taken,
        needs: if thin { *taken } else { record.size },
        promised: if thin { record.size.saturating_sub(*taken) } else { 0 },
        outstanding: work.outstanding,
        iops: if response > 0.0 { work.outstanding / response } else { 0.0 },
        pinned: match problem {
            Some(_) => Some(Pinned::NotServed),
            None => (!answers).then_some(Pinned::Away),
        },
    }
}

impl Planner {
    /// Everything that moves are chosen from.
    pub(super) fn scene(&self, window: Nanos) -> Result<StorageDrsScene> {
        let rules = self.storage.store.storage_rules()?;
        Ok(StorageDrsScene::of(self.site(window, |_| true)?, window, &rules))
    }

    /// A move in the API's form, with what it will take.
    pub(super) fn recommended(
        &self,
        scene: &StorageDrsScene,
        one: &Recommended,
    ) -> Result<RecommendedMove> {
        let (disk, to) = (&scene.disks[one.disk], scene.names[one.to].clone());
        let here = &scene.inventory.disks[one.disk];
        let summary = self.moves.lately(disk)?;
        let (work, terms) = (Work::of(&summary), Terms::default());
        let (over, rule) = scene.why(one.why);
        Ok(RecommendedMove {
            disk: disk.name.clone(),
            from: scene.names[one.from].clone(),
            predicted: self.moves.told(disk, &to, false, work, terms)?,
            to,
            over,
            rule,
            priority: one.priority,
            step: one.step as u64,
            bytes: here.taken,
            source: [one.before[0], one.after[0]]
                .map(|side| scene.load_at(one.from, side)),
            destination: [load(one.before[1]), load(one.after[1])],
        })
    }
}

/// A disk that moves counts for its destination.
fn moves_away(disk: &mut Disk, ends: [Option<usize>; 2], datastores: &mut [Datastore]) {
    disk.pinned = Some(Pinned::Moves);
    let [Some(from), Some(to)] = ends else { return };
    disk.datastore = to;
    with_mates(datastores, from, |left| {
        left.free = left.free.saturating_add(disk.taken).min(left.capacity);
    });
    with_mates(datastores, to, |there| {
        there.free = there.free.saturating_sub(disk.needs);
    });
}

/// Changes a datastore, and those that have their room from where it has its own.
fn with_mates(datastores: &mut [Datastore], at: usize, change: impl Fn(&mut Datastore)) {
    let room = datastores[at].shared_room;
    for (other, one) in datastores.iter_mut().enumerate() {
        if other == at || share_room(room, one.shared_room) {
            change(one);
        }
    }
}

impl StorageDrsScene {
    /// What datastores are like.
    fn sides(&self) -> impl Iterator<Item = (usize, Side)> {
        self.inventory.datastores.iter().enumerate().map(|(at, one)| {
            let used = (one.capacity - one.free) as f64;
            let taken = if one.capacity > 0 { used / one.capacity as f64 } else { 0.0 };
            (at, Side { taken, latency: one.latency })
        })
    }

    /// The datastores that are over a bound, each with it.
    pub(super) fn over(&self, bounds: &Bounds) -> Vec<(String, Over)> {
        let over = |(at, side): (usize, Side)| {
            let name = self.names[at].clone();
            let all = self.exceeded(at, side, bounds).into_iter();
            all.map(move |over| (name.clone(), over))
        };
        self.sides().flat_map(over).collect()
    }

    /// The rules that must hold and do not.
    pub(super) fn broken(&self) -> Vec<String> {
        let at: Vec<usize> =
            self.inventory.disks.iter().map(|disk| disk.datastore).collect();
        let rules = self.inventory.rules.iter().zip(&self.rules);
        let broken = rules
            .filter(|(rule, _)| rule.strength == Strength::Must && rule.is_broken(&at));
        broken.map(|(_, name)| name.clone()).collect()
    }

    /// What a datastore is like, in the API's form: the room of one that is one image's is
    /// not told.
    fn load_at(&self, at: usize, side: Side) -> DatastoreLoad {
        let taken = (self.inventory.datastores[at].capacity > 0).then_some(side.taken);
        DatastoreLoad { taken, ..load(side) }
    }

    /// Datastores in the API's form, with the trend of each.
    pub(super) fn judged(
        &self,
        bounds: &Bounds,
        trend: impl Fn(&str) -> Option<SpaceTrend>,
    ) -> Vec<JudgedDatastore> {
        let judge = |(at, side): (usize, Side)| {
            let one = &self.inventory.datastores[at];
            JudgedDatastore {
                datastore: self.names[at].clone(),
                load: self.load_at(at, side),
                outstanding: self.outstanding(at),
                over: self.exceeded(at, side, bounds).into_iter().map(bound).collect(),
                away: self.away[at],
                settling: one.settling,
                maintenance: self.maintenance[at],
                shares_room_with: self
                    .inventory
                    .mates(at)
                    .map(|mate| self.names[mate].clone())
                    .collect(),
                trend: trend(&self.names[at]),
            }
        };
        self.sides().map(judge).collect()
    }

    /// How many requests the disks of a datastore have under way, on average.
    fn outstanding(&self, at: usize) -> f64 {
        let on_it = self.inventory.disks.iter().filter(|disk| disk.datastore == at);
        // The sum of no floats is -0.0.
        on_it.fold(0.0, |sum, disk| sum + disk.outstanding)
    }

    /// The bounds that a datastore is over. Where no disk has requests, all that was slow were
    /// copies to or from it, which hurt nobody, and which no move would make quicker.
    fn exceeded(&self, at: usize, side: Side, bounds: &Bounds) -> Vec<Over> {
        let full = (side.taken > bounds.space).then_some(Over::Space);
        let slow = side.latency.is_some_and(|it| it > bounds.latency);
        let slow = slow && self.outstanding(at) > 0.0;
        full.into_iter().chain(slow.then_some(Over::Latency)).collect()
    }

    /// A disk that stays, in the API's form.
    pub(super) fn staying(&self, one: &Refused) -> StayingDisk {
        let disk = &self.disks[one.disk];
        let to = one.to.map(|to| self.names[to].clone());
        let (over, rule) = self.why(one.why);
        // A disk that moves counts where it goes, and is still where it was.
        let counts = &self.names[self.inventory.disks[one.disk].datastore];
        let goes = (*counts != disk.datastore).then(|| counts.clone());
        let to = to.or(goes);
        StayingDisk {
            disk: disk.name.clone(),
            datastore: disk.datastore.clone(),
            over,
            rule,
            reason: reason(one.because, to.as_deref(), &self.rules),
            to,
        }
    }

    /// Why a disk should move, in the API's form.
    pub(super) fn why(&self, why: Why) -> (Option<OverBound>, Option<String>) {
        match why {
            Why::Over(over) => (Some(bound(over)), None),
            Why::Rule(rule) => (None, Some(self.rules[rule].clone())),
        }
    }
}

fn bound(over: Over) -> OverBound {
    match over {
        Over::Space => OverBound::Space,
        Over::Latency => OverBound::Latency,
    }
}

/// A datastore's side in the API's form.
pub(super) fn load(side: Side) -> DatastoreLoad {
    let p95_us = side.latency.map(|latency| latency.0 as f64 / 1e3);
    DatastoreLoad { taken: Some(side.taken), p95_us }
}

#[cfg(test)]
mod tests;
