//! Scenarios are run in virtual time, told, and refused where they make no sense.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use sterna_tests::Scratch;
use sterna_tests::programs::sterna;

fn run(arguments: &[&str]) -> Output {
    Command::new(sterna()).args(arguments).output().expect("start sterna")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("no JSON ({error}): {}", String::from_utf8_lossy(&output.stderr))
    })
}

#[test]
fn the_move_of_250_vms_comes_out_as_published() {
    let scratch = Scratch::new();
    let out = scratch.path("report").display().to_string();
    let nas250 = ["lab", "nas250", "--virtual", "--json", "--out", &out];
    let done = run(&nas250);
    let report = json(&done);
    let verdicts = report["verdicts"].as_array().expect("verdicts");
    let times = verdicts.iter().filter(|it| {
        it["what"].as_str().is_some_and(|what| what.starts_with("time of "))
    });
    assert_eq!((times.count(), verdicts.len()), (5, 7));
    assert!(verdicts.iter().all(|it| it["passed"] == true), "{verdicts:#?}");
    assert_eq!(done.status.code(), Some(0));
    let page = fs::read_to_string(Path::new(&out).join("nas250.html")).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.contains("Fitted numbers"));
    let again = json(&run(&nas250));
    for part in ["verdicts", "charts", "sheets", "events"] {
        assert_eq!(again[part], report[part], "{part}");
    }
}

#[test]
fn a_scenario_is_run_without_a_daemon() {
    let scratch = Scratch::new();
    let out = scratch.path("report").display().to_string();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/failing-array.toml");
    let nowhere = scratch.path("nobody.sock").display().to_string();
    let done = run(&["--socket", &nowhere, "sim", "run", file, "--out", &out]);
    assert_eq!(done.status.code(), Some(0));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("new does not answer"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80 || line.contains(&out)));
    let figures = fs::read(Path::new(&out).join("failing-array.json")).expect("figures");
    let figures: Value = serde_json::from_slice(&figures).expect("JSON");
    // A destination that does not answer hurts who has moved to it, and is told so.
    assert_eq!(figures["passed"], false);
    assert_eq!(figures["verdicts"][0]["measured"], "30 of 30");
}

#[test]
fn what_drs_would_do_with_a_hall_is_told_beside_what_is_without_it() {
    let scratch = Scratch::new();
    let out = scratch.path("report").display().to_string();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/drs-host-fails.toml");
    let done = run(&["sim", "run", file, "--out", &out]);
    assert_eq!(done.status.code(), Some(0));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    for words in ["node-1 fails", "10 machines started on other hosts", "WITH DRS"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 80 || line.contains(&out)));
    let figures = fs::read(Path::new(&out).join("drs-host-fails.json")).expect("figures");
    let figures: Value = serde_json::from_slice(&figures).expect("JSON");
    let verdicts = figures["verdicts"].as_array().expect("verdicts");
    assert_eq!((verdicts.len(), &figures["passed"]), (3, &Value::Bool(true)));
    assert_eq!(figures["sheets"][0]["rows"].as_array().map(Vec::len), Some(16));
    let page = fs::read_to_string(Path::new(&out).join("drs-host-fails.html"));
    assert!(page.expect("a page").contains("Imbalance"));
    let again = json(&run(&["--json", "sim", "run", file, "--out", &out]));
    for part in ["verdicts", "charts", "sheets", "events"] {
        assert_eq!(again[part], figures[part], "{part}");
    }
}

#[test]
fn a_hall_that_cannot_be_is_refused_with_its_line() {
    let scratch = Scratch::new();
    let file = scratch.path("hall.toml");
    let text = "title = 'x'\nlength = '1h'\n[drs]\n[[host]]\nname = 'a'\ncpu = 8\n\
                memory = '16G'\n[[profile]]\nname = 'p'\ncpu = 2\nmemory = '32G'\n\
                [[vms]]\nname = 'v'\nprofile = 'p'\n";
    fs::write(&file, text).expect("write a file");
    let done = run(&["--json", "sim", "run", &file.display().to_string()]);
    assert_eq!(done.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&done.stderr).expect("JSON");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("line 11: no host has 32.0 GiB of memory"), "{message}");
}

#[test]
fn what_is_no_scenario_is_refused_with_its_line() {
    let scratch = Scratch::new();
    let file = scratch.path("plan.toml");
    fs::write(&file, "title = 'x'\nspeed = 'high'\n").expect("write a file");
    let name = file.display().to_string();
    for arguments in [
        vec!["--json", "sim", "run", &name],
        vec!["--json", "sim", "run", "/nosuch.toml"],
    ] {
        let done = run(&arguments);
        assert_eq!(done.status.code(), Some(1), "{arguments:?}");
        assert!(done.stdout.is_empty());
    }
    let done = run(&["--json", "sim", "run", "/nosuch.toml"]);
    let error: Value = serde_json::from_slice(&done.stderr).expect("JSON");
    assert_eq!(error["code"], "invalid", "{error:#}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("readable file")));
    let done = run(&["--json", "sim", "run", &name]);
    let error: Value = serde_json::from_slice(&done.stderr).expect("JSON");
    assert_eq!(error["code"], "invalid");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("plan.toml: line 2: ") && message.contains("`speed`"));
}
