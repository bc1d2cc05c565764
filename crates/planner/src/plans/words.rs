//! What a plan decides, in words.

use sterna_core::Percent;
use sterna_placement::waves::{Because, Fault, Running, Why};
use sterna_state::PlanRecord;

use super::scene::PlanScene;

/// Why a disk goes to a datastore.
pub(super) fn why(why: Why) -> String {
    match why {
        Why::Quickest(latency) => {
            format!("fastest afterwards: {latency} a request")
        }
        Why::Emptiest(taken) => {
            format!("emptiest: {} used afterwards", Percent(taken))
        }
        Why::SameRoom(taken) => {
            let taken = Percent(taken);
            format!("all destinations share one file system: {taken} used afterwards")
        }
        Why::Only => "the only destination with room".into(),
        Why::Alone => "the datastore holds a single disk".into(),
    }
}

/// Why a disk stays where it is.
pub(super) fn because(scene: &PlanScene, disk: usize, because: Because) -> String {
    match because {
        Because::Pinned(_) => scene.pinned.get(&disk).cloned().unwrap_or_default(),
        Because::NoDestination => "no datastore is left for the disk".into(),
        Because::Full { to, taken } => {
            let to = &scene.names[to];
            format!("{to} would be too full: {} used", Percent(taken))
        }
        Because::TooLarge => {
            "the disk is larger than every datastore for a single disk".into()
        }
        Because::Apart => "no datastore has room for all of its tile".into(),
        Because::Beside(other) => {
            let (name, why) = (&scene.disks[other].name, scene.pinned.get(&other));
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            format!("the disk's tile moves together, and disk {name} stays{why}")
        }
    }
}

/// Why a move goes elsewhere than was planned.
pub(super) fn left_alone(record: &PlanRecord, end: usize) -> String {
    let name = &record.design.ends[end].name;
    match &record.closed[end] {
        Some(closed) if closed.why.is_empty() => {
            format!("{name} is left alone: {}", fault(closed.fault))
        }
        Some(closed) => format!("{name} is left alone: {}", closed.why),
        None => format!("not to {name}"),
    }
}

/// Why a move goes nowhere.
pub(super) fn nowhere(record: &PlanRecord, end: usize) -> String {
    format!("no other datastore has room; {}", left_alone(record, end))
}

/// Why a move was not begun.
pub(super) fn skipped(record: &PlanRecord, group: usize) -> String {
    match record.design.tiles.get(group) {
        Some(tile) if is_down(record, group) => {
            format!(
                "the application on tile {}, which moves before, was not started again",
                tile.name
            )
        }
        Some(tile) => format!("tile {}, which moves before, has not moved", tile.name),
        None => "an earlier tile has not moved".into(),
    }
}

/// Whether what was stopped for a tile's moves has not started again.
fn is_down(record: &PlanRecord, tile: usize) -> bool {
    let workload = record.workloads.get(tile);
    workload.is_some_and(|it| it.running == Running::NotStarted)
}

/// Why a move was not begun whose workload did not stop.
pub(super) fn not_stopped(record: &PlanRecord, at: usize) -> Option<String> {
    let tile = record.moves[at].design.group?;
    let why = record.workloads.get(tile)?.problem.as_ref()?;
    Some(format!("the move did not begin: {why}"))
}

fn fault(fault: Fault) -> &'static str {
    match fault {
        Fault::Full => "it is full",
        Fault::Destination => "it fails",
        Fault::Away => "it was away for too long",
        Fault::Source | Fault::Unrecorded | Fault::Passing | Fault::Lasting => {
            "there is a problem"
        }
    }
}
