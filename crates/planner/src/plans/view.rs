//! A plan as the API shows it.

use sterna_api::{
    Deadline, DeadlineState, MigrationState, Plan, PlanState, PlannedDatastore,
    PlannedMove, PlannedMoveState, PlannedWorkload, Tile, WorkloadState,
};
use sterna_core::Nanos;
use sterna_core::schedule::Schedule;
use sterna_os::{Local, clock};
use sterna_placement::waves::{PlanRun, Running, Stage, Task, rehearse};
use sterna_state::{PlanEnd, PlanMove, PlanRecord, WorkloadCourse};

use super::plan_run::seconds;
use crate::Planner;

/// Moves are taken to be no more than so many times slower than predicted, or faster,
/// whatever the first ones were.
const PACE_MOST: f64 = 5.0;

impl Planner {
    /// A plan, with how far its moves are.
    pub(super) fn view_plan(&self, record: PlanRecord, run: &PlanRun) -> Plan {
        let done: Vec<Option<Done>> =
            record.moves.iter().map(|one| self.done_of(&record, one)).collect();
        let now = self.plan_clock();
        let left = when_over(&record, run, &done, now);
        let ends = record.ended.or_else(|| left.map(|left| after(&record, left)));
        let opens = (!record.state.ended()).then(|| opens(&record)).flatten();
        let deadline = record.design.by.map(|by| deadline(&record, by, ends, opens));
        let moves = record.moves.iter().zip(&done);
        let waits = |at| run.waits_for(at, now);
        let moves = moves.enumerate().map(|(at, (one, done))| {
            let shown = view_move(&record, one, *done);
            let unrecorded = || {
                let words = "waits until the state directory takes records again";
                run.waits_for_records(at, now).then(|| words.to_owned())
            };
            let held =
                || waits(at).map(|end| waits_for(&record, end)).or_else(unrecorded);
            PlannedMove { problem: shown.problem.or_else(held), ..shown }
        });
        let moves = moves.collect();
        let datastores = view_datastores(&record);
        let workloads = view_workloads(&record);
        let design = record.design;
        Plan {
            id: record.id,
            state: record.state,
            datastore: design.datastore,
            space: design.space,
            guard: design.guard,
            rate: design.rate,
            verify: design.verify,
            at_once: design.at_once,
            tiles: design.tiles,
            workloads,
            created: record.created,
            started: record.started,
            ended: record.ended,
            estimate: design.estimate,
            opens,
            ends,
            deadline,
            datastores,
            moves,
            refused: design.refused,
        }
    }

    /// How far a move is, while it is under way.
    fn done_of(&self, record: &PlanRecord, one: &PlanMove) -> Option<Done> {
        if !one.course.stage.is_under_way() {
            return None;
        }
        let migration = self.moves.show_migration(one.course.migration?).ok()?;
        let progress = migration.progress?;
        let part = |bytes: u64| bytes as f64 / progress.total.max(1) as f64;
        let (copied, it) = (part(progress.synced), &one.design);
        let part = match progress.verified.filter(|_| record.design.verify) {
            None => copied,
            Some(verified) => {
                // What is copied is a part of what is compared then.
                let copying = it.bytes as f64 / (it.bytes + it.size).max(1) as f64;
                copying * copied + (1.0 - copying) * part(verified)
            }
        };
        Some(Done { part, verifying: migration.state == MigrationState::Verifying })
    }
}

/// How far a move is.
#[derive(Clone, Copy, Debug)]
struct Done {
    /// The part of it that is done.
    part: f64,
    /// Both sides are being compared.
    verifying: bool,
}

fn window(record: &PlanRecord) -> Option<Schedule> {
    record.design.guard.window.as_ref()?.parse().ok()
}

/// When its window opens, if it is closed.
fn opens(record: &PlanRecord) -> Option<u64> {
    let (schedule, now) = (window(record)?, Local::now());
    let moment = now.moment();
    let closed = schedule.until_change(moment).filter(|_| !schedule.is_open(moment));
    closed.map(|seconds| now.ahead(seconds))
}

/// The moment so many seconds from now in which the plan may copy.
fn after(record: &PlanRecord, left: f64) -> u64 {
    let seconds = left.max(0.0).ceil() as u64;
    match window(record) {
        Some(schedule) => Local::now().open_for(&schedule, seconds),
        None => clock::now().saturating_add(seconds),
    }
}

