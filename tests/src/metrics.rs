//! The daemon's metrics, read as a monitor reads them.

use std::collections::{BTreeMap, BTreeSet};

use crate::daemon::Daemon;
use crate::http;

/// What was read at one moment.
#[derive(Debug)]
pub struct Scrape {
    /// As it came.
    pub text: String,
    /// Its type, by the answer's head.
    pub content_type: String,
    /// Each series, with its labels as they are written, and its value.
    values: BTreeMap<String, f64>,
}

impl Scrape {
    /// Reads them.
    #[track_caller]
    pub fn of(daemon: &Daemon) -> Scrape {
        let reply = http::ask(daemon.api_socket(), "GET", "/v1/metrics", "");
        assert_eq!(reply.status, 200, "{reply:?}");
        let lines = reply.body.lines().filter(|line| !line.starts_with('#'));
        let values = lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a series and its value");
            (series.to_owned(), value.parse().expect("a number"))
        });
        Scrape {
            values: values.collect(),
            content_type: reply.header("content-type").unwrap_or_default().to_owned(),
            text: reply.body,
        }
    }

    /// A series' value.
    pub fn get(&self, series: &str) -> Option<f64> {
        self.values.get(series).copied()
    }

    /// A series' value, which has to be there.
    #[track_caller]
    pub fn value(&self, series: &str) -> f64 {
        self.get(series).unwrap_or_else(|| panic!("no {series} in\n{}", self.text))
    }

    /// The names of what has at least one series.
    pub fn names(&self) -> BTreeSet<String> {
        let name =
            |series: &String| series.split('{').next().unwrap_or_default().to_owned();
        self.values.keys().map(name).collect()
    }

    /// What must not shrink: the series of counters, summaries and histograms.
    pub fn counters(&self) -> impl Iterator<Item = (&str, f64)> {
        let counts = ["_total", "_sum", "_count", "_bucket"];
        let all = self.values.iter().filter(move |(series, _)| {
            let name = series.split('{').next().unwrap_or_default();
            counts.iter().any(|suffix| name.ends_with(suffix))
        });
        all.map(|(series, value)| (series.as_str(), *value))
    }

    /// Nothing that counts is less than it was, or has gone.
    #[track_caller]
    pub fn has_not_shrunk_since(&self, before: &Scrape) {
        for (series, was) in before.counters() {
            let is = self.value(series);
            assert!(is >= was, "{series} was {was} and is {is}");
        }
    }
}
