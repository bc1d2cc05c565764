//! A plan in words: where its disks go, when and why, and how far it is.

use sterna_api::{
    Deadline, DeadlineState, Plan, PlanEstimate, PlanState, PlannedDatastore,
    PlannedMove, PlannedMoveState,
};
use sterna_console::format::{
    bytes, count, moment, moment_ago, moment_ahead, rate, span,
};
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Pairs, Style, Table};

use super::workloads;
use crate::common::guard;

/// Many plans, one a line.
pub(super) fn list(all: &[Plan], output: Output) -> String {
    if all.is_empty() {
        return "No plans yet. Make one: sterna plan evacuate DATASTORE".into();
    }
    let mut table = Table::new(&[
        ("ID", Column::Right),
        ("EMPTIES", Column::Flexible),
        ("STATE", Column::Left),
        ("MOVES", Column::Right),
        ("MOVED", Column::Right),
        ("FAILED", Column::Right),
        ("COPIES", Column::Right),
        ("TAKES", Column::Right),
    ]);
    for plan in all {
        let number = |state| numbered(plan, &[state]).to_string();
        table.row(vec![
            plan.id.to_string().into(),
            plan.datastore.as_str().into(),
            state(plan.state),
            plan.moves.len().to_string().into(),
            number(PlannedMoveState::Moved).into(),
            numbered(plan, &[PlannedMoveState::Failed, PlannedMoveState::Skipped])
                .to_string()
                .into(),
            bytes(plan.estimate.bytes).into(),
            plan.estimate.likely_s.map_or("-".into(), span).into(),
        ]);
    }
    output.table(&table)
}

/// How many moves are in one of these states.
pub(super) fn numbered(plan: &Plan, states: &[PlannedMoveState]) -> usize {
    plan.moves.iter().filter(|one| states.contains(&one.state)).count()
}

pub(super) fn state(state: PlanState) -> Cell {
    let style = match state {
        PlanState::Completed => Style::Good,
        PlanState::Incomplete => Style::Bad,
        PlanState::Paused | PlanState::Cancelling | PlanState::Cancelled => Style::Warn,
        PlanState::Planned | PlanState::Running => Style::Plain,
    };
    Cell::styled(state.to_string(), style)
}

pub(super) fn move_state(one: &PlannedMove) -> Cell {
    let style = match one.state {
        PlannedMoveState::Moved => Style::Good,
        PlannedMoveState::Failed | PlannedMoveState::Skipped => Style::Bad,
        PlannedMoveState::Standing
        | PlannedMoveState::Leaving
        | PlannedMoveState::Cancelled => Style::Warn,
        PlannedMoveState::Waiting
        | PlannedMoveState::Starting
        | PlannedMoveState::Moving => Style::Plain,
    };
    let state = match one.state {
        PlannedMoveState::Moving if one.verifying => "verifying".into(),
        state => state.to_string(),
    };
    let text = match one.done {
        Some(done) => format!("{state} {:.0}%", (done * 100.0).floor()),
        None => state,
    };
    Cell::styled(text, style)
}

/// One plan.
pub(super) fn show(plan: &Plan, output: Output) -> String {
    let mut text = head(plan, output);
    text.push('\n');
    text.push_str(&datastores(&plan.datastores, output));
    if !plan.moves.is_empty() {
        text.push('\n');
        text.push_str(&moves(plan, output));
    }
    text.push_str(&workloads::show(plan, output));
    text + &refused(plan, output)
}

pub(super) fn refused(plan: &Plan, output: Output) -> String {
    if plan.refused.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[("DISK", Column::Flexible), ("WHY", Column::Wrapped)]);
    for one in &plan.refused {
        table.row(vec![one.disk.as_str().into(), one.reason.as_str().into()]);
    }
    format!("\nThese stay on {}:\n{}", plan.datastore, output.table(&table))
}

fn head(plan: &Plan, output: Output) -> String {
    let waves = plan.moves.iter().map(|one| one.wave).max().unwrap_or_default();
    let mut pairs = Pairs::new();
    match plan.id {
        0 => pairs.add("plan", "not kept"),
        id => pairs.add("plan", id.to_string()),
    }
    pairs.add("empties", plan.datastore.as_str());
    pairs.add("state", state(plan.state));
    pairs.add(
        "moves",
        format!(
            "{}, {} to copy, in {}",
            count(plan.moves.len() as u64, "disk"),
            bytes(plan.estimate.bytes),
            count(waves.into(), "wave")
        ),
    );
    pairs.add("takes", takes(&plan.estimate));
    pairs.maybe("lower bound", at_least(&plan.estimate));
    pairs.maybe("window opens", plan.opens.map(moment_ahead));
    if !plan.guard.is_none() {
        pairs.add("guard", guard::asked(&plan.guard));
    }
    pairs.maybe("rate", plan.rate.map(|limit| format!("{} each", rate(limit as f64))));
    pairs.maybe("at once", plan.at_once.map(|most| most.to_string()));
    if plan.state != PlanState::Planned {
        let moved = numbered(plan, &[PlannedMoveState::Moved]);
        let failed =
            numbered(plan, &[PlannedMoveState::Failed, PlannedMoveState::Skipped]);
        pairs.add("moved", format!("{moved} of {}, {failed} failed", plan.moves.len()));
    }
    pairs.maybe("begun", plan.started.map(moment_ago));
    pairs.maybe("ended", plan.ended.map(moment_ago));
    if plan.state == PlanState::Planned && plan.opens.is_some() {
        let ends = plan.ends.map(|ends| format!("{}, if applied now", moment(ends)));
        pairs.maybe("ends", ends);
    } else if plan.ended.is_none() && plan.state != PlanState::Planned {
        pairs.maybe("ends", plan.ends.map(moment_ahead).or_else(|| not_known(plan)));
    }
    pairs.maybe("deadline", plan.deadline.as_ref().map(deadline));
    output.pairs(&pairs)
}

