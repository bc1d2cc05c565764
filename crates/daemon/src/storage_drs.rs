//! Storage DRS: what there is, as `core` is told of it, and what it says of that.
//!
//! Nothing is kept: whoever asks again gets what holds then. A disk that moves counts for
//! the datastore that it goes to, so that asking twice does not send two disks into the
//! same room.

use std::collections::HashMap;

use sterna_api::{
    AskStorageDrs, DatastoreLoad, JudgedDatastore, OverBound, Provision, Recommendations,
    RecommendedMove, StayingDisk,
};
use sterna_core::Nanos;
use sterna_core::measure::LqFit;
use sterna_core::place::storage::{
    Because, Bounds, Datastore, Disk, Inventory, Over, Pinned, Recommended, Refused,
    Side, advise,
};
use sterna_core::predict::{Terms, Work};
use sterna_engine::DiskId;

use crate::clock;
use crate::daemon::Daemon;
use crate::error::{DaemonError, Result};
use crate::store::{DiskRecord, MigrationRecord};

/// A disk that has moved stays for so long, in seconds: what a move was good for shows
/// only then, and nobody wants to see a disk go to and fro.
const COOLDOWN_S: u64 = 4 * 3600;

/// The shortest span that loads are taken from, in seconds: means of less are chance.
const WINDOW_LEAST_S: f64 = 10.0;

/// The longest: so much is kept.
const WINDOW_MOST_S: f64 = 3600.0;

/// The most moves at once. Who needs more empties a datastore.
const MOVES_MOST: u64 = 100;

/// A response time that is said to be longer is endless: a device that does not keep up.
const ENDLESS: Nanos = Nanos::from_secs(3600);

/// What `core` is told, and what its numbers stand for.
struct Scene {
    inventory: Inventory,
    names: Vec<String>,
    disks: Vec<DiskRecord>,
}

impl Daemon {
    /// What should move, and why the rest should not.
    pub(crate) fn recommend(&self, asked: &AskStorageDrs) -> Result<Recommendations> {
        check(asked)?;
        let bounds = Bounds {
            space: asked.space,
            latency: Nanos(asked.latency_us.saturating_mul(1000)),
            moves: asked.moves as usize,
            ..Bounds::default()
        };
        let scene = self.scene(Nanos((asked.window_s * 1e9) as u64))?;
        let advice = advise(&scene.inventory, &bounds);
        let moves = advice.moves.iter().map(|one| self.recommended(&scene, one));
        Ok(Recommendations {
            asked: *asked,
            datastores: scene.judged(&bounds),
            moves: moves.collect::<Result<_>>()?,
            staying: advice.refused.iter().map(|one| scene.staying(one)).collect(),
        })
    }

    /// Everything that moves are chosen from.
    fn scene(&self, window: Nanos) -> Result<Scene> {
        let (mut names, mut datastores) = (Vec::new(), Vec::new());
        for (shelf, found) in self.look_at_shelves() {
            let name = shelf.name();
            let space = found.ok();
            datastores.push(Datastore {
                capacity: space.map_or(0, |space| space.capacity),
                free: space.map_or(0, |space| space.free.min(space.capacity)),
                latency: self.samples.of_datastore(name, window).p95,
                device: self.samples.device(name).unwrap_or(LqFit::TooFew { points: 0 }),
                settling: false,
                takes_disks: shelf.is_shared(),
            });
            names.push(name.to_owned());
        }
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
        let now = clock::now();
        for migration in self.migration_records()? {
            let ends = [&migration.from, &migration.to];
            let ends = ends.map(|place| known.get(place.datastore.as_str()).copied());
            let age = migration.ended.map(|ended| now.saturating_sub(ended));
            if age.is_none_or(|age| Nanos::from_secs(age) < window) {
                ends.into_iter().flatten().for_each(|at| datastores[at].settling = true);
            }
            if let Some(disk) = at.get(&migration.disk).map(|at| &mut disks[*at]) {
                note(disk, &migration, age, ends, &mut datastores);
            }
        }
        Ok(Scene { inventory: Inventory { datastores, disks }, names, disks: records })
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
        Disk {
            datastore,
            taken,
            needs: if record.provision == Provision::Thin { taken } else { record.size },
            outstanding: work.outstanding,
            iops: if response > 0.0 { work.outstanding / response } else { 0.0 },
            pinned: self.problem_of(record.id).map(|_| Pinned::NotServed),
        }
    }

    fn recommended(&self, scene: &Scene, one: &Recommended) -> Result<RecommendedMove> {
        let (disk, to) = (&scene.disks[one.disk], scene.names[one.to].clone());
        let here = &scene.inventory.disks[one.disk];
        let summary = self.samples.of_disk(disk.id, crate::figures::RECENT);
        let (work, terms) = (Work::of(&summary), Terms::default());
        Ok(RecommendedMove {
            disk: disk.name.clone(),
            from: scene.names[one.from].clone(),
            predicted: self.told(disk, &to, false, work, terms)?,
            to,
            over: over(one.over),
            priority: one.priority,
            bytes: here.taken,
            source: [load(one.before[0]), load(one.after[0])],
            destination: [load(one.before[1]), load(one.after[1])],
        })
    }
}

