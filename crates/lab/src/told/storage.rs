//! A scenario's outcome, told: tables for the terminal, and a report.

use std::time::{SystemTime, UNIX_EPOCH};

use sterna_console::format::{bytes, count, iops, moment, rate, response, span};
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Style, Table, wrap};
use sterna_report::{Chart, Event, Facts, Line, Report, Sheet, Verdict};
use sterna_sim::fluid::{Outcome, Phase, Sample, Scenario};

/// Events that are shown on the terminal at most; the report has all.
const EVENTS: usize = 20;

/// What people read of it.
pub(crate) fn words(scenario: &Scenario, outcome: &Outcome, output: Output) -> String {
    let mut text = format!("{}\n", output.head(&wrap(&scenario.title, 80).join("\n")));
    text += &format!("{}.\n\n", size(scenario));
    text += &output.table(&phases(outcome));
    text += "\n";
    text += &output.table(&profiles(scenario, outcome));
    let failed = outcome.events.iter().filter(|(_, what)| !of_a_wave(what));
    for (number, (at, what)) in failed.enumerate() {
        if number == 0 {
            text += "\n";
        }
        if number == EVENTS {
            text += "and more: see the report\n";
            break;
        }
        text += &format!("{:>12}  {what}\n", span(*at));
    }
    if outcome.stuck > 0 {
        let stuck = count(outcome.stuck as u64, "machine");
        text += &format!(
            "\nNot moved: {stuck}. They wait for something that never happens.\n"
        );
    }
    text
}

/// Whether an event is in the table of phases already.
fn of_a_wave(what: &str) -> bool {
    what.ends_with(" begins") || what.ends_with(" ends")
}

fn size(scenario: &Scenario) -> String {
    let on = match scenario.arrays.len() as u64 {
        0 => count(scenario.datastores.len() as u64, "datastore"),
        arrays => count(arrays, "array"),
    };
    let hosts = count(u64::from(scenario.hosts), "host");
    let vms = count(scenario.vms.len() as u64, "machine");
    let disks = count(scenario.disks(), "disk");
    format!("{vms}, {disks}, {}; {hosts}, {on}", bytes(scenario.bytes()))
}

/// Phases in rows.
fn phases(outcome: &Outcome) -> Table {
    let mut table = Table::new(&[
        ("PHASE", Column::Flexible),
        ("TIME", Column::Right),
        ("PREDICTED", Column::Right),
        ("MOVED", Column::Right),
        ("COPIED", Column::Right),
        ("MiB/s", Column::Right),
        ("HELD", Column::Right),
        ("LEAST", Column::Right),
    ]);
    for phase in &outcome.phases {
        let held = phase.held == phase.working;
        let style = if held { Style::Plain } else { Style::Warn };
        let [copied, speed] = copied(phase);
        table.row(vec![
            phase.name.clone().into(),
            span(phase.seconds()).into(),
            phase.predicted.map_or("-".into(), |it| span(it.likely)).into(),
            if phase.wave.is_some() { phase.moved.to_string() } else { "-".into() }
                .into(),
            copied.into(),
            speed.into(),
            Cell::styled(self::held(phase), style),
            least(phase).into(),
        ]);
    }
    table
}

fn held(phase: &Phase) -> String {
    match phase.working {
        0 => "-".into(),
        working => format!("{} of {working}", phase.held),
    }
}

fn least(phase: &Phase) -> String {
    // Downwards: 99.96 % is not all.
    let percent = |part: f64| format!("{:.1} %", (part * 1000.0 + 1e-6).floor() / 10.0);
    phase.least.map_or("-".into(), percent)
}

/// What was copied, and how fast.
fn copied(phase: &Phase) -> [String; 2] {
    if phase.copied <= 0.0 {
        return ["-".into(), "-".into()];
    }
    let speed = phase.copied / phase.seconds() / f64::from(1 << 20);
    [bytes(phase.copied as u64), format!("{speed:.0}")]
}

