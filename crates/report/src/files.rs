//! Where an experiment's report goes: one page, and everything as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::Report;

/// The files of a report.
pub struct Files {
    html: PathBuf,
    json: PathBuf,
}

impl Files {
    /// Finds out whether reports of this name can be written there. Reports that are
    /// there stay until there are new ones.
    pub fn prepare(dir: &Path, name: &str) -> anyhow::Result<Files> {
        fs::create_dir_all(dir)
            .with_context(|| format!("cannot make {}", dir.display()))?;
        tempfile::tempfile_in(dir)
            .with_context(|| format!("cannot write into {}", dir.display()))?;
        let file = |ending: &str| dir.join(format!("{name}.{ending}"));
        Ok(Files { html: file("html"), json: file("json") })
    }

    /// Writes a report.
    pub fn write(&self, report: &Report) -> anyhow::Result<()> {
        for (path, text) in [(&self.html, report.html()?), (&self.json, report.json()?)] {
            fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Where the report is, in words.
    pub fn places(&self) -> String {
        format!("Report: {}\nFigures: {}", self.html.display(), self.json.display())
    }

    /// Where the page is.
    pub fn page(&self) -> &Path {
        &self.html
    }
}