/// What keeps a plan that goes on from having an end that could be foreseen.
fn not_known(plan: &Plan) -> Option<String> {
    if plan.state != PlanState::Running || plan.estimate.likely_s.is_none() {
        return None;
    }
    let mut stand = plan.moves.iter();
    let stand = stand.find(|one| one.state == PlannedMoveState::Standing);
    Some(match (stand, numbered(plan, &[PlannedMoveState::Standing])) {
        (None, _) => "not known while moves wait for a datastore".into(),
        (Some(one), 1) => format!("not known while {} stands still", one.disk),
        (Some(_), more) => {
            format!("not known while {} stand still", count(more as u64, "disk"))
        }
    })
}

/// How long it takes, and its range.
pub(super) fn takes(estimate: &PlanEstimate) -> String {
    match (estimate.likely_s, estimate.least_s, estimate.most_s) {
        (Some(likely), Some(least), Some(most)) => {
            let [likely, least, most] = [likely, least, most].map(span);
            format!("{likely} (range {least} to {most})")
        }
        _ if estimate.unknown == 0 => "no time".into(),
        _ => {
            let unseen = estimate.unknown.saturating_sub(estimate.limited);
            let [none, limited] = [unseen, estimate.limited].map(|it| count(it, "disk"));
            let none = format!("no copy seen yet for {none}");
            let most = estimate.limited_to.map(|limit| rate(limit as f64));
            let most = most.unwrap_or_default();
            let only = format!(
                "only copies with a limit (--rate, at most {most}) for {limited}"
            );
            match (unseen, estimate.limited) {
                (_, 0) => format!("unknown: {none}"),
                (0, _) => format!("unknown: {only}"),
                (..) => format!("unknown: {none}, and {only}"),
            }
        }
    }
}

fn at_least(estimate: &PlanEstimate) -> Option<String> {
    let bound = span(estimate.bound_s?);
    Some(match estimate.gap {
        Some(gap) => {
            format!("{bound} in any order; the plan is {:.0}% above it", gap * 100.0)
        }
        None => format!("{bound} in any order, because each copy has a limit"),
    })
}

pub(super) fn deadline(deadline: &Deadline) -> Cell {
    let (words, style) = match deadline.state {
        DeadlineState::Met => ("met", Style::Good),
        DeadlineState::Likely => ("met if no move takes longer than likely", Style::Good),
        DeadlineState::Unlikely => ("missed, unless all moves are quick", Style::Warn),
        DeadlineState::Missed => ("missed", Style::Bad),
        DeadlineState::Unknown => ("cannot be predicted yet", Style::Plain),
    };
    Cell::styled(format!("{}: {words}", moment(deadline.by)), style)
}

fn datastores(all: &[PlannedDatastore], output: Output) -> String {
    let mut table = Table::new(&[
        ("DATASTORE", Column::Flexible),
        ("MOVES", Column::Right),
        ("BYTES", Column::Right),
        ("MAY FILL", Column::Right),
        ("COPIES AT", Column::Right),
        ("NOTE", Column::Wrapped),
    ]);
    for one in all {
        let alone = one.problem.as_ref().map(|why| format!("left alone: {why}"));
        let grows = one.may_grow_to.map(|full| {
            format!("its thin disks may grow to {}, more than may be used", bytes(full))
        });
        let note = alone.or(grows);
        table.row(vec![
            one.datastore.as_str().into(),
            one.moves.to_string().into(),
            bytes(one.bytes).into(),
            one.room.map_or("-".into(), bytes).into(),
            one.speed.map_or("-".into(), rate).into(),
            note.unwrap_or_default().into(),
        ]);
    }
    output.table(&table)
}

