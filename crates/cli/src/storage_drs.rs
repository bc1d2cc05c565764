//! `sterna storage-drs`: which disks should be elsewhere, and why the rest should not.

use clap::{Args, Subcommand};
use sterna_api::{
    AskStorageDrs, DatastoreLoad, JudgedDatastore, Migration, OverBound, Recommendations,
    RecommendedMove, StartMigration,
};
use sterna_core::Nanos;

use crate::connect::Link;
use crate::format::{bytes, response, span};
use crate::guard::{PromiseArgs, parse_part, parse_span, percent};
use crate::output::{Output, WIDTH};
use crate::table::{Cell, Column, Style, Table, wrap};

#[derive(Debug, Subcommand)]
pub(crate) enum StorageDrsCommand {
    /// Say which disks should move, and why others stay; change nothing
    Recommend(BoundArgs),
    /// Start the moves that are recommended now
    Apply {
        #[command(flatten)]
        bounds: BoundArgs,
        #[command(flatten)]
        promise: PromiseArgs,
    },
}

/// When a datastore is over its bound.
#[derive(Debug, Args)]
pub(crate) struct BoundArgs {
    /// The part of a datastore's room that may be taken [default: 80%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_part)]
    space: Option<f64>,
    /// The 95th percentile of its response times may be so long [default: 15ms]
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    latency: Option<Nanos>,
    /// Go by what was done in the last 10s to 3600s [default: 3600s]
    #[arg(long, value_name = "SPAN", value_parser = parse_window)]
    window: Option<Nanos>,
    /// Recommend no more moves than this [default: 10]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=100))]
    moves: Option<u64>,
}

impl BoundArgs {
    /// In the API's form.
    fn request(&self) -> AskStorageDrs {
        let usual = AskStorageDrs::default();
        AskStorageDrs {
            window_s: self.window.map_or(usual.window_s, Nanos::as_secs_f64),
            space: self.space.unwrap_or(usual.space),
            latency_us: self.latency.map_or(usual.latency_us, |it| it.0.div_ceil(1000)),
            moves: self.moves.unwrap_or(usual.moves),
        }
    }
}

/// Of less nothing can be said, and more is not kept.
fn parse_window(text: &str) -> Result<Nanos, String> {
    let window = parse_span(text)?;
    let kept = Nanos::from_secs(10)..=Nanos::from_secs(3600);
    let wrong = || "it can be 10s to 3600s".to_owned();
    Some(window).filter(|window| kept.contains(window)).ok_or_else(wrong)
}

/// Carries out a command.
pub(crate) fn run(
    command: StorageDrsCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    match command {
        StorageDrsCommand::Recommend(bounds) => {
            let asked = bounds.request();
            let told = link.ask(async |client| Ok(client.recommend(&asked).await?))?;
            output.answer(&told, |told| show(told, output))
        }
        StorageDrsCommand::Apply { bounds, promise } => {
            let started = link.ask(async |client| {
                let mut started = Vec::new();
                for one in client.recommend(&bounds.request()).await?.moves {
                    let begun = client.migrate(&request(one, &promise)).await;
                    started.push(begun.map_err(|error| half_way(&started, error))?);
                }
                Ok(started)
            })?;
            output.answer(&started, |started| applied(started))
        }
    }
}

fn request(one: RecommendedMove, promise: &PromiseArgs) -> StartMigration {
    StartMigration {
        disk: one.disk,
        to: one.to,
        provision: None,
        rate: None,
        verify: false,
        keep_source: false,
        guard: promise.request(),
    }
}

/// One did not begin: those before it go on, and that is said.
fn half_way(started: &[Migration], error: sterna_api::ClientError) -> anyhow::Error {
    let error = anyhow::Error::from(error);
    if started.is_empty() {
        return error;
    }
    let ids: Vec<String> = started.iter().map(|one| one.id.to_string()).collect();
    error.context(format!("migrations {} have begun and go on", ids.join(", ")))
}

fn applied(started: &[Migration]) -> String {
    if started.is_empty() {
        return "Nothing should move (`sterna storage-drs recommend` says why).".into();
    }
    let line = |one: &Migration| {
        format!("Migration {} of {} from {} to {}\n", one.id, one.disk, one.from, one.to)
    };
    let lines: String = started.iter().map(line).collect();
    format!("{lines}have begun.\n  sterna migration list")
}

fn show(told: &Recommendations, output: Output) -> String {
    let mut text = datastores(&told.datastores, output) + &bounds(&told.asked);
    if told.moves.is_empty() {
        text.push_str("\nNothing should move.\n");
    }
    for (at, one) in told.moves.iter().enumerate() {
        text.push_str(&recommended(at + 1, one));
    }
    if !told.staying.is_empty() {
        text.push_str("\nOn datastores that are over a bound, these stay:\n");
        let mut table =
            Table::new(&[("DISK", Column::Flexible), ("WHY", Column::Wrapped)]);
        for one in &told.staying {
            table.row(vec![one.disk.as_str().into(), one.reason.as_str().into()]);
        }
        text.push_str(&output.table(&table));
    }
    text
}

