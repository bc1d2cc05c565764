//! The report of the experiment for real.

use sterna_api::Status;
use sterna_console::format::{self, moment, now};
use sterna_console::output::Output;
use sterna_console::table::{Column, Table};
use sterna_core::Bytes;
use sterna_report::{Chart, Facts, Line, Report, Sheet, UNKNOWN};
use sterna_sim::overcommit::Medium;

use super::bars::{EARLY, FIRST, FLASH, above_from, mean_of, percent};
use super::outcome::Outcome;
use super::plan::{MEMORY, Plan, STORE, Way};
use super::swapping;
use crate::machine;

const ABOUT: &str = "The memory of an idle guest with a PostgreSQL database is out on an emulated \
                     array when its customers come back: with Linux alone, and with Sterna.";

/// The columns of the wakes, for the terminal and the report.
const HEAD: [&str; 9] =
    ["MEDIUM", "WAY", "OUT", "10 s", "30 s", "ALL", "88 % FROM", "HELD", "ALL BACK"];

/// The ways, in the order in which they are told.
pub(super) const WAYS: [Way; 3] = [Way::Alone, Way::Beside, Way::Held];

/// Tells the experiment.
pub(super) fn report(
    outcome: &Outcome,
    plan: &Plan,
    whole: bool,
    status: &Status,
) -> Report {
    let verdicts = outcome.verdicts(whole);
    Report {
        title: "Memory under overcommit".into(),
        about: ABOUT.into(),
        made: format!("Sterna {}, {}", status.version, moment(now())),
        passed: verdicts.iter().all(|verdict| verdict.passed),
        verdicts,
        charts: outcome.bases.iter().map(|base| chart(outcome, base.medium)).collect(),
        events: Vec::new(),
        sheets: vec![wakes(outcome), swapping::sheet(outcome), tiers(outcome)],
        facts: vec![
            facts(plan),
            Facts { title: "Machine".into(), pairs: machine::facts() },
        ],
    }
}

/// The wakes, for the terminal.
pub(super) fn words(outcome: &Outcome, output: Output) -> String {
    table(HEAD, rows(outcome), output) + &swapping::words(outcome, output)
}

/// A table of the ways on media, whose other columns are numbers.
pub(super) fn table<const N: usize>(
    head: [&str; N],
    rows: Vec<[String; N]>,
    output: Output,
) -> String {
    let numbers = head.map(|head| match head {
        "MEDIUM" | "WAY" => (head, Column::Left),
        _ => (head, Column::Right),
    });
    let mut table = Table::new(&numbers);
    for row in rows {
        table.row(row.map(Into::into).into());
    }
    output.table(&table) + "\n"
}

fn rows(outcome: &Outcome) -> Vec<[String; 9]> {
    let media = outcome.bases.iter().map(|base| base.medium);
    let all = media.flat_map(|medium| WAYS.map(|way| (medium, way)));
    all.filter_map(|(medium, way)| row(outcome, medium, way)).collect()
}

/// What the wakes of a way on a medium kept, as means over the repeats.
fn row(outcome: &Outcome, medium: Medium, way: Way) -> Option<[String; 9]> {
    let (kept, trials) = (outcome.kept(medium, way)?, outcome.of(medium, way));
    let until = |seconds: usize| percent(mean_of(&kept[..seconds.min(kept.len())]));
    let out = trials.iter().map(|trial| trial.out).sum::<u64>() / trials.len() as u64;
    let mean = |values: Vec<f64>| (!values.is_empty()).then(|| mean_of(&values));
    let wakes = || trials.iter().filter_map(|trial| trial.wake.as_ref());
    let held = mean(wakes().map(|wake| wake.held_ms / 1e3).collect());
    let back = mean(wakes().filter_map(|wake| wake.all_s).collect());
    let seconds = |value: Option<f64>, digits: usize| {
        value.map_or(UNKNOWN.to_owned(), |value| format!("{value:.digits$} s"))
    };
    let woke = trials.iter().any(|trial| trial.sleep.is_none());
    Some([
        medium.to_string(),
        // It was not asleep any more when its customers came.
        format!("{way}{}", if woke { " *" } else { "" }),
        Bytes(out).to_string(),
        until(FIRST),
        until(EARLY),
        until(kept.len()),
        above_from(&kept, FLASH).map_or("never".into(), |from| format!("{from} s")),
        seconds(held.filter(|held| *held > 0.0), 2),
        seconds(back, 1),
    ])
}

fn chart(outcome: &Outcome, medium: Medium) -> Chart {
    let line = |way: Way| {
        let kept = outcome.kept(medium, way)?;
        let values = kept.into_iter().map(|kept| Some(kept * 100.0)).collect();
        Some(Line { name: way.to_string(), values })
    };
    let lines: Vec<Line> = WAYS.into_iter().filter_map(line).collect();
    let seconds = lines.iter().map(|line| line.values.len()).max().unwrap_or(0);
    Chart {
        title: format!("Orders after the wake, swap on {medium}"),
        unit: "% of the same guest with its memory in place".into(),
        at_s: (1..=seconds).map(|at| at as f64).collect(),
        lines,
        strips: Vec::new(),
    }
}

fn wakes(outcome: &Outcome) -> Sheet {
    Sheet {
        title: "Orders kept (*: the guest woke before its customers came)".into(),
        head: HEAD.map(str::to_lowercase).into(),
        rows: rows(outcome).into_iter().map(Vec::from).collect(),
    }
}

fn tiers(outcome: &Outcome) -> Sheet {
    let row = |base: &super::outcome::Base| {
        let usual = outcome.usual(base.medium);
        vec![
            base.medium.to_string(),
            format!("array://{}", base.medium.array()),
            format::response(Some(base.tier.access_us)),
            format::rate(base.tier.bytes_per_s as f64),
            usual.map_or(UNKNOWN.into(), |usual| format!("{usual:.1} orders/s")),
        ]
    };
    let head = ["medium", "array", "64 KiB at random", "in order", "memory in place"];
    Sheet {
        title: "Swap tiers, as Sterna measured them".into(),
        head: head.map(str::to_owned).into(),
        rows: outcome.bases.iter().map(row).collect(),
    }
}

fn facts(plan: &Plan) -> Facts {
    let pairs = [
        ("guest's memory", Bytes(MEMORY).to_string()),
        ("store", Bytes(STORE).to_string()),
        ("measured", format!("{} s of each wake", plan.seconds)),
        ("repeats", plan.repeats.to_string()),
        ("seed", plan.seed.to_string()),
    ];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value)).into();
    Facts { title: "Parameters".into(), pairs }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn a_row_has_what_was_kept_and_says_who_woke_too_early() {
        let mut outcome = outcome();
        assert_eq!(rows(&outcome).len(), 2);
        let row = &rows(&outcome)[1];
        assert_eq!(row[..6], ["SATA", "held", "900 MiB", "95 %", "95 %", "95 %"]);
        assert_eq!(row[6..], ["0 s", "-", "-"]);
        outcome.trials[2].sleep = None;
        assert_eq!(rows(&outcome)[1][1], "held *");
    }

    #[test]
    fn the_table_fits_a_terminal() {
        let text = words(&outcome(), Output::new(false));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
