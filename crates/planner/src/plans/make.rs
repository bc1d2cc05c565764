//! Making a plan: who goes where and why, in which order, how long it will take, and who
//! stays. Nothing begins.

use std::collections::HashMap;

use sterna_api::{
    AskGuard, Error, Guard, Plan, PlanEstimate, PlanEvacuation, PlanState, Predicted,
    RefusedDisk, Result,
};
use sterna_core::Nanos;
use sterna_core::predict::{self, Speed, Work};
use sterna_machines::VmDisk;
use sterna_moves::predictions::{Seen, one_move, terms, told};
use sterna_moves::{check_rate, moment, wanted};
use sterna_os::clock;
use sterna_placement::waves::{
    Assigned, Assignment, Datastore, Move, PlanRun, Rehearsal, Setup, Takes, assign,
    bound, order, rehearse,
};
use sterna_state::{
    Course, DiskRecord, MoveDesign, PlanDesign, PlanEnd, PlanMove, PlanRecord,
    WorkloadCourse,
};
use sterna_telemetry::figures::RECENT;

use super::plan_run::{run_of, seconds};
use super::scene::PlanScene;
use super::tiles::Grouped;
use super::words;
use crate::Planner;

/// What a copy is taken to do of which nobody knows: only the order of the moves follows
/// from it, and nothing is said of time.
const NOMINAL: f64 = (100 << 20) as f64;

/// The shortest that a move is taken to take: its image is made, flushed and switched to.
const SHORTEST: f64 = 0.05;

/// By destination: how fast a copy goes there by itself, where that is known, and where it
/// is not, which copies there were.
#[derive(Default)]
struct Speeds {
    known: HashMap<usize, Speed>,
    seen: HashMap<usize, Seen>,
}

/// What was asked for, checked.
struct Wanted {
    guard: Guard,
    by: Option<u64>,
}

/// A move that is planned, and what it is as the state machine sees it.
struct Drafted {
    design: MoveDesign,
    disk: usize,
}

impl Planner {
    /// Makes a plan to empty a datastore.
    pub fn plan_evacuation(&self, asked: &PlanEvacuation) -> Result<Plan> {
        let wanted = self.check_plan(asked)?;
        let there = self.storage.store.disks()?;
        let is_there = |name: &str| {
            there
                .iter()
                .any(|disk| disk.name == name && disk.datastore == asked.datastore)
        };
        let grouped = Grouped::of(&asked.tiles, is_there)?;
        let leaves = |disk: &DiskRecord| disk.datastore == asked.datastore;
        let scene = PlanScene::of(&self.site(RECENT, leaves)?, asked, &grouped)?;
        let of_vms = self.machines.vm_disks_on(&asked.datastore)?;
        check_scene(asked, &scene, &of_vms)?;
        let Assignment { assigned, refused } = assign(&scene.inventory, asked.space);
        let speeds = self.speeds(asked, &scene)?;
        let ends = ends_of(&scene, &speeds, asked.space);
        let drafted: Vec<Drafted> = assigned
            .iter()
            .map(|one| draft(asked, &wanted, &scene, &speeds, one))
            .collect();
        let refused = refused.iter().map(|one| RefusedDisk {
            disk: scene.disks[one.disk].name.clone(),
            reason: words::because(&scene, one.disk, one.because),
        });
        let design = PlanDesign {
            datastore: asked.datastore.clone(),
            space: asked.space,
            guard: wanted.guard,
            by: wanted.by,
            rate: asked.rate,
            verify: asked.verify,
            at_once: asked.at_once,
            tiles: asked.tiles.clone(),
            groups: grouped
                .groups
                .iter()
                .map(|group| (group.after.clone(), group.together))
                .collect(),
            ends,
            refused: refused.chain(of_vms.iter().map(left_to_its_vm)).collect(),
            estimate: PlanEstimate::default(),
        };
        let mut record = record_of(design, drafted, &scene);
        rehearse_record(&mut record);
        say_limits(&mut record, &speeds);
        if !asked.dry_run {
            record.id = self.storage.store.add_plan(record.clone())?;
            tracing::info!(plan = record.id, datastore = asked.datastore, "plan made");
        }
        let run = run_of(&record).0;
        Ok(self.view_plan(record, &run))
    }

    fn check_plan(&self, asked: &PlanEvacuation) -> Result<Wanted> {
        check_rate(asked.rate)?;
        let from = self.storage.handle(&asked.datastore)?;
        for to in &asked.to {
            let handle = self.storage.handle(to)?;
            if handle.name() == from.name() {
                let message = format!("{to} is the datastore that the plan empties");
                return Err(
                    Error::invalid(message).hint("give another destination with --to")
                );
            }
            handle.check_takes_new()?;
            handle.get()?;
        }
        if !(asked.space > 0.0 && asked.space <= 1.0) {
            let message =
                format!("{:?} is not a part of a datastore's space", asked.space);
            let hint = "give a part above 0 and at most 1: 0.8 is 80 %";
            return Err(Error::invalid(message).hint(hint));
        }
        if asked.at_once == Some(0) {
            let message = "with 0 moves at once, no disk would ever move";
            return Err(Error::invalid(message).hint("give 1 or more"));
        }
        let guard = wanted(&AskGuard {
            keep: asked.keep,
            p99_us: asked.p99_us,
            finish_by: None,
            idle_only: asked.idle_only,
            window: asked.window.clone(),
        })?;
        let by = asked.by.as_ref().map(|text| moment(text, "finish by")).transpose()?;
        Ok(Wanted { guard, by })
    }

