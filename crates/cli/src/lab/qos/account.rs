//! The report of the experiment.

use std::time::{SystemTime, UNIX_EPOCH};

use sterna_api::Status;

use super::run::{Ground, Outcome, Stretch};
use super::verdicts::verdicts;
use crate::format::moment;
use crate::lab::machine;
use crate::lab::record::{Band, Metric, Record, figure};
use crate::lab::report::{Chart, Event, Facts, Line, Report, Sheet, Strip};

const ABOUT: &str = "A database, a backup and a load generator share an array. What the \
                     database gets alone, beside the others, and with service levels put \
                     on it and lifted again.";

/// Tells the experiment.
pub(super) fn report(outcome: &Outcome, ground: &Ground, status: &Status) -> Report {
    let verdicts = verdicts(outcome);
    let record = &outcome.record;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    Report {
        title: "Service levels on a shared array".into(),
        about: ABOUT.into(),
        made: format!("Sterna {}, {}", status.version, moment(now)),
        passed: verdicts.iter().all(|verdict| verdict.passed),
        verdicts,
        charts: Metric::ALL.into_iter().map(|metric| chart(record, metric)).collect(),
        events: events(record),
        sheets: vec![phases(outcome)],
        facts: vec![
            Facts { title: "Parameters".into(), pairs: parameters(ground) },
            Facts { title: "Machine".into(), pairs: machine(status) },
        ],
    }
}

fn events(record: &Record) -> Vec<Event> {
    let event = |mark: &crate::lab::record::Mark| Event {
        at_s: mark.at,
        text: mark.text.clone(),
    };
    record.marks.iter().map(event).collect()
}

/// One figure of all applications. (Their windows are the same.)
fn chart(record: &Record, metric: Metric) -> Chart {
    let first = record.tracks.first();
    let at_s = first.into_iter().flat_map(|track| &track.samples).map(|it| it.at);
    let shown = |value: Option<f64>| value.map(|value| metric.shown(value));
    let lines = record.tracks.iter().map(|track| Line {
        name: track.name.clone(),
        values: track.samples.iter().map(|it| shown(it.figure(metric))).collect(),
    });
    let bands = record.bands.iter().filter(|band| band.metric == metric);
    let strip = |band: &Band| Strip {
        from_s: band.from,
        until_s: band.until,
        low: metric.shown(band.low),
        high: metric.shown(band.high),
    };
    Chart {
        title: metric.title().into(),
        unit: metric.unit().into(),
        at_s: at_s.collect(),
        lines: lines.collect(),
        strips: bands.map(strip).collect(),
    }
}

/// What each application got in each phase.
fn phases(outcome: &Outcome) -> Sheet {
    let tracks = &outcome.record.tracks;
    let mut head = vec!["phase".into(), "length".into()];
    for track in tracks {
        head.extend([
            format!("{} MB/s", track.name),
            "IO/s".into(),
            "mean ms".into(),
            "worst p99 ms".into(),
        ]);
    }
    let row = |stretch: &Stretch| {
        let length = stretch.until - stretch.from;
        let mut row = vec![stretch.step.words(), format!("{length:.0} s")];
        for track in tracks {
            let samples = track.between(stretch.from, stretch.until);
            row.extend(Metric::ALL.map(|metric| match figure(samples, metric) {
                Some(value) => number(metric.shown(value)),
                None => "-".into(),
            }));
        }
        row
    };
    let rows = outcome.stretches.iter().map(row).collect();
    Sheet { title: "Each phase on average".into(), head, rows }
}

/// Three figures, as far as they mean something.
fn number(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        9.995..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn parameters(ground: &Ground) -> Vec<(String, String)> {
    let store = ground.location.as_deref().unwrap_or("a directory of the experiment's");
    let mut pairs = vec![("datastore".to_owned(), store.to_owned())];
    pairs.extend(ground.shape.clone().map(|shape| ("shape".to_owned(), shape)));
    for (name, profile) in super::run::APPLICATIONS {
        pairs.push((name.to_owned(), profile.to_string()));
    }
    pairs.push(("seed".to_owned(), ground.seed.to_string()));
    pairs
}

fn machine(status: &Status) -> Vec<(String, String)> {
    let mut pairs = machine::facts();
    let io = match &status.io.reason {
        Some(reason) => format!("{} ({reason})", status.io.engine),
        None => status.io.engine.clone(),
    };
    pairs.push(("I/O of the daemon".into(), io));
    pairs.push(("Sterna".into(), status.version.clone()));
    pairs
}
