//! Datastores that hold the very bytes of the disk that is to move there.

use sterna_tests::places::Loop;
use sterna_tests::servers::Nbdkit;
use sterna_tests::{MIB, Stage};

#[test]
fn a_disk_does_not_move_to_a_device_over_its_own_image() {
    let Some(stage) = Stage::given_root(&["losetup"]) else { return };
    stage.disk_with_data("db", 16 * MIB, 16 * MIB);
    let image = stage.here.join("db.raw");
    let device = Loop::over(&image);
    stage.datastore("itself", device.device().display());
    let refused = stage.daemon.sterna("migrate db --to itself");
    refused.fails_with(&["datastore itself is the image of disk db"]);
    stage.daemon.sterna("predict db --to itself").fails_with(&["the image of disk db"]);
    assert_eq!(stage.daemon.disk("db")["datastore"], "here");
    // Nor does another one.
    stage.disk_with_data("log", 8 * MIB, 8 * MIB);
    let refused = stage.daemon.sterna("migrate log --to itself");
    refused.fails_with(&["datastore itself is the image of disk db"]);
}

#[test]
fn another_disk_does_move_to_a_device_over_a_file() {
    let Some(stage) = Stage::given_root(&["losetup"]) else { return };
    stage.disk_with_data("db", 16 * MIB, 16 * MIB);
    let device = Loop::new(&stage.scratch.path("device.img"), 32 * MIB);
    stage.datastore("device", device.device().display());
    assert_eq!(stage.daemon.json("migrate db --to device")["state"], "completed");
}

#[test]
fn the_daemons_own_exports_are_no_datastores() {
    let stage = Stage::new();
    stage.disk("db", MIB);
    let uri = stage.daemon.uri("db");
    let refused = stage.daemon.sterna(&format!("datastore add self {uri}"));
    refused.fails_with(&["is an export of this daemon itself"]);
}

/// What a server has its bytes in, the daemon cannot know; so an old image that another
/// program can write to stays.
#[test]
fn an_old_image_that_a_server_serves_as_the_new_one_stays() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    stage.disk_with_data("db", 16 * MIB, 16 * MIB);
    let image = stage.here.join("db.raw");
    let before = std::fs::read(&image).expect("read the image");
    let mut server = Nbdkit::on_file(&stage.scratch, "same", &image, &[]);
    stage.datastore("same", server.location());
    let moved = stage.daemon.json("migrate db --to same");
    assert_eq!(moved["state"], "completed");
    let reason = moved["reason"].as_str().expect("what was left behind is said");
    assert!(
        reason.contains("another program has the old image open for writing"),
        "{reason}"
    );
    server.kill();
    assert!(std::fs::read(&image).expect("the image is there") == before);
}

#[test]
fn an_old_image_that_nobody_else_has_goes() {
    let stage = Stage::new();
    stage.disk_with_data("db", 16 * MIB, 16 * MIB);
    let moved = stage.daemon.json("migrate db --to there");
    assert_eq!(moved["reason"], serde_json::Value::Null);
    assert!(!stage.here.join("db.raw").exists());
}
