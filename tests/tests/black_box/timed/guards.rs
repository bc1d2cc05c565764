//! Guards, with a real client on an emulated array: what must hold holds, and where
//! nothing must, the copy runs free.

use std::time::Duration;

use serde_json::Value;
use sterna_tests::clients::Fio;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

/// A guard says more than "learning" after five comparisons. There is one every two
/// seconds where trials are rarest, and on a busy host every second one does not count:
/// the application's own speed has changed too much during it.
const LEARNS: Duration = seconds(30);

/// A stage with a disk on an array of spindles, and a directory to move it to.
fn stage(megabytes: u64) -> Option<Stage> {
    let stage = Stage::given(&["fio"])?;
    let place = stage.scratch.dir("old");
    stage.datastore("old", format!("array://old-fc?path={}", place.display()));
    add_disk(&stage, "a", megabytes);
    Some(stage)
}

/// One more disk on the array, full of data.
fn add_disk(stage: &Stage, name: &str, megabytes: u64) {
    let create = format!("disk create {name} --size {megabytes}M --on old");
    stage.daemon.sterna(&create).ok();
    let blocks: Vec<u8> = (0..MIB / 8).flat_map(|at| (at | 1).to_le_bytes()).collect();
    let image = stage.scratch.path("old").join(format!("{name}.raw"));
    let image = std::fs::OpenOptions::new().write(true).open(image);
    let image = image.expect("open the image");
    for at in 0..megabytes {
        use std::os::unix::fs::FileExt;
        image.write_all_at(&blocks, at * MIB).expect("fill the image");
    }
    // What the kernel has yet to write would slow the application down for a while.
    image.sync_all().expect("write the image out");
}

/// A database that is busy for so long.
fn busy(stage: &Stage, seconds: u64) -> Fio {
    reads(stage, "a", &format!("runtime={seconds}"))
}

/// Random reads from a disk.
fn reads(stage: &Stage, disk: &str, settings: &str) -> Fio {
    let reads = "rw=randread\nbs=8k\niodepth=16\ntime_based=1\nsize=100%";
    Fio::start(&stage.daemon.uri(disk), &format!("{reads}\n{settings}"))
}

fn iops(done: &Value) -> f64 {
    done["read"]["iops"].as_f64().expect("IO/s")
}

fn state(stage: &Stage, id: u64) -> String {
    let guard = stage.daemon.migration(id)["guard"]["state"].clone();
    guard.as_str().unwrap_or("none").to_owned()
}

fn synced(stage: &Stage, id: u64) -> u64 {
    stage.daemon.migration(id)["progress"]["synced"].as_u64().expect("a number")
}

#[track_caller]
fn reaches(stage: &Stage, id: u64, wanted: &str) {
    until(&format!("the guard to be {wanted}"), LEARNS, || {
        (state(stage, id) == wanted).then_some(())
    });
}

/// Lets the client come to work.
fn settle() {
    std::thread::sleep(Duration::from_millis(700));
}

#[test]
fn an_application_keeps_its_share_while_its_disk_moves() {
    let Some(stage) = stage(512) else { return };
    let alone = iops(&busy(&stage, 4).finish());
    let client = busy(&stage, 12);
    settle();
    let id = stage.daemon.migrate("a --to there --keep 97%");
    reaches(&stage, id, "learning");
    let beside = iops(&client.finish());
    // A copy without a guard takes its part of the disk, and is over in less.
    let now = stage.daemon.migration(id);
    assert!(now["ended"].is_null(), "{now:#}");
    // The tests beside this one have their part in either figure.
    assert!(beside > 0.75 * alone, "{beside} of {alone} IO/s");
    stage.daemon.completed(id);
    assert_eq!(stage.daemon.disk("a")["datastore"], "there");
}

#[test]
fn a_second_move_begins_with_what_the_guard_of_the_first_has_found_out() {
    // Large enough that the first copy lasts until its guard has compared for itself; and
    // of one size, as of a smaller disk more is in the array's cache, and the application
    // on it is another one.
    let Some(stage) = stage(768) else { return };
    add_disk(&stage, "b", 768);
    let begins = |disk: &str| {
        let client = reads(&stage, disk, "runtime=120");
        // The application is known by what it did lately: its start is a small part of that.
        for _ in 0..10 {
            settle();
        }
        let move_it = format!("{disk} --to there --keep 97% --no-verify");
        let id = stage.daemon.migrate(&move_it);
        reaches(&stage, id, "learning");
        let reason = stage.daemon.migration(id)["guard"]["reason"].clone();
        (client, id, reason)
    };
    let (client, id, reason) = begins("a");
    assert_eq!(reason, Value::Null);
    // How well the promise is kept meanwhile is another test's matter.
    until("the guard to have compared for itself", LEARNS, || {
        (state(&stage, id) != "learning").then_some(())
    });
    client.end();
    stage.daemon.completed(id);

    let (client, id, reason) = begins("b");
    assert_eq!(reason, "begins with the figures of an earlier guard");
    stage.daemon.sterna(&format!("migration cancel {id}")).ok();
    client.end();
}

