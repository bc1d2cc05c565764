//! Experiments run by themselves, tell what they found, and leave nothing behind.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use sterna_tests::Scratch;
use sterna_tests::daemon::send_signal;
use sterna_tests::programs::sterna;
use sterna_tests::wait::{seconds, until};

/// Starts `sterna lab` with these arguments; what it makes for itself is in `place`.
pub(super) fn lab(place: &Path, arguments: &[&str]) -> Child {
    Command::new(sterna())
        .arg("lab")
        .args(arguments)
        .env("TMPDIR", place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start sterna lab")
}

pub(super) fn end(child: Child) -> Output {
    child.wait_with_output().expect("wait for sterna lab")
}

/// What is in a directory.
pub(super) fn entries(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("list a directory").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A place for what the experiment makes for itself, with a path short enough for
/// sockets.
pub(super) fn place(scratch: &Scratch) -> std::path::PathBuf {
    let place = scratch.socket("lab");
    std::fs::create_dir(&place).expect("make a directory");
    place
}

/// The verdicts, with none missing.
fn every_verdict(report: &Value) -> &Vec<Value> {
    let verdicts = report["verdicts"].as_array().expect("verdicts");
    for about in [
        "contention: throughput",
        "cruise in MB/s: until",
        "cruise in IO/s: until",
        "cruise in ms: until",
        "out of reach: until",
        "limit in MB/s: until in force",
        "limit in MB/s: until back",
        "limit in IO/s: until in force",
        "limit in IO/s: until back",
        "schedule: late to open",
        "schedule: late to close",
    ] {
        let judged = verdicts.iter().any(|verdict| {
            verdict["what"].as_str().is_some_and(|what| what.starts_with(about))
        });
        assert!(judged, "no verdict on `{about}`: {verdicts:#?}");
    }
    verdicts
}

#[test]
fn the_quick_experiment_judges_every_requirement_and_reports() {
    let scratch = Scratch::new();
    let (place, out) = (place(&scratch), scratch.path("report"));
    let out_text = out.display().to_string();
    let done = end(lab(&place, &["qos", "--quick", "--json", "--out", &out_text]));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let report: Value = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("no JSON ({error}): {said}"));
    // Figures of a host under test mean little; that each requirement is judged, and
    // that the exit code says the same as the report, holds on any host.
    let verdicts = every_verdict(&report);
    let passed = verdicts.iter().all(|verdict| verdict["passed"] == true);
    assert_eq!(report["passed"], passed);
    assert_eq!(done.status.code(), Some(if passed { 0 } else { 1 }), "{said}");
    // Each application has its line, as long as the time axis.
    for chart in report["charts"].as_array().expect("charts") {
        let points = chart["at_s"].as_array().map(Vec::len);
        assert!(points > Some(200), "{points:?} points");
        for line in chart["lines"].as_array().expect("lines") {
            assert_eq!(line["values"].as_array().map(Vec::len), points);
        }
    }
    let kept = std::fs::read(out.join("qos.json")).expect("the figures");
    let kept: Value = serde_json::from_slice(&kept).expect("JSON");
    assert_eq!(kept, report);
    let page = std::fs::read_to_string(out.join("qos.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>") && page.contains("uPlot"));
    assert!(!page.contains("src=\"") && !page.contains("href=\""));
    assert!(entries(&place).is_empty(), "left behind: {:?}", entries(&place));
}

#[test]
fn in_virtual_time_every_requirement_is_met_at_the_published_size() {
    let scratch = Scratch::new();
    let (place, out) = (place(&scratch), scratch.path("report"));
    let out_text = out.display().to_string();
    let run = || end(lab(&place, &["qos", "--virtual", "--json", "--out", &out_text]));
    let done = run();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let report: Value = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("no JSON ({error}): {said}"));
    for verdict in every_verdict(&report) {
        assert_eq!(verdict["passed"], true, "{verdict:#}");
    }
    assert_eq!(done.status.code(), Some(0), "{said}");
    let page = std::fs::read_to_string(out.join("qos.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>") && page.contains("uPlot"));
    // It made no daemon, and so no place for one.
    assert!(entries(&place).is_empty(), "left behind: {:?}", entries(&place));
    // The same seed is the same experiment, to the last digit.
    let again: Value = serde_json::from_slice(&run().stdout).expect("JSON");
    assert_eq!(again["charts"], report["charts"]);
}

#[test]
fn vms_move_in_waves_and_what_each_of_them_got_is_told() {
    let scratch = Scratch::new();
    let (place, out) = (place(&scratch), scratch.path("report"));
    let out_text = out.display().to_string();
    let sizes = ["--tiles", "2", "--scale", "20000", "--seconds", "3"];
    let done = end(lab(&place, &[&["nas250", "--out", &out_text], &sizes[..]].concat()));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        told.lines().all(|line| line.chars().count() <= 80 || line.contains(&out_text))
    );
    let kept = std::fs::read(out.join("nas250.json")).expect(&said);
    let report: Value = serde_json::from_slice(&kept).expect("JSON");
    let verdicts = report["verdicts"].as_array().expect("verdicts");
    assert_eq!(verdicts[0]["measured"], "50 of 50", "{verdicts:#?}");
    // How well they got it is a matter of this host.
    let least = verdicts[1]["value"].as_f64().expect("a part");
    assert!((50.0..=100.0).contains(&least), "{verdicts:#?}");
    assert_eq!(done.status.success(), report["passed"] == true, "{said}");
    for phase in ["before", "wave 1", "wave 2", "after"] {
        assert!(told.lines().any(|line| line.starts_with(phase)), "no {phase}: {told}");
    }
    assert!(entries(&place).is_empty(), "left behind: {:?}", entries(&place));
}