    fn speeds(&self, asked: &PlanEvacuation, scene: &PlanScene) -> Result<Speeds> {
        let mut speeds = Speeds::default();
        for (at, one) in scene.inventory.datastores.iter().enumerate() {
            if one.takes == Takes::Nothing {
                continue;
            }
            let (from, to) = (&asked.datastore, &scene.names[at]);
            match self.moves.learned(from, to)? {
                Some(speed) => drop(speeds.known.insert(at, speed)),
                None => drop(speeds.seen.insert(at, self.moves.copies_seen(from, to)?)),
            }
        }
        Ok(speeds)
    }
}

/// Refuses what there is nothing to plan for.
fn check_scene(
    asked: &PlanEvacuation,
    scene: &PlanScene,
    of_vms: &[VmDisk],
) -> Result<()> {
    let from = &asked.datastore;
    if scene.disks.is_empty() && !of_vms.is_empty() {
        return Err(only_of_vms(from, of_vms));
    }
    if scene.disks.is_empty() {
        let message =
            format!("datastore {from} holds no disks: there is nothing to move");
        let hint = format!("to keep it empty: `sterna datastore maintenance {from}`");
        return Err(Error::invalid(message).hint(hint));
    }
    if scene.inventory.datastores.iter().all(|one| one.takes == Takes::Nothing) {
        let message = format!("no datastore can take the disks of {from}");
        let hint = "add a datastore, check that it is online and not in maintenance, or \
                    give a free device or export with --to";
        return Err(Error::unavailable(message).hint(hint));
    }
    Ok(())
}

/// A disk of a VM, which a plan leaves where it is.
fn left_to_its_vm(disk: &VmDisk) -> RefusedDisk {
    let way = disk.way_off();
    let reason = format!("QEMU serves the disk, and no plan moves it: {way}");
    RefusedDisk { disk: disk.to_string(), reason }
}

/// What a plan would empty holds only what plans do not move.
fn only_of_vms(from: &str, of_vms: &[VmDisk]) -> Error {
    let names: Vec<String> = of_vms.iter().map(VmDisk::to_string).collect();
    let message = format!(
        "datastore {from} holds only disks of VMs, which plans do not move: {}",
        names.join(", ")
    );
    let hint = format!(
        "move each of them: {}; to keep new disks away meanwhile: `sterna datastore \
         maintenance {from}`",
        of_vms[0].way_off()
    );
    Error::invalid(message).hint(hint)
}

/// The datastores as the state machine sees them.
fn ends_of(scene: &PlanScene, speeds: &Speeds, space: f64) -> Vec<PlanEnd> {
    let fastest = speeds.known.values().map(|speed| speed.likely).reduce(f64::max);
    let from = scene.inventory.disks.first().map(|disk| disk.from);
    let all = scene.inventory.datastores.iter().zip(&scene.names).enumerate();
    let end = |(at, (one, name)): (usize, (&Datastore, &String))| {
        let bound = (one.capacity as f64 * space) as u64;
        let used = one.capacity.saturating_sub(one.free);
        PlanEnd {
            name: name.clone(),
            takes: one.takes != Takes::Nothing,
            room: match one.takes {
                Takes::Nothing => 0,
                Takes::One => one.capacity,
                Takes::Any => bound.saturating_sub(used).min(one.free),
            },
            shared_room: one.shared_room,
            single: one.takes == Takes::One,
            speed: match Some(at) == from {
                true => fastest,
                false => speeds.known.get(&at).map(|speed| speed.likely),
            },
        }
    };
    all.map(end).collect()
}

/// What is planned of a disk.
fn draft(
    asked: &PlanEvacuation,
    wanted: &Wanted,
    scene: &PlanScene,
    speeds: &Speeds,
    one: &Assigned,
) -> Drafted {
    let (disk, bytes) = (&scene.inventory.disks[one.disk], scene.bytes[one.disk]);
    let (work, terms) = (scene.work[one.disk], terms(asked.rate, &wanted.guard));
    let one_move = one_move(bytes, disk.size, asked.verify, work, terms);
    let predicted: Option<Predicted> = speeds
        .known
        .get(&one.to)
        .map(|speed| told(&one_move, speed, &predict::Prediction::of(&one_move, speed)));
    let nominal = asked.rate.map_or(NOMINAL, |limit| NOMINAL.min(limit.max(1) as f64));
    let least = one_move.least().map_or(0.0, Nanos::as_secs_f64);
    let time_s = predicted.map_or((bytes as f64 / nominal).max(least), |it| it.likely_s);
    let design = MoveDesign {
        name: scene.disks[one.disk].name.clone(),
        from: disk.from,
        to: one.to,
        why: words::why(one.why),
        group: disk.group,
        wave: 0,
        size: disk.size,
        needs: disk.needs,
        bytes,
        predicted,
        time_s: time_s.max(SHORTEST),
        rate: predicted.map_or(nominal, |it| it.rate),
        begins_s: 0.0,
        ends_s: 0.0,
    };
    Drafted { design, disk: one.disk }
}

