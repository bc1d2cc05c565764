//! What DRS did with a hall, told: tables for the terminal, and a report. Beside everything
//! stands what it was like at the same loads without DRS.

use std::time::{SystemTime, UNIX_EPOCH};

use sterna_console::format::{bytes, count, moment, span};
use sterna_console::output::{Output, WIDTH};
use sterna_console::table::{Cell, Column, Style, Table, wrap};
use sterna_core::Nanos;
use sterna_core::schedule::WEEK;
use sterna_placement::hosts::{Amounts, Goal, Resource, Wish};
use sterna_report::{Chart, Event, Facts, Line, Report, Sheet, Verdict};
use sterna_sim::hall::{Made, Outcome, Period, Sample, Scenario, Side, Total};

/// Events that are shown on the terminal at most; the report has all.
const EVENTS: usize = 20;

/// Moves that the report lists at most: who has more looks at the periods.
const MOVES: usize = 1000;

/// Machines may get so much less with DRS than without, as a part: what the copies take.
const LESS: f64 = 0.001;

/// What people read of it.
pub(super) fn words(scenario: &Scenario, outcome: &Outcome, output: Output) -> String {
    let head = wrap(&scenario.title, WIDTH).join("\n");
    let mut text = format!("{}\n{}.\n\n", output.head(&head), size(scenario));
    text += &output.table(&periods(scenario, outcome));
    text += "\n";
    text += &output.table(&totals(outcome));
    text += &format!("\n{}\n", wrap(&moves(scenario, &outcome.with), WIDTH).join("\n"));
    for (head, unit, why) in [
        ("STAYED, THOUGH SOMETHING WAS NOT RIGHT", "MACHINES", &outcome.with.stayed),
        ("COULD NOT BEGIN", "MOVES", &outcome.with.refused),
    ] {
        if !why.is_empty() {
            let mut table = Table::new(&[(head, Column::Left), (unit, Column::Right)]);
            why.iter().for_each(|(why, number)| {
                table.row(vec![(*why).into(), number.to_string().into()]);
            });
            text += &format!("\n{}", output.table(&table));
        }
    }
    for (number, (at, what)) in outcome.with.events.iter().enumerate() {
        if number == 0 {
            text += "\n";
        }
        if number == EVENTS {
            text += "and more: see the report\n";
            break;
        }
        text += &format!("{:>12}  {what}\n", when(scenario, *at));
    }
    if outcome.with.down > 0 {
        let down = count(outcome.with.down as u64, "machine");
        text += &format!("\nNot running at the end: {down}.\n");
    }
    text
}

/// A time, as people find it again: by the day of the week, as long as there is one of each.
fn when(scenario: &Scenario, at: Nanos) -> String {
    match scenario.length <= Nanos::from_secs(u64::from(WEEK)) {
        true => scenario.moment(at).to_string(),
        false => span(at.as_secs_f64()),
    }
}

fn size(scenario: &Scenario) -> String {
    let all = Amounts::sum(scenario.hosts.iter().map(|host| host.capacity));
    let vms = count(scenario.vms.len() as u64, "machine");
    let hosts = count(scenario.hosts.len() as u64, "host");
    let has = format!("{:.0} processors and {}", all.cpu, bytes(all.memory as u64));
    format!("{vms}; {hosts} with {has} together")
}

/// A part in percent. Downwards: 99.96 % is not all.
fn percent(part: f64) -> String {
    format!("{:.1} %", (part * 1000.0 + 1e-6).floor() / 10.0)
}

/// Periods in rows.
fn periods(scenario: &Scenario, outcome: &Outcome) -> Table {
    let mut table = Table::new(&[
        ("FROM", Column::Left),
        ("IMBALANCE", Column::Left),
        ("WITHOUT", Column::Right),
        ("MOVES", Column::Right),
        ("LEAST", Column::Right),
        ("WITHOUT", Column::Right),
        ("HELD", Column::Right),
        ("WITHOUT", Column::Right),
    ]);
    for (with, without) in both(outcome) {
        let held = with.total.held == scenario.vms.len();
        let style = if held { Style::Plain } else { Style::Warn };
        let [began, ended] = with.imbalance;
        table.row(vec![
            when(scenario, with.from).into(),
            format!("{began:.2} to {ended:.2}").into(),
            format!("{:.2}", without.imbalance[1]).into(),
            with.moves.to_string().into(),
            percent(with.total.least).into(),
            percent(without.total.least).into(),
            Cell::styled(with.total.held.to_string(), style),
            without.total.held.to_string().into(),
        ]);
    }
    table
}

