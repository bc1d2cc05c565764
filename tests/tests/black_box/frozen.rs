//! A datastore that takes no writes while all that is read of it is answered: its file system
//! is frozen, as for a snapshot, or the device below it hangs.

use std::time::{Duration, Instant};

use sterna_tests::places::TinyFs;
use sterna_tests::programs;
use sterna_tests::servers::Bindfs;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

/// Whoever asks for a change waits 8 s at most for a refusal; the rest is for a busy host.
const REFUSED: Duration = seconds(14);

/// A stage with the datastore `slow`, on a file system that can be frozen.
fn given_slow() -> Option<(Stage, TinyFs)> {
    let stage = Stage::given_root(&["losetup", "mkfs.ext4"])?;
    if !programs::have(&["fsfreeze"]) {
        return None;
    }
    let (file, mount) = (stage.scratch.path("slow.img"), stage.scratch.path("slow"));
    let slow = TinyFs::new(&file, &mount, 64 * MIB);
    stage.datastore("slow", mount.display());
    Some((stage, slow))
}

#[test]
fn what_would_write_to_a_frozen_datastore_is_refused_soon() {
    let Some((stage, slow)) = given_slow() else { return };
    stage.disk("db", MIB);
    let frozen = slow.freeze();
    for line in ["disk create new --size 1M --on slow", "migrate db --to slow --detach"] {
        let asked = Instant::now();
        stage.daemon.sterna(line).fails_with(&["slow", "does not answer"]);
        assert!(asked.elapsed() < REFUSED, "{line} took {:?}", asked.elapsed());
    }
    let shown = stage.daemon.sterna("datastore show slow").ok().stdout;
    assert!(shown.contains("does not answer"), "{shown}");
    assert_eq!(stage.daemon.json("migration list"), serde_json::json!([]));
    drop(frozen);
    until("the datastore to be back", seconds(20), || {
        let line = "disk create new --size 1M --on slow";
        (stage.daemon.sterna(line).code == 0).then_some(())
    });
    let id = stage.daemon.migrate("db --to slow");
    stage.daemon.completed(id);
}

/// The disk is on the new datastore already: only the old image is left to be removed.
#[test]
fn a_move_away_from_a_frozen_datastore_ends_and_the_daemon_can_be_started_anew() {
    let Some(mut stage) = Stage::given_root(&["losetup", "mkfs.ext4"]) else { return };
    if !programs::have(&["fsfreeze"]) {
        return;
    }
    let (file, mount) = (stage.scratch.path("slow.img"), stage.scratch.path("slow"));
    let slow = TinyFs::new(&file, &mount, 64 * MIB);
    stage.datastore("slow", mount.display());
    stage.daemon.sterna("disk create a --size 1M --on slow").ok();
    let frozen = slow.freeze();
    let id = stage.daemon.migrate("a --to here");
    stage.daemon.completed(id);
    let reason = stage.daemon.migration(id)["reason"].to_string();
    assert!(reason.contains("the old image stays at"), "{reason}");
    assert!(reason.contains("does not answer writes"), "{reason}");
    stage.daemon.sterna("migrate a --to there").ok();
    // What is left of the old process has the disk no longer.
    let left = stage.daemon.leave(seconds(20));
    stage.daemon.restart();
    assert_eq!(stage.daemon.disk("a")["served"], true);
    drop(frozen);
    drop(left);
    until("the datastore to be back", seconds(20), || {
        let line = "datastore remove-image slow a.raw";
        (stage.daemon.sterna(line).code == 0).then_some(())
    });
}

#[test]
fn a_disk_comes_back_to_a_datastore_that_was_frozen_when_the_disk_had_left_it() {
    let Some((stage, slow)) = given_slow() else { return };
    stage.daemon.sterna("disk create a --size 1M --on slow").ok();
    let frozen = slow.freeze();
    let id = stage.daemon.migrate("a --to here");
    let note = stage.daemon.completed(id)["reason"].to_string();
    assert!(note.contains("the old image stays at"), "{note}");
    drop(frozen);
    until("the disk to come back", seconds(20), || {
        (stage.daemon.sterna("migrate a --to slow").code == 0).then_some(())
    });
}

#[test]
fn what_would_write_to_a_file_system_whose_device_hangs_is_refused_soon() {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.ext4", "bindfs"]) else {
        return;
    };
    let behind = Bindfs::new(&stage.scratch, "device");
    let (file, mount) = (behind.dir().join("slow.img"), stage.scratch.path("slow"));
    let _slow = TinyFs::new(&file, &mount, 64 * MIB);
    stage.datastore("slow", mount.display());
    stage.daemon.sterna("disk create there --size 1M --on slow").ok();
    stage.disk("db", MIB);
    behind.hang();
    let lines = [
        "disk create new --size 1M --on slow",
        "disk remove there",
        "migrate db --to slow --detach",
    ];
    let said = lines.map(|line| {
        let asked = Instant::now();
        (line, stage.daemon.sterna(line), asked.elapsed())
    });
    behind.go_on();
    for (line, said, took) in said {
        said.fails_with(&["slow", "does not answer writes"]);
        assert!(took < REFUSED, "{line} took {took:?}");
    }
    until("the datastore to be back", seconds(20), || {
        let line = "disk create new --size 1M --on slow";
        (stage.daemon.sterna(line).code == 0).then_some(())
    });
    let id = stage.daemon.migrate("db --to slow");
    stage.daemon.completed(id);
}
