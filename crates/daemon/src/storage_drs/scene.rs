//! Datastores, disks and rules, as `core` is told of them; and its numbers in names again.

use std::collections::HashMap;

use sterna_api::{
    DatastoreLoad, JudgedDatastore, OverBound, Provision, RecommendedMove, Result,
    StayingDisk,
};
use sterna_core::Nanos;
use sterna_core::measure::LqFit;
use sterna_core::place::share_room;
use sterna_core::place::storage::{
    Bounds, Datastore, Disk, Fared, Inventory, Over, Past, Pinned, Recommended, Refused,
    Rest, Side, Strength, Why,
};
use sterna_core::predict::{Terms, Work};
use sterna_engine::DiskId;
use sterna_os::clock;

use super::reasons::reason;
use super::rules::rules_of;
use crate::daemon::Daemon;
use crate::store::DiskRecord;

/// Why a datastore takes no disk of which nothing else is known.
pub(super) const AWAY: &str = "it does not answer";

/// What `core` is told, and what its numbers stand for.
pub(super) struct Scene {
    pub(super) inventory: Inventory,
    pub(super) names: Vec<String>,
    pub(super) disks: Vec<DiskRecord>,
    /// Why a datastore takes no disks, if it does not though it may answer.
    pub(super) closed: Vec<Option<&'static str>>,
    /// Which are in maintenance.
    maintenance: Vec<bool>,
    rules: Vec<String>,
    /// The datastores that disks are leaving now.
    pub(super) left: Vec<usize>,
}

impl Scene {
    /// As if no disk rested because it has moved.
    pub(super) fn wake(&mut self) {
        for disk in &mut self.inventory.disks {
            disk.pinned = disk.pinned.filter(|why| !matches!(why, Pinned::Moved(_)));
        }
    }
}

/// All datastores.
#[derive(Default)]
struct Seen {
    names: Vec<String>,
    datastores: Vec<Datastore>,
    closed: Vec<Option<&'static str>>,
    maintenance: Vec<bool>,
}

impl Daemon {
    /// Everything that moves are chosen from.
    pub(super) fn scene(&self, window: Nanos) -> Result<Scene> {
        let Seen { names, mut datastores, mut closed, maintenance } =
            self.seen_datastores(window);
        let known: HashMap<&str, usize> =
            names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let mut records = self.store.disks()?;
        records.retain(|disk| known.contains_key(disk.datastore.as_str()));
        let mut disks: Vec<Disk> = records
            .iter()
            .map(|disk| {
                let at = known[disk.datastore.as_str()];
                // Where nobody answers it is not asked what an image takes.
                let answers = datastores[at].capacity > 0;
                let taken = if answers { self.to_copy(disk) } else { disk.size };
                self.placed_disk(disk, at, taken, window)
            })
            .collect();
        let at: HashMap<DiskId, usize> =
            records.iter().enumerate().map(|(at, disk)| (disk.id, at)).collect();
        let mut past: HashMap<usize, Vec<Past>> = HashMap::new();
        let (mut left, now) = (Vec::new(), clock::now());
        for migration in self.migration_records()? {
            let ends = [&migration.from, &migration.to];
            let ends = ends.map(|place| known.get(place.datastore.as_str()).copied());
            let ago = migration.ended.map(|ended| now.saturating_sub(ended));
            let ago = ago.map(Nanos::from_secs);
            if ago.is_none_or(|ago| ago < window) {
                ends.into_iter().flatten().for_each(|at| datastores[at].settling = true);
            }
            let disk = at.get(&migration.disk).copied();
            match (disk, ago) {
                (Some(disk), Some(ago)) if migration.report.is_some() => {
                    let ours = self.balancer.balanced(migration.id).is_some();
                    past.entry(disk).or_default().push(Past { ago, ours });
                }
                (Some(disk), None) => {
                    left.extend(ends[0]);
                    moves(&mut disks[disk], ends, &mut datastores);
                }
                _ => {}
            }
        }
        self.leave_to_plans(&known, &at, &mut disks, &mut datastores);
        for (why, one) in closed.iter_mut().zip(&datastores) {
            // Of those that would take some, only a plan keeps them.
            let is_left = why.is_none() && !one.takes_disks;
            *why = if is_left { Some("a plan empties it") } else { *why };
        }
        for (disk, past) in past {
            let rests = Rest::of(&past).map(Pinned::Moved);
            disks[disk].pinned = disks[disk].pinned.or(rests);
        }
        let rules = self.store.storage_rules()?;
        Ok(Scene {
            inventory: Inventory { datastores, disks, rules: rules_of(&rules, &records) },
            names,
            disks: records,
            closed,
            maintenance,
            rules: rules.into_iter().map(|rule| rule.name).collect(),
            left,
        })
    }

