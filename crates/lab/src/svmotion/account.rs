//! The report of the experiment: the study's tables with ours beside them, and what
//! went on over time.

use std::time::{SystemTime, UNIX_EPOCH};

use sterna_api::Status;
use sterna_console::format::{bytes, count, moment, span};
use sterna_console::output::WIDTH;
use sterna_console::table::wrap;
use sterna_report::{Chart, Event, Facts, Line, Report, Sheet, UNKNOWN};

use super::case::Case;
use super::outcome::{Outcome, Trial};
use super::plan::{Disk, Plan, State, Way};
use super::published;
use super::run::KEEP;
use super::stage::Ground;
use super::verdicts::verdicts;
use super::watch::{Flow, Tick, together};
use crate::machine;

const ABOUT: &str = "The disks of a guest with a database move between emulated arrays, \
                     under a guard, with customers in its store and without. For \
                     comparison, QEMU's own mirror moves them without a guard. The \
                     published figures are from the study that this experiment follows: \
                     another database, on real arrays, hundreds of times as large.";

/// The title of what kernel and database complain of.
const WRONG: &str = "What is wrong";

/// The most lines of that which are shown on a terminal.
const WRONG_MOST: usize = 12;

/// What kernel and database complain of, for a terminal: nothing, or lines.
pub(super) fn what_is_wrong(report: &Report) -> String {
    let facts = report.facts.iter().filter(|facts| facts.title == WRONG);
    let said = facts.flat_map(|facts| &facts.pairs).map(|(_, said)| said.as_str());
    let lines: Vec<String> = said.flat_map(|said| wrap(said, WIDTH)).collect();
    let more = lines.len().saturating_sub(WRONG_MOST);
    let mut text: String =
        lines.iter().take(WRONG_MOST).map(|line| format!("{line}\n")).collect();
    if more > 0 {
        text += &format!("({} more in the report)\n", count(more as u64, "line"));
    }
    text
}

/// Tells the experiment.
pub(super) fn report(
    outcome: &Outcome,
    plan: &Plan,
    ground: &Ground,
    status: &Status,
) -> Report {
    let verdicts = verdicts(outcome);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let events =
        outcome.marks.iter().map(|mark| Event { at_s: mark.at, text: mark.text.clone() });
    let mut sheets = vec![migrations(outcome)];
    if outcome.trials.iter().any(|trial| trial.state.is_busy()) {
        sheets.extend([orders(outcome), order_cost(outcome)]);
    }
    sheets.extend([sides(outcome), migration_cost(outcome)]);
    let mut facts = vec![
        Facts { title: "Parameters".into(), pairs: parameters(plan, ground) },
        Facts { title: "Machine".into(), pairs: machine_facts(status, outcome) },
    ];
    if let Some(complaints) = &outcome.complaints {
        let pairs = vec![("the guest says".to_owned(), complaints.clone())];
        facts.push(Facts { title: WRONG.into(), pairs });
    }
    Report {
        title: "Live storage migration under a database".into(),
        about: ABOUT.into(),
        made: format!("Sterna {}, {}", env!("CARGO_PKG_VERSION"), moment(now)),
        passed: verdicts.iter().all(|verdict| verdict.passed),
        verdicts,
        charts: charts(outcome),
        events: events.collect(),
        sheets,
        facts,
    }
}

/// Three figures, as far as they mean something.
fn number(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        9.995..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or(UNKNOWN.into(), number)
}

/// `part` as percents more than one.
fn more(part: Option<f64>) -> String {
    part.map_or(UNKNOWN.into(), |part| format!("{:+.0} %", (part - 1.0) * 100.0))
}

fn percent(part: Option<f64>) -> String {
    part.map_or(UNKNOWN.into(), |part| format!("{:.1} %", part * 100.0))
}

/// A table with a row for each of these cases.
fn sheet<'t>(
    title: &str,
    head: &[&str],
    cases: impl Iterator<Item = Case<'t>>,
    cells: impl Fn(&Case<'_>) -> Vec<String>,
) -> Sheet {
    let row = |case: Case<'_>| {
        let mut row = vec![case.trial().words()];
        row.extend(cells(&case));
        row
    };
    let head = std::iter::once("disk, load, path, way").chain(head.iter().copied());
    Sheet {
        title: title.into(),
        head: head.map(str::to_owned).collect(),
        rows: cases.map(row).collect(),
    }
}

fn all(outcome: &Outcome) -> impl Iterator<Item = Case<'_>> {
    Case::all(outcome).into_iter()
}

fn busy(outcome: &Outcome) -> impl Iterator<Item = Case<'_>> {
    all(outcome).filter(|case| case.trial().state.is_busy())
}

/// Whether the study has figures of such a migration: one path, and not a mirror's.
fn is_published(trial: &Trial) -> bool {
    trial.forth && trial.way == Way::VhostUser
}

