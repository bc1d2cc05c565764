//! How long a switch-over holds the writes of whoever is at work on the disk.

use serde_json::Value;
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, MIB, Stage, until};

const SIZE: u64 = 192 * MIB;

/// The longest switch-over that passes. The budget is 100 ms, and a switch-over
/// that leaves no time for its commit is undone; but the commit itself is awaited
/// however long it takes, and beside another test the disk of the state may take
/// three times as long for it as it took a moment before.
const LONGEST_MS: f64 = 250.0;

/// Moves disk `a` there while a checker with these options is at work on it, and nothing
/// that was acknowledged is lost. Gives how long the switch-over took, in milliseconds.
#[track_caller]
fn switches_over(stage: &Stage, options: &CheckerOptions, to: &str) -> f64 {
    let mut checker = stage.checker("a", options);
    checker.wait_for_intervals(5);
    let id = stage.daemon.migrate(&format!("a --to {to}"));
    let done = stage.daemon.completed(id);
    checker.wait_for_intervals(5);
    let summary = checker.finish_and_verify();
    assert_eq!(summary["reconnects"], 0, "{summary}");
    done["report"]["switch_over_ms"].as_f64().expect("a length")
}

#[test]
fn it_holds_writes_for_a_moment_wherever_the_disk_goes() {
    let programs = ["losetup", "nbdkit"];
    let Some(stage) = Stage::given_root(&programs) else { return };
    let _device = stage.block_device("device", SIZE + MIB);
    let _server = stage.nbd_server("remote", SIZE + MIB, &[]);
    stage.disk("a", SIZE);
    for to in ["there", "device", "remote", "here"] {
        holds_writes_for_a_moment(&stage, to);
    }
}

#[test]
fn so_it_does_without_io_uring() {
    let stage = Stage::with_threads();
    stage.disk("a", SIZE);
    holds_writes_for_a_moment(&stage, "there");
}

#[track_caller]
fn holds_writes_for_a_moment(stage: &Stage, to: &str) {
    let load = CheckerOptions::gentle(1500)
        .with("--block", 512)
        .with("--trims", 4)
        .with("--zeroes", 4)
        .flag("--fill");
    let held = switches_over(stage, &load, to);
    assert!(held <= LONGEST_MS, "the switch-over to {to} took {held} ms");
}

#[test]
fn a_disk_at_full_load_with_four_connections_is_switched_over() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    let load = CheckerOptions::hard(64)
        .with("--connections", 4)
        .with("--trims", 3)
        .with("--zeroes", 3)
        .with("--span", 96 * MIB)
        .flag("--fill");
    switches_over(&stage, &load, "there");
}

#[test]
fn one_that_is_undone_again_and_again_says_so_and_can_be_cancelled() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let slow = ["--filter=delay", "wdelay=250ms"];
    let _server = stage.nbd_server("remote", 8 * MIB, &slow);
    stage.disk("a", 8 * MIB - 65536);
    let id = stage.daemon.migrate("a --to remote");
    let says =
        |it: &Value| it.as_str().is_some_and(|it| it.contains("undid the switch-over"));
    until("the move to say why it does not end", seconds(60), || {
        says(&stage.daemon.migration(id)["reason"]).then_some(())
    });
    let warns =
        |it: &Value| it["about"] == format!("migration {id}") && says(&it["message"]);
    until("the status to warn of it", seconds(60), || {
        let status = stage.daemon.json("status");
        let warnings = status["warnings"].as_array().expect("warnings");
        warnings.iter().any(warns).then_some(())
    });
    stage.daemon.sterna(&format!("migration cancel {id}")).ok();
}