impl Scene {
    fn judged(&self, bounds: &Bounds) -> Vec<JudgedDatastore> {
        let judge = |(at, name): (usize, &String)| {
            let one = &self.inventory.datastores[at];
            let side = Side {
                taken: if one.capacity > 0 {
                    (one.capacity - one.free) as f64 / one.capacity as f64
                } else {
                    0.0
                },
                latency: one.latency,
            };
            let full = (side.taken > bounds.space).then_some(OverBound::Space);
            let slow = side.latency.is_some_and(|it| it > bounds.latency);
            let slow = slow.then_some(OverBound::Latency);
            let on_it = self.inventory.disks.iter().filter(|disk| disk.datastore == at);
            let taken = (one.capacity > 0).then_some(side.taken);
            JudgedDatastore {
                datastore: name.clone(),
                load: DatastoreLoad { taken, ..load(side) },
                outstanding: on_it.map(|disk| disk.outstanding).sum(),
                over: full.into_iter().chain(slow).collect(),
                settling: one.settling,
            }
        };
        self.names.iter().enumerate().map(judge).collect()
    }

    fn staying(&self, one: &Refused) -> StayingDisk {
        let disk = &self.disks[one.disk];
        let to = one.to.map(|to| self.names[to].clone());
        StayingDisk {
            disk: disk.name.clone(),
            datastore: self.names[self.inventory.disks[one.disk].datastore].clone(),
            over: over(one.over),
            reason: reason(one.because, to.as_deref()),
            to,
        }
    }
}

/// What a migration means for its disk: one under way counts for its destination, and one
/// that ended not long ago makes it stay.
fn note(
    disk: &mut Disk,
    migration: &MigrationRecord,
    age: Option<u64>,
    ends: [Option<usize>; 2],
    datastores: &mut [Datastore],
) {
    match age {
        Some(age) if age < COOLDOWN_S && migration.report.is_some() => {
            disk.pinned.get_or_insert(Pinned::Moved);
        }
        Some(_) => {}
        None => {
            disk.pinned = Some(Pinned::Moves);
            let [Some(from), Some(to)] = ends else { return };
            disk.datastore = to;
            let [left, comes] = [from, to].map(|at| datastores[at]);
            datastores[from].free =
                left.free.saturating_add(disk.taken).min(left.capacity);
            datastores[to].free = comes.free.saturating_sub(disk.needs);
        }
    }
}

fn check(asked: &AskStorageDrs) -> Result<()> {
    let wrong = |what: String, hint: String| Err(DaemonError::invalid(what).hint(hint));
    if !(WINDOW_LEAST_S..=WINDOW_MOST_S).contains(&asked.window_s) {
        let hint = format!("it can have {WINDOW_LEAST_S} to {WINDOW_MOST_S} s");
        return wrong(format!("a window cannot have {} s", asked.window_s), hint);
    }
    if !(asked.space > 0.0 && asked.space <= 1.0) {
        let hint = "it is above 0 and at most 1: 0.8 is 80 %".to_owned();
        return wrong(format!("{} is no part of a datastore's room", asked.space), hint);
    }
    if asked.latency_us == 0 {
        let hint = "15000 is 15 ms".to_owned();
        return wrong("no response time stays below zero".into(), hint);
    }
    if !(1..=MOVES_MOST).contains(&asked.moves) {
        let hint = format!("it can be 1 to {MOVES_MOST} moves");
        return wrong(format!("{} moves cannot be recommended", asked.moves), hint);
    }
    Ok(())
}

fn over(over: Over) -> OverBound {
    match over {
        Over::Space => OverBound::Space,
        Over::Latency => OverBound::Latency,
    }
}

fn load(side: Side) -> DatastoreLoad {
    let p95_us = side.latency.map(|latency| latency.0 as f64 / 1e3);
    DatastoreLoad { taken: Some(side.taken), p95_us }
}

/// Why a disk stays, in words.
fn reason(because: Because, to: Option<&str>) -> String {
    let to = to.unwrap_or("elsewhere");
    let percent = |part: f64| format!("{:.0}%", part * 100.0);
    match because {
        Because::Pinned(Pinned::NotServed) => "it is not served".into(),
        Because::Pinned(Pinned::Moves) => "it moves already".into(),
        Because::Pinned(Pinned::Moved) => {
            format!("it has moved within the last {} h", COOLDOWN_S / 3600)
        }
        Because::Idle => "it asks for too little to matter".into(),
        Because::Closed => "no other datastore takes disks now".into(),
        Because::Full(part) => {
            format!("{to} would be too full: {} taken", percent(part))
        }
        Because::AsFull(part) => {
            format!("{to} is hardly emptier: {} taken", percent(part))
        }
        Because::Settling => {
            format!("disks come or go there or at {to}: wait until the window is over")
        }
        Because::SourceUnknown => {
            "what its datastore does with less load is not known yet".into()
        }
        Because::DestinationUnknown => {
            format!("what {to} does with such a load is not known yet")
        }
        Because::Slow(latency) if latency > ENDLESS => {
            format!("{to} would not keep up with it")
        }
        Because::Slow(latency) => {
            format!("{to} would be no faster, or too slow: p95 {latency}")
        }
        Because::NoGain => format!("with it at {to} both together would be no faster"),
    }
}