/// How long each took, and how much longer than with nothing going on. The study's
/// base is the machine that is off.
fn migrations(outcome: &Outcome) -> Sheet {
    let head = [
        "time",
        "against idle",
        "MB/s",
        "switch-over ms",
        "published time",
        "against off",
        "MB/s",
    ];
    sheet("Migration time", &head, all(outcome), |case| {
        let trial = case.trial();
        let mean = |value: fn(&Trial) -> f64| case.mean(|trial| Some(value(trial)));
        let seconds = mean(Trial::seconds).unwrap_or_default();
        let idle = case.idle(outcome);
        let idle = idle.and_then(|idle| idle.mean(|trial| Some(trial.seconds())));
        let idle = idle.map(|idle| seconds / idle);
        let told = published::migration(trial.disk, trial.state);
        let published = told.seconds.filter(|_| is_published(trial));
        let least = if told.unfinished { "more than " } else { "" };
        let off = published::migration(trial.disk, State::Off).seconds;
        let size = published::size(trial.disk);
        vec![
            span(seconds),
            more(idle),
            figure(mean(|trial| trial.rate() / 1e6)),
            figure(case.worst(|trial| trial.moved.held_ms)),
            published.map_or(UNKNOWN.into(), |seconds| format!("{least}{seconds:.0} s")),
            more(published.zip(off).map(|(seconds, off)| seconds / off)),
            figure(published.map(|seconds| size / seconds / 1e6)),
        ]
    })
}

/// What the customers noticed.
fn orders(outcome: &Outcome) -> Sheet {
    let head = [
        "orders/s without",
        "during",
        "kept",
        "±",
        "of orders",
        "p99 ms without",
        "during",
        "longest ms",
        "published without",
        "during",
        "kept",
    ];
    sheet("Orders", &head, busy(outcome), |case| {
        let trial = case.trial();
        let kept = case.kept(outcome);
        let [without, during] = [0, 1].map(|at| case.worst(|it| outcome.p99_ms(it)[at]));
        let published = [
            published::orders_without(trial.state),
            published::migration(trial.disk, trial.state).orders_per_s,
        ];
        let [before, beside] = published.map(|it| it.filter(|_| is_published(trial)));
        vec![
            figure(case.mean(|trial| Some(outcome.without(trial)?.value))),
            figure(case.mean(|trial| Some(outcome.during(trial)?.value))),
            percent(kept.map(|kept| kept.value)),
            percent(kept.map(|kept| kept.error)),
            case.basis(outcome).map_or(UNKNOWN.into(), |basis| basis.to_string()),
            figure(without),
            figure(during),
            figure(case.worst(|trial| outcome.order_stall_ms(trial))),
            figure(before),
            figure(beside),
            percent(before.zip(beside).map(|(before, beside)| beside / before)),
        ]
    })
}

/// What each side of the copy did. (The guest's own requests are in it.)
fn sides(outcome: &Outcome) -> Sheet {
    let head = [
        "source read MB/s",
        "against idle",
        "ms",
        "destination write MB/s",
        "ms",
        "longest wait of the guest ms",
        "published source ms",
        "destination ms",
    ];
    // Sums over windows of half a second. A copy has read and written something: what
    // shows nothing was over before a window was.
    let bytes = |trial: &Trial, side: usize| {
        let sum = outcome.sides(trial)[side].bytes;
        (sum > 0.0).then(|| sum / windows(outcome, trial))
    };
    sheet("Source and destination", &head, all(outcome), |case| {
        let trial = case.trial();
        let rate_of =
            |case: &Case<'_>, side: usize| case.mean(|trial| bytes(trial, side));
        let rate = |side: usize| rate_of(case, side);
        let response =
            |side: usize| case.mean(|trial| outcome.sides(trial)[side].response_ms);
        let idle = case.idle(outcome).and_then(|idle| rate_of(&idle, 0));
        let idle = rate(0).zip(idle).map(|(source, idle)| source / idle);
        let off = trial.state == State::Off && is_published(trial);
        let published = |ms: f64| figure(off.then_some(ms));
        vec![
            figure(rate(0).map(|rate| rate / 1e6)),
            more(idle.filter(|part| part.is_finite())),
            figure(response(0)),
            figure(rate(1).map(|rate| rate / 1e6)),
            figure(response(1)),
            figure(case.worst(|trial| outcome.disk_stall_ms(trial))),
            published(published::SOURCE_READ_MS),
            published(published::DESTINATION_WRITE_MS),
        ]
    })
}

/// How many windows a migration was looked at in.
fn windows(outcome: &Outcome, trial: &Trial) -> f64 {
    let ticks = outcome.ticks.iter();
    let inside = ticks.filter(|tick| tick.at >= trial.from && tick.at <= trial.until);
    inside.count().max(1) as f64
}

