//! Devices that are one place under several names, and devices that others want while a disk
//! is on them.

use std::path::Path;

use sterna_tests::images::{identical_files, write_image};
use sterna_tests::places::{Loop, Node, partition};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, programs};

/// A disk `db` of 8 MiB that has moved to a datastore; gives a copy of what is in it.
fn moved_to(stage: &Stage, datastore: &str) -> std::path::PathBuf {
    stage.disk_with_data("db", 8 * MIB, 8 * MIB);
    let before = stage.scratch.path("before");
    std::fs::copy(stage.here.join("db.raw"), &before).expect("copy an image");
    moves(stage, datastore);
    before
}

fn moves(stage: &Stage, datastore: &str) {
    let moved = stage.daemon.json(&format!("migrate db --to {datastore}"));
    assert_eq!(moved["state"], "completed", "{moved:#}");
}

/// Neither `db` goes to a datastore, nor anything else.
fn nothing_goes_to(stage: &Stage, datastore: &str, why: &[&str]) {
    for line in ["migrate db --to", "predict db --to", "disk create new --size 4M --on"] {
        stage.daemon.sterna(&format!("{line} {datastore}")).fails_with(why);
    }
    assert_ne!(stage.daemon.disk("db")["datastore"], datastore);
}

/// `db` still is what it was.
fn is_unharmed(stage: &Stage, before: &Path) {
    moves(stage, "there");
    identical_files(before, &stage.there.join("db.raw"));
}

#[test]
fn a_device_and_its_partitions_are_one_place() {
    let Some(stage) = Stage::given_root(&["losetup", "addpart"]) else { return };
    let file = stage.scratch.path("disk.img");
    write_image(&file, 64 * MIB, 0);
    let whole = Loop::with(&file, &["--partscan"]);
    let one = partition(&whole, 1, MIB, 16 * MIB);
    let two = partition(&whole, 2, 17 * MIB, 16 * MIB);
    stage.datastore("whole", whole.device().display());
    stage.datastore("one", one.display());
    stage.datastore("two", two.display());
    let before = moved_to(&stage, "one");
    let why = ["datastore whole and disk db on datastore one are the same bytes"];
    nothing_goes_to(&stage, "whole", &why);
    stage.daemon.sterna("datastore remove whole").ok();
    let add = format!("datastore add whole {}", whole.device().display());
    stage.daemon.sterna(&add).fails_with(&why);
    // Partitions side by side are two places.
    moves(&stage, "two");
    stage.daemon.sterna("disk create log --size 4M --on one").ok();
    stage.daemon.sterna("disk remove log").ok();
    is_unharmed(&stage, &before);
    stage.datastore("whole", whole.device().display());
    moves(&stage, "whole");
    nothing_goes_to(&stage, "one", &["datastore one and disk db on datastore whole"]);
    is_unharmed(&stage, &before);
}

#[test]
fn two_devices_over_one_file_are_one_place() {
    let Some(stage) = Stage::given_root(&["losetup"]) else { return };
    let [file, link] = ["disk.img", "link.img"].map(|name| stage.scratch.path(name));
    write_image(&file, 32 * MIB, 0);
    std::fs::hard_link(&file, &link).expect("make a link");
    let stretch = |begin: u64, len: u64| {
        let [begin, len] = [begin, len].map(|it| (it * MIB).to_string());
        Loop::with(&file, &["--offset", &begin, "--sizelimit", &len])
    };
    let first = stretch(0, 16);
    let others = [
        Loop::over(&file),
        Loop::over(&link),
        stretch(8, 16),
        Loop::over(first.device()),
    ];
    stage.datastore("first", first.device().display());
    for (number, other) in others.iter().enumerate() {
        stage.datastore(&format!("other{number}"), other.device().display());
    }
    let beside = stretch(16, 16);
    stage.datastore("beside", beside.device().display());
    let before = moved_to(&stage, "first");
    for number in 0..others.len() {
        let name = format!("other{number}");
        let why = format!("datastore {name} and disk db on datastore first are the same");
        nothing_goes_to(&stage, &name, &[&why]);
    }
    // What lies beside it in the file is another place.
    moves(&stage, "beside");
    is_unharmed(&stage, &before);
}

