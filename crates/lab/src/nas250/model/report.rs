//! The report of the experiment in virtual time.

use std::time::{SystemTime, UNIX_EPOCH};

use sterna_console::format::moment;
use sterna_report::{Facts, Report, Sheet, Verdict};
use sterna_sim::fluid::nas250::{ASSUMED, FITTED, Figure, Study, TOLERANCE, scenario};

use super::{basis, difference, minutes};
use crate::told;

const ABOUT: &str = "250 virtual machines work on an array for twelve hours and then move \
                     to a NAS on the same disks, in four waves, while the others work: a \
                     published experiment, in virtual time.";

/// Tells the experiment.
pub(super) fn report(study: &Study) -> Report {
    let scenario = scenario();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let figures = study.figures();
    let mut verdicts: Vec<Verdict> = figures.iter().map(verdict).collect();
    verdicts.extend(told::verdicts(&scenario, &study.waves));
    let mut sheets = vec![
        compared("Published times", &figures, true),
        compared(
            "If machines stood still until their wave; not judged",
            &study.if_idle(),
            false,
        ),
    ];
    sheets.extend(told::sheets(&scenario, &study.waves));
    sheets.push(fitted());
    Report {
        title: "250 virtual machines move from an array to a NAS".into(),
        about: ABOUT.into(),
        made: format!("Sterna {}, {}", env!("CARGO_PKG_VERSION"), moment(now)),
        passed: verdicts.iter().all(|verdict| verdict.passed),
        verdicts,
        charts: told::charts(&scenario, &study.waves.samples),
        events: told::events(&study.waves),
        sheets,
        facts: vec![facts(&scenario.arrays[0].model.to_string())],
    }
}

fn verdict(figure: &Figure) -> Verdict {
    let tolerance = TOLERANCE * 100.0;
    let published = minutes(figure.published);
    Verdict {
        what: format!("time of {}", figure.what),
        measured: minutes(figure.ours),
        bar: format!("{published} within {tolerance:.0} % ({})", basis(figure.basis)),
        value: Some(figure.ours),
        passed: figure.holds(),
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn compared(title: &str, figures: &[Figure], judged: bool) -> Sheet {
    let row = |figure: &Figure| {
        let (told, ours) = (minutes(figure.published), minutes(figure.ours));
        let shows = if judged { basis(figure.basis) } else { "-" };
        let off = difference(figure);
        vec![figure.what.clone(), told, ours, off, shows.to_owned()]
    };
    Sheet {
        title: title.into(),
        head: texts(&["time of", "published", "ours", "difference", "basis"]),
        rows: figures.iter().map(row).collect(),
    }
}

fn fitted() -> Sheet {
    Sheet {
        title: "Fitted numbers".into(),
        head: texts(&["number", "value", "fitted to"]),
        rows: FITTED.iter().map(|it| texts(&[it.what, it.value, it.to])).collect(),
    }
}

fn facts(model: &str) -> Facts {
    let mut pairs = vec![("array".to_owned(), model.to_owned())];
    pairs.extend(ASSUMED.map(|it| ("assumed".to_owned(), it.to_owned())));
    let clock = "virtual time: the figures do not depend on this machine";
    pairs.push(("clock".into(), clock.into()));
    Facts { title: "Parameters".into(), pairs }
}
