//! The report of the experiment in virtual time.

use std::time::{SystemTime, UNIX_EPOCH};

use sterna_console::format::moment;
use sterna_report::{Chart, Facts, Line, Report, Sheet};
use sterna_sim::overcommit::{Medium, NUMBERS, Published, Study, Way};

use super::bars;
use super::virtual_run::{figures, published, wakes};

const ABOUT: &str = "The memory of an idle VM with a database is out on a swap device when its \
                     customers come back: a published study of swap on flash, Fibre Channel and \
                     SATA, in virtual time.";

/// Tells the experiment.
pub(super) fn report(study: &Study, seed: u64) -> Report {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let verdicts = bars::verdicts(&wakes(study));
    Report {
        title: "Memory under overcommit".into(),
        about: ABOUT.into(),
        made: format!("Sterna {}, {}", env!("CARGO_PKG_VERSION"), moment(now)),
        passed: verdicts.iter().all(|verdict| verdict.passed),
        verdicts,
        charts: Medium::ALL.into_iter().map(|medium| chart(study, medium)).collect(),
        events: Vec::new(),
        sheets: vec![kept(study), compared(study), numbers()],
        facts: vec![facts(study, seed)],
    }
}

/// The orders of each second on a medium, and what was published of them.
fn chart(study: &Study, medium: Medium) -> Chart {
    let seconds = study.parameters.seconds as usize;
    let line = |way: Way| {
        let values = study.each(study.course(medium, way)?);
        let values = values.into_iter().map(|kept| Some(kept * 100.0)).collect();
        Some(Line { name: way.to_string(), values })
    };
    let mut lines: Vec<Line> = Way::ALL.into_iter().filter_map(line).collect();
    let marks = Published::all(seconds).into_iter().filter(|it| it.medium == medium);
    lines.extend(marks.map(|it| Line {
        name: "published, page by page".into(),
        values:
            (0..seconds).map(|at| (at < it.until).then_some(it.kept * 100.0)).collect(),
    }));
    Chart {
        title: format!("Orders after the wake, swap on {medium}"),
        unit: "% of a guest that was never swapped out".into(),
        at_s: (1..=seconds).map(|at| at as f64).collect(),
        lines,
        strips: Vec::new(),
    }
}

fn texts(head: &[&str]) -> Vec<String> {
    head.iter().map(|&text| text.to_owned()).collect()
}

fn kept(study: &Study) -> Sheet {
    let head =
        "medium and way,first 10 s,first 30 s,120 s,each second 88 % from,held,all back";
    let row = |(medium, way, course): &(Medium, Way, _)| {
        let name = std::iter::once(format!("{medium}, {way}"));
        name.chain(figures(study, course)).collect()
    };
    Sheet {
        title: "Orders kept, of a guest that was never swapped out".into(),
        head: head.split(',').map(str::to_owned).collect(),
        rows: study.wakes.iter().map(row).collect(),
    }
}

fn compared(study: &Study) -> Sheet {
    Sheet {
        title: "Published figures, to which nothing was fitted".into(),
        head: texts(&["orders kept, page by page", "published", "ours"]),
        rows: published(study).into_iter().map(Vec::from).collect(),
    }
}

fn numbers() -> Sheet {
    let row = |it: &sterna_sim::overcommit::Number| {
        texts(&[it.what, it.value, it.basis.word(), it.why])
    };
    Sheet {
        title: "Numbers of the model, and where they come from".into(),
        head: texts(&["number", "value", "from", "why"]),
        rows: NUMBERS.iter().map(row).collect(),
    }
}

fn facts(study: &Study, seed: u64) -> Facts {
    let baseline = format!("{:.1} orders/s", study.baseline.whole());
    let mut pairs = vec![
        ("never swapped out".to_owned(), baseline),
        ("earlier wakes".into(), study.parameters.wakes.to_string()),
        ("seed".into(), seed.to_string()),
    ];
    let arrays =
        Medium::ALL.map(|it| (it.to_string(), format!("array://{}", it.array())));
    pairs.extend(arrays);
    let clock = "virtual time: the figures do not depend on this machine";
    pairs.push(("clock".into(), clock.into()));
    Facts { title: "Parameters".into(), pairs }
}