#[test]
fn two_nodes_of_a_device_are_one_place() {
    let Some(stage) = Stage::given_root(&["losetup", "mknod"]) else { return };
    let device = Loop::new(&stage.scratch.path("disk.img"), 32 * MIB);
    let (node, link) = (Node::of(device.device()), Node::link_to(device.device()));
    stage.datastore("device", device.device().display());
    stage.datastore("node", node.path().display());
    stage.datastore("link", link.path().display());
    let before = moved_to(&stage, "device");
    for name in ["node", "link"] {
        let why =
            format!("datastore {name} and disk db on datastore device are the same");
        nothing_goes_to(&stage, name, &[&why]);
    }
    is_unharmed(&stage, &before);
}

/// The kernel refuses both what Sterna has claimed.
#[test]
fn a_device_with_a_disk_is_neither_mounted_nor_made_anew() {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.ext4"]) else { return };
    let image = stage.here.join("db.raw");
    write_image(&image, 16 * MIB, 0);
    let image = image.to_str().expect("a plain path");
    let mkfs = |on: &str| programs::attempt("mkfs.ext4", ["-q", "-F", on]);
    assert!(mkfs(image).0);
    let device = stage.block_device("device", 32 * MIB);
    let on = device.device().to_str().expect("a plain path");
    let at = stage.scratch.dir("mount").display().to_string();
    stage.daemon.sterna(&format!("disk import db --on here {image}")).ok();
    moves(&stage, "device");
    let is_kept = || {
        let (made, said) = mkfs(on);
        assert!(!made && said.contains("in use"), "{said}");
        let (mounted, said) = programs::attempt("mount", [on, &at]);
        assert!(!mounted && said.contains("busy"), "{said}");
    };
    is_kept();
    // Where the disk has gone, its device is free, and what is on it is a file system still.
    moves(&stage, "there");
    programs::run("mount", [on, &at]);
    stage.daemon.sterna("migrate db --to device").fails_with(&["mounted on"]);
    programs::run("umount", [&at]);
    assert!(mkfs(on).0);
}

#[test]
fn a_device_is_claimed_again_by_a_daemon_that_was_killed() {
    let Some(mut stage) = Stage::given_root(&["losetup", "mkfs.ext4"]) else { return };
    let device = stage.block_device("device", 32 * MIB);
    let on = device.device().to_str().expect("a plain path");
    let before = moved_to(&stage, "device");
    stage.daemon.kill();
    stage.daemon.restart();
    assert_eq!(stage.daemon.disk("db")["served"], true);
    let (made, said) = programs::attempt("mkfs.ext4", ["-q", "-F", on]);
    assert!(!made && said.contains("in use"), "{said}");
    is_unharmed(&stage, &before);
}

/// Both are claimed by one daemon after the other.
#[test]
fn a_move_between_devices_stands_still_and_goes_on() {
    let Some(mut stage) = Stage::given_root(&["losetup"]) else { return };
    let _devices = ["one", "two"].map(|name| stage.block_device(name, 32 * MIB));
    let before = moved_to(&stage, "one");
    let started = stage.daemon.json("migrate db --to two --rate 1M --detach");
    let id = started["id"].as_u64().expect("a number");
    stage.daemon.wait_for(id, "copying", seconds(20));
    stage.daemon.sterna("migration pause db").ok();
    stage.daemon.wait_for(id, "paused", seconds(20));
    stage.daemon.sterna("migration resume db").ok();
    stage.daemon.kill();
    stage.daemon.restart();
    stage.daemon.sterna("migration set db --rate none").ok();
    stage.daemon.wait_for(id, "completed", seconds(60));
    is_unharmed(&stage, &before);
}
