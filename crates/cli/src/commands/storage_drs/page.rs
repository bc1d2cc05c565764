//! Storage DRS in one page, and what came of its moves.

use sterna_api::{
    Automation, Balanced, BalancedOutcome, BalancedScores, Migration, StorageDrs,
    StorageDrsRun, StorageDrsSettings,
};
use sterna_console::format::{count, moment_ago, moment_ahead, response, span};
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Pairs, Style, Table};

use super::recommend::{aim, datastores};
use crate::commands::migration::report::state;
use crate::common::guard::percent;

/// All of it.
pub(super) fn show(told: &StorageDrs, output: Output) -> String {
    let mut pairs = pairs(&told.settings);
    pairs.add("next", next(told));
    let last = told.last.as_ref().map(|last| acted(last, told.settings.automation));
    pairs.add("last", last.unwrap_or_else(|| "not since the daemon started".into()));
    let broken = match told.broken.is_empty() {
        true => "none".into(),
        false => Cell::styled(told.broken.join(", "), Style::Warn),
    };
    pairs.add("broken rules", broken);
    pairs.add("paid", paid(&told.scores));
    let mut text = output.pairs(&pairs);
    text.push('\n');
    text.push_str(&datastores(&told.datastores, output));
    if !told.moves.is_empty() {
        text.push_str("\nUnder way:\n");
        text.push_str(&under_way(&told.moves, output));
    }
    if !told.ended.is_empty() {
        text.push_str("\nResults of the moves:\n");
        text.push_str(&ended(&told.ended, output));
    }
    text
}

/// When it does something by itself, and what.
fn next(told: &StorageDrs) -> String {
    match (told.next, told.settings.automation) {
        (Some(next), Automation::Full) => moment_ahead(next),
        (Some(next), Automation::Partial) => format!(
            "moves nothing automatically; next recommendations {}",
            moment_ahead(next)
        ),
        (_, Automation::Manual) | (None, _) => "nothing automatically".into(),
    }
}

/// What it is told to do.
pub(super) fn settings(settings: &StorageDrsSettings, output: Output) -> String {
    output.pairs(&pairs(settings))
}

fn pairs(settings: &StorageDrsSettings) -> Pairs {
    let mut pairs = Pairs::new();
    let does = match settings.automation {
        Automation::Manual => "Storage DRS does nothing automatically",
        Automation::Partial => "Storage DRS places new disks, and only recommends moves",
        Automation::Full => "Storage DRS places new disks, and starts recommended moves",
    };
    pairs.add("automation", format!("{}: {does}", settings.automation));
    let p95 = response(Some(settings.latency_us as f64));
    let bounds = format!("{} of the space, p95 {p95}", percent(settings.space));
    pairs
        .add("bounds", format!("{bounds}; load of the last {}", span(settings.window_s)));
    pairs.add("acts", format!("every {}", span(settings.every_s)));
    pairs.add("guard", guard(settings));
    pairs
}

/// What its moves keep: `keep 97%`.
fn guard(settings: &StorageDrsSettings) -> String {
    let asked = &settings.guard;
    let keep = asked.keep.map(|keep| format!("keep {}", percent(keep)));
    let p99 = asked.p99_us.map(|p99| format!("p99 below {}", response(Some(p99 as f64))));
    let idle = asked.idle_only.then(|| "only while the disk is idle".to_owned());
    let window = asked.window.as_ref().map(|window| format!("only {window}"));
    let parts: Vec<String> =
        keep.into_iter().chain(p99).chain(idle).chain(window).collect();
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}

fn acted(last: &StorageDrsRun, automation: Automation) -> String {
    let mut lines = vec![moment_ago(last.at)];
    match last.held.is_empty() {
        true => lines.push("no datastore was over a bound for long enough".into()),
        false => lines.push(format!("over a bound: {}", last.held.join(", "))),
    }
    let begun = match (automation, last.begun.as_slice()) {
        (Automation::Full, []) => "none begun".into(),
        (Automation::Full, begun) => {
            let ids: Vec<String> = begun.iter().map(u64::to_string).collect();
            format!("begun as {}", ids.join(", "))
        }
        _ => "only recommended".into(),
    };
    let stay = if last.staying == 1 { "stays" } else { "stay" };
    let staying = format!("{} {stay}", count(last.staying, "disk"));
    lines.push(format!("{}, {begun}; {staying}", count(last.recommended, "move")));
    lines.extend(last.failed.iter().map(|failed| format!("not begun: {failed}")));
    lines.join("\n")
}

