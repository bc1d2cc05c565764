//! How fast memory went out and came back, beside what the device can do and what was predicted.

use sterna_console::format;
use sterna_console::output::Output;
use sterna_report::{Sheet, UNKNOWN};

use super::bars::{mean_of, percent};
use super::outcome::{Base, Outcome, Sleep, Trial};
use super::plan::Way;
use super::report::{WAYS, table};

/// The columns. `DEVICE` is what the device reads in order; how fast memory went out and came back
/// is a part of that.
const HEAD: [&str; 8] =
    ["MEDIUM", "WAY", "DEVICE", "OUT", "RUNS/MiB", "BACK", "PREDICTED", "TOOK"];

/// For the report.
pub(super) fn sheet(outcome: &Outcome) -> Sheet {
    Sheet {
        title: "How fast memory went out and came back".into(),
        head: HEAD.map(str::to_lowercase).into(),
        rows: rows(outcome).into_iter().map(Vec::from).collect(),
    }
}

/// For the terminal.
pub(super) fn words(outcome: &Outcome, output: Output) -> String {
    table(HEAD, rows(outcome), output)
}

fn rows(outcome: &Outcome) -> Vec<[String; 8]> {
    let all = outcome.bases.iter().flat_map(|base| WAYS.map(|way| (base, way)));
    all.filter_map(|(base, way)| row(base, way, &outcome.of(base.medium, way))).collect()
}

/// The means of a way's repeats.
fn row(base: &Base, way: Way, trials: &[&Trial]) -> Option<[String; 8]> {
    let sleeps: Vec<Sleep> = trials.iter().filter_map(|trial| trial.sleep).collect();
    let wakes = || trials.iter().filter_map(|trial| trial.wake.as_ref());
    let device = base.tier.bytes_per_s as f64;
    let mean = |values: Vec<f64>| (!values.is_empty()).then(|| mean_of(&values));
    let each = |of: &dyn Fn(&Sleep) -> f64| mean(sleeps.iter().map(of).collect());
    let out_at = each(&|sleep| sleep.bytes as f64 / sleep.took_s.max(f64::EPSILON));
    let mib = |bytes: u64| (bytes as f64 / 1_048_576.0).max(f64::EPSILON);
    let runs = each(&|sleep| sleep.runs as f64 / mib(sleep.bytes));
    if trials.is_empty() {
        return None;
    }
    let back_at = wakes().filter_map(|wake| {
        let took = wake.all_s.filter(|took| *took > 0.0)?;
        Some(wake.bytes as f64 / took)
    });
    let part = |rate: f64| percent(rate / device);
    let seconds = |value: Option<f64>| {
        value.map_or(UNKNOWN.to_owned(), |value| format!("{value:.1} s"))
    };
    Some([
        base.medium.to_string(),
        way.to_string(),
        format::rate(device),
        out_at.map_or(UNKNOWN.into(), part),
        runs.map_or(UNKNOWN.into(), |runs| format!("{runs:.1}")),
        mean(back_at.collect()).map_or(UNKNOWN.into(), part),
        seconds(mean(wakes().filter_map(|wake| wake.predicted_s).collect())),
        seconds(mean(wakes().filter_map(|wake| wake.all_s).collect())),
    ])
}

#[cfg(test)]
mod tests {
    use sterna_api::WakeReport;

    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn how_fast_it_was_is_compared_with_what_the_device_reads_in_order() {
        let mut outcome = outcome();
        let wake = WakeReport {
            at: 0,
            bytes: 900 << 20,
            failed: 0,
            held_ms: 0.0,
            hot_s: None,
            all_s: Some(18.0),
            predicted_s: Some(15.0),
        };
        outcome.trials[2].wake = Some(wake);
        let held = &rows(&outcome)[1];
        assert_eq!(held[2..5], ["100 MiB/s", "90 %", "0.5"]);
        assert_eq!(held[5..], ["50 %", "15.0 s", "18.0 s"]);
        assert_eq!(rows(&outcome)[0][5..], ["-", "-", "-"]);
    }

    #[test]
    fn the_table_fits_a_terminal() {
        let text = words(&outcome(), Output::new(false));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
