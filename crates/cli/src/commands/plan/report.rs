//! What was planned against what was achieved: of each move, each wave, and the whole.

use std::collections::BTreeMap;

use sterna_api::{Plan, PlanState, PlannedMove, PlannedMoveState};
use sterna_console::format::{count, span};
use sterna_console::output::{Output, WIDTH};
use sterna_console::table::{Column, Pairs, Table, wrap};

use super::show::{deadline, move_state, numbered, refused, state, takes};
use super::workloads;

/// Of what takes less, in seconds, whole ones do not say by how much it was off.
const LEAST_S: f64 = 2.0;

/// The report.
pub(super) fn show(plan: &Plan, output: Output) -> String {
    if plan.state == PlanState::Planned {
        let id = plan.id;
        return format!(
            "Plan {id} has not begun: there is nothing to report.\n  sterna plan show \
             {id}"
        );
    }
    let mut text = head(plan, output);
    text.push('\n');
    text.push_str(&waves(plan, output));
    text.push('\n');
    text.push_str(&moves(plan, output));
    text.push_str(&workloads::report(plan, output));
    text.push_str(&problems(plan));
    text + &refused(plan, output)
}

fn head(plan: &Plan, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("plan", format!("{}, to empty {}", plan.id, plan.datastore));
    pairs.add("state", state(plan.state));
    let moved = numbered(plan, &[PlannedMoveState::Moved]);
    pairs.add("moved", format!("{moved} of {}", count(plan.moves.len() as u64, "disk")));
    for (name, states) in [
        ("failed", &[PlannedMoveState::Failed] as &[_]),
        ("skipped", &[PlannedMoveState::Skipped]),
        ("cancelled", &[PlannedMoveState::Cancelled]),
    ] {
        let number = numbered(plan, states) as u64;
        pairs.maybe(name, (number > 0).then(|| count(number, "disk")));
    }
    pairs.add("planned", takes(&plan.estimate));
    if let (Some(started), Some(ended)) = (plan.started, plan.ended) {
        let took = ended.saturating_sub(started) as f64;
        let planned = plan.estimate.likely_s.filter(|_| is_comparable(plan));
        let off = planned.and_then(|planned| off_by_seconds(planned, took));
        let off = off.map_or(String::new(), |off| format!(" ({off})"));
        let took = if took > 0.0 { span(took) } else { "less than 1 s".into() };
        pairs.add("took", format!("{took}{off}"));
    }
    pairs.maybe("deadline", plan.deadline.as_ref().map(deadline));
    output.pairs(&pairs)
}

/// Whether all was done that was predicted, and nothing else took time: what hooks take is
/// not predicted, nor is the time in which the window was closed.
fn is_comparable(plan: &Plan) -> bool {
    plan.state == PlanState::Completed && is_all_moves(plan)
}

/// Whether nothing but its moves took time.
fn is_all_moves(plan: &Plan) -> bool {
    plan.workloads.is_empty() && plan.guard.window.is_none()
}

/// The same of a time that is known to the second.
fn off_by_seconds(planned: f64, took: f64) -> Option<String> {
    (planned.max(took) >= LEAST_S).then(|| off(planned, took))
}

/// By how much it was off: `+12%`.
fn off(planned: f64, took: f64) -> String {
    format!("{:+.0}%", (took / planned.max(1e-3) - 1.0) * 100.0)
}

/// What a move took, by its migration, or else by the clock.
fn took(one: &PlannedMove) -> Option<f64> {
    one.took_s.filter(|_| one.state == PlannedMoveState::Moved)
}

fn planned(one: &PlannedMove) -> Option<f64> {
    one.predicted.map(|_| one.ends_s - one.begins_s)
}

fn waves(plan: &Plan, output: Output) -> String {
    let mut waves: BTreeMap<u32, Vec<&PlannedMove>> = BTreeMap::new();
    for one in &plan.moves {
        waves.entry(one.wave).or_default().push(one);
    }
    let mut table = Table::new(&[
        ("WAVE", Column::Right),
        ("DISKS", Column::Right),
        ("MOVED", Column::Right),
        ("PLANNED", Column::Right),
        ("TOOK", Column::Right),
        ("OFF", Column::Right),
    ]);
    for (wave, moves) in waves {
        let moved =
            moves.iter().filter(|one| one.state == PlannedMoveState::Moved).count();
        let planned = planned_span(&moves);
        let took = achieved_span(&moves);
        let comparable =
            planned.zip(took).filter(|_| moved == moves.len() && is_all_moves(plan));
        let off = comparable.and_then(|(it, took)| off_by_seconds(it, took));
        table.row(vec![
            wave.to_string().into(),
            moves.len().to_string().into(),
            moved.to_string().into(),
            planned.map_or("-".into(), span).into(),
            took.map_or("-".into(), span).into(),
            off.unwrap_or("-".into()).into(),
        ]);
    }
    output.table(&table)
}