#[test]
fn a_copy_for_idle_moments_waits_for_them() {
    let Some(stage) = stage(256) else { return };
    let client = busy(&stage, 6);
    settle();
    settle();
    let id = stage.daemon.migrate("a --to there --idle-only");
    settle();
    let before = synced(&stage, id);
    settle();
    // On a busy host the client itself pauses for moments.
    let beside = synced(&stage, id) - before;
    assert!(beside < 16 * MIB, "{beside} bytes beside a busy application");
    client.finish();
    stage.daemon.completed(id);
}

#[test]
fn a_response_time_is_held() {
    let Some(stage) = stage(256) else { return };
    let client = busy(&stage, 8);
    settle();
    let id = stage.daemon.migrate("a --to there --p99 100ms");
    reaches(&stage, id, "holding");
    let done = client.finish();
    let p99 = &done["read"]["clat_ns"]["percentile"]["99.000000"];
    let p99 = p99.as_f64().expect("a percentile") / 1e6;
    // Other tests have their requests on the same disk.
    assert!(p99 < 150.0, "{p99} ms");
    stage.daemon.completed(id);
}

#[test]
fn a_copy_whose_guard_is_removed_runs_free() {
    let Some(stage) = stage(64) else { return };
    let client = busy(&stage, 6);
    settle();
    let id = stage.daemon.migrate("a --to there --idle-only");
    settle();
    let set = |guard: &str| {
        stage.daemon.sterna(&format!("migration set {id} {guard}")).ok().stdout
    };
    let said = set("--idle-only --window Mon-Sun");
    assert!(
        said.contains("the guard: only while the disk is idle, only Mon-Sun"),
        "{said}"
    );
    let before = synced(&stage, id);
    set("--no-guard");
    until("the copy to run beside the client", seconds(4), || {
        let now = stage.daemon.migration(id);
        let synced = now["progress"]["synced"].as_u64().unwrap_or(0);
        (now["ended"].is_number() || synced > before + 8 * MIB).then_some(())
    });
    client.finish();
    stage.daemon.completed(id);
}

#[test]
fn a_closed_schedule_copies_nothing() {
    let Some(stage) = stage(16) else { return };
    let id = stage.daemon.migrate("a --to there --window Mon,00:00:00-00:00:01");
    reaches(&stage, id, "closed");
    settle();
    let now = stage.daemon.migration(id);
    assert_eq!(now["progress"]["copied"], 0, "{now:#}");
    let list = stage.daemon.sterna("migration list").ok().stdout;
    assert!(list.contains("closed") && !list.contains("copying"), "{list}");
    stage.daemon.sterna(&format!("migration set {id} --no-guard")).ok();
    stage.daemon.completed(id);
}

#[test]
fn what_was_copied_last_is_no_rate_once_the_schedule_has_closed() {
    let Some(stage) = stage(64) else { return };
    let id = stage.daemon.migrate("a --to there --rate 4M --window Mon-Sun");
    let rate = |now: &Value| now["progress"]["rate"].as_f64().expect("a rate");
    until("something to be copied", seconds(10), || {
        (rate(&stage.daemon.migration(id)) > 0.0).then_some(())
    });
    let close = "--window Mon,00:00:00-00:00:01";
    stage.daemon.sterna(&format!("migration set {id} {close}")).ok();
    reaches(&stage, id, "closed");
    let now = stage.daemon.migration(id);
    assert_eq!((rate(&now), &now["progress"]["eta_s"]), (0.0, &Value::Null), "{now:#}");
    stage.daemon.hurry(id);
    stage.daemon.sterna(&format!("migration set {id} --no-guard")).ok();
    stage.daemon.completed(id);
}

#[test]
fn a_move_that_will_be_late_is_a_warning() {
    let Some(stage) = stage(64) else { return };
    let id = stage.daemon.migrate("a --to there --rate 1M --finish-by 10s");
    reaches(&stage, id, "late");
    let status = stage.daemon.json("status");
    let warning = &status["warnings"][0];
    assert_eq!(warning["about"], format!("migration {id}"), "{status:#}");
    let hint = warning["hint"].as_str().expect("what to do");
    assert!(hint.contains(&format!("sterna migration show {id}")), "{hint}");
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    assert_eq!(stage.daemon.json("status")["warnings"], serde_json::json!([]));
}
