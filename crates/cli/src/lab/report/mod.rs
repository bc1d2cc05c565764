//! The report of an experiment: what was asked for, what was measured, and whether
//! that is good enough.
//!
//! A [`Report`] is made once and shown three ways: as a table of verdicts on the
//! terminal, as a JSON file with everything in it, and as one HTML page (`page`) that
//! needs nothing but a browser: no network, no other file. It does not know which
//! experiment it tells of.

mod chart;
mod page;
mod verdict;

use serde::Serialize;

pub(crate) use chart::{Chart, Line, Strip};
pub(crate) use verdict::{Verdict, verdicts_table};

/// Something that was done, as the charts mark it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Event {
    /// When, in seconds from the start.
    pub(crate) at_s: f64,
    /// What.
    pub(crate) text: String,
}

/// What stands in a sheet for a figure that is not known.
pub(crate) const UNKNOWN: &str = "-";

/// Figures in rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sheet {
    /// What they are.
    pub(crate) title: String,
    /// The columns; the first has the rows' names.
    pub(crate) head: Vec<String>,
    /// One cell for each column.
    pub(crate) rows: Vec<Vec<String>>,
}

/// Names and values: the machine, the parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Facts {
    /// What they are about.
    pub(crate) title: String,
    /// Each name with its value.
    pub(crate) pairs: Vec<(String, String)>,
}

/// An experiment, told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    /// What it is.
    pub(crate) title: String,
    /// What it shows, in a sentence or two.
    pub(crate) about: String,
    /// When it was made, in words.
    pub(crate) made: String,
    /// Whether every requirement is met.
    pub(crate) passed: bool,
    /// The requirements.
    pub(crate) verdicts: Vec<Verdict>,
    /// Time series.
    pub(crate) charts: Vec<Chart>,
    /// What the charts mark.
    pub(crate) events: Vec<Event>,
    /// Figures.
    pub(crate) sheets: Vec<Sheet>,
    /// What somebody needs to do it again.
    pub(crate) facts: Vec<Facts>,
}

impl Report {
    /// The whole as JSON.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The whole as a page.
    pub(crate) fn html(&self) -> anyhow::Result<String> {
        page::render(self)
    }
}
