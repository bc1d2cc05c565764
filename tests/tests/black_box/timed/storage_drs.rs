//! Storage DRS on real datastores: what is full or slow is seen, what should move is said
//! and moved, and it comes to rest.

use serde_json::Value;
use sterna_tests::clients::Fio;
use sterna_tests::images::write_image;
use sterna_tests::places::TinyFs;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, programs, until};

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
    assert!(words.stdout.contains("No moves recommended."), "{}", words.stdout);
    let words = daemon.sterna("storage-drs apply --space 99.9% --latency 60s").ok();
    assert!(words.stdout.contains("No moves recommended"), "{}", words.stdout);
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
        (&"log".into(), &Value::from("space")),
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
    assert!(reason.contains("the disk rests for 4 h more"), "{reason}");
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
        // The one asks for all that there is, the other for what it needs.
        let both = [("db", ""), ("web", "\nrate_iops=500")].map(|(disk, rate)| {
            Fio::start(&daemon.uri(disk), &format!("{settings}{rate}"))
        });
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

#[test]
fn settings_survive_a_restart_and_are_what_is_asked_for() {
    let mut stage = stage();
    let set = "storage-drs set --automation full --latency 5ms --space 75% --window 10min \
               --every 1h --p99 4ms";
    let told = stage.daemon.json(set);
    assert_eq!(told["automation"], "full", "{told:#}");
    // What is left out stays.
    stage.daemon.sterna("storage-drs set --latency 6ms").ok();
    stage.daemon.kill();
    stage.daemon.restart();
    let daemon = &stage.daemon;
    let told = daemon.json("storage-drs status");
    let settings = &told["settings"];
    assert_eq!(settings["automation"], "full", "{told:#}");
    assert_eq!(settings["latency_us"], 6000, "{told:#}");
    assert_eq!(settings["space"], 0.75, "{told:#}");
    assert_eq!(
        (&settings["window_s"], &settings["every_s"]),
        (&600.0.into(), &3600.0.into())
    );
    assert_eq!(settings["guard"]["p99_us"], 4000, "{told:#}");
    let asked = daemon.json("storage-drs recommend --latency 9ms")["asked"].clone();
    assert_eq!((&asked["latency_us"], &asked["space"]), (&9000.into(), &0.75.into()));
    let words = daemon.sterna("storage-drs status").ok().stdout;
    for part in [
        "full: Storage DRS places new disks",
        "75% of the space, p95 6.0 ms",
        "p99 below",
    ] {
        assert!(words.contains(part), "{part} in:\n{words}");
    }
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
    for wrong in ["--every 5s", "--every 2d", "--window 25h", "--automation on", ""] {
        daemon.sterna(&format!("storage-drs set {wrong}")).is_usage_error();
    }
}

#[test]
fn by_itself_it_relieves_a_full_datastore_and_says_what_came_of_it() {
    if !(programs::root() && programs::have(&["losetup", "mkfs.ext4"])) {
        return;
    }
    let stage = Stage::new();
    let daemon = &stage.daemon;
    let full = stage.tiny_fs("full", 96 * MIB);
    let _roomy = stage.tiny_fs("roomy", 512 * MIB);
    daemon
        .sterna("storage-drs set --space 70% --latency 60s --window 10s --every 10s")
        .ok();
    for (name, size) in [("db", 48), ("log", 16)] {
        let image = full.dir().join(format!("{name}.raw"));
        write_image(&image, size * MIB, size * MIB);
        let image = image.display();
        daemon.sterna(&format!("disk import {name} --on full {image}")).ok();
    }
    assert_eq!(daemon.json("migration list"), Value::from(vec![0; 0]));
    daemon.sterna("storage-drs set --automation full").ok();
    // Too full in two looks at room, some seconds apart.
    let begun = until("a move that nobody asked for", seconds(40), || {
        daemon.json("migration list")[0]["id"].as_u64()
    });
    let moved = daemon.completed(begun);
    assert_eq!(moved["disk"], "log", "{moved:#}");
    assert_eq!(moved["guard"]["asked"]["keep"], 0.97, "{moved:#}");
    assert_eq!(moved["balanced"]["over"], "space", "{moved:#}");
    let judged = until("what came of it", seconds(40), || {
        let now = daemon.migration(begun);
        (now["balanced"]["outcome"] != "waiting").then_some(now)
    });
    assert_eq!(judged["balanced"]["outcome"], "paid", "{judged:#}");
    let words = daemon.sterna(&format!("migration show {begun}")).ok().stdout;
    for part in ["Storage DRS, for space", "the move has paid", "taken: source "] {
        assert!(words.contains(part), "{part} in:\n{words}");
    }
    let words = daemon.sterna("storage-drs status").ok().stdout;
    for part in ["1 of 1 move", "paid", "within its bounds"] {
        assert!(words.contains(part), "{part} in:\n{words}");
    }
    // It rests, and nothing else moves.
    let told = daemon.json("storage-drs recommend --space 1%");
    let staying = told["staying"].as_array().expect("disks that stay");
    let log = staying.iter().find(|it| it["disk"] == "log").expect("log stays");
    let reason = log["reason"].as_str().expect("a reason");
    assert!(reason.contains("has moved") && reason.contains(" ago;"), "{reason}");
    let all = daemon.json("migration list");
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all:#}");
}

