//! The verdicts of a report on the terminal: each requirement, what was measured of it,
//! and whether it is met.

use sterna_api::ErrorCode;
use sterna_console::connect::Failure;
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Style, Table};
use sterna_report::{Files, Report, Verdict};

/// The verdicts as a table for the terminal.
pub(super) fn table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&[
        ("REQUIREMENT", Column::Wrapped),
        ("MEASURED", Column::Right),
        ("BAR", Column::Left),
        ("", Column::Left),
    ]);
    for verdict in verdicts {
        let (word, style) = match verdict.passed {
            true => ("passed", Style::Good),
            false => ("FAILED", Style::Bad),
        };
        table.row(vec![
            verdict.what.clone().into(),
            verdict.measured.clone().into(),
            verdict.bar.clone().into(),
            Cell::styled(word, style),
        ]);
    }
    table
}

/// Shows the verdicts of a report that is written, and `more`, which is empty or ends
/// with a line's end; fails if one of them did.
pub(super) fn tell(
    files: &Files,
    report: &Report,
    more: &str,
    modelled: bool,
    output: Output,
) -> anyhow::Result<()> {
    output.answer(report, |report| {
        let table = output.table(&table(&report.verdicts));
        format!("{table}\n{more}{}", files.places())
    })?;
    if report.passed {
        return Ok(());
    }
    let failed = report.verdicts.iter().filter(|verdict| !verdict.passed).count();
    let but = match modelled {
        true => "",
        false => "; on a machine with other work, figures mean little",
    };
    Err(Failure {
        code: ErrorCode::Unmet,
        message: format!(
            "{failed} of {} requirements are not met",
            report.verdicts.len()
        ),
        hint: format!("see the report: {}{but}", files.page().display()),
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna_console::output::WIDTH;

    #[test]
    fn verdicts_fit_a_terminal() {
        let verdict = Verdict {
            what: "a requirement of many words ".repeat(6),
            measured: "12.5 s".into(),
            bar: "at most 10 s".into(),
            value: Some(12.5),
            passed: false,
        };
        let text = table(&[verdict]).render(WIDTH, false);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("12.5 s  at most 10 s  FAILED"), "{text}");
    }
}
