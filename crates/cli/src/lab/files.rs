//! Where an experiment's report goes: one page, and everything as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use sterna_api::ErrorCode;

use super::report::{Report, verdicts_table};
use crate::connect::Failure;
use crate::output::Output;

/// The files of a report.
pub(crate) struct Files {
    html: PathBuf,
    json: PathBuf,
}

impl Files {
    /// Finds out whether reports of this name can be written there. Reports that are
    /// there stay until there are new ones.
    pub(crate) fn prepare(dir: &Path, name: &str) -> anyhow::Result<Files> {
        fs::create_dir_all(dir)
            .with_context(|| format!("cannot make {}", dir.display()))?;
        tempfile::tempfile_in(dir)
            .with_context(|| format!("cannot write into {}", dir.display()))?;
        let file = |ending: &str| dir.join(format!("{name}.{ending}"));
        Ok(Files { html: file("html"), json: file("json") })
    }

    /// Writes a report.
    pub(crate) fn write(&self, report: &Report) -> anyhow::Result<()> {
        for (path, text) in [(&self.html, report.html()?), (&self.json, report.json()?)] {
            fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Where the report is, in words.
    pub(crate) fn places(&self) -> String {
        format!("Report: {}\nFigures: {}", self.html.display(), self.json.display())
    }

    /// Shows the verdicts of a report that is written, and `more`, which is empty or ends
    /// with a line's end; fails if one of them did.
    pub(crate) fn tell(
        &self,
        report: &Report,
        more: &str,
        modelled: bool,
        output: Output,
    ) -> anyhow::Result<()> {
        output.answer(report, |report| {
            let table = output.table(&verdicts_table(&report.verdicts));
            format!("{table}\n{more}{}", self.places())
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
            hint: format!("see the report: {}{but}", self.html.display()),
        }
        .into())
    }
}