fn both(outcome: &Outcome) -> impl Iterator<Item = (&Period, &Period)> {
    outcome.with.periods.iter().zip(&outcome.without.periods)
}

/// The part of what machines were entitled to that they got.
fn got(total: &Total, resource: Resource) -> f64 {
    let entitled = total.entitled.get(resource);
    if entitled > 0.0 { total.got.get(resource) / entitled } else { 1.0 }
}

/// Processors times hours.
fn hours(seconds: f64) -> String {
    format!("{:.1}", seconds / 3600.0)
}

/// The whole time.
fn totals(outcome: &Outcome) -> Table {
    let mut table = Table::new(&[
        ("IN ALL", Column::Left),
        ("WITH DRS", Column::Right),
        ("WITHOUT", Column::Right),
    ]);
    let mut row = |what: &str, of: &dyn Fn(&Total) -> String| {
        let cell = |side: &Side| Cell::from(of(&side.total));
        table.row(vec![what.into(), cell(&outcome.with), cell(&outcome.without)]);
    };
    row("processors that machines got", &|it| percent(got(it, Resource::Cpu)));
    row("memory that machines got", &|it| percent(got(it, Resource::Memory)));
    row("least that a machine got", &|it| percent(it.least));
    row("machines that got 99 %", &|it| it.held.to_string());
    row("processor hours that they lacked", &|it| hours(it.entitled.cpu - it.got.cpu));
    row("processor hours that copies took", &|it| hours(it.copier));
    table
}

/// What was moved, in a sentence.
fn moves(scenario: &Scenario, side: &Side) -> String {
    let Some(last) = side.moves.last() else { return "Nothing was moved.".into() };
    let copied: f64 = side.moves.iter().map(|one| one.bytes).sum();
    let moves = count(side.moves.len() as u64, "move");
    let (copied, last) = (bytes(copied as u64), when(scenario, last.at));
    let failed = match side.failed {
        0 => String::new(),
        failed => format!(" Cancelled because a host failed: {failed}."),
    };
    let back = side.returned;
    format!(
        "{moves}, {copied}; the last at {last}. Back within the cooldown: {back}.{failed}"
    )
}

/// The report.
pub(super) fn report(scenario: &Scenario, outcome: &Outcome) -> Report {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let verdicts = verdicts(scenario, outcome);
    let event = |(at, text): &(Nanos, String)| Event {
        at_s: at.as_secs_f64(),
        text: text.clone(),
    };
    Report {
        title: scenario.title.clone(),
        about: scenario.about.clone(),
        made: format!("Sterna {}, {}", env!("CARGO_PKG_VERSION"), moment(now)),
        passed: verdicts.iter().all(|it| it.passed),
        verdicts,
        charts: charts(outcome),
        events: outcome.with.events.iter().map(event).collect(),
        sheets: sheets(scenario, outcome),
        facts: vec![facts(scenario)],
    }
}

/// What one wants of DRS.
fn verdicts(scenario: &Scenario, outcome: &Outcome) -> Vec<Verdict> {
    let [with, without] = [&outcome.with, &outcome.without].map(|side| &side.total);
    let more = |resource| got(with, resource) / got(without, resource).max(1e-9) - 1.0;
    let [cpu, memory] = Resource::ALL.map(more);
    let told = |more: f64| format!("{:+.1} %", more * 100.0);
    let all = scenario.vms.len();
    vec![
        Verdict {
            what: "what all machines got, compared with a run without DRS".into(),
            measured: format!("CPU {}, memory {}", told(cpu), told(memory)),
            bar: "no less".into(),
            value: Some(cpu.min(memory) * 100.0),
            passed: cpu.min(memory) >= -LESS,
        },
        Verdict {
            what: "machines that got 99 % of what they are entitled to".into(),
            measured: format!("{} of {all}; {} without DRS", with.held, without.held),
            bar: "no fewer".into(),
            value: Some(with.held as f64),
            passed: with.held >= without.held,
        },
        Verdict {
            what: "moves that brought a machine back within the cooldown".into(),
            measured: outcome.with.returned.to_string(),
            bar: "none".into(),
            value: Some(outcome.with.returned as f64),
            passed: outcome.with.returned == 0,
        },
    ]
}