/// Its moves: why they go there before it has begun, and how far they are from then on.
fn moves(plan: &Plan, output: Output) -> String {
    let is_planned = plan.state == PlanState::Planned;
    let mut columns = vec![
        ("WAVE", Column::Right),
        ("DISK", Column::Flexible),
        ("TO", Column::Flexible),
        ("COPIES", Column::Right),
        ("TAKES", Column::Right),
    ];
    match is_planned {
        true => columns.push(("WHY THERE", Column::Wrapped)),
        false => columns.extend([("STATE", Column::Left), ("NOTE", Column::Wrapped)]),
    }
    let mut table = Table::new(&columns);
    for one in &plan.moves {
        let mut row: Vec<Cell> = vec![
            one.wave.to_string().into(),
            one.disk.as_str().into(),
            one.to.as_str().into(),
            bytes(one.bytes).into(),
            match one.predicted {
                Some(_) => span(one.ends_s - one.begins_s).into(),
                None => "-".into(),
            },
        ];
        match is_planned {
            true => row.push(one.why.as_str().into()),
            false => {
                row.push(move_state(one));
                row.push(one.problem.clone().unwrap_or_default().into());
            }
        }
        table.row(row);
    }
    output.table(&table)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{a_move, narrow, plan};
    use super::*;

    #[test]
    fn a_plan_says_where_each_disk_goes_and_why() {
        let made =
            plan(PlanState::Planned, vec![a_move("db", PlannedMoveState::Waiting)]);
        let text = show(&made, Output::new(false));
        for part in [
            "1 disk, 10.0 GiB to copy, in 1 wave",
            "2 min 00 s (range 1 min 00 s to 4 min 00 s)",
            "1 min 40 s in any order; the plan is 20% above it",
            "keep 97%",
            "emptiest:",
            "These stay on old:",
            "the disk is already moving, by migration 5",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        narrow(&text);
    }

    #[test]
    fn a_plan_under_way_says_how_far_its_moves_are() {
        let mut moving = a_move("db", PlannedMoveState::Moving);
        moving.done = Some(0.425);
        let mut failed = a_move("web", PlannedMoveState::Failed);
        failed.problem = Some("nowhere else is room; it is full".into());
        let text =
            show(&plan(PlanState::Running, vec![moving, failed]), Output::new(false));
        for part in ["moving 42%", "0 of 2, 1 failed", "nowhere"] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        narrow(&text);
    }

    #[test]
    fn a_plan_of_which_something_stands_still_says_that_its_end_is_not_known() {
        let show_with = |states: &[PlannedMoveState]| {
            let moves = states.iter().map(|state| a_move("db", *state)).collect();
            show(&plan(PlanState::Running, moves), Output::new(false))
        };
        let (standing, waiting) = (PlannedMoveState::Standing, PlannedMoveState::Waiting);
        for (states, part) in [
            (vec![standing, waiting], "not known while db stands still"),
            (vec![standing, standing], "not known while 2 disks stand still"),
            (vec![waiting, waiting], "not known while moves wait for a datastore"),
        ] {
            let text = show_with(&states);
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        let paused = plan(PlanState::Paused, vec![a_move("db", standing)]);
        let text = show(&paused, Output::new(false));
        assert!(!text.contains("not known"), "its state says so:\n{text}");
    }

    #[test]
    fn a_plan_of_which_nothing_is_known_says_so() {
        let estimate = PlanEstimate { unknown: 4, ..PlanEstimate::default() };
        assert!(takes(&estimate).contains("4 disks"), "{}", takes(&estimate));
        assert_eq!(at_least(&estimate), None);
    }

    #[test]
    fn copies_that_were_limited_were_seen_and_a_limit_is_a_bound() {
        let limited_to = Some(40 << 20);
        let of = |limited| PlanEstimate {
            unknown: 4,
            limited,
            limited_to,
            bound_s: Some(14.0),
            ..PlanEstimate::default()
        };
        let all = takes(&of(4));
        assert!(
            all.ends_with(
                "only copies with a limit (--rate, at most 40.0 MiB/s) for 4 disks"
            ),
            "{all}"
        );
        let some = takes(&of(2));
        assert!(some.contains("no copy seen yet for 2 disks, and only"), "{some}");
        let bound = at_least(&of(4)).unwrap_or_default();
        assert_eq!(bound, "14 s in any order, because each copy has a limit");
    }

    #[test]
    fn a_plan_that_waits_for_its_window_says_when_that_opens_and_when_it_ends() {
        let mut made = plan(PlanState::Planned, vec![]);
        made.guard.window = Some("03:00-04:00".into());
        (made.opens, made.ends) = (Some(4_000_000_000), Some(4_000_000_060));
        let text = show(&made, Output::new(false));
        for part in ["window opens", "if applied now"] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        narrow(&text);
    }

    #[test]
    fn a_move_that_compares_says_so() {
        let one = PlannedMove {
            done: Some(0.8),
            verifying: true,
            ..a_move("db", PlannedMoveState::Moving)
        };
        let text = show(&plan(PlanState::Running, vec![one]), Output::new(false));
        assert!(text.contains("verifying 80%"), "{text}");
    }
}
