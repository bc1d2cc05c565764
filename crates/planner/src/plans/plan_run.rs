//! A plan's state machine (`placement::waves`), made from its record.

use sterna_api::PlanState;
use sterna_core::Nanos;
use sterna_placement::waves::{
    Action, End, Group, Move, PlanRun, Progress, Setup, Task, Wish, Workload,
};
use sterna_state::{PlanEnd, PlanRecord, WorkloadCourse};

/// The state machine of a plan, as the store has it; and what was asked for last, maybe
/// in vain.
pub(super) fn run_of(record: &PlanRecord) -> (PlanRun, Vec<Action>) {
    let tasks = record.moves.iter().map(|one| Task {
        to: one.course.to,
        stage: one.course.stage,
        tries: one.course.tries,
        held: one.course.held,
        ..Task::default()
    });
    let closed = record.closed.iter();
    let closed = closed.map(|one| one.as_ref().map(|one| one.fault)).collect();
    let wish = match record.state {
        PlanState::Paused => Wish::Pause,
        PlanState::Cancelling | PlanState::Cancelled => Wish::Cancel,
        PlanState::Planned
        | PlanState::Running
        | PlanState::Completed
        | PlanState::Incomplete => Wish::Run,
    };
    let setup = setup_of(record);
    let workload = |one: &WorkloadCourse| Workload {
        running: one.running,
        tries: one.tries,
        ..Workload::default()
    };
    let mut workloads: Vec<Workload> = record.workloads.iter().map(workload).collect();
    // Disks in no tile are the last group.
    workloads.resize(setup.groups.len(), Workload::default());
    let progress = Progress { tasks: tasks.collect(), workloads, closed, wish };
    PlanRun::restore(setup, progress)
}

/// What a plan is to do, as its state machine sees it.
fn setup_of(record: &PlanRecord) -> Setup {
    let design = &record.design;
    let moves = record.moves.iter().map(|one| {
        let it = &one.design;
        Move {
            from: it.from,
            to: it.to,
            size: it.size,
            needs: it.needs,
            group: it.group,
            time: seconds(it.time_s),
            rate: it.rate,
        }
    });
    let end = |one: &PlanEnd| End {
        takes: one.takes,
        room: one.room,
        shared_room: one.shared_room,
        single: one.single,
        speed: one.speed,
    };
    let groups = design.groups.iter().enumerate().map(|(at, (after, together))| {
        let tile = design.tiles.get(at);
        Group {
            after: after.clone(),
            together: *together,
            stops: tile.is_some_and(|tile| tile.stop.is_some()),
            starts: tile.is_some_and(|tile| tile.start.is_some()),
        }
    });
    Setup {
        moves: moves.collect(),
        ends: design.ends.iter().map(end).collect(),
        groups: groups.collect(),
        at_once: design.at_once.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
    }
}

/// So many seconds.
pub(super) fn seconds(count: f64) -> Nanos {
    Nanos((count.max(0.0) * 1e9) as u64)
}
