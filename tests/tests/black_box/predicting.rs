//! Predictions: what a move will take is learned from those before it, is said, and is
//! held against what it took.

use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use sterna_tests::servers::Bindfs;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, programs, until};

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
    let unknown = ["Sterna has not copied from here or to slow yet", "move a small disk"];
    daemon.sterna("predict db --to slow").fails_with(&unknown);
    // Copies with a limit teach nothing; but they were not none.
    for to in ["slow", "here"] {
        daemon.sterna(&format!("migrate db --to {to} --rate 200M")).ok();
    }
    let limited = "the one copy from here or to slow had a limit (--rate, at most 200";
    daemon.sterna("predict db --to slow").fails_with(&[limited, "without a limit"]);
    let bound = daemon.sterna("predict db --to slow --rate 1M");
    // 64 MiB are copied, and read once more: 128 s, and what more the image takes.
    bound.fails_with(&[limited, "at 1.00 MiB/s the move takes at least 12"]);
    let first = daemon.json("migrate db --to slow");
    assert!(first["predicted"].is_null(), "{first:#}");
    daemon.sterna("migrate db --to here").ok();
    let told = daemon.json("predict db --to slow");
    let it = &told["predicted"];
    let number = |key: &str| it[key].as_f64().expect("a number");
    assert_eq!((&it["learned_from"], &it["moves"]), (&"moves".into(), &1.into()));
    assert_eq!(it["guess"], true, "of one move: {it:#}");
    let words = daemon.sterna("predict db --to slow").ok().stdout;
    assert!(words.contains("a guess"), "{words}");
    assert_eq!((&it["weakest"], number("share")), (&"storage".into(), 1.0));
    assert!((64..72).contains(&(it["bytes"].as_u64().expect("bytes") / MIB)), "{it:#}");
    // 64 MiB at 40 MB/s, twice.
    assert!((2.4..6.0).contains(&number("likely_s")), "{it:#}");
    assert!(
        number("least_s") < number("likely_s") && number("likely_s") < number("most_s")
    );
    let limited = daemon.json("predict db --to slow --rate 1M");
    assert_eq!(limited["predicted"]["weakest"], "limit");
    assert!(limited["predicted"]["likely_s"].as_f64() > Some(128.0), "{limited:#}");
    let done = daemon.json("migrate db --to slow");
    assert!(done["predicted"]["likely_s"].is_f64(), "{done:#}");
    let scores = daemon.json("status")["predictions"].clone();
    assert_eq!(scores["moves"], 1, "{scores:#}");
    assert!(scores["median_error"].as_f64() < Some(1.0), "{scores:#}");
    let id = done["id"].as_u64().expect("a number");
    let shown = daemon.sterna(&format!("migration show {id}")).ok();
    assert!(shown.stdout.contains("predicted"), "{}", shown.stdout);
}

/// Two seconds, and what a busy host needs.
#[test]
fn a_destination_that_hangs_holds_nobody_up_and_is_named() {
    let Some(stage) = Stage::given_root(&["nbdkit", "bindfs"]) else { return };
    stage.disk_with_data("db", 16 * MIB, 8 * MIB);
    let remote = stage.nbd_server("remote", 32 * MIB, &[]);
    let fuse = Bindfs::new(&stage.scratch, "fuse");
    stage.datastore("fuse", fuse.dir().display());
    remote.hang();
    fuse.hang();
    for to in ["remote", "fuse"] {
        let asked = Instant::now();
        let refused = stage.daemon.sterna(&format!("predict db --to {to}"));
        let took = asked.elapsed();
        refused.fails_with(&[&format!("datastore {to} cannot be used"), "not answer"]);
        assert!(took < seconds(3), "{to}: {took:?}");
    }
}