    /// The datastores, as they are and as they fared.
    fn seen_datastores(&self, window: Nanos) -> Seen {
        let mut seen = Seen::default();
        for (shelf, found) in self.look_at_shelves() {
            let name = shelf.name();
            let space = found.ok();
            let did = self.samples.of_datastore(name, window);
            let is_kept = shelf.is_in_maintenance();
            seen.maintenance.push(is_kept);
            seen.closed.push(match (is_kept, shelf.is_shared()) {
                (true, _) => Some("it is in maintenance"),
                (false, false) => Some("it holds a single disk"),
                (false, true) => None,
            });
            seen.datastores.push(Datastore {
                capacity: space.map_or(0, |space| space.capacity),
                free: space.map_or(0, |space| space.free.min(space.capacity)),
                shared_room: space.and_then(|space| space.room),
                latency: did.p95,
                mean: Fared::of(&did).mean,
                device: self.samples.device(name).unwrap_or(LqFit::TooFew { points: 0 }),
                settling: false,
                takes_disks: shelf.is_shared() && !is_kept,
            });
            seen.names.push(name.to_owned());
        }
        seen
    }

    /// What plans under way have still to move stays, and counts where it will be; to what
    /// they empty nothing goes.
    fn leave_to_plans(
        &self,
        known: &HashMap<&str, usize>,
        at: &HashMap<DiskId, usize>,
        disks: &mut [Disk],
        datastores: &mut [Datastore],
    ) {
        for one in self.still_planned() {
            if let Some(from) = known.get(one.empties.as_str()) {
                datastores[*from].takes_disks = false;
            }
            let Some(disk) = at.get(&one.disk).map(|at| &mut disks[*at]) else {
                continue;
            };
            // What moves already counts at its destination.
            if disk.pinned != Some(Pinned::Moves) {
                disk.pinned = Some(Pinned::Moves);
                if let Some(to) = known.get(one.to.as_str()) {
                    with_mates(datastores, *to, |there| {
                        there.free = there.free.saturating_sub(one.needs);
                    });
                }
            }
        }
    }

    fn placed_disk(
        &self,
        record: &DiskRecord,
        datastore: usize,
        taken: u64,
        window: Nanos,
    ) -> Disk {
        let work = Work::of(&self.samples.of_disk(record.id, window));
        let response = work.response.as_secs_f64();
        let thin = record.provision == Provision::Thin;
        Disk {
            datastore,
            taken,
            needs: if thin { taken } else { record.size },
            promised: if thin { record.size.saturating_sub(taken) } else { 0 },
            outstanding: work.outstanding,
            iops: if response > 0.0 { work.outstanding / response } else { 0.0 },
            pinned: self.problem_of(record.id).map(|_| Pinned::NotServed),
        }
    }

    /// A move in the API's form, with what it will take.
    pub(super) fn recommended(
        &self,
        scene: &Scene,
        one: &Recommended,
    ) -> Result<RecommendedMove> {
        let (disk, to) = (&scene.disks[one.disk], scene.names[one.to].clone());
        let here = &scene.inventory.disks[one.disk];
        let summary = self.samples.of_disk(disk.id, crate::figures::RECENT);
        let (work, terms) = (Work::of(&summary), Terms::default());
        let (over, rule) = scene.why(one.why);
        Ok(RecommendedMove {
            disk: disk.name.clone(),
            from: scene.names[one.from].clone(),
            predicted: self.told(disk, &to, false, work, terms)?,
            to,
            over,
            rule,
            priority: one.priority,
            step: one.step as u64,
            bytes: here.taken,
            source: [load(one.before[0]), load(one.after[0])],
            destination: [load(one.before[1]), load(one.after[1])],
        })
    }
}

/// A disk that moves counts for its destination.
fn moves(disk: &mut Disk, ends: [Option<usize>; 2], datastores: &mut [Datastore]) {
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

impl Scene {
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
            exceeded(side, bounds).into_iter().map(move |over| (name.clone(), over))
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

    /// Datastores in the API's form.
    pub(super) fn judged(&self, bounds: &Bounds) -> Vec<JudgedDatastore> {
        let judge = |(at, side): (usize, Side)| {
            let one = &self.inventory.datastores[at];
            let on_it = self.inventory.disks.iter().filter(|disk| disk.datastore == at);
            let taken = (one.capacity > 0).then_some(side.taken);
            JudgedDatastore {
                datastore: self.names[at].clone(),
                load: DatastoreLoad { taken, ..load(side) },
                // The sum of no floats is -0.0.
                outstanding: on_it.fold(0.0, |sum, disk| sum + disk.outstanding),
                over: exceeded(side, bounds).into_iter().map(bound).collect(),
                settling: one.settling,
                maintenance: self.maintenance[at],
            }
        };
        self.sides().map(judge).collect()
    }

    /// A disk that stays, in the API's form.
    pub(super) fn staying(&self, one: &Refused) -> StayingDisk {
        let disk = &self.disks[one.disk];
        let to = one.to.map(|to| self.names[to].clone());
        let (over, rule) = self.why(one.why);
        StayingDisk {
            disk: disk.name.clone(),
            datastore: self.names[self.inventory.disks[one.disk].datastore].clone(),
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

/// The bounds that a datastore is over.
fn exceeded(side: Side, bounds: &Bounds) -> Vec<Over> {
    let full = (side.taken > bounds.space).then_some(Over::Space);
    let slow = side.latency.is_some_and(|it| it > bounds.latency);
    full.into_iter().chain(slow.then_some(Over::Latency)).collect()
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
