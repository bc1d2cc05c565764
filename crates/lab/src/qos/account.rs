//! The report of the experiment.

use std::time::{SystemTime, UNIX_EPOCH};

use sterna_api::Status;
use sterna_console::format::moment;
use sterna_report::{Chart, Event, Facts, Line, Report, Sheet, Strip};

use super::plan::Step;
use super::run::{Outcome, Stretch, words};
use super::stage::{APPLICATIONS, Ground};
use super::verdicts::verdicts;
use crate::machine;
use crate::record::{Band, Metric, Record, Sample, Track, figure};

const ABOUT: &str = "A database, a backup and a load generator share an array. The \
                     report shows what the database gets alone, beside the others, and \
                     with service levels that are set and removed again.";

/// What an experiment stood on, in names and values.
#[derive(Clone, Debug)]
pub(super) struct Facing {
    /// What could have been chosen otherwise.
    pub(super) parameters: Vec<(String, String)>,
    /// What it ran on.
    pub(super) machine: Vec<(String, String)>,
}

impl Facing {
    /// Of an experiment with this daemon.
    pub(super) fn real(ground: &Ground, status: &Status) -> Facing {
        Facing { parameters: parameters(ground), machine: machine(status) }
    }
}

/// Tells the experiment.
pub(super) fn report(outcome: &Outcome, facing: Facing) -> Report {
    let verdicts = verdicts(outcome);
    let record = &outcome.record;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    Report {
        title: "Service levels on a shared array".into(),
        about: ABOUT.into(),
        made: format!("Sterna {}, {}", env!("CARGO_PKG_VERSION"), moment(now)),
        passed: verdicts.iter().all(|verdict| verdict.passed),
        verdicts,
        charts: Metric::ALL
            .into_iter()
            .map(|metric| chart(record, metric))
            .chain(kept(outcome))
            .collect(),
        events: events(record),
        sheets: vec![phases(outcome)],
        facts: vec![
            Facts { title: "Parameters".into(), pairs: facing.parameters },
            Facts { title: "Machine".into(), pairs: facing.machine },
        ],
    }
}

fn events(record: &Record) -> Vec<Event> {
    let event =
        |mark: &crate::record::Mark| Event { at_s: mark.at, text: mark.text.clone() };
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

/// The price of each phase: what the database keeps of the throughput that it has alone,
/// and what the others keep of that which they have beside it without service levels.
fn kept(outcome: &Outcome) -> Option<Chart> {
    let oltp = outcome.record.tracks.first()?;
    let (alone, beside) = (outcome.phase(Step::Alone)?, outcome.phase(Step::Contention)?);
    let oltp_alone = figure(oltp.between(alone.calm(), alone.until), Metric::Bytes)
        .filter(|it| *it > 0.0)?;
    let others_beside =
        Some(outcome.others(beside.calm(), beside.until)).filter(|it| *it > 0.0)?;
    let of_oltp =
        |it: &Sample| it.figure(Metric::Bytes).map(|now| 100.0 * now / oltp_alone);
    let of_others = |it: &Sample| {
        let are_there = it.at > beside.from;
        are_there.then(|| 100.0 * outcome.others(it.at - it.span, it.at) / others_beside)
    };
    let line = |name: String, value: &dyn Fn(&Sample) -> Option<f64>| Line {
        name,
        values: oltp.samples.iter().map(value).collect(),
    };
    Some(Chart {
        title: "What each side keeps of its throughput".into(),
        unit: "%".into(),
        at_s: oltp.samples.iter().map(|it| it.at).collect(),
        lines: vec![
            line(format!("{}, of what it has alone", oltp.name), &of_oltp),
            line(
                "the others, of what they have beside it without service levels".into(),
                &of_others,
            ),
        ],
        strips: Vec::new(),
    })
}

/// What each application got in each phase; of those that do not matter, the
/// throughput.
fn phases(outcome: &Outcome) -> Sheet {
    let (oltp, others) = match outcome.record.tracks.as_slice() {
        [oltp, others @ ..] => (Some(oltp), others),
        [] => (None, &[][..]),
    };
    let mut head = vec!["phase".into(), "length".into()];
    if let Some(oltp) = oltp {
        head.extend([format!("{} MB/s", oltp.name), "IO/s".into()]);
        head.extend(["mean ms".into(), "worst p99 ms".into()]);
    }
    head.extend(others.iter().map(|track| format!("{} MB/s", track.name)));
    let cell = |track: &Track, stretch: &Stretch, metric: Metric| {
        let samples = track.between(stretch.from, stretch.until);
        figure(samples, metric).map_or("-".into(), |value| number(metric.shown(value)))
    };
    let row = |stretch: &Stretch| {
        let length = stretch.until - stretch.from;
        let mut row = vec![words(stretch.step, stretch.wish), format!("{length:.0} s")];
        if let Some(track) = oltp {
            row.extend(Metric::ALL.map(|metric| cell(track, stretch, metric)));
        }
        row.extend(others.iter().map(|track| cell(track, stretch, Metric::Bytes)));
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
    let mut pairs = vec![("datastore".to_owned(), ground.location.clone())];
    pairs.extend(ground.shape.clone().map(|shape| ("shape".to_owned(), shape)));
    for (name, profile) in APPLICATIONS {
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