/// A datastore that is too full, with two disks that must be together, and one that has
/// room; but there somebody's file is where the second one's image would be.
fn two_of_which_one_cannot_begin(stage: &Stage) -> [TinyFs; 2] {
    let daemon = &stage.daemon;
    let full = stage.tiny_fs("full", 96 * MIB);
    let roomy = stage.tiny_fs("roomy", 512 * MIB);
    for name in ["db", "log"] {
        let image = full.dir().join(format!("{name}.raw"));
        write_image(&image, 28 * MIB, 28 * MIB);
        let image = image.display();
        daemon.sterna(&format!("disk import {name} --on full {image}")).ok();
    }
    daemon.sterna("storage-drs rule together pair db log").ok();
    write_image(&roomy.dir().join("log.raw"), MIB, 0);
    let set = "storage-drs set --space 50% --latency 60s --window 10s --every 10s";
    daemon.sterna(set).ok();
    [full, roomy]
}

/// The one that had begun is where it was, by a migration that was cancelled.
#[track_caller]
fn neither_has_moved(stage: &Stage) {
    let daemon = &stage.daemon;
    for name in ["db", "log"] {
        until("its move to be called off", seconds(20), || {
            daemon.disk(name)["migration"].is_null().then_some(())
        });
        assert_eq!(daemon.disk(name)["datastore"], "full");
    }
    let all = daemon.json("migration list");
    assert_eq!((&all[0]["disk"], &all[0]["state"]), (&"db".into(), &"cancelled".into()));
}

#[test]
fn disks_that_must_be_together_begin_together_or_not_at_all() {
    if !(programs::root() && programs::have(&["losetup", "mkfs.ext4"])) {
        return;
    }
    let stage = Stage::new();
    let _both = two_of_which_one_cannot_begin(&stage);
    let refused = stage.daemon.sterna("storage-drs apply --keep 97%");
    refused.fails_with(&["db must stay with this disk: its move is cancelled"]);
    neither_has_moved(&stage);
}

#[test]
fn by_itself_it_calls_off_what_cannot_begin_as_a_whole() {
    if !(programs::root() && programs::have(&["losetup", "mkfs.ext4"])) {
        return;
    }
    let stage = Stage::new();
    let _both = two_of_which_one_cannot_begin(&stage);
    stage.daemon.sterna("storage-drs set --automation full").ok();
    let failed = until("a step that cannot begin", seconds(40), || {
        let told = stage.daemon.json("storage-drs status");
        let failed = told["last"]["failed"].as_array()?.clone();
        (!failed.is_empty()).then_some(failed)
    });
    let failed: Vec<&str> = failed.iter().filter_map(Value::as_str).collect();
    assert!(failed[0].starts_with("log: "), "{failed:?}");
    assert_eq!(failed[1..], ["db: cancelled, because log must be with it"]);
    neither_has_moved(&stage);
}

