//! The report of the experiment in virtual time.
//!
//! All scenes are on one time axis, one after the other in the order in which they are
//! told.

use std::time::{SystemTime, UNIX_EPOCH};

use sterna_console::format::moment;
use sterna_core::Bytes;
use sterna_report::{Chart, Event, Facts, Line, Report, Sheet, Verdict};
use sterna_sim::svmotion::{
    ASSUMED, Extent, FITTED, Figure, Scene, Stretch, Study, TOLERANCE,
};

use super::virtual_run::{basis, difference, predictions, told, with_unit};

const ABOUT: &str = "A database's disks move from an old storage array to a new one, one \
                     after the other, while users order, or while the virtual machine is \
                     off: a published study, in virtual time.";

/// A second of all scenes' together: when it ended, and what happened in it.
type Seconds<'s> = Vec<(f64, &'s Stretch)>;

/// Tells the experiment.
pub(super) fn report(study: &Study, seed: u64) -> Report {
    let published = study.published();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let (seconds, events) = axis(study);
    Report {
        title: "Storage migration under a database".into(),
        about: ABOUT.into(),
        made: format!("Sterna {}, {}", env!("CARGO_PKG_VERSION"), moment(now)),
        passed: published.iter().all(Figure::holds),
        verdicts: published.iter().map(verdict).collect(),
        charts: charts(study, &seconds),
        events,
        sheets: vec![
            compared("Published figures", &published),
            compared("Derived from published figures; not judged", &study.follows()),
            predicted(study),
            fitted(),
        ],
        facts: vec![facts(study, seed)],
    }
}

fn verdict(figure: &Figure) -> Verdict {
    let tolerance = TOLERANCE * 100.0;
    let bar =
        format!("{} within {tolerance:.0} % ({})", told(figure), basis(figure.basis));
    Verdict {
        what: figure.what.into(),
        measured: with_unit(figure.ours, figure.unit),
        bar,
        value: Some(figure.ours),
        passed: figure.holds(),
    }
}

/// The scenes one after the other, and where each begins and ends.
fn axis(study: &Study) -> (Seconds<'_>, Vec<Event>) {
    let (mut seconds, mut events, mut at_s) = (Vec::new(), Vec::new(), 0.0);
    for (scene, course) in &study.courses {
        let what = if scene.disk.is_some() { "starts" } else { "no migration" };
        events.push(Event { at_s, text: format!("{scene}: {what}") });
        for stretch in &course.stretches {
            at_s += stretch.seconds;
            seconds.push((at_s, stretch));
        }
        if course.moved.is_some() {
            let held = course.held_ms;
            let text = format!("{scene}: switch-over, held for {held:.1} ms");
            events.push(Event { at_s, text });
        }
    }
    (seconds, events)
}

fn charts(study: &Study, seconds: &Seconds<'_>) -> Vec<Chart> {
    let chunk = study.parameters.chunk as f64 / f64::from(1 << 20);
    let chart = |title: &str, unit: &str, lines: Vec<Line>| Chart {
        title: title.into(),
        unit: unit.into(),
        at_s: seconds.iter().map(|(at, _)| *at).collect(),
        lines,
        strips: Vec::new(),
    };
    let line = |name: &str, value: &dyn Fn(&Stretch) -> Option<f64>| Line {
        name: name.into(),
        values: seconds.iter().map(|(_, stretch)| value(stretch)).collect(),
    };
    vec![
        chart(
            "The copy's throughput at the source",
            "MiB/s",
            vec![line("copy", &|it| Some(it.per_second(it.copy_read) * chunk))],
        ),
        chart(
            "Orders",
            "per second",
            vec![line("orders", &|it| Some(it.per_second(it.orders)))],
        ),
        chart(
            "The copy's latency",
            "ms",
            vec![
                line("reads at the source", &|it| it.copy_read.mean_ms()),
                line("writes at the destination", &|it| it.copy_write.mean_ms()),
            ],
        ),
        chart(
            "The database's latency",
            "ms",
            vec![
                line("data, reads", &|it| it.data.mean_ms()),
                line("index, reads", &|it| it.index.mean_ms()),
                line("log, writes", &|it| it.log.mean_ms()),
            ],
        ),
    ]
}

fn texts(head: &[&str]) -> Vec<String> {
    head.iter().map(|&text| text.to_owned()).collect()
}

fn compared(title: &str, figures: &[Figure]) -> Sheet {
    let row = |figure: &Figure| {
        let Figure { what, unit, ours, .. } = *figure;
        let ours = with_unit(ours, unit);
        let (told, off) = (told(figure), difference(figure));
        vec![what.to_owned(), told, ours, off, basis(figure.basis).to_owned()]
    };
    Sheet {
        title: title.into(),
        head: texts(&["figure", "published", "ours", "difference", "basis"]),
        rows: figures.iter().map(row).collect(),
    }
}

fn predicted(study: &Study) -> Sheet {
    let row = |(scene, cells): (Scene, [String; 6])| {
        std::iter::once(scene.to_string()).chain(cells).collect()
    };
    let head = "predicted,time,MiB/s,read ms,write ms,orders/s,Mcycles an order";
    Sheet {
        title: "Predictions (=: was published, see above; back: new to old)".into(),
        head: head.split(',').map(str::to_owned).collect(),
        rows: predictions(study).into_iter().map(row).collect(),
    }
}

fn fitted() -> Sheet {
    Sheet {
        title: "Fitted numbers".into(),
        head: texts(&["number", "value", "fitted to"]),
        rows: FITTED.iter().map(|it| texts(&[it.what, it.value, it.to])).collect(),
    }
}

fn facts(study: &Study, seed: u64) -> Facts {
    let moved = match study.extent {
        Extent::WHOLE => "all of each disk".to_owned(),
        extent => format!(
            "the first {} of each disk; times of whole disks follow from that",
            Bytes(extent.bytes)
        ),
    };
    let mut pairs = vec![("moved".to_owned(), moved), ("seed".into(), seed.to_string())];
    pairs.extend(ASSUMED.map(|it| ("assumed".to_owned(), it.to_owned())));
    let clock = "virtual time: the figures do not depend on this machine";
    pairs.push(("clock".into(), clock.into()));
    Facts { title: "Parameters".into(), pairs }
}
