//! Emulated arrays: datastores that are as slow as a model says.

use sterna_tests::clients::nbdsh;
use sterna_tests::{CheckerOptions, MIB, Stage};

/// A disk whose every read takes 20 ms and more, and that caches no write.
const SLOW: &str = "array://old-fc?spindles=1&overhead=20ms&write-cache=0";

/// How long `work` takes an NBD client of the disk, in seconds, as it measures.
#[track_caller]
fn seconds(stage: &Stage, disk: &str, work: &str) -> f64 {
    let script = format!(
        "import time; start = time.monotonic(); {work}; print(time.monotonic() - start)"
    );
    let printed = nbdsh(&stage.daemon.uri(disk), &script);
    printed.trim().parse().expect("seconds")
}

#[test]
fn a_client_waits_for_the_array_and_not_for_the_directory() {
    let Some(stage) = Stage::given(&["nbdsh"]) else { return };
    stage.datastore("slow", SLOW);
    stage.daemon.sterna("disk create a --size 64M --on slow").ok();
    let write =
        seconds(&stage, "a", "[h.pwrite(b'x' * 512, at << 20) for at in range(5)]");
    let read = seconds(&stage, "a", "[h.pread(512, at << 20) for at in range(10)]");
    assert!(write >= 5.0 * 0.020, "5 writes took {write} s");
    assert!(read >= 10.0 * 0.020, "10 reads took {read} s");
    // A flush waits for no spindle: what is acknowledged is kept.
    nbdsh(&stage.daemon.uri("a"), "h.flush(); assert h.pread(512, 0) == b'x' * 512");
}

#[test]
fn the_disks_of_an_array_wait_for_the_same_spindles() {
    let Some(stage) = Stage::given(&["nbdsh"]) else { return };
    // 10 MiB a second under one head, and nothing else.
    stage.datastore("one", "array://flash-2010?media=10M&link=1G&access=0s");
    for disk in ["a", "b"] {
        stage.daemon.sterna(&format!("disk create {disk} --size 64M --on one")).ok();
    }
    let read = "[h.pread(1 << 20, at << 20) for at in range(4)]";
    let (a, b) = std::thread::scope(|scope| {
        let a = scope.spawn(|| seconds(&stage, "a", read));
        let b = scope.spawn(|| seconds(&stage, "b", read));
        (a.join().expect("a"), b.join().expect("b"))
    });
    // 8 MiB together; who begins later may end later by what it missed.
    assert!(a.max(b) >= 0.4 && a + b >= 0.8, "{a} s and {b} s");
}

#[test]
fn a_disk_moves_from_one_array_to_another_under_load() {
    let stage = Stage::new();
    let (old, new) = (stage.scratch.dir("old"), stage.scratch.dir("new"));
    stage.datastore("old", format!("array://old-fc?path={}", old.display()));
    stage.datastore("new", format!("array://new-fc?path={}", new.display()));
    stage.daemon.sterna("disk create a --size 64M --on old").ok();
    let mut checker = stage.checker("a", &CheckerOptions::gentle(200).flag("--fill"));
    checker.wait_for_intervals(3);
    let id = stage.daemon.migrate("a --to new");
    let done = stage.daemon.completed(id);
    checker.wait_for_intervals(3);
    checker.finish_and_verify();
    assert_eq!(done["report"]["verified"].as_u64(), Some(64 * MIB), "{done:#}");
    assert_eq!(stage.daemon.disk("a")["datastore"], "new");
    assert!(new.join("a.raw").exists() && !old.join("a.raw").exists());
}

#[test]
fn an_array_is_shown_with_its_model_and_its_directory() {
    let mut stage = Stage::new();
    // It has 512 MiB of cache anyway.
    let model = "array://old-fc?spindles=8&cache=512M";
    stage.datastore("old", model);
    let place = stage.daemon.state().join("arrays/old");
    let location = format!("{model}&path={}", place.display());
    stage.daemon.sterna("disk create a --size 1M --on old").ok();
    assert!(place.join("a.raw").exists() && place.join("a.raw.sterna").exists());
    stage.daemon.stop();
    stage.daemon.restart();
    let shown = stage.daemon.json("datastore show old");
    assert_eq!(shown["kind"], "array");
    assert_eq!(shown["location"], location.as_str());
    assert!(shown["capacity"].as_u64() > Some(0) && shown["disks"] == 1, "{shown:#}");
    let list = stage.daemon.sterna("datastore list").ok().stdout;
    assert!(list.contains("array"), "{list}");
    let image = stage.daemon.image("a");
    assert_eq!(image, place.join("a.raw"));
    stage.daemon.sterna("disk remove a").ok();
    stage.daemon.sterna("datastore remove old").ok();
    assert!(place.exists(), "what is there stays");
}

#[test]
fn an_array_can_be_shaped_too() {
    let Some(stage) = Stage::given(&["nbdsh"]) else { return };
    stage.datastore("slow", format!("{SLOW} --shape latency=30ms"));
    stage.daemon.sterna("disk create a --size 1M --on slow").ok();
    let read = seconds(&stage, "a", "[h.pread(512, 0) for _ in range(4)]");
    assert!(read >= 4.0 * 0.050, "4 reads took {read} s");
}

#[test]
fn an_array_that_cannot_be_is_refused_with_what_can() {
    let stage = Stage::new();
    let add =
        |location: &str| stage.daemon.sterna(&format!("datastore add x {location}"));
    add("array://older-fc").fails_with(&["older-fc", "old-fc, new-fc"]);
    add("array://old-fc?spindels=7").fails_with(&["spindels=7", "spindles, raid"]);
    add("array://old-fc?spindles=0").fails_with(&["spindles: `0`", "from 1 to 1024"]);
    add("array://sata-ssd?seek=1ms").fails_with(&["flash", "no `seek`"]);
    add("array://old-fc?path=relative").fails_with(&["absolute path"]);
    add("array://old-fc?path=/nowhere").fails_with(&["/nowhere", "create it"]);
    let here = format!("array://old-fc?path={}", stage.here.display());
    add(&here).fails_with(&["is datastore here already"]);
    assert!(!stage.daemon.state().join("arrays").exists(), "nothing was made");
}
