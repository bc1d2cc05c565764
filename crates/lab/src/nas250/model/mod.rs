//! The experiment in virtual time, at its size.

mod report;

use sterna_api::ErrorCode;
use sterna_console::connect::Failure;
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Style, Table, wrap};
use sterna_report::{Files, Verdict};
use sterna_sim::fluid::nas250::{ASSUMED, Basis, FITTED, Figure, Study, scenario};

use crate::{told, verdicts};

/// Runs it, and shows it.
pub(super) fn run(files: &Files, output: Output) -> anyhow::Result<()> {
    let study = Study::run();
    let report = report::report(&study);
    files.write(&report)?;
    output.answer(&report, |report| {
        format!("{}\n{}", words(&study, &report.verdicts, output), files.places())
    })?;
    if report.passed {
        return Ok(());
    }
    let failed = report.verdicts.iter().filter(|verdict| !verdict.passed).count();
    let message =
        format!("{failed} of {} requirements are not met", report.verdicts.len());
    let hint = "the table shows how far off they are".into();
    Err(Failure { code: ErrorCode::Unmet, message, hint }.into())
}

fn words(study: &Study, verdicts: &[Verdict], output: Output) -> String {
    let title = |title: &str| format!("\n{}\n", output.head(title));
    let mut text = output.table(&published(&study.figures(), true));
    let others: Vec<Verdict> =
        verdicts.iter().filter(|it| !is_time(it)).cloned().collect();
    text += "\n";
    text += &output.table(&verdicts::table(&others));
    text += &title("If machines stood still until their wave; not judged");
    text += &output.table(&published(&study.if_idle(), false));
    text += "\n";
    text += &told::words(&scenario(), &study.waves, output);
    text += "\n";
    let mut table = Table::new(&[
        ("FITTED NUMBER", Column::Left),
        ("VALUE", Column::Left),
        ("FITTED TO", Column::Sentence),
    ]);
    for it in FITTED {
        table.row(vec![it.what.into(), it.value.into(), it.to.into()]);
    }
    text += &output.table(&table);
    text += &title("Assumed");
    for assumed in ASSUMED {
        text += &format!("- {}\n", wrap(assumed, 78).join("\n  "));
    }
    text
}

/// Published times and ours; with what each shows, if they are judged.
fn published(figures: &[Figure], judged: bool) -> Table {
    let mut table = Table::new(&[
        ("TIME OF", Column::Flexible),
        ("PUBLISHED", Column::Right),
        ("OURS", Column::Right),
        ("DIFFERENCE", Column::Right),
        ("", Column::Left),
    ]);
    for figure in figures {
        let style = if figure.holds() { Style::Good } else { Style::Bad };
        table.row(vec![
            figure.what.clone().into(),
            minutes(figure.published).into(),
            minutes(figure.ours).into(),
            Cell::styled(difference(figure), style),
            if judged { basis(figure.basis) } else { "" }.into(),
        ]);
    }
    table
}

/// Whether a requirement is about a published time, which has a table of its own.
fn is_time(verdict: &Verdict) -> bool {
    verdict.what.starts_with("time of ")
}

fn minutes(minutes: f64) -> String {
    format!("{minutes:.0} min")
}

/// How far off ours is: `-1.4 %`.
fn difference(figure: &Figure) -> String {
    format!("{:+.1} %", 100.0 * figure.off())
}

/// What a figure shows.
fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Fitted => "fitted",
        Basis::Check => "checked",
    }
}
