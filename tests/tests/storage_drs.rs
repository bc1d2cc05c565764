//! Storage DRS on real datastores: what is full or slow is seen, what should move is said
//! and moved, and it comes to rest.

use serde_json::Value;
use sterna_tests::clients::Fio;
use sterna_tests::images::write_image;
use sterna_tests::{MIB, Stage, programs};

/// A stage with a disk of 40 MiB and one of 8 MiB, full of data.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.disk_with_data("db", 40 * MIB, 40 * MIB);
    stage.disk_with_data("log", 8 * MIB, 8 * MIB);
    stage
}

fn of<'v>(told: &'v Value, datastore: &str) -> &'v Value {
    let all = told["datastores"].as_array().expect("datastores");
    all.iter().find(|it| it["datastore"] == datastore).expect("the datastore")
}

#[test]
fn where_all_is_within_bounds_nothing_should_move() {
    let stage = stage();
    let daemon = &stage.daemon;
    let told = daemon.json("storage-drs recommend --space 99.9% --latency 60s");
    assert_eq!(
        (&told["moves"], &told["staying"]),
        (&Value::from(vec![0; 0]), &told["moves"])
    );
    let here = of(&told, "here");
    assert!(here["load"]["taken"].as_f64() > Some(0.0), "{told:#}");
    let words = daemon.sterna("storage-drs recommend --space 99.9% --latency 60s").ok();
    assert!(words.stdout.contains("Nothing should move."), "{}", words.stdout);
    let words = daemon.sterna("storage-drs apply --space 99.9% --latency 60s").ok();
    assert!(words.stdout.contains("Nothing should move"), "{}", words.stdout);
}

#[test]
fn disks_that_stay_on_a_full_datastore_are_told_why() {
    let stage = stage();
    let daemon = &stage.daemon;
    // Both directories are on one file system: each is as full as the other.
    let told = daemon.json("storage-drs recommend --space 0.1%");
    assert_eq!(told["moves"], Value::from(vec![0; 0]), "{told:#}");
    assert_eq!(of(&told, "here")["over"], Value::from(vec!["space"]), "{told:#}");
    let staying = told["staying"].as_array().expect("disks that stay");
    assert_eq!(staying.len(), 2, "{told:#}");
    let reason = staying[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("there would be too full"), "{reason}");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let stage = stage();
    let daemon = &stage.daemon;
    for wrong in
        ["--space 0%", "--space 101%", "--window 5s", "--moves 0", "--latency 15"]
    {
        daemon.sterna(&format!("storage-drs recommend {wrong}")).is_usage_error();
    }
    daemon.sterna("storage-drs").is_usage_error();
}

#[test]
fn a_full_datastore_is_relieved_and_then_rests() {
    if !(programs::root() && programs::have(&["losetup", "mkfs.ext4"])) {
        return;
    }
    let stage = Stage::new();
    let daemon = &stage.daemon;
    let full = stage.tiny_fs("full", 96 * MIB);
    let _roomy = stage.tiny_fs("roomy", 512 * MIB);
    for (name, size) in [("db", 48), ("log", 16)] {
        let image = full.dir().join(format!("{name}.raw"));
        write_image(&image, size * MIB, size * MIB);
        let image = image.display();
        daemon.sterna(&format!("disk import {name} --on full {image}")).ok();
    }
    let ask = "--space 70% --latency 60s";
    let told = daemon.json(&format!("storage-drs recommend {ask}"));
    assert_eq!(of(&told, "full")["over"], Value::from(vec!["space"]), "{told:#}");
    // The smaller one is enough.
    let moves = told["moves"].as_array().expect("moves");
    assert_eq!(moves.len(), 1, "{told:#}");
    let one = &moves[0];
    assert_eq!(
        (&one["disk"], &one["over"]),
        (&"log".into(), &"space".into()),
        "{told:#}"
    );
    let started = daemon.json(&format!("storage-drs apply {ask}"));
    let started = started.as_array().expect("migrations");
    assert_eq!(started.len(), 1, "{started:#?}");
    let to = started[0]["to"].as_str().expect("a datastore").to_owned();
    daemon.completed(started[0]["id"].as_u64().expect("a number"));
    assert_eq!(daemon.disk("log")["datastore"].as_str(), Some(to.as_str()));
    let told = daemon.json(&format!("storage-drs recommend {ask}"));
    assert_eq!(of(&told, "full")["over"], Value::from(vec![0; 0]), "{told:#}");
    assert_eq!(told["moves"], Value::from(vec![0; 0]), "{told:#}");
    // What has moved stays, also if that were to be too full.
    let told = daemon.json("storage-drs recommend --space 1% --latency 60s");
    let staying = told["staying"].as_array().expect("disks that stay");
    let log = staying.iter().find(|it| it["disk"] == "log").expect("log stays");
    let reason = log["reason"].as_str().expect("a reason");
    assert!(reason.contains("has moved within the last 4 h"), "{reason}");
}

#[test]
fn who_waits_long_should_go_where_that_is_shorter() {
    if !programs::have(&["fio"]) {
        return;
    }
    let stage = Stage::new();
    let daemon = &stage.daemon;
    let (slow, quick) = (stage.scratch.dir("slow"), stage.scratch.dir("quick"));
    stage.datastore("slow", format!("{} --shape iops=200", slow.display()));
    stage.datastore("quick", format!("{} --shape iops=4000", quick.display()));
    for (name, on) in [("db", "slow"), ("web", "quick")] {
        daemon.sterna(&format!("disk create {name} --size 64M --on {on}")).ok();
    }
    // What a device does under a load is known when loads of several sizes were seen.
    for depth in [1, 4, 16] {
        let settings = format!(
            "rw=randread\nbs=4k\nsize=64M\niodepth={depth}\ntime_based\nruntime=7"
        );
        let both = ["db", "web"].map(|disk| Fio::start(&daemon.uri(disk), &settings));
        both.into_iter().for_each(|fio| drop(fio.finish()));
    }
    let ask = "--latency 15ms --space 100% --window 30s";
    let told = daemon.json(&format!("storage-drs recommend {ask}"));
    assert_eq!(of(&told, "slow")["over"], Value::from(vec!["latency"]), "{told:#}");
    assert_eq!(of(&told, "quick")["over"], Value::from(vec![0; 0]), "{told:#}");
    let moves = told["moves"].as_array().expect("moves");
    assert_eq!(moves.len(), 1, "{told:#}");
    let one = &moves[0];
    assert_eq!((&one["disk"], &one["to"]), (&"db".into(), &"quick".into()), "{told:#}");
    let p95 = |side: &str, at: usize| one[side][at]["p95_us"].as_f64().expect("a time");
    assert!(p95("source", 0) > 15e3 && p95("destination", 1) < 15e3, "{told:#}");
    let words = daemon.sterna(&format!("storage-drs recommend {ask}")).ok().stdout;
    assert!(words.contains("sterna migrate db --to quick"), "{words}");
    let started = daemon.json(&format!("storage-drs apply {ask} --keep 90%"));
    assert_eq!(started[0]["guard"]["asked"]["keep"], 0.9, "{started:#}");
    daemon.completed(started[0]["id"].as_u64().expect("a number"));
    // What was seen before is of another load now.
    let told = daemon.json(&format!("storage-drs recommend {ask}"));
    assert_eq!(of(&told, "quick")["settling"], true, "{told:#}");
    assert_eq!(told["moves"], Value::from(vec![0; 0]), "{told:#}");
}