fn charts(outcome: &Outcome) -> Vec<Chart> {
    let gib = f64::from(1 << 30);
    let samples = &outcome.with.samples;
    let line = |name: &str, samples: &[Sample], value: &dyn Fn(&Sample) -> f64| Line {
        name: name.into(),
        values: samples.iter().map(|sample| Some(value(sample))).collect(),
    };
    let chart = |title: &str, unit: &str, value: &dyn Fn(&Sample) -> f64| Chart {
        title: title.into(),
        unit: unit.into(),
        at_s: samples.iter().map(|sample| sample.at.as_secs_f64()).collect(),
        lines: vec![
            line("with DRS", samples, value),
            line("without", &outcome.without.samples, value),
        ],
        strips: Vec::new(),
    };
    vec![
        chart("Imbalance", "deviation", &|it| it.imbalance),
        chart("Highest load of a host: processors", "%", &|it| it.highest.cpu * 100.0),
        chart("Highest load of a host: memory", "%", &|it| it.highest.memory * 100.0),
        chart("Processors that machines lack", "", &|it| it.lacking.cpu),
        chart("Memory that machines lack", "GiB", &|it| it.lacking.memory / gib),
        chart("Machines on their way", "", &|it| it.moving as f64),
    ]
}

fn texts(head: &str) -> Vec<String> {
    head.split(',').map(str::to_owned).collect()
}

fn sheets(scenario: &Scenario, outcome: &Outcome) -> Vec<Sheet> {
    let row = |(with, without): (&Period, &Period)| {
        let differ =
            |it: &Period| format!("{:.3} to {:.3}", it.imbalance[0], it.imbalance[1]);
        let cpu = |it: &Period| percent(got(&it.total, Resource::Cpu));
        let memory = |it: &Period| percent(got(&it.total, Resource::Memory));
        let each = |of: &dyn Fn(&Period) -> String| [of(with), of(without)];
        let columns = [
            each(&differ),
            each(&cpu),
            each(&memory),
            each(&|it| percent(it.total.least)),
            each(&|it| it.total.held.to_string()),
        ];
        let mut row = vec![when(scenario, with.from), with.moves.to_string()];
        row.extend(columns.into_iter().flatten());
        row
    };
    let head = "from,moves,imbalance,without,CPU,without,memory,without,least,without,\
                held,without";
    let mut sheets = vec![Sheet {
        title: "Hours (CPU, memory: the part of their entitlement that machines got; \
                least: of the machine with least; held: how many got 99 %)"
            .into(),
        head: texts(head),
        rows: both(outcome).map(row).collect(),
    }];
    let made = |one: &Made| {
        vec![
            when(scenario, one.at),
            scenario.vms[one.vm].name.clone(),
            scenario.hosts[one.from].name.clone(),
            scenario.hosts[one.to].name.clone(),
            aim(scenario, one.goal),
            bytes(one.bytes as u64),
            span(one.took.as_secs_f64()),
        ]
    };
    sheets.push(Sheet {
        title: format!("Moves (the first {MOVES})"),
        head: texts("came at,machine,from,to,because,memory,took"),
        rows: outcome.with.moves.iter().take(MOVES).map(made).collect(),
    });
    let stayed = outcome.with.stayed.iter().map(|it| ("stayed", it));
    let refused = outcome.with.refused.iter().map(|it| ("could not begin", it));
    let why = |(what, (why, number)): (&str, (&&str, &usize))| {
        vec![(*why).to_owned(), what.to_owned(), number.to_string()]
    };
    sheets.push(Sheet {
        title: "Why machines stayed in spite of a problem, and why moves could not begin"
            .into(),
        head: texts("why,what,how many"),
        rows: stayed.chain(refused).map(why).collect(),
    });
    sheets
}

/// What a move was for.
fn aim(scenario: &Scenario, goal: Goal) -> String {
    match goal {
        Goal::Must(rule) => format!("rule {} must hold", scenario.rule_names[rule]),
        Goal::Should(rule) => format!("rule {} should hold", scenario.rule_names[rule]),
        Goal::Relieve(Resource::Cpu) => "its host had too few processors".into(),
        Goal::Relieve(Resource::Memory) => "its host had too little memory".into(),
        Goal::Even => "loads differed".into(),
    }
}

fn facts(scenario: &Scenario) -> Facts {
    let drs = &scenario.drs;
    let wish = match drs.wish {
        Wish::Nothing => "manual",
        Wish::Repairs => "partial",
        Wish::All => "full",
    };
    let [round, cooldown] =
        [drs.round, drs.hold.cooldown].map(|it| span(it.as_secs_f64()));
    let drs = format!(
        "automation {wish}, threshold {}, a check every {round}, held for {} rounds, \
         cooldown {cooldown}",
        drs.bounds.threshold, drs.hold.rounds
    );
    let clock = "virtual time: the figures do not depend on this machine";
    let pairs = [
        ("size", size(scenario)),
        ("DRS", drs),
        ("seed", scenario.seed.to_string()),
        ("clock", clock.to_owned()),
    ];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value));
    Facts { title: "Parameters".into(), pairs: pairs.into() }
}