#[test]
fn an_experiment_that_is_interrupted_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let (place, out) = (place(&scratch), scratch.path("report"));
    let out_text = out.display().to_string();
    let child = lab(&place, &["qos", "--quick", "--out", &out_text]);
    let image = "state/arrays/array/stress.raw";
    let disk = |dir: &String| place.join(dir).join(image).exists();
    until("the disks to be made", seconds(30), || {
        entries(&place).iter().any(disk).then_some(())
    });
    send_signal(&child, Signal::INT);
    let done = end(child);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("the experiment was interrupted"), "{said}");
    assert!(entries(&place).is_empty(), "left behind: {:?}", entries(&place));
    assert!(entries(&out).is_empty(), "a report of half an experiment");
}

#[test]
fn an_experiment_that_cannot_begin_says_why_at_once() {
    let scratch = Scratch::new();
    let (place, out) = (place(&scratch), scratch.path("report"));
    let out_text = out.display().to_string();
    let file = scratch.path("file");
    std::fs::write(&file, "not a directory").expect("write a file");
    let file_text = file.display().to_string();
    for (arguments, expected) in [
        (["qos", "--quick", "--out", &file_text].as_slice(), file_text.as_str()),
        (
            &["qos", "--quick", "--out", &out_text, "--datastore", "/nonexistent"],
            "/nonexistent",
        ),
        (
            &["svmotion", "--quick", "--out", &out_text, "--guest", "/nonexistent"],
            "/nonexistent has no guest",
        ),
        (
            &["overcommit", "--quick", "--out", &out_text, "--guest", "/nonexistent"],
            "/nonexistent has no guest",
        ),
    ] {
        let done = end(lab(&place, arguments));
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(entries(&place).is_empty(), "left behind: {:?}", entries(&place));
    }
}

#[test]
fn the_published_storage_migration_comes_out_in_virtual_time() {
    let scratch = Scratch::new();
    let (place, out) = (place(&scratch), scratch.path("report"));
    let out_text = out.display().to_string();
    let arguments = ["svmotion", "--virtual", "--quick", "--out", &out_text];
    let done = end(lab(&place, &arguments));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{said}");
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    for part in ["1843 s", "fitted", "checked", "PREDICTED", "FITTED NUMBER", "Assumed"] {
        assert!(told.contains(part), "no `{part}`: {told}");
    }
    // What was published of a move is not told as a prediction of it.
    let row = |name: &str| told.lines().rfind(|line| line.starts_with(name));
    assert_eq!(row("low load, data ").expect("its row").matches('=').count(), 3);
    assert_eq!(row("back: high load, data ").expect("its row").matches('=').count(), 0);
    let kept = std::fs::read(out.join("svmotion.json")).expect("the figures");
    let report: Value = serde_json::from_slice(&kept).expect("JSON");
    assert_eq!(report["passed"], true);
    assert_eq!(report["verdicts"].as_array().map(Vec::len), Some(20));
    for chart in report["charts"].as_array().expect("charts") {
        let points = chart["at_s"].as_array().map(Vec::len);
        assert!(points > Some(100), "{points:?} points");
        for line in chart["lines"].as_array().expect("lines") {
            assert_eq!(line["values"].as_array().map(Vec::len), points);
        }
    }
    let page = std::fs::read_to_string(out.join("svmotion.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>") && page.contains("uPlot"));
    assert!(entries(&place).is_empty(), "left behind: {:?}", entries(&place));
}

#[test]
fn the_published_study_of_swap_comes_out_in_virtual_time() {
    let scratch = Scratch::new();
    let (place, out) = (place(&scratch), scratch.path("report"));
    let out_text = out.display().to_string();
    let done = end(lab(&place, &["overcommit", "--virtual", "--out", &out_text]));
    let kept = std::fs::read(out.join("overcommit.json")).expect("the figures");
    let report: Value = serde_json::from_slice(&kept).expect("JSON");
    // The requirements are goals; the exit code tells whether they are met.
    let passed = report["passed"].as_bool().expect("a verdict");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(i32::from(!passed)), "{said}");
    assert_eq!(report["verdicts"].as_array().map(Vec::len), Some(9));
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    for part in ["kernel alone", "PUBLISHED", "ALL BACK", "assumed", "elsewhere"] {
        assert!(told.contains(part), "no `{part}`: {told}");
    }
    let charts = report["charts"].as_array().expect("charts");
    assert_eq!(charts.len(), 3);
    for chart in charts {
        // Four ways, and what was published.
        let lines = chart["lines"].as_array().expect("lines");
        assert_eq!(lines.len(), 5);
        assert!(
            lines.iter().all(|it| it["values"].as_array().map(Vec::len) == Some(120))
        );
    }
    let page = std::fs::read_to_string(out.join("overcommit.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>") && page.contains("uPlot"));
    assert!(entries(&place).is_empty(), "left behind: {:?}", entries(&place));
}