/// From the first beginning to the last end, as planned.
fn planned_span(moves: &[&PlannedMove]) -> Option<f64> {
    let known = moves.iter().all(|one| one.predicted.is_some());
    let begins = moves.iter().map(|one| one.begins_s).reduce(f64::min)?;
    let ends = moves.iter().map(|one| one.ends_s).reduce(f64::max)?;
    known.then_some(ends - begins)
}

/// The same as it was, once all of them are over.
fn achieved_span(moves: &[&PlannedMove]) -> Option<f64> {
    let begun = moves.iter().filter_map(|one| one.began).min()?;
    let ended: Option<Vec<u64>> = moves.iter().map(|one| one.ended).collect();
    Some(ended?.into_iter().max()?.saturating_sub(begun) as f64)
}

fn moves(plan: &Plan, output: Output) -> String {
    let mut table = Table::new(&[
        ("WAVE", Column::Right),
        ("DISK", Column::Flexible),
        ("TO", Column::Flexible),
        ("PLANNED", Column::Right),
        ("TOOK", Column::Right),
        ("OFF", Column::Right),
        ("TRIES", Column::Right),
        ("STATE", Column::Left),
    ]);
    for one in &plan.moves {
        let (planned, took) = (planned(one), took(one));
        table.row(vec![
            one.wave.to_string().into(),
            one.disk.as_str().into(),
            one.to.as_str().into(),
            planned.map_or("-".into(), span).into(),
            took.map_or("-".into(), span).into(),
            planned.zip(took).map_or("-".into(), |(it, took)| off(it, took)).into(),
            one.attempts.to_string().into(),
            move_state(one),
        ]);
    }
    output.table(&table)
}

/// What went wrong, whole.
fn problems(plan: &Plan) -> String {
    let lines = plan.moves.iter().filter_map(|one| {
        let problem = one.problem.as_ref()?;
        let line = format!("{} ({}): {problem}", one.disk, one.state);
        Some(wrap(&line, WIDTH - 2).join("\n  "))
    });
    let datastores = plan.datastores.iter().filter_map(|one| {
        let problem = one.problem.as_ref()?;
        let line = format!("{}, which was left alone: {problem}", one.datastore);
        Some(wrap(&line, WIDTH - 2).join("\n  "))
    });
    let workloads = plan.workloads.iter().filter_map(|one| {
        let problem = one.problem.as_ref()?;
        let line = format!("tile {} ({}): {problem}", one.tile, one.state);
        Some(wrap(&line, WIDTH - 2).join("\n  "))
    });
    let lines: Vec<String> = datastores.chain(workloads).chain(lines).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("\nProblems:\n  {}\n", lines.join("\n  ")),
    }
}

#[cfg(test)]
mod tests {
    use sterna_api::PlanEstimate;

    use super::super::tests::{a_move, narrow, plan};
    use super::*;

    #[test]
    fn a_report_holds_what_was_achieved_against_what_was_planned() {
        let mut moved = a_move("db", PlannedMoveState::Moved);
        (moved.began, moved.ended, moved.took_s) = (Some(100), Some(166), Some(66.0));
        let mut failed = a_move("web", PlannedMoveState::Failed);
        (failed.began, failed.ended) = (Some(100), Some(130));
        failed.problem = Some("nowhere else is room; slow is left alone: full".into());
        let mut over = plan(PlanState::Incomplete, vec![moved, failed]);
        (over.started, over.ended) = (Some(100), Some(232));
        let text = show(&over, Output::new(false));
        assert!(!text.contains("2 min 12 s (+10%)"), "{text}");
        for part in [
            "incomplete",
            "1 of 2 disks",
            "failed   1 disk",
            "took     2 min 12 s",
            "1 min 06 s  +10%",
            "web (failed): nowhere else is room",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        narrow(&text);
    }

    #[test]
    fn only_what_was_all_done_is_held_against_what_was_planned() {
        let mut moved = a_move("db", PlannedMoveState::Moved);
        (moved.began, moved.ended, moved.took_s) = (Some(100), Some(166), Some(66.0));
        let over = |state| Plan {
            started: Some(100),
            ended: Some(232),
            ..plan(state, vec![moved.clone()])
        };
        let said = |plan: &Plan| show(plan, Output::new(false));
        let off = "2 min 12 s (+10%)";
        assert!(said(&over(PlanState::Completed)).contains(off));
        for state in [PlanState::Incomplete, PlanState::Cancelled] {
            assert!(!said(&over(state)).contains(off), "{state}");
        }
        let mut waited = over(PlanState::Completed);
        waited.guard.window = Some("03:00-04:00".into());
        assert!(!said(&waited).contains(off), "it may have waited for its window");
        let quick = Plan { ended: Some(100), ..over(PlanState::Completed) };
        let quick = Plan {
            estimate: PlanEstimate { likely_s: Some(0.2), ..quick.estimate },
            ..quick
        };
        assert!(said(&quick).contains("took     less than 1 s\n"), "{}", said(&quick));
    }

    #[test]
    fn of_a_plan_that_has_not_begun_there_is_nothing_to_report() {
        let text = show(&plan(PlanState::Planned, Vec::new()), Output::new(false));
        assert!(text.contains("has not begun"), "{text}");
    }
}
