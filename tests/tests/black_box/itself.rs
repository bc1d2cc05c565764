//! Datastores that hold the very bytes of the disk that is to move there: its image under
//! another name, and the daemon's own exports. (Devices that are one place: `itself_devices`.)

use std::fs::File;
use std::path::Path;

use sterna_tests::places::Loop;
use sterna_tests::servers::{Bindfs, Nbdkit, QemuClient};
use sterna_tests::tunnel::Tunnel;
use sterna_tests::{MIB, Stage};

/// A disk `db` on `here` with data all over it; gives what is in its image.
fn a_disk(stage: &Stage) -> Vec<u8> {
    stage.disk_with_data("db", 16 * MIB, 16 * MIB);
    content(&stage.here.join("db.raw"))
}

fn content(image: &Path) -> Vec<u8> {
    std::fs::read(image).expect("read an image")
}

#[test]
fn a_device_over_the_image_of_a_disk_is_no_datastore() {
    let Some(stage) = Stage::given_root(&["losetup"]) else { return };
    a_disk(&stage);
    let device = Loop::over(&stage.here.join("db.raw"));
    let add = format!("datastore add itself {}", device.device().display());
    let refused = stage.daemon.sterna(&add);
    refused.fails_with(&["datastore itself is the image of disk db"]);
}

#[test]
fn a_disk_does_not_move_to_a_device_over_its_own_image() {
    let Some(stage) = Stage::given_root(&["losetup"]) else { return };
    // The image becomes a disk's when the device is a datastore already.
    let image = stage.here.join("db.raw");
    sterna_tests::images::write_image(&image, 16 * MIB, 16 * MIB);
    let device = Loop::over(&image);
    stage.datastore("itself", device.device().display());
    let import = format!("disk import db --on here {}", image.display());
    stage.daemon.sterna(&import).ok();
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
    a_disk(&stage);
    let device = Loop::new(&stage.scratch.path("device.img"), 32 * MIB);
    stage.datastore("device", device.device().display());
    assert_eq!(stage.daemon.json("migrate db --to device")["state"], "completed");
}

/// The file system in user space has a file of its own number there, and the image open.
#[test]
fn a_disk_does_not_move_to_its_image_through_a_file_system_in_user_space() {
    let Some(stage) = Stage::given_root(&["losetup", "bindfs"]) else { return };
    let before = a_disk(&stage);
    let shown = Bindfs::over(&stage.here, &stage.scratch, "shown");
    let device = Loop::over(&shown.dir().join("db.raw"));
    stage.datastore("shown", device.device().display());
    let refused = stage.daemon.sterna("migrate db --to shown");
    refused.fails_with(&["bindfs (process", "has the image of disk db open for writing"]);
    assert!(content(&stage.here.join("db.raw")) == before);
}

#[test]
fn a_datastore_is_no_other_one_through_a_file_system_in_user_space() {
    let Some(mut stage) = Stage::given_root(&["bindfs"]) else { return };
    let before = a_disk(&stage);
    let shown = Bindfs::over(&stage.here, &stage.scratch, "shown");
    let add = format!("datastore add shown {}", shown.dir().display());
    for _ in 0..2 {
        let refused = stage.daemon.sterna(&add);
        refused.fails_with(&["is datastore here already", "one datastore only"]);
    }
    // It has its own mark again.
    stage.daemon.kill();
    stage.daemon.restart();
    assert_eq!(stage.daemon.disk("db")["served"], true);
    assert!(content(&stage.here.join("db.raw")) == before);
}

#[test]
fn a_disk_does_not_move_to_a_server_that_has_its_image() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let before = a_disk(&stage);
    let image = stage.here.join("db.raw");
    let server = Nbdkit::on_file(&stage.scratch, "same", &image, &[]);
    stage.datastore("same", server.location());
    for line in ["migrate db --to same", "predict db --to same"] {
        let refused = stage.daemon.sterna(line);
        refused.fails_with(&[
            "nbdkit (process",
            "has the image of disk db open for writing",
        ]);
    }
    assert!(content(&image) == before);
    assert_eq!(stage.daemon.disk("db")["datastore"], "here");
    // To a directory it moves, whoever has the old image.
    let moved = stage.daemon.json("migrate db --to there");
    assert_eq!(moved["state"], "completed");
}