#[test]
fn of_a_source_that_hangs_all_of_the_disk_counts_and_that_is_said() {
    let Some(stage) = Stage::given_root(&["bindfs"]) else { return };
    stage.disk_with_data("db", 96 * MIB, 64 * MIB);
    let fuse = Bindfs::new(&stage.scratch, "fuse");
    stage.datastore("fuse", fuse.dir().display());
    for to in ["fuse", "there", "fuse"] {
        stage.daemon.sterna(&format!("migrate db --to {to}")).ok();
    }
    fuse.hang();
    // The kernel answers for the file system for a moment.
    let told = until("the file system to hang", seconds(20), || {
        let asked = Instant::now();
        let told = stage.daemon.sterna("predict db --to there").ok().stdout;
        assert!(asked.elapsed() < seconds(3), "{:?}", asked.elapsed());
        told.contains("not known").then_some(told)
    });
    assert!(told.contains("how much of the disk has data: datastore fuse"), "{told}");
    assert!(told.contains("96.0 MiB at"), "{told}");
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
fn what_was_measured_of_a_forgotten_datastore_says_nothing_of_the_next_of_its_name() {
    let stage = stage();
    let daemon = &stage.daemon;
    for to in ["slow", "here"] {
        daemon.sterna(&format!("migrate db --to {to}")).ok();
    }
    daemon.json("predict db --to slow");
    daemon.sterna("datastore remove slow").ok();
    // It was added in another second.
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).expect("late").as_secs();
    let now = second();
    sterna_tests::until("the next second", sterna_tests::wait::seconds(5), || {
        (second() > now).then_some(())
    });
    stage.datastore("slow", stage.scratch.dir("new").display());
    let told = daemon.json("predict db --to slow")["predicted"].clone();
    assert_eq!(told["learned_from"], "one-end", "by moves from here alone: {told:#}");
}

#[test]
fn what_cannot_be_moved_is_not_predicted() {
    let stage = stage();
    let daemon = &stage.daemon;
    daemon.sterna("predict nosuch --to slow").fails_with(&["no disk nosuch"]);
    daemon.sterna("predict db --to nosuch").fails_with(&["no datastore nosuch"]);
    daemon.sterna("predict db --to here").fails_with(&["on datastore here already"]);
    if programs::root() {
        // As `migrate` says it.
        let _tiny = stage.tiny_fs("tiny", 16 * MIB);
        for command in ["predict", "migrate"] {
            daemon.sterna(&format!("{command} db --to tiny")).fails_with(&[
                "disk db takes",
                "datastore tiny has",
                "are missing",
            ]);
        }
    }
    daemon.sterna("predict db --to slow --keep 0%").is_usage_error();
    daemon.sterna("predict db").is_usage_error();
}

/// Hours of a week as the state keeps them: somebody works in each of them, but for the
/// one that begins a week before `quiet`.
fn write_hours(state: &Path, disk: &str, quiet: u64) {
    let file = state.join("state.db");
    let script = format!(
        "import sqlite3\n\
         state = sqlite3.connect({file:?})\n\
         (disk,) = state.execute('SELECT id FROM disks WHERE name = ?', ({disk:?},)).fetchone()\n\
         for hour in range({quiet} - 200 * 3600, {quiet}, 3600):\n\
         \x20   busy = hour != {quiet} - 168 * 3600\n\
         \x20   row = (disk, hour, 4.0 * busy, 10000.0 * busy, 1.0 * busy, 0.0)\n\
         \x20   state.execute('INSERT INTO hours VALUES (?, ?, ?, ?, ?, ?)', row)\n\
         state.commit()\n"
    );
    programs::run("/usr/bin/python3", ["-c", &script]);
}

#[test]
fn another_hour_goes_by_what_was_done_in_the_last_week() {
    let mut stage = stage();
    for to in ["slow", "here"] {
        stage.daemon.sterna(&format!("migrate db --to {to}")).ok();
    }
    let ask = "predict db --to slow --keep 97%";
    let unseen = stage.daemon.sterna(&format!("{ask} --at 5h"));
    unseen.fails_with(&["recorded for this hour in the last week", "leave out --at"]);
    let wrong = stage.daemon.sterna(&format!("{ask} --at soon"));
    let wrong = wrong.is_usage_error().stderr;
    assert!(wrong.contains("no time") && wrong.contains("(06:00)"), "{wrong}");
    assert!(stage.daemon.json(ask)["best"].is_null());
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_secs();
    let quiet = (now / 3600 + 5) * 3600;
    stage.daemon.stop();
    write_hours(stage.daemon.state(), "db", quiet);
    stage.daemon.restart();
    let told = stage.daemon.json(ask);
    assert_eq!(
        (&told["best"]["at"], &told["at"]),
        (&quiet.into(), &Value::Null),
        "{told:#}"
    );
    let seconds = |value: &Value| value.as_f64().expect("seconds");
    let [busy, best] = [3, 5].map(|ahead| {
        let at = (now / 3600 + ahead) * 3600 + 60 - now;
        let told = stage.daemon.json(&format!("{ask} --at {at}s"));
        assert!(told["at"].as_u64() >= Some(now + at), "{told:#}");
        seconds(&told["predicted"]["likely_s"])
    });
    assert!(busy > 3.0 * best, "{busy} and {best}");
    assert!((best - seconds(&told["best"]["likely_s"])).abs() < 0.1, "{best}, {told:#}");
    let words = stage.daemon.sterna(ask).ok().stdout;
    assert!(words.contains("best hour"), "{words}");
}
