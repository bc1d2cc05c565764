//! The report of an experiment: what was asked for, what was measured, and whether
//! that is good enough.
//!
//! **What it is.** Whoever ran something makes a [`Report`]: requirements with their
//! outcome ([`Verdict`]), figures over time ([`Chart`]), figures in rows ([`Sheet`]), and
//! what somebody needs to do it again ([`Facts`]). [`Files`] writes it twice: as one HTML
//! page that needs nothing but a browser (no network, no other file), and as a JSON file
//! with everything in it.
//!
//! **What it never does.** A report does not know which experiment it tells of, measures
//! nothing and judges nothing. It prints nothing on a terminal; `lab` shows the verdicts
//! there.
//!
//! **Where to begin.** [`Report`] has all the parts. `page` lays them out, `page.js` draws
//! the charts with uPlot, and `chart` leaves out points that no screen can show.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod chart;
mod files;
mod page;

use serde::Serialize;

pub use chart::{Chart, Line, Strip};
pub use files::Files;

/// Something that was done, as the charts mark it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// When, in seconds from the start.
    pub at_s: f64,
    /// What.
    pub text: String,
}

/// What stands in a sheet for a figure that is not known.
pub const UNKNOWN: &str = "-";

/// Figures in rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sheet {
    /// What they are.
    pub title: String,
    /// The columns; the first has the rows' names.
    pub head: Vec<String>,
    /// One cell for each column.
    pub rows: Vec<Vec<String>>,
}

/// Names and values: the machine, the parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// What they are about.
    pub title: String,
    /// Each name with its value.
    pub pairs: Vec<(String, String)>,
}

/// A requirement and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What is required, of what.
    pub what: String,
    /// What was measured, in words.
    pub measured: String,
    /// What it must be, in words.
    pub bar: String,
    /// What was measured, in the unit of the words; nothing if it never came to be.
    pub value: Option<f64>,
    /// Whether it is met.
    pub passed: bool,
}

/// An experiment, told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What it is.
    pub title: String,
    /// What it shows, in a sentence or two.
    pub about: String,
    /// When it was made, in words.
    pub made: String,
    /// Whether every requirement is met.
    pub passed: bool,
    /// The requirements.
    pub verdicts: Vec<Verdict>,
    /// Time series.
    pub charts: Vec<Chart>,
    /// What the charts mark.
    pub events: Vec<Event>,
    /// Figures.
    pub sheets: Vec<Sheet>,
    /// What somebody needs to do it again.
    pub facts: Vec<Facts>,
}

impl Report {
    /// The whole as JSON.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The whole as a page.
    pub fn html(&self) -> anyhow::Result<String> {
        page::render(self)
    }
}