#[test]
fn nothing_goes_to_a_server_that_has_the_image_of_another_disk() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let before = a_disk(&stage);
    stage.disk("web", 8 * MIB);
    let image = stage.here.join("db.raw");
    let server = Nbdkit::on_file(&stage.scratch, "same", &image, &[]);
    stage.datastore("same", server.location());
    for line in ["migrate web --to same", "disk create new --size 8M --on same"] {
        let refused = stage.daemon.sterna(line);
        refused.fails_with(&[
            "nbdkit (process",
            "has the image of disk db open for writing",
        ]);
    }
    assert!(content(&image) == before);
}

#[test]
fn the_daemons_own_exports_are_no_datastores() {
    let stage = Stage::new();
    stage.disk("db", MIB);
    let uri = stage.daemon.uri("db");
    let refused = stage.daemon.sterna(&format!("datastore add self {uri}"));
    refused.fails_with(&["is an export of this daemon itself"]);
}

#[test]
fn the_daemons_own_exports_are_known_through_a_tunnel() {
    let stage = Stage::new();
    stage.disk("db", MIB);
    let tunnel = Tunnel::to(stage.daemon.nbd_socket(), &stage.scratch);
    let add = format!("datastore add self {}", tunnel.uri("db"));
    stage.daemon.sterna(&add).fails_with(&["datastore self is disk db of this daemon"]);
}

#[test]
fn the_daemons_own_exports_are_known_through_a_server_that_passes_them_on() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    stage.disk("db", MIB);
    let socket = stage.daemon.nbd_socket();
    let server = Nbdkit::passing_on(&stage.scratch, "passes", socket, "db");
    let add = format!("datastore add self {}", server.location());
    stage.daemon.sterna(&add).fails_with(&["datastore self is disk db of this daemon"]);
}

/// QEMU has no description for it; so Sterna reads some of it, and sees itself asked.
#[test]
fn the_daemons_own_exports_are_known_through_a_server_that_hides_what_they_are() {
    let Some(stage) = Stage::given(&["qemu-storage-daemon"]) else { return };
    for name in ["db", "log"] {
        stage.disk(name, 64 * MIB);
    }
    let socket = stage.scratch.socket("qemu.sock");
    let server = QemuClient::start(&socket, stage.daemon.nbd_socket(), "db");
    let add = format!("datastore add self {}", server.uri());
    stage.daemon.sterna(&add).fails_with(&["datastore self is disk db of this daemon"]);
}

/// What passes a disk on may come to do so later.
#[test]
fn no_disk_moves_to_a_server_that_has_come_to_pass_on_another() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let before = a_disk(&stage);
    let mut server = Nbdkit::on_new_file(&stage.scratch, "server", 16 * MIB, &[]);
    stage.datastore("server", server.location());
    stage.disk("log", 16 * MIB);
    server.kill();
    let socket = stage.daemon.nbd_socket();
    let _another = Nbdkit::passing_on(&stage.scratch, "server", socket, "db");
    for name in ["log", "db"] {
        let refused = stage.daemon.sterna(&format!("migrate {name} --to server"));
        refused.fails_with(&["datastore server is disk db of this daemon"]);
    }
    assert!(content(&stage.here.join("db.raw")) == before);
}

/// What is not seen at the beginning of a move does no harm at its end.
#[test]
fn an_old_image_that_another_program_can_write_to_stays() {
    let stage = Stage::new();
    let before = a_disk(&stage);
    let image = stage.here.join("db.raw");
    let writer = File::options().write(true).open(&image).expect("open the image");
    let moved = stage.daemon.json("migrate db --to there");
    assert_eq!(moved["state"], "completed");
    let reason = moved["reason"].as_str().expect("what was left behind is said");
    assert!(
        reason.contains("another program has the old image open for writing"),
        "{reason}"
    );
    drop(writer);
    assert!(content(&image) == before);
}

#[test]
fn an_old_image_that_nobody_else_has_goes() {
    let stage = Stage::new();
    a_disk(&stage);
    let moved = stage.daemon.json("migrate db --to there");
    assert_eq!(moved["reason"], serde_json::Value::Null);
    assert!(!stage.here.join("db.raw").exists());
}
