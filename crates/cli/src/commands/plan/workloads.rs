//! What a plan stops and starts, in words.

use sterna_api::{Plan, PlannedWorkload, WorkloadState};
use sterna_console::format::{count, now, span};
use sterna_console::output::{Output, WIDTH, prose};
use sterna_console::table::{Cell, Column, Style, Table};

/// A tile's name and its hooks have so much room beside the longest state.
const BESIDE: usize = WIDTH - "not started".len() - 3 * 2;

/// What stops and starts them, and where they are.
pub(super) fn show(plan: &Plan, output: Output) -> String {
    if plan.workloads.is_empty() {
        return String::new();
    }
    let hooks: Vec<[String; 2]> =
        plan.workloads.iter().map(|it| hooks(plan, it)).collect();
    let all = plan.workloads.iter().zip(&hooks);
    let is_wide = all.clone().any(|(one, [stop, start])| {
        let parts = [&one.tile, stop, start].map(|it| it.chars().count());
        parts.into_iter().sum::<usize>() > BESIDE
    });
    let mut columns = vec![("TILE", Column::Flexible), ("WORKLOAD", Column::Left)];
    if !is_wide {
        columns
            .extend([("STOPPED BY", Column::Wrapped), ("STARTED BY", Column::Wrapped)]);
    }
    let (mut table, mut text) = (Table::new(&columns), String::new());
    for (one, [stop, start]) in all {
        let mut row: Vec<Cell> = vec![one.tile.as_str().into(), state(one)];
        match is_wide {
            // A command that somebody will copy stays in one piece.
            true => text.push_str(&format!(
                "\n{} is stopped by\n  {stop}\nand started by\n  {start}\n",
                one.tile
            )),
            false => row.extend([stop.as_str().into(), start.as_str().into()]),
        }
        table.row(row);
    }
    format!("\n{}{text}{}", output.table(&table), problems(plan))
}

/// What hooks have failed with, and whether that is tried again.
fn problems(plan: &Plan) -> String {
    let line = |one: &PlannedWorkload| {
        let (tile, problem) = (&one.tile, one.problem.as_ref()?);
        let is_tried_again = one.tries > 0 && !is_back(one) && !plan.state.ended();
        let text = match one.state {
            WorkloadState::NotStarted => format!("{tile} was not started: {problem}"),
            _ if is_tried_again => format!(
                "{tile} has not started ({}), and is tried again: {problem}",
                count(one.tries.into(), "attempt")
            ),
            _ => format!("{tile} ({}): {problem}", one.state),
        };
        Some(prose(&text) + "\n")
    };
    let lines: String = plan.workloads.iter().filter_map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// What stops and what starts it.
fn hooks(plan: &Plan, one: &PlannedWorkload) -> [String; 2] {
    let tile = plan.tiles.iter().find(|tile| tile.name == one.tile);
    [tile.and_then(|it| it.stop.as_deref()), tile.and_then(|it| it.start.as_deref())]
        .map(hook)
}

/// For how long each stood still.
pub(super) fn report(plan: &Plan, output: Output) -> String {
    if plan.workloads.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        ("TILE", Column::Flexible),
        ("WORKLOAD", Column::Left),
        ("STOOD STILL", Column::Right),
    ]);
    for one in &plan.workloads {
        let until = one.started.or((!is_back(one)).then(|| plan.ended.unwrap_or(now())));
        let stood = one.stopped.zip(until).map(|(from, to)| to.saturating_sub(from));
        let stood = stood.map_or("-".into(), |stood| span(stood as f64));
        let stood = match one.state {
            // Nobody tells when it was started by hand.
            WorkloadState::NotStarted => format!("{stood}, or longer"),
            _ => stood,
        };
        table.row(vec![one.tile.as_str().into(), state(one), stood.into()]);
    }
    format!("\n{}", output.table(&table))
}

/// What stands still as long as its plan does.
pub(super) fn left_down(plan: &Plan) -> String {
    let down: Vec<&str> = plan
        .workloads
        .iter()
        .filter(|one| {
            matches!(one.state, WorkloadState::Stopping | WorkloadState::Stopped)
        })
        .map(|one| one.tile.as_str())
        .collect();
    match down.is_empty() {
        true => String::new(),
        false => format!(
            "\n  stopped meanwhile: {}\n  to start it and cancel the plan: sterna plan \
             cancel {}",
            down.join(", "),
            plan.id
        ),
    }
}