/// Requests a second of a profile in a phase, and the milliseconds of each.
fn done(phase: &Phase, profile: usize) -> Option<(f64, f64)> {
    let it = phase.profiles.get(profile).filter(|it| it.requests > 0.0)?;
    Some((it.requests / phase.seconds(), 1e3 * it.seconds / it.requests))
}

/// Of each profile: what it got at first, and when its requests took longest.
fn profiles(scenario: &Scenario, outcome: &Outcome) -> Table {
    let mut table = Table::new(&[
        ("PROFILE", Column::Flexible),
        ("MACHINES", Column::Right),
        ("IO/s", Column::Right),
        ("RESPONSE", Column::Right),
        ("AT WORST", Column::Right),
        ("IN", Column::Sentence),
    ]);
    for (number, profile) in scenario.profiles.iter().enumerate() {
        let first = outcome.phases.first().and_then(|phase| done(phase, number));
        let of = |phase| Some((done(phase, number)?.1, phase));
        let all = outcome.phases.iter().filter_map(of);
        let worst = all.max_by(|(one, _), (other, _)| one.total_cmp(other));
        let machines = scenario.vms.iter().filter(|vm| vm.profile == number).count();
        let ms = |ms: f64| response(Some(ms * 1e3));
        table.row(vec![
            profile.name.clone().into(),
            machines.to_string().into(),
            first.map_or("-".into(), |(rate, _)| iops(rate)).into(),
            first.map_or("-".into(), |(_, it)| ms(it)).into(),
            worst.map_or("-".into(), |(it, _)| ms(it)).into(),
            worst.map_or("-".into(), |(_, phase)| phase.name.clone()).into(),
        ]);
    }
    table
}

/// The report.
pub(super) fn report(scenario: &Scenario, outcome: &Outcome) -> Report {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let verdicts = verdicts(scenario, outcome);
    Report {
        title: scenario.title.clone(),
        about: scenario.about.clone(),
        made: format!("Sterna {}, {}", env!("CARGO_PKG_VERSION"), moment(now)),
        passed: verdicts.iter().all(|it| it.passed),
        verdicts,
        charts: charts(scenario, &outcome.samples),
        events: events(outcome),
        sheets: sheets(scenario, outcome),
        facts: vec![facts(scenario)],
    }
}

/// What one wants of any move.
pub(crate) fn verdicts(scenario: &Scenario, outcome: &Outcome) -> Vec<Verdict> {
    let moves: usize = scenario.waves.iter().map(|wave| wave.moves.len()).sum();
    let moved = moves - outcome.stuck.min(moves);
    let mut verdicts = vec![Verdict {
        what: "machines that were moved".into(),
        measured: format!("{moved} of {moves}"),
        bar: "all".into(),
        value: Some(moved as f64),
        passed: outcome.stuck == 0,
    }];
    let least = outcome.phases.iter().filter_map(|phase| phase.least);
    if let Some(least) = least.reduce(f64::min) {
        verdicts.push(Verdict {
            what: "least of its target that a machine got".into(),
            measured: format!("{:.1} %", (least * 1000.0 + 1e-6).floor() / 10.0),
            bar: "at least 99 %".into(),
            value: Some(least * 100.0),
            passed: least >= 0.99,
        });
    }
    verdicts
}

pub(crate) fn events(outcome: &Outcome) -> Vec<Event> {
    let event = |(at, text): &(f64, String)| Event { at_s: *at, text: text.clone() };
    outcome.events.iter().map(event).collect()
}