#[test]
fn rules_are_a_reason_to_move_and_a_reason_to_stay() {
    let stage = stage();
    let daemon = &stage.daemon;
    daemon.sterna("storage-drs set --space 100% --latency 60s").ok();
    let made = daemon.sterna("storage-drs rule apart pair db log").ok().stdout;
    assert!(made.contains("Rule pair: db, log must be apart."), "{made}");
    assert!(made.contains("is violated now"), "{made}");
    let told = daemon.json("storage-drs recommend");
    let moves = told["moves"].as_array().expect("moves");
    assert_eq!(moves.len(), 1, "{told:#}");
    let one = &moves[0];
    assert_eq!(
        (&one["disk"], &one["to"], &one["rule"], &one["priority"]),
        (&"log".into(), &"there".into(), &"pair".into(), &1.into()),
        "{told:#}"
    );
    let words = daemon.sterna("storage-drs status").ok().stdout;
    assert!(words.contains("broken rules  pair"), "{words}");
    let started = daemon.json("storage-drs apply");
    daemon.completed(started[0]["id"].as_u64().expect("a number"));
    let rules = daemon.json("storage-drs rule list");
    assert_eq!((&rules[0]["name"], &rules[0]["broken"]), (&"pair".into(), &false.into()));
    // Rules that cannot both hold are refused.
    let against = daemon.sterna("storage-drs rule together all db log");
    against.fails_with(&["cannot be apart, as rule pair wants", "rule remove"]);
    daemon
        .sterna("storage-drs rule together all db log --should")
        .fails_with(&["cannot be apart, as rule pair wants"]);
    daemon
        .sterna("storage-drs rule together pair db log")
        .fails_with(&["there is a rule pair already"]);
    daemon
        .sterna("storage-drs rule apart new db nothing")
        .fails_with(&["there is no disk nothing"]);
    daemon.sterna("storage-drs rule apart new db db").fails_with(&["twice"]);
    daemon.sterna("storage-drs rule apart new db").is_usage_error();
    daemon.sterna("storage-drs rule remove pair").ok();
    daemon.sterna("storage-drs rule remove pair").fails_with(&["there is no rule pair"]);
    let made = daemon.sterna("storage-drs rule together all db log --should").ok().stdout;
    assert!(made.contains("moves nothing for this rule alone"), "{made}");
    assert_eq!(daemon.json("storage-drs recommend")["moves"], Value::from(vec![0; 0]));
    // A disk that goes leaves its rules.
    daemon.sterna("disk remove log --delete-image").ok();
    assert_eq!(daemon.json("storage-drs rule list")[0]["disks"], Value::from(vec!["db"]));
}

#[test]
fn a_new_disk_goes_where_there_is_room_and_says_why() {
    let stage = Stage::new();
    let daemon = &stage.daemon;
    daemon.sterna("storage-drs set --space 100%").ok();
    let made = daemon.json("disk create first --size 2G");
    let first = made["datastore"].as_str().expect("a datastore").to_owned();
    assert!(["here", "there"].contains(&first.as_str()), "{made:#}");
    let others = made["chosen"]["others"].as_array().expect("the others");
    assert_eq!(others.len(), 1, "{made:#}");
    // What the first one may come to take counts: more than other tests take meanwhile.
    let made = daemon.json("disk create second --size 2G");
    assert_ne!(made["datastore"], Value::from(first), "{made:#}");
    let words = daemon.sterna("disk create third --size 64M").ok().stdout;
    assert!(
        words.contains("chosen ") && words.contains("used with the whole disk"),
        "{words}"
    );
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
    let named = daemon.json("disk create fourth --size 64M --on there");
    assert_eq!((&named["datastore"], &named["chosen"]), (&"there".into(), &Value::Null));
    daemon
        .sterna("disk create large --size 900T")
        .fails_with(&["no datastore should take the disk", "too full"]);
    daemon.sterna("storage-drs set --automation partial").ok();
    let words = daemon.sterna("storage-drs status").ok().stdout;
    assert!(words.contains("nothing automatically"), "{words}");
    daemon.sterna("storage-drs set --automation manual").ok();
    daemon
        .sterna("disk create fifth --size 64M")
        .fails_with(&["Storage DRS does not choose one", "--on "]);
    let words = daemon.sterna("storage-drs status").ok().stdout;
    assert!(words.contains("nothing automatically"), "{words}");
}