fn is_back(one: &PlannedWorkload) -> bool {
    matches!(one.state, WorkloadState::Untouched | WorkloadState::Started)
}

fn state(one: &PlannedWorkload) -> Cell {
    let style = match one.state {
        WorkloadState::Untouched | WorkloadState::Starting => Style::Plain,
        WorkloadState::Stopping | WorkloadState::Stopped => Style::Warn,
        WorkloadState::Started => Style::Good,
        WorkloadState::NotStarted => Style::Bad,
    };
    Cell::styled(one.state.to_string(), style)
}

/// A hook as one would type it.
fn hook(command: Option<&[String]>) -> String {
    command.map_or("-".into(), |words| {
        let quoted = words.iter().map(|word| match word.contains([' ', '\'', '"']) {
            true => format!("{word:?}"),
            false => word.clone(),
        });
        quoted.collect::<Vec<_>>().join(" ")
    })
}

#[cfg(test)]
mod tests {
    use sterna_api::{PlanState, PlannedMoveState, Tile};

    use super::super::tests::{a_move, narrow, plan};
    use super::*;

    fn with(state: WorkloadState, times: (Option<u64>, Option<u64>)) -> Plan {
        let moves = vec![a_move("db", PlannedMoveState::Waiting)];
        let words = |all: &[&str]| Some(all.iter().map(|it| (*it).to_owned()).collect());
        Plan {
            tiles: vec![Tile {
                name: "shop".into(),
                disks: vec!["db".into()],
                after: None,
                together: false,
                stop: words(&["/usr/local/bin/shop", "stop", "for a while"]),
                start: None,
            }],
            workloads: vec![PlannedWorkload {
                tile: "shop".into(),
                state,
                stopped: times.0,
                started: times.1,
                tries: 0,
                problem: None,
            }],
            ..plan(PlanState::Running, moves)
        }
    }

    #[test]
    fn what_is_stopped_and_how_is_shown_before_anything_begins() {
        let text =
            show(&with(WorkloadState::Untouched, (None, None)), Output::new(false));
        assert!(text.contains("/usr/local/bin/shop stop \"for a while\""), "{text}");
        narrow(&text);
    }

    #[test]
    fn hooks_that_are_too_long_for_a_table_have_lines_of_their_own() {
        let mut long = with(WorkloadState::NotStarted, (Some(1), None));
        let command = format!("/usr/local/lib/{}", "shop/".repeat(10));
        long.tiles[0].stop = Some(vec![command.clone()]);
        long.tiles[0].start = Some(vec![command.clone()]);
        let text = show(&long, Output::new(false));
        let part =
            format!("shop is stopped by\n  {command}\nand started by\n  {command}\n");
        assert!(text.ends_with(&part), "{text}");
        narrow(&text);
    }

    #[test]
    fn what_is_tried_again_is_said() {
        let failed = |state, tries| {
            let mut plan = with(state, (Some(1), None));
            plan.workloads[0].tries = tries;
            plan.workloads[0].problem = Some("its start hook /shop ended with 1".into());
            let text = show(&plan, Output::new(false));
            narrow(&text);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        for state in [WorkloadState::Stopped, WorkloadState::Starting] {
            let text = failed(state, 1);
            let part =
                "shop has not started (1 attempt), and is tried again: its start hook";
            assert!(text.contains(part), "{text}");
        }
        let given_up = failed(WorkloadState::NotStarted, 3);
        assert!(given_up.contains("shop was not started: its start hook"), "{given_up}");
        let other = failed(WorkloadState::Stopped, 0);
        assert!(other.contains("shop (stopped): its"), "{other}");
    }

    #[test]
    fn a_report_says_for_how_long_it_stood_still() {
        let of = |state, times| report(&with(state, times), Output::new(false));
        let back = of(WorkloadState::Started, (Some(100), Some(166)));
        assert!(back.contains("1 min 06 s"), "{back}");
        let still = of(WorkloadState::NotStarted, (Some(now() - 60), None));
        assert!(still.contains("1 min 0") && still.contains("or longer"), "{still}");
        let untouched = of(WorkloadState::Untouched, (None, None));
        assert!(untouched.trim_end().ends_with('-'), "{untouched}");
    }

    #[test]
    fn who_pauses_a_plan_hears_what_it_leaves_stopped() {
        let said = left_down(&with(WorkloadState::Stopped, (Some(1), None)));
        assert!(said.contains("stopped meanwhile: shop"), "{said}");
        assert_eq!(left_down(&with(WorkloadState::Started, (Some(1), Some(2)))), "");
    }
}