fn paid(scores: &BalancedScores) -> String {
    let waiting = match scores.waiting {
        0 => String::new(),
        waiting => format!("; {waiting} without a result yet"),
    };
    match scores.known {
        0 => format!("no results yet{waiting}"),
        known => format!("{} of {}{waiting}", scores.paid, count(known, "move")),
    }
}

fn under_way(all: &[Migration], output: Output) -> String {
    let mut table = Table::new(&[
        ("ID", Column::Right),
        ("DISK", Column::Flexible),
        ("FROM", Column::Flexible),
        ("TO", Column::Flexible),
        ("FOR", Column::Left),
        ("STATE", Column::Left),
        ("LEFT", Column::Right),
    ]);
    for one in all {
        let left = one.progress.and_then(|progress| progress.eta_s);
        table.row(vec![
            one.id.to_string().into(),
            one.disk.as_str().into(),
            one.from.as_str().into(),
            one.to.as_str().into(),
            aim_of(one).into(),
            state(one.state),
            left.map_or("-".into(), span).into(),
        ]);
    }
    output.table(&table)
}

fn ended(all: &[Migration], output: Output) -> String {
    let mut table = Table::new(&[
        ("ID", Column::Right),
        ("DISK", Column::Flexible),
        ("FROM", Column::Flexible),
        ("TO", Column::Flexible),
        ("FOR", Column::Left),
        ("BEFORE", Column::Right),
        ("AFTER", Column::Right),
        ("OUTCOME", Column::Left),
    ]);
    for (one, balanced) in
        all.iter().filter_map(|one| Some((one, one.balanced.as_ref()?)))
    {
        let after = balanced.after.and_then(|after| after.disk.mean_us);
        table.row(vec![
            one.id.to_string().into(),
            one.disk.as_str().into(),
            one.from.as_str().into(),
            one.to.as_str().into(),
            aim_of(one).into(),
            response(balanced.before.disk.mean_us).into(),
            response(after).into(),
            outcome(balanced.outcome),
        ]);
    }
    output.table(&table)
}

fn aim_of(one: &Migration) -> String {
    let balanced = one.balanced.as_ref();
    balanced.map_or("-".into(), |it| aim(it.over, it.rule.as_deref()))
}

fn outcome(outcome: BalancedOutcome) -> Cell {
    match outcome {
        BalancedOutcome::Waiting => "unknown yet".into(),
        BalancedOutcome::Paid => Cell::styled("paid", Style::Good),
        BalancedOutcome::NotPaid => Cell::styled("did not pay", Style::Warn),
        BalancedOutcome::Unknown => "cannot tell".into(),
    }
}

