//! Predictions: what a move will take is learned from those before it, is said, and is
//! held against what it took.

use sterna_tests::{MIB, Stage};

/// A stage with a disk of 64 MiB, and a datastore `slow` that takes 40 MB/s.
fn stage() -> Stage {
    let stage = Stage::new();
    let slow = stage.scratch.dir("slow");
    stage.datastore("slow", format!("{} --shape mbps=40", slow.display()));
    stage.disk_with_data("db", 96 * MIB, 64 * MIB);
    stage
}

#[test]
fn a_move_is_predicted_by_those_before_it_and_scored_at_its_end() {
    let stage = stage();
    let daemon = &stage.daemon;
    let unknown = ["nothing was ever copied from here or to slow", "move a small disk"];
    daemon.sterna("predict db --to slow").fails_with(&unknown);
    let first = daemon.json("migrate db --to slow");
    assert!(first["predicted"].is_null(), "{first:#}");
    daemon.sterna("migrate db --to here").ok();
    let told = daemon.json("predict db --to slow");
    let it = &told["predicted"];
    let number = |key: &str| it[key].as_f64().expect("a number");
    assert_eq!((&it["learned_from"], &it["moves"]), (&"moves".into(), &1.into()));
    assert_eq!((&it["weakest"], number("share")), (&"storage".into(), 1.0));
    assert!((64..72).contains(&(it["bytes"].as_u64().expect("bytes") / MIB)), "{it:#}");
    // 64 MiB at 40 MB/s.
    assert!((1.2..3.0).contains(&number("likely_s")), "{it:#}");
    assert!(
        number("least_s") < number("likely_s") && number("likely_s") < number("most_s")
    );
    let limited = daemon.json("predict db --to slow --rate 1M --verify");
    assert_eq!(limited["predicted"]["weakest"], "limit");
    assert!(limited["predicted"]["likely_s"].as_f64() > Some(120.0), "{limited:#}");
    let done = daemon.json("migrate db --to slow");
    assert!(done["predicted"]["likely_s"].is_f64(), "{done:#}");
    let scores = daemon.json("status")["predictions"].clone();
    assert_eq!(scores["moves"], 1, "{scores:#}");
    assert!(scores["median_error"].as_f64() < Some(1.0), "{scores:#}");
    let id = done["id"].as_u64().expect("a number");
    let shown = daemon.sterna(&format!("migration show {id}")).ok();
    assert!(shown.stdout.contains("predicted"), "{}", shown.stdout);
}

#[test]
fn a_move_of_which_something_else_was_asked_on_the_way_is_not_scored() {
    let stage = stage();
    let daemon = &stage.daemon;
    for to in ["slow", "here"] {
        daemon.sterna(&format!("migrate db --to {to}")).ok();
    }
    let id = daemon.migrate("db --to slow");
    daemon.pause(id);
    daemon.resume(id);
    let done = daemon.completed(id);
    assert!(done["predicted"]["likely_s"].is_f64(), "{done:#}");
    assert_eq!(daemon.json("status")["predictions"]["moves"], 0);
}

#[test]
fn what_cannot_be_moved_is_not_predicted() {
    let stage = stage();
    let daemon = &stage.daemon;
    daemon.sterna("predict nosuch --to slow").fails_with(&["no disk nosuch"]);
    daemon.sterna("predict db --to nosuch").fails_with(&["no datastore nosuch"]);
    daemon.sterna("predict db --to here").fails_with(&["on datastore here already"]);
    daemon.sterna("predict db --to slow --keep 0%").is_usage_error();
    daemon.sterna("predict db").is_usage_error();
}
