//! What should move, in words.

use sterna_api::{
    AskGuard, DatastoreLoad, JudgedDatastore, OverBound, Recommendations,
    RecommendedMove, StayingDisk, StorageDrsBounds,
};
use sterna_console::format::{bytes, response, span};
use sterna_console::output::{Output, WIDTH};
use sterna_console::table::{Cell, Column, Style, Table, wrap};

use crate::common::guard::{options, percent};

/// Everything that was recommended, and why the rest stays.
pub(super) fn show(told: &Recommendations, output: Output) -> String {
    let mut text = datastores(&told.datastores, output) + &bounds(&told.asked);
    if told.moves.is_empty() {
        text.push_str("\nNo moves recommended.\n");
    }
    for (at, one) in told.moves.iter().enumerate() {
        text.push_str(&recommended(at + 1, one, &told.guard));
    }
    if !told.staying.is_empty() {
        text.push_str(
            "\nThese disks stay although a bound is exceeded or a rule is violated:\n",
        );
        let mut table =
            Table::new(&[("DISK", Column::Flexible), ("WHY", Column::Wrapped)]);
        for (disk, why) in staying(&told.staying) {
            table.row(vec![disk.into(), why.into()]);
        }
        text.push_str(&output.table(&table));
    }
    text
}

/// Each disk that stays, once, and why: what matters most comes first, as it was told. Where
/// there are several reasons, each is said with what it is about.
fn staying(all: &[StayingDisk]) -> Vec<(&str, String)> {
    let mut disks: Vec<(&str, Vec<&StayingDisk>)> = Vec::new();
    for one in all {
        match disks.iter_mut().find(|(disk, _)| *disk == one.disk) {
            Some((_, reasons)) => reasons.push(one),
            None => disks.push((&one.disk, vec![one])),
        }
    }
    let about = |one: &&StayingDisk| {
        let aim = aim(one.over, one.rule.as_deref());
        format!("{aim}: {}", one.reason)
    };
    let whole = |(disk, reasons): (_, Vec<&StayingDisk>)| {
        let first = &reasons[0].reason;
        let why = match reasons.iter().all(|one| one.reason == *first) {
            true => first.clone(),
            false => reasons.iter().map(about).collect::<Vec<_>>().join("\n"),
        };
        (disk, why)
    };
    disks.into_iter().map(whole).collect()
}

/// What was asked of the datastores.
fn bounds(asked: &StorageDrsBounds) -> String {
    format!(
        "Bounds: {} of the space, p95 {}; load of the last {}.\n",
        percent(asked.space),
        response(Some(asked.latency_us as f64)),
        span(asked.window_s)
    )
}

/// Datastores, against their bounds.
pub(super) fn datastores(all: &[JudgedDatastore], output: Output) -> String {
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
    match (one.away, over.is_empty()) {
        (true, _) => Cell::styled("offline", Style::Bad),
        (false, true) if one.maintenance => Cell::styled("in maintenance", Style::Plain),
        (false, false) if one.maintenance => {
            let over = over.join(", ");
            Cell::styled(format!("in maintenance, over: {over}"), Style::Warn)
        }
        (false, false) => {
            Cell::styled(format!("over its bound: {}", over.join(", ")), Style::Warn)
        }
        (false, true) if one.settling => {
            Cell::styled("measuring: a disk came or left", Style::Plain)
        }
        (false, true) => Cell::styled("within its bounds", Style::Good),
    }
}

/// A bound in a word.
pub(super) fn word(over: OverBound) -> &'static str {
    match over {
        OverBound::Space => "space",
        OverBound::Latency => "latency",
    }
}

fn taken(load: &DatastoreLoad) -> String {
    load.taken.map_or("-".into(), |part| format!("{:.0}%", part * 100.0))
}

/// What a move is for.
pub(super) fn aim(over: Option<OverBound>, rule: Option<&str>) -> String {
    match (over, rule) {
        (_, Some(rule)) => format!("rule {rule}"),
        (Some(over), None) => word(over).to_owned(),
        (None, None) => "-".to_owned(),
    }
}

fn recommended(at: usize, one: &RecommendedMove, guard: &AskGuard) -> String {
    let took = one.predicted.as_ref();
    let took = took.map_or(", time unknown yet".into(), |it| {
        format!(" in about {}", span(it.likely_s))
    });
    let head = format!(
        "{at}. {} from {} to {}, for {}, priority {}: {}{took}",
        one.disk,
        one.from,
        one.to,
        aim(one.over, one.rule.as_deref()),
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
        // Not broken: somebody will copy it.
        vec![format!("sterna migrate {} --to {}{}", one.disk, one.to, options(guard))],
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
            asked: StorageDrsBounds {
                window_s: 3600.0,
                space: 0.8,
                latency_us: 15_000,
                moves: 10,
            },
            guard: AskGuard { keep: Some(0.97), ..AskGuard::default() },
            datastores: vec![JudgedDatastore {
                datastore: name.into(),
                load: load(0.88, Some(21_000.0)),
                outstanding: 14.08,
                over: vec![OverBound::Space, OverBound::Latency],
                away: false,
                settling: false,
                maintenance: false,
                shares_room_with: Vec::new(),
                trend: None,
            }],
            moves: vec![RecommendedMove {
                disk: "db".into(),
                from: name.into(),
                to: "fast".into(),
                over: Some(OverBound::Space),
                rule: None,
                priority: 3,
                step: 0,
                bytes: 5 << 30,
                predicted: None,
                source: [load(0.88, Some(21_000.0)), load(0.71, None)],
                destination: [load(0.10, None), load(0.18, None)],
            }],
            staying: vec![StayingDisk {
                disk: "web".into(),
                datastore: name.into(),
                over: Some(OverBound::Latency),
                rule: None,
                to: None,
                reason: "its load is too small to matter".into(),
            }],
        };
        let text = show(&told, Output::new(false));
        for part in [
            "88%",
            "21.0 ms",
            "over its bound: space, latency",
            "Bounds: 80% of the space, p95 15.0 ms; load of the last ",
            "1. db from a-datastore",
            "88% to 71% taken, p95 21.0 ms to -",
            "fast: 10% to 18% taken\n",
            "sterna migrate db --to fast --keep 97%\n",
            "its load is too small to matter",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_disk_that_stays_for_several_reasons_is_there_once() {
        let stays = |disk: &str, over, reason: &str| StayingDisk {
            disk: disk.into(),
            datastore: "slow".into(),
            over: Some(over),
            rule: None,
            to: None,
            reason: reason.into(),
        };
        let all = [
            stays("db", OverBound::Space, "fast would be too full: 91% taken"),
            stays("web", OverBound::Space, "the disk is not served"),
            stays("db", OverBound::Latency, "fast would not keep up with it"),
            stays("web", OverBound::Latency, "the disk is not served"),
        ];
        let both = "space: fast would be too full: 91% taken\n\
                    latency: fast would not keep up with it";
        let expected =
            [("db", both.to_owned()), ("web", "the disk is not served".to_owned())];
        assert_eq!(staying(&all), expected);
    }
}