/// What was promised of a move, and what came of it.
pub(crate) fn add_balanced(pairs: &mut Pairs, one: &Balanced) {
    let aim = aim(one.over, one.rule.as_deref());
    pairs.add("started by", format!("Storage DRS, for {aim}"));
    let what = match (one.outcome, &one.note) {
        (BalancedOutcome::Waiting, _) => {
            format!("known after {} on the destination", span(one.window_s))
        }
        (BalancedOutcome::Paid, _) => "the move has paid".into(),
        (BalancedOutcome::NotPaid, _) => "the move has not paid".into(),
        (BalancedOutcome::Unknown, note) => {
            format!("cannot tell: {}", note.as_deref().unwrap_or("not measured"))
        }
    };
    pairs.add("result", what);
    let Some(after) = &one.after else { return };
    let means = [one.before.disk.mean_us, after.disk.mean_us];
    let p95s = [one.before.disk.p95_us, after.disk.p95_us];
    if means.iter().any(Option::is_some) {
        let [mean, now] = means.map(response);
        let [p95, p95_now] = p95s.map(response);
        pairs
            .add("", format!("disk: {mean} to {now} on average, p95 {p95} to {p95_now}"));
    }
    let sides = [
        ("source", &one.before.source, &after.source, one.predicted[0].p95_us),
        (
            "destination",
            &one.before.destination,
            &after.destination,
            one.predicted[1].p95_us,
        ),
    ];
    for (name, before, after, predicted) in sides {
        if before.p95_us.is_none() && after.p95_us.is_none() {
            continue;
        }
        let predicted = predicted
            .map_or(String::new(), |it| format!(" (predicted {})", response(Some(it))));
        let [before, after] = [before.p95_us, after.p95_us].map(response);
        pairs.add("", format!("{name}: p95 {before} to {after}{predicted}"));
    }
    let taken = [
        (one.before.source_taken, after.source_taken),
        (one.before.destination_taken, after.destination_taken),
    ];
    let part = |taken: Option<f64>| {
        taken.map_or("unknown".into(), |it| format!("{:.0}%", it * 100.0))
    };
    let [source, destination] =
        taken.map(|(before, after)| format!("{} to {}", part(before), part(after)));
    pairs.add("", format!("taken: source {source}, destination {destination}"));
}

#[cfg(test)]
mod tests {
    use sterna_api::{BalancedScene, DatastoreLoad, Fared, MigrationState, OverBound};

    use super::*;
    use crate::commands::migration::report::sample;

    fn balanced() -> Balanced {
        let fared = |mean_us| Fared { iops: 500.0, mean_us, p95_us: mean_us };
        let scene = |micros| BalancedScene {
            disk: fared(Some(micros)),
            source: fared(Some(micros)),
            destination: fared(None),
            source_taken: Some(0.9),
            destination_taken: Some(0.2),
        };
        let load = DatastoreLoad { taken: Some(0.3), p95_us: Some(3000.0) };
        Balanced {
            over: Some(OverBound::Latency),
            rule: None,
            space: 0.8,
            latency_us: 15_000,
            window_s: 3600.0,
            predicted: [load; 2],
            before: scene(21_000.0),
            after: Some(scene(2_000.0)),
            outcome: BalancedOutcome::Paid,
            note: None,
        }
    }

    #[test]
    fn the_page_fits_on_a_screen() {
        let mut one = sample(MigrationState::Completed);
        one.balanced = Some(balanced());
        one.disk = "a-disk-with-quite-a-long-name".into();
        one.from = "a-datastore-with-quite-a-long-name".into();
        let told = StorageDrs {
            settings: StorageDrsSettings {
                automation: Automation::Full,
                ..StorageDrsSettings::default()
            },
            datastores: Vec::new(),
            broken: vec!["pair".into()],
            next: Some(0),
            last: Some(StorageDrsRun {
                at: 0,
                held: vec!["slow".into()],
                recommended: 2,
                begun: vec![7, 8],
                failed: Vec::new(),
                staying: 1,
            }),
            moves: vec![sample(MigrationState::Copying)],
            ended: vec![one],
            scores: BalancedScores { paid: 9, known: 10, waiting: 1 },
        };
        let text = show(&told, Output::new(false));
        for part in [
            "full: Storage DRS places new disks",
            "80% of the space, p95 15.0 ms",
            "keep 97%",
            "over a bound: slow",
            "2 moves, begun as 7, 8; 1 disk stays",
            "9 of 10 moves; 1 without a result yet",
            "21.0 ms",
            "paid",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn what_came_of_a_move_is_said_against_what_was_predicted() {
        let mut pairs = Pairs::new();
        add_balanced(&mut pairs, &balanced());
        let text = Output::new(false).pairs(&pairs);
        for part in [
            "Storage DRS, for latency",
            "the move has paid",
            "disk: 21.0 ms to 2.0 ms on average",
            "source: p95 21.0 ms to 2.0 ms (predicted 3.0 ms)",
            "taken: source 90% to 90%, destination 20% to 20%",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }
}
