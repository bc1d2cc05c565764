//! A plan in virtual time: the machine that would carry it out is run here, with moves
//! that take what they are predicted to take. Nothing begins.

use std::collections::HashMap;

use sterna_api::{Plan, PlannedMove};
use sterna_console::format::{moment, moment_ahead, rate, span};
use sterna_console::output::{Output, prose};
use sterna_console::table::{Column, Table};
use sterna_core::Nanos;
use sterna_placement::waves::{
    End, Group, Move, PlanRun, Rehearsal, Rehearsed, Setup, rehearse,
};

use super::show;

/// What a copy is taken to do of which nobody knows, in bytes per second.
const NOMINAL: f64 = (100 << 20) as f64;

/// How wide the bars are.
const BAR: usize = 32;

/// The plan, and when each of its moves would run.
pub(super) fn show(plan: &Plan, output: Output) -> String {
    let shown = show::show(plan, output);
    if plan.moves.is_empty() {
        return shown;
    }
    let run = rehearse(&PlanRun::new(setup(plan)), &[]);
    let ends = ends(plan, run.ends.as_secs_f64());
    let bars = bars(plan, &run, output);
    let hooks = match plan.workloads.is_empty() {
        true => "",
        false => " No hook was run; hooks are assumed to take no time.",
    };
    let begun = prose(&format!("Nothing has begun.{hooks}"));
    format!("{shown}\n{ends}\n{bars}\n{begun}")
}

/// When it ends: after how long, and by the clock where it waits for its window.
fn ends(plan: &Plan, seconds: f64) -> String {
    let took = span(seconds);
    let note = match plan.estimate.unknown {
        0 => String::new(),
        _ => format!(
            " (for disks with an unknown time, {} are assumed)",
            rate(nominal(plan))
        ),
    };
    let text = match plan.opens {
        None => format!("In virtual time it ends after {took}{note}:"),
        Some(opens) => {
            let by = plan.ends.unwrap_or(opens + seconds.ceil() as u64);
            format!(
                "In virtual time it begins as soon as its window opens, {}, and ends at \
                 {}. From the beginning, without hours in which the window is closed, it \
                 takes {took}{note}:",
                moment_ahead(opens),
                moment(by)
            )
        }
    };
    prose(&text)
}

/// What a copy is taken to do of which nobody knows, no more than its limit.
fn nominal(plan: &Plan) -> f64 {
    plan.rate.map_or(NOMINAL, |limit| NOMINAL.min(limit.max(1) as f64))
}

/// The machine's orders, from what the daemon says of the plan.
fn setup(plan: &Plan) -> Setup {
    let names: Vec<&str> =
        plan.datastores.iter().map(|one| one.datastore.as_str()).collect();
    let number = |name: &str| names.iter().position(|it| *it == name).unwrap_or(0);
    let tiles: HashMap<&str, usize> = plan
        .tiles
        .iter()
        .enumerate()
        .map(|(at, tile)| (tile.name.as_str(), at))
        .collect();
    let group = |one: &PlannedMove| match &one.tile {
        Some(tile) => tiles.get(tile.as_str()).copied(),
        None => (!tiles.is_empty()).then_some(tiles.len()),
    };
    let as_move = |one: &PlannedMove| {
        let rate = one.predicted.map_or(nominal(plan), |it| it.rate);
        let time = one.predicted.map_or(one.ends_s - one.begins_s, |it| it.likely_s);
        Move {
            from: number(&one.from),
            to: number(&one.to),
            size: one.bytes,
            needs: one.bytes,
            group: group(one),
            time: Nanos((time.max(0.05) * 1e9) as u64),
            rate,
        }
    };
    let ends = plan.datastores.iter().map(|one| End {
        takes: one.room.is_some(),
        room: one.room.unwrap_or_default(),
        // Nothing goes elsewhere than was planned, which has seen to that.
        shared_room: None,
        single: false,
        speed: one.speed,
    });
    Setup {
        moves: plan.moves.iter().map(as_move).collect(),
        ends: ends.collect(),
        groups: groups(plan, &tiles),
        at_once: plan.at_once.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
    }
}

/// The tiles, and what is in none of them, which goes last.
fn groups(plan: &Plan, tiles: &HashMap<&str, usize>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (at, tile) in plan.tiles.iter().enumerate() {
        let after = match &tile.after {
            Some(names) => names
                .iter()
                .filter_map(|name| tiles.get(name.as_str()).copied())
                .collect(),
            None => at.checked_sub(1).into_iter().collect(),
        };
        groups.push(Group {
            after,
            together: tile.together,
            stops: tile.stop.is_some(),
            starts: tile.start.is_some(),
        });
    }
    if !tiles.is_empty() {
        groups.push(Group { after: (0..tiles.len()).collect(), ..Group::default() });
    }
    groups
}

/// When each move runs, as a bar.
fn bars(plan: &Plan, run: &Rehearsal, output: Output) -> String {
    let mut table = Table::new(&[
        ("WAVE", Column::Right),
        ("DISK", Column::Flexible),
        ("BEGINS", Column::Right),
        ("ENDS", Column::Right),
        ("", Column::Left),
    ]);
    let whole = run.ends.as_secs_f64().max(1e-9);
    let mut rows: Vec<(&PlannedMove, &Rehearsed)> = plan
        .moves
        .iter()
        .zip(&run.moves)
        .filter_map(|(one, it)| Some((one, it.as_ref()?)))
        .collect();
    rows.sort_by_key(|(_, it)| (it.wave, it.begins));
    for (one, it) in rows {
        let (begins, ends) = (it.begins.as_secs_f64(), it.ends.as_secs_f64());
        let at = |seconds: f64| ((seconds / whole * BAR as f64) as usize).min(BAR - 1);
        let (from, to) = (at(begins), at(ends));
        let bar = " ".repeat(from) + &"=".repeat(to - from + 1);
        table.row(vec![
            it.wave.to_string().into(),
            one.disk.as_str().into(),
            span(begins).into(),
            span(ends).into(),
            bar.into(),
        ]);
    }
    output.table(&table)
}

#[cfg(test)]
mod tests {
    use sterna_api::{PlanState, PlannedMoveState, Tile};

    use super::super::tests::{a_move, narrow, plan};
    use super::*;

    #[test]
    fn what_goes_first_begins_before_what_waits_for_it() {
        let moves = ["db", "web", "other"].map(|disk| {
            let tile = Some(disk.to_owned()).filter(|disk| disk != "other");
            PlannedMove { tile, ..a_move(disk, PlannedMoveState::Waiting) }
        });
        let mut made = plan(PlanState::Planned, moves.into());
        let tile = |name: &str| Tile {
            name: name.into(),
            disks: vec![name.into()],
            after: None,
            together: false,
            stop: None,
            start: None,
        };
        made.tiles = vec![tile("db"), tile("web")];
        let run = rehearse(&PlanRun::new(setup(&made)), &[]);
        let begins: Vec<f64> =
            run.moves.iter().map(|one| one.unwrap().begins.as_secs_f64()).collect();
        assert_eq!(begins, [0.0, 60.0, 120.0]);
        let text = super::show(&made, Output::new(false));
        assert!(text.contains("it ends after 3 min 00 s"), "{text}");
        narrow(&text);
        made.opens = Some(4_000_000_000);
        made.ends = Some(4_000_000_180);
        let text = super::show(&made, Output::new(false));
        assert!(text.contains(&moment(4_000_000_180)), "{text}");
        assert!(!text.contains("it ends after"), "{text}");
        narrow(&text);
    }
}