/// Whether a plan ends in time, whose window opens then, if it is closed.
fn deadline(
    record: &PlanRecord,
    by: u64,
    ends: Option<u64>,
    opens: Option<u64>,
) -> Deadline {
    let now = clock::now();
    let estimate = &record.design.estimate;
    let likely = estimate.likely_s.unwrap_or_default().max(1e-3);
    // What is left is as uncertain as the whole.
    let is_in_time = |other: Option<f64>| {
        let left = ends.unwrap_or(now).saturating_sub(now) as f64;
        let times = other.unwrap_or(likely) / likely;
        now.saturating_add((left * times).ceil() as u64) <= by
    };
    let state = match (record.ended, ends) {
        (Some(ended), _) if ended <= by && record.state == PlanState::Completed => {
            DeadlineState::Met
        }
        (Some(_), _) => DeadlineState::Missed,
        (None, None) if now.max(opens.unwrap_or(now)) > by => DeadlineState::Missed,
        (None, None) => DeadlineState::Unknown,
        (None, Some(_)) if is_in_time(estimate.most_s) => DeadlineState::Met,
        (None, Some(_)) if is_in_time(estimate.likely_s) => DeadlineState::Likely,
        (None, Some(_)) if is_in_time(estimate.least_s) => DeadlineState::Unlikely,
        (None, Some(_)) => DeadlineState::Missed,
    };
    Deadline { by, state }
}

/// In how many seconds a plan will be over, by what is known now.
fn when_over(
    record: &PlanRecord,
    run: &PlanRun,
    done: &[Option<Done>],
    now: Nanos,
) -> Option<f64> {
    // What stands still, or is being given up, has no end that could be foreseen.
    let goes = matches!(record.state, PlanState::Planned | PlanState::Running);
    let stands = |(at, task): (usize, &Task)| {
        matches!(task.stage, Stage::Stalled(_))
            || run.waits_for(at, now).is_some()
            || run.waits_for_records(at, now)
    };
    let waits = run.tasks().iter().enumerate().any(stands);
    if !goes || waits || record.design.estimate.likely_s.is_none() {
        return None;
    }
    let moves = record.moves.iter().zip(done);
    let left: Vec<Option<Nanos>> = moves
        .map(|(one, done)| {
            done.map(|done| seconds(one.design.time_s * (1.0 - done.part)))
        })
        .collect();
    Some(rehearse(run, &left).ends.as_secs_f64() * pace(record))
}

/// How many times longer moves took than they were planned to, so far.
fn pace(record: &PlanRecord) -> f64 {
    let moved = record.moves.iter().filter_map(|one| {
        let planned = one.design.ends_s - one.design.begins_s;
        Some((one.course.took_s?, planned))
    });
    let (took, planned) =
        moved.fold((0.0, 0.0), |(took, planned), one| (took + one.0, planned + one.1));
    if took > 0.0 && planned > 0.0 {
        (took / planned).clamp(1.0 / PACE_MOST, PACE_MOST)
    } else {
        1.0
    }
}

fn view_move(record: &PlanRecord, one: &PlanMove, done: Option<Done>) -> PlannedMove {
    let (design, it, course) = (&record.design, &one.design, &one.course);
    let name = |end: usize| design.ends[end].name.clone();
    let tile = it.group.and_then(|group| design.tiles.get(group));
    PlannedMove {
        disk: it.name.clone(),
        from: name(it.from),
        to: name(course.to),
        why: it.why.clone(),
        tile: tile.map(|tile| tile.name.clone()),
        wave: it.wave,
        bytes: it.bytes,
        predicted: it.predicted,
        begins_s: it.begins_s,
        ends_s: it.ends_s,
        state: match course.stage {
            Stage::Waiting => PlannedMoveState::Waiting,
            Stage::Starting => PlannedMoveState::Starting,
            Stage::Running => PlannedMoveState::Moving,
            Stage::Stalled(_) => PlannedMoveState::Standing,
            Stage::Leaving(_) => PlannedMoveState::Leaving,
            Stage::Moved => PlannedMoveState::Moved,
            Stage::Failed(_) => PlannedMoveState::Failed,
            Stage::Skipped(_) => PlannedMoveState::Skipped,
            Stage::GivenUp => PlannedMoveState::Cancelled,
        },
        migration: course.migration,
        attempts: course.attempts,
        done: done.map(|done| done.part),
        verifying: done.is_some_and(|done| done.verifying),
        began: course.began,
        ended: course.ended,
        took_s: course.took_s,
        problem: course.standing.as_ref().or(course.problem.as_ref()).cloned(),
    }
}