pub(crate) fn charts(scenario: &Scenario, samples: &[Sample]) -> Vec<Chart> {
    let chart = |title: &str, unit: &str, lines: Vec<Line>| Chart {
        title: title.into(),
        unit: unit.into(),
        at_s: samples.iter().map(|sample| sample.at).collect(),
        lines,
        strips: Vec::new(),
    };
    let line = |name: &str, value: &dyn Fn(&Sample) -> f64| Line {
        name: name.into(),
        values: samples.iter().map(|sample| Some(value(sample))).collect(),
    };
    let busy = scenario.arrays.iter().enumerate().map(|(number, array)| {
        line(&array.name, &|it| 100.0 * it.busy.get(number).copied().unwrap_or(0.0))
    });
    let mut charts = vec![
        chart(
            "Copies",
            "MiB/s",
            vec![line("all copies", &|it| it.copied / f64::from(1 << 20))],
        ),
        chart("Spindles at work", "%", busy.collect()),
        chart(
            "Requests",
            "per second",
            vec![line("wanted", &|it| it.wanted), line("done", &|it| it.iops)],
        ),
        chart("Response", "ms", vec![line("mean", &|it| it.response * 1e3)]),
        chart("Machines on their way", "", vec![line("moving", &|it| it.moving as f64)]),
    ];
    // Of arrays that are no model nobody knows it.
    charts.retain(|chart| !chart.lines.is_empty());
    charts
}

fn texts(head: &str) -> Vec<String> {
    head.split(',').map(str::to_owned).collect()
}

pub(crate) fn sheets(scenario: &Scenario, outcome: &Outcome) -> Vec<Sheet> {
    let row = |phase: &Phase| {
        let [copied, _] = copied(phase);
        let speed = rate(phase.copied / phase.seconds());
        let range = |it: sterna_sim::fluid::Foretold| {
            format!("{} ({} to {})", span(it.likely), span(it.least), span(it.most))
        };
        vec![
            phase.name.clone(),
            span(phase.seconds()),
            phase.predicted.map_or("-".into(), range),
            phase.moved.to_string(),
            phase.disks.to_string(),
            copied,
            bytes(phase.written as u64),
            speed,
            held(phase),
            least(phase),
        ]
    };
    let head = "phase,time,predicted,machines,disks,copied,written,speed,held,least";
    let mut sheets = vec![Sheet {
        title: "Phases (held: machines that got 99 % of their target; least: what the \
                worst got)"
            .into(),
        head: texts(head),
        rows: outcome.phases.iter().map(row).collect(),
    }];
    let phases = || outcome.phases.iter();
    let by_profile = |(number, it): (usize, &sterna_sim::fluid::Profile)| {
        let cell = |phase| match done(phase, number) {
            Some((rate, ms)) => format!("{} at {}", iops(rate), response(Some(ms * 1e3))),
            None => "-".into(),
        };
        std::iter::once(it.name.clone()).chain(phases().map(cell)).collect()
    };
    let head = |first: &str| -> Vec<String> {
        let names = phases().map(|phase| phase.name.clone());
        std::iter::once(first.to_owned()).chain(names).collect()
    };
    sheets.push(Sheet {
        title: "Requests per second of each profile, and their mean response".into(),
        head: head("profile"),
        rows: scenario.profiles.iter().enumerate().map(by_profile).collect(),
    });
    let by_array = |(number, it): (usize, &sterna_sim::fluid::ArrayPlan)| {
        let cell = |phase: &Phase| {
            let busy = phase.busy.get(number).copied().unwrap_or(0.0);
            format!("{:.0} %", 100.0 * busy)
        };
        std::iter::once(it.name.clone()).chain(phases().map(cell)).collect()
    };
    if !scenario.arrays.is_empty() {
        sheets.push(Sheet {
            title: "Spindles at work".into(),
            head: head("array"),
            rows: scenario.arrays.iter().enumerate().map(by_array).collect(),
        });
    }
    sheets
}

fn facts(scenario: &Scenario) -> Facts {
    let mut pairs = vec![("size".to_owned(), size(scenario))];
    for array in &scenario.arrays {
        pairs.push((array.name.clone(), array.model.to_string()));
    }
    let clock = "virtual time: the figures do not depend on this machine";
    pairs.push(("clock".into(), clock.into()));
    Facts { title: "Parameters".into(), pairs }
}