/// The record of a plan, its moves in their order.
fn record_of(design: PlanDesign, drafted: Vec<Drafted>, scene: &PlanScene) -> PlanRecord {
    let as_move = |it: &Drafted| Move {
        from: it.design.from,
        to: it.design.to,
        size: it.design.size,
        needs: it.design.needs,
        group: it.design.group,
        time: seconds(it.design.time_s),
        rate: it.design.rate,
    };
    let moves: Vec<Move> = drafted.iter().map(as_move).collect();
    let order = order(&moves, &scene.inventory.groups);
    let mut drafted: Vec<Option<Drafted>> = drafted.into_iter().map(Some).collect();
    let moves =
        order.into_iter().filter_map(|at| drafted[at].take()).map(|it| PlanMove {
            disk: scene.disks[it.disk].id,
            course: Course { to: it.design.to, ..Course::default() },
            design: it.design,
        });
    let moves = moves.collect();
    let workloads = vec![WorkloadCourse::default(); design.tiles.len()];
    PlanRecord {
        id: 0,
        state: PlanState::Planned,
        closed: vec![None; design.ends.len()],
        design,
        created: clock::now(),
        started: None,
        ended: None,
        moves,
        workloads,
    }
}

/// Says when each move would begin and end, and what all of it takes.
fn rehearse_record(record: &mut PlanRecord) {
    let (run, _) = run_of(record);
    let likely = rehearse(&run, &[]);
    for (one, it) in record.moves.iter_mut().zip(&likely.moves) {
        let Some(it) = it else { continue };
        one.design.wave = it.wave;
        one.design.begins_s = it.begins.as_secs_f64();
        one.design.ends_s = it.ends.as_secs_f64();
    }
    let predicted = || record.moves.iter().map(|one| one.design.predicted);
    let unknown = predicted().filter(Option::is_none).count();
    let is_known = unknown == 0 && !record.moves.is_empty();
    let with = |time: fn(Predicted) -> f64| {
        let times = predicted().map(|it| it.map_or(0.0, time).max(SHORTEST));
        let ends = with_times(run.setup(), times).ends;
        is_known.then(|| ends.as_secs_f64())
    };
    let least = bound(run.setup()).as_secs_f64();
    let makespan = likely.ends.as_secs_f64();
    record.design.estimate = PlanEstimate {
        bytes: record.moves.iter().map(|one| one.design.bytes).sum(),
        unknown: unknown as u64,
        limited: 0,
        limited_to: None,
        likely_s: is_known.then_some(makespan),
        least_s: with(|it| it.least_s),
        most_s: with(|it| it.most_s),
        bound_s: if is_known { Some(least) } else { bound_by_limit(record) },
        gap: is_known.then(|| (makespan / least.max(1e-9) - 1.0).max(0.0)),
    };
}

/// Seconds that no order of the moves falls short of, by the limit of each copy alone.
fn bound_by_limit(record: &PlanRecord) -> Option<f64> {
    let (limit, verify) = (record.design.rate?, record.design.verify);
    let mut setup = run_of(record).0.setup().clone();
    let terms = terms(Some(limit), &Guard::default());
    for (one, it) in setup.moves.iter_mut().zip(&record.moves) {
        let MoveDesign { bytes, size, .. } = it.design;
        let least = one_move(bytes, size, verify, Work::default(), terms).least();
        one.time = least.unwrap_or_default();
        one.rate = limit as f64;
    }
    (!record.moves.is_empty()).then(|| bound(&setup).as_secs_f64())
}

/// Says of how many moves nothing is known as each copy had a limit, and which.
fn say_limits(record: &mut PlanRecord, speeds: &Speeds) {
    let unknown = record.moves.iter().filter(|one| one.design.predicted.is_none());
    let limits: Vec<u64> = unknown
        .filter_map(|one| speeds.seen.get(&one.design.to)?.all_limited_to())
        .collect();
    let estimate = &mut record.design.estimate;
    estimate.limited = limits.len() as u64;
    estimate.limited_to = limits.into_iter().max();
}

/// The same plan, if its moves took so long by themselves.
fn with_times(setup: &Setup, times: impl Iterator<Item = f64>) -> Rehearsal {
    let mut setup = setup.clone();
    for (one, time) in setup.moves.iter_mut().zip(times) {
        one.time = seconds(time);
    }
    rehearse(&PlanRun::new(setup), &[])
}