/// Why a move does not begin for which there would be a place.
fn waits_for(record: &PlanRecord, end: usize) -> String {
    let name = &record.design.ends[end].name;
    format!("waits for datastore {name}, for which other moves are stalled")
}

/// What the plan stops and starts: where a tile has hooks, and moves.
pub(super) fn view_workloads(record: &PlanRecord) -> Vec<PlannedWorkload> {
    let tiles = record.design.tiles.iter().zip(&record.workloads).enumerate();
    let tiles = tiles.filter(|(at, (tile, _))| {
        let is_hooked = tile.stop.is_some() || tile.start.is_some();
        is_hooked && record.moves.iter().any(|one| one.design.group == Some(*at))
    });
    let view = |(_, (tile, course)): (usize, (&Tile, &WorkloadCourse))| PlannedWorkload {
        tile: tile.name.clone(),
        state: match course.running {
            Running::Untouched => WorkloadState::Untouched,
            Running::Stopping(_) => WorkloadState::Stopping,
            Running::Stopped => WorkloadState::Stopped,
            Running::Starting => WorkloadState::Starting,
            Running::Started if tile.start.is_none() => WorkloadState::Stopped,
            Running::Started => WorkloadState::Started,
            Running::NotStarted => WorkloadState::NotStarted,
        },
        stopped: course.stopped,
        started: course.started,
        tries: course.tries,
        problem: course.problem.clone(),
    };
    tiles.map(view).collect()
}

fn view_datastores(record: &PlanRecord) -> Vec<PlannedDatastore> {
    let design = &record.design;
    let view = |(at, end): (usize, &PlanEnd)| {
        let there = || {
            let moves = record.moves.iter();
            moves.filter(move |one| one.design.from == at || one.course.to == at)
        };
        let is_used = end.takes || end.name == design.datastore;
        let come = record.moves.iter().filter(|one| one.course.to == at);
        let full: u64 = come.map(|one| one.design.size).sum();
        is_used.then(|| PlannedDatastore {
            datastore: end.name.clone(),
            room: end.takes.then_some(end.room),
            // Of the source, no speed was measured that all its copies have together.
            speed: end.speed.filter(|_| end.takes),
            moves: there().count() as u64,
            bytes: there().map(|one| one.design.bytes).sum(),
            may_grow_to: (end.takes && full > end.room).then_some(full),
            problem: record.closed[at].as_ref().map(|closed| closed.why.clone()),
        })
    };
    design.ends.iter().enumerate().filter_map(view).collect()
}

#[cfg(test)]
mod tests {
    use sterna_placement::waves::Fault;
    use sterna_state::examples::plan_of_two;

    use super::super::plan_run::run_of;
    use super::*;

    /// In how many seconds a running plan is over whose second move is so.
    fn over_with(stage: Stage) -> Option<f64> {
        let mut record = plan_of_two();
        record.state = PlanState::Running;
        record.design.estimate.likely_s = Some(7.0);
        record.moves[1].course.stage = stage;
        let run = run_of(&record).0;
        when_over(&record, &run, &[None, None], Nanos(0))
    }

    #[test]
    fn a_plan_whose_window_opens_too_late_misses_its_deadline() {
        let (record, by) = (plan_of_two(), clock::now() + 3600);
        let state = |opens| deadline(&record, by, None, opens).state;
        assert_eq!(state(None), DeadlineState::Unknown);
        assert_eq!(state(Some(by - 1)), DeadlineState::Unknown);
        assert_eq!(state(Some(by + 1)), DeadlineState::Missed);
    }

    #[test]
    fn a_plan_has_no_end_as_long_as_one_of_its_moves_stands_still() {
        assert_eq!(over_with(Stage::Running), Some(3.5), "both at once");
        assert_eq!(over_with(Stage::Moved), Some(3.5));
        for fault in [Fault::Away, Fault::Passing, Fault::Full] {
            assert_eq!(over_with(Stage::Stalled(fault)), None, "{fault:?}");
        }
    }
}