/// What an order costs the processors.
fn order_cost(outcome: &Outcome) -> Sheet {
    let head = [
        "CPU ms without",
        "during",
        "more",
        "Mcycles without",
        "during",
        "published Mcycles without",
    ];
    sheet("Processors: an order (QEMU and daemon)", &head, busy(outcome), |case| {
        let cost = [0, 1].map(|at| case.mean(|trial| outcome.cpu_per_order(trial)[at]));
        let cycles = cost.map(|cost| Some(cost? * outcome.clock? / 1e6));
        let published = published::megacycles_per_order(case.trial().state);
        vec![
            figure(cost[0].map(|seconds| seconds * 1e3)),
            figure(cost[1].map(|seconds| seconds * 1e3)),
            more(cost[0].zip(cost[1]).map(|(without, during)| during / without)),
            figure(cycles[0]),
            figure(cycles[1]),
            figure(published),
        ]
    })
}

/// What the migration costs the processors.
fn migration_cost(outcome: &Outcome) -> Sheet {
    let head = ["CPU us per 64 KiB", "kcycles", "published kcycles"];
    let title = "Processors: the migration (daemon, less what as many orders cost it; of \
                 QEMU's mirror, QEMU too)";
    sheet(title, &head, all(outcome), |case| {
        let cost = case.mean(|trial| outcome.cpu_per_chunk(trial));
        vec![
            figure(cost.map(|seconds| seconds * 1e6)),
            figure(cost.zip(outcome.clock).map(|(seconds, clock)| seconds * clock / 1e3)),
            number(published::KILOCYCLES_PER_CHUNK),
        ]
    })
}

/// Time series: what the arrays do, how long that takes, and what customers notice.
fn charts(outcome: &Outcome) -> Vec<Chart> {
    type Sides = fn(&Tick) -> &[[Flow; 2]];
    let sides: [(&str, Sides, usize); 4] = [
        ("old arrays, read", |tick| &tick.old, 0),
        ("old arrays, written", |tick| &tick.old, 1),
        ("new arrays, read", |tick| &tick.new, 0),
        ("new arrays, written", |tick| &tick.new, 1),
    ];
    let of_ticks = |title: &str, unit: &str, value: fn(Flow) -> Option<f64>| Chart {
        title: title.into(),
        unit: unit.into(),
        at_s: outcome.ticks.iter().map(|tick| tick.at).collect(),
        lines: sides
            .iter()
            .map(|(name, side, kind)| {
                let flow = |tick| {
                    together(side(tick).iter().map(|flows: &[Flow; 2]| flows[*kind]))
                };
                let values = outcome.ticks.iter().map(|tick| value(flow(tick)));
                Line { name: (*name).into(), values: values.collect() }
            })
            .collect(),
        strips: Vec::new(),
    };
    let mut charts = vec![
        of_ticks("Throughput", "MB/s", |flow| Some(flow.bytes / 1e6)),
        of_ticks("Mean response time", "ms", |flow| flow.response_ms),
    ];
    if !outcome.seconds.is_empty() {
        charts.extend([
            of_seconds(outcome, "Orders", "orders/s", "orders", |it| Some(it.orders)),
            of_seconds(outcome, "Orders, 99th percentile", "ms", "p99", |it| it.p99_ms),
        ]);
    }
    charts
}

fn of_seconds(
    outcome: &Outcome,
    title: &str,
    unit: &str,
    name: &str,
    value: fn(&super::outcome::Second) -> Option<f64>,
) -> Chart {
    let seconds = &outcome.seconds;
    Chart {
        title: title.into(),
        unit: unit.into(),
        at_s: seconds.iter().map(|second| second.at).collect(),
        lines: vec![Line {
            name: name.into(),
            values: seconds.iter().map(value).collect(),
        }],
        strips: Vec::new(),
    }
}

fn parameters(plan: &Plan, ground: &Ground) -> Vec<(String, String)> {
    let mut pairs = vec![
        ("scale".to_owned(), format!("1:{}", plan.scale)),
        ("repeats".to_owned(), plan.repeats.to_string()),
        ("guard".to_owned(), format!("--keep {:.0}%", KEEP * 100.0)),
        ("store".to_owned(), bytes(plan.store())),
        ("memory of the guest".to_owned(), ground.memory.clone()),
    ];
    for disk in Disk::ALL {
        let [old, new] = disk.arrays();
        let text = format!("{}: {old} and {new}", bytes(plan.size(disk)));
        pairs.push((disk.name().to_owned(), text));
    }
    pairs.push(("seed".to_owned(), ground.seed.to_string()));
    pairs
}

fn machine_facts(status: &Status, outcome: &Outcome) -> Vec<(String, String)> {
    let mut pairs = machine::facts();
    let clock = outcome.clock.map(|clock| format!("{:.0} MHz", clock / 1e6));
    pairs.push(("clock".into(), clock.unwrap_or(UNKNOWN.into())));
    pairs.push(("I/O of the daemon".into(), status.io.engine.clone()));
    pairs.push(("Sterna".into(), status.version.clone()));
    pairs
}