/// What was asked of the datastores.
fn bounds(asked: &AskStorageDrs) -> String {
    format!(
        "Bounds: {} of the room, p95 {}; by the last {}.\n",
        percent(asked.space),
        response(Some(asked.latency_us as f64)),
        span(asked.window_s)
    )
}

fn datastores(all: &[JudgedDatastore], output: Output) -> String {
    let mut table = Table::new(&[
        ("DATASTORE", Column::Flexible),
        ("TAKEN", Column::Right),
        ("P95", Column::Right),
        ("UNDER WAY", Column::Right),
        ("STATE", Column::Left),
    ]);
    for one in all {
        table.row(vec![
            one.datastore.as_str().into(),
            taken(&one.load).into(),
            response(one.load.p95_us).into(),
            format!("{:.1}", one.outstanding).into(),
            state(one),
        ]);
    }
    output.table(&table)
}

fn state(one: &JudgedDatastore) -> Cell {
    let over: Vec<&str> = one.over.iter().map(|over| word(*over)).collect();
    match (one.load.taken, over.is_empty()) {
        (None, _) => Cell::styled("offline", Style::Bad),
        (Some(_), false) => {
            Cell::styled(format!("over its bound: {}", over.join(", ")), Style::Warn)
        }
        (Some(_), true) if one.settling => {
            Cell::styled("disks come and go", Style::Plain)
        }
        (Some(_), true) => Cell::styled("within its bounds", Style::Good),
    }
}

fn word(over: OverBound) -> &'static str {
    match over {
        OverBound::Space => "space",
        OverBound::Latency => "latency",
    }
}

fn taken(load: &DatastoreLoad) -> String {
    load.taken.map_or("-".into(), |part| format!("{:.0}%", part * 100.0))
}

fn recommended(at: usize, one: &RecommendedMove) -> String {
    let took = one.predicted.as_ref();
    let took = took.map_or(", time not known yet".into(), |it| {
        format!(" in about {}", span(it.likely_s))
    });
    let head = format!(
        "{at}. {} from {} to {}, for {}, priority {}: {}{took}",
        one.disk,
        one.from,
        one.to,
        word(one.over),
        one.priority,
        bytes(one.bytes)
    );
    let change = |name: &str, [before, after]: &[DatastoreLoad; 2]| {
        let p95 = [before, after].map(|load| response(load.p95_us));
        let p95 = if p95[0] == "-" && p95[1] == "-" {
            String::new()
        } else {
            format!(", p95 {} to {}", p95[0], p95[1])
        };
        format!("{name}: {} to {} taken{p95}", taken(before), taken(after))
    };
    let lines = [
        wrap(&head, WIDTH),
        wrap(&change(&one.from, &one.source), WIDTH - 3),
        wrap(&change(&one.to, &one.destination), WIDTH - 3),
        vec![format!("sterna migrate {} --to {}", one.disk, one.to)],
    ];
    let [head, rest @ ..] = lines;
    let indented = rest.iter().flatten().map(|line| format!("   {line}\n"));
    format!("\n{}\n{}", head.join("\n"), indented.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(taken: f64, p95_us: Option<f64>) -> DatastoreLoad {
        DatastoreLoad { taken: Some(taken), p95_us }
    }

    #[test]
    fn recommendations_fit_on_a_screen() {
        let name = "a-datastore-with-quite-a-long-name";
        let told = Recommendations {
            asked: AskStorageDrs::default(),
            datastores: vec![JudgedDatastore {
                datastore: name.into(),
                load: load(0.88, Some(21_000.0)),
                outstanding: 14.08,
                over: vec![OverBound::Space, OverBound::Latency],
                settling: false,
            }],
            moves: vec![RecommendedMove {
                disk: "db".into(),
                from: name.into(),
                to: "fast".into(),
                over: OverBound::Space,
                priority: 3,
                bytes: 5 << 30,
                predicted: None,
                source: [load(0.88, Some(21_000.0)), load(0.71, None)],
                destination: [load(0.10, None), load(0.18, None)],
            }],
            staying: vec![sterna_api::StayingDisk {
                disk: "web".into(),
                datastore: name.into(),
                over: OverBound::Latency,
                to: None,
                reason: "it asks for too little to matter".into(),
            }],
        };
        let text = show(&told, Output::new(false));
        for part in [
            "88%",
            "21.0 ms",
            "over its bound: space, latency",
            "Bounds: 80% of the room, p95 15.0 ms; by the last ",
            "1. db from a-datastore",
            "88% to 71% taken, p95 21.0 ms to -",
            "fast: 10% to 18% taken\n",
            "sterna migrate db --to fast",
            "it asks for too little to matter",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
