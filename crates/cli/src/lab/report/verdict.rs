//! A requirement, what was measured of it, and whether it is met.

use serde::Serialize;

use crate::table::{Cell, Column, Style, Table};

/// A requirement and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// What is required, of what.
    pub(crate) what: String,
    /// What was measured, in words.
    pub(crate) measured: String,
    /// What it must be, in words.
    pub(crate) bar: String,
    /// What was measured, in the unit of the words; nothing if it never came to be.
    pub(crate) value: Option<f64>,
    /// Whether it is met.
    pub(crate) passed: bool,
}

/// The verdicts as a table for the terminal.
pub(crate) fn verdicts_table(verdicts: &[Verdict]) -> Table {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::WIDTH;

    #[test]
    fn verdicts_fit_a_terminal() {
        let verdict = Verdict {
            what: "a requirement of many words ".repeat(6),
            measured: "12.5 s".into(),
            bar: "at most 10 s".into(),
            value: Some(12.5),
            passed: false,
        };
        let text = verdicts_table(&[verdict]).render(WIDTH, false);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("12.5 s  at most 10 s  FAILED"), "{text}");
    }
}
