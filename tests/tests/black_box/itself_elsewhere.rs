//! Servers that are one place under two addresses, and such as hold a copy of a disk.

use std::fs::File;

use sterna_tests::images::{allocated, write_image};
use sterna_tests::places::Loop;
use sterna_tests::programs;
use sterna_tests::servers::{Bindfs, Nbdkit};
use sterna_tests::tunnel::Tunnel;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

/// A stage with a disk `db` that fills the export of datastore `one`: there is no room for
/// a sidecar, which would say whose it is.
fn stage() -> Option<(Stage, Nbdkit)> {
    let stage = Stage::given(&["nbdkit", "qemu-io"])?;
    let server = Nbdkit::on_new_file(&stage.scratch, "one", 16 * MIB, &[]);
    stage.datastore("one", server.location());
    stage.daemon.sterna("disk create db --size 16M --on one").ok();
    let uri = stage.daemon.uri("db");
    programs::run(
        "qemu-io",
        ["-f", "raw", "-c", "write -P 7 5M 1M", "-c", "flush", &uri],
    );
    Some((stage, server))
}

/// What the commands say that must not take another name of `db`'s place.
#[track_caller]
fn nothing_goes_to(stage: &Stage, name: &str) {
    let bytes = format!("datastore {name} holds the bytes of disk db");
    let says = [bytes.as_str(), "which is on datastore one"];
    for line in [
        format!("migrate db --to {name}"),
        format!("disk create log --size 8M --on {name}"),
    ] {
        stage.daemon.sterna(&line).fails_with(&says);
    }
    // Within its two seconds a busy host may not have compared them.
    let refused = until("the prediction to be refused for that", seconds(30), || {
        let refused = stage.daemon.sterna(&format!("predict db --to {name}"));
        let said = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_silent = said.contains("nor is it known whether datastore");
        (!is_silent).then_some(refused)
    });
    refused.fails_with(&says);
    assert_eq!(stage.daemon.disk("db")["datastore"], "one");
}

#[test]
fn two_addresses_of_one_server_are_one_place() {
    let Some((stage, server)) = stage() else { return };
    let tunnel = Tunnel::to(server.socket(), &stage.scratch);
    stage.datastore("two", tunnel.uri(""));
    nothing_goes_to(&stage, "two");
}

#[test]
fn two_servers_over_one_file_are_one_place() {
    let Some((stage, server)) = stage() else { return };
    // This host's own list of open files would tell, so the disk does not fill them.
    let other = Nbdkit::on_file(&stage.scratch, "two", server.file(), &[]);
    stage.datastore("two", other.location());
    nothing_goes_to(&stage, "two");
}

/// The kernel knows what file is below the device, and not what serves it.
#[test]
fn a_device_over_the_file_of_a_server_is_the_servers_place() {
    let Some((stage, server)) = stage() else { return };
    if !programs::root() {
        return;
    }
    let device = Loop::over(server.file());
    stage.datastore("two", device.device().display());
    nothing_goes_to(&stage, "two");
}

/// A server with nothing in it, as datastore `one`, and the same again as `two`; and disks
/// that fill it, with data, on `here`.
fn empty_twins() -> Option<(Stage, Nbdkit, Tunnel)> {
    let stage = Stage::given(&["nbdkit", "qemu-io"])?;
    let server = Nbdkit::on_new_file(&stage.scratch, "one", 16 * MIB, &[]);
    let tunnel = Tunnel::to(server.socket(), &stage.scratch);
    stage.datastore("one", server.location());
    stage.datastore("two", tunnel.uri(""));
    for name in ["a", "b"] {
        let uri = stage.disk(name, 16 * MIB);
        let write = format!("write -P {} 0 16M", if name == "a" { 1 } else { 2 });
        programs::run("qemu-io", ["-f", "raw", "-c", &write, "-c", "flush", &uri]);
    }
    Some((stage, server, tunnel))
}

#[test]
fn two_moves_do_not_go_to_two_addresses_of_one_empty_place() {
    let Some((stage, _server, _tunnel)) = empty_twins() else { return };
    // So slow that nothing but zeroes is there yet for the most part.
    let id = stage.daemon.migrate("a --to one --rate 1M");
    let refused = stage.daemon.sterna("migrate b --to two");
    // By what was copied already, or by what was written to see where it comes to light.
    refused.fails_with(&["one place", "disk a", "datastore remove two"]);
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    let holds = |name: &str, byte: u8| {
        let read = format!("read -P {byte} 0 16M");
        let uri = stage.daemon.uri(name);
        let said = programs::run("qemu-io", ["-f", "raw", "-c", &read, &uri]);
        assert!(!said.contains("verification failed"), "{name}: {said}");
    };
    holds("a", 1);
    holds("b", 2);
}

#[test]
fn two_disks_are_not_made_at_two_addresses_of_one_empty_place() {
    let Some((stage, server, _tunnel)) = empty_twins() else { return };
    stage.daemon.sterna("disk create x --size 16M --on one").ok();
    let refused = stage.daemon.sterna("disk create y --size 16M --on two");
    refused.fails_with(&["two and one are one place", "disk x"]);
    let bytes = std::fs::read(server.file()).expect("read the place");
    assert!(bytes.iter().all(|byte| *byte == 0), "nothing is left of what was written");
}

/// No wait makes two places of one: the plan says so at once, and what to do.
#[test]
fn a_plans_move_to_another_address_of_the_disks_place_fails_and_is_not_tried_again() {
    let Some((stage, server)) = stage() else { return };
    let tunnel = Tunnel::to(server.socket(), &stage.scratch);
    stage.datastore("two", tunnel.uri(""));
    let (id, _) = stage.daemon.plan_evacuation("one --to two --space 100%");
    stage.daemon.sterna(&format!("plan apply {id}")).ok();
    // What may pass is tried again after 10 s.
    let plan = stage
        .daemon
        .wait_for_plan(id, "its end", seconds(8), |plan| plan["ended"].is_number());
    let one = &plan["moves"][0];
    assert_eq!(
        (&one["state"], &one["attempts"]),
        (&"failed".into(), &1.into()),
        "{one:#}"
    );
    let why = one["problem"].as_str().expect("why");
    assert!(why.contains("holds the bytes of disk db"), "{why}");
    assert!(why.contains("sterna datastore remove two"), "{why}");
    assert_eq!(stage.daemon.disk("db")["datastore"], "one");
}

/// The disk fills its place, so no sidecar there says that it is taken.
#[test]
fn a_disk_that_is_being_filled_with_zeroes_has_its_place_already() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    // So slow that it is being filled for as long as the others are looked at.
    let slow = ["--filter=delay", "wdelay=500ms"];
    let server = Nbdkit::on_new_file(&stage.scratch, "one", 16 * MIB, &slow);
    let tunnel = Tunnel::to(server.socket(), &stage.scratch);
    stage.datastore("one", server.location());
    stage.datastore("two", tunnel.uri(""));
    let _free = stage.nbd_server("three", 16 * MIB, &[]);
    let line = "disk create x --size 16M --on one --provision thick-zeroed";
    let mut filling = stage.daemon.piped(line);
    until("it to be filled", seconds(20), || {
        (allocated(server.file()) > 0).then_some(())
    });
    stage.daemon.sterna("disk create y --size 16M --on two").fails_with(&[
        "datastore",
        "two",
        "choose another datastore",
    ]);
    // Nobody else waits for it.
    stage.daemon.sterna("disk create z --size 16M --on three").ok();
    assert!(filling.try_wait().expect("ask for it").is_none(), "it was filled meanwhile");
    assert!(filling.wait().expect("wait for it").success());
    assert_eq!(stage.daemon.json("disk list").as_array().map(Vec::len), Some(2));
}

#[test]
fn an_old_state_serves_no_disk_of_which_another_datastore_has_a_newer_image() {
    let Some((mut stage, _server)) = stage() else { return };
    let state = stage.daemon.state().to_owned();
    let old = stage.scratch.path("old-state");
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let _ = std::fs::remove_dir_all(to);
        programs::run(
            "cp",
            ["-a", &from.display().to_string(), &to.display().to_string()],
        );
    };
    stage.daemon.stop();
    copy(&state, &old);
    stage.daemon.restart();
    let id = stage.daemon.migrate("db --to here");
    stage.daemon.completed(id);
    stage.daemon.stop();
    copy(&old, &state);
    stage.daemon.restart();
    let disk = until("it to be known", seconds(20), || {
        let disk = stage.daemon.disk("db");
        let problem = disk["problem"].as_str().unwrap_or_default().to_owned();
        (!problem.contains("bringing it up")).then_some(disk)
    });
    assert_eq!(disk["served"], false, "{disk:#}");
    let problem = disk["problem"].as_str().expect("why");
    assert!(problem.contains("datastore here has a newer image"), "{problem}");
    assert!(problem.contains("state directory is older"), "{problem}");
}

#[test]
fn a_disk_moves_to_another_server_and_back_and_there_again() {
    let Some((stage, _server)) = stage() else { return };
    let other = Nbdkit::on_new_file(&stage.scratch, "two", 16 * MIB, &[]);
    stage.datastore("two", other.location());
    // From the third move on an old copy is there, of which Sterna knows.
    for to in ["two", "one", "two"] {
        let moved = stage.daemon.json(&format!("migrate db --to {to}"));
        assert_eq!(moved["state"], "completed", "to {to}: {moved:#}");
    }
}

#[test]
fn a_copy_that_somebody_else_has_made_is_no_destination_until_it_is_emptied() {
    let Some((stage, server)) = stage() else { return };
    let mut other = Nbdkit::on_new_file(&stage.scratch, "two", 16 * MIB, &[]);
    std::fs::copy(server.file(), other.file()).expect("copy the disk");
    stage.datastore("two", other.location());
    nothing_goes_to(&stage, "two");
    other.kill();
    write_image(other.file(), 16 * MIB, 0);
    other.restart();
    until("the datastore to be back", seconds(20), || {
        let moved = stage.daemon.sterna("migrate db --to two");
        (moved.code == 0).then_some(())
    });
}

/// It may be the very place that cannot be looked at.
#[test]
fn nothing_goes_to_a_server_with_data_while_a_disk_cannot_be_compared_with_it() {
    let Some((stage, mut server)) = stage() else { return };
    let mut other = Nbdkit::on_new_file(&stage.scratch, "two", 16 * MIB, &[]);
    write_image(other.file(), 16 * MIB, 16 * MIB);
    stage.datastore("two", other.location());
    let empty = Nbdkit::on_new_file(&stage.scratch, "three", 16 * MIB, &[]);
    stage.datastore("three", empty.location());
    server.kill();
    let refused = stage.daemon.sterna("disk create log --size 16M --on two");
    refused.fails_with(&["cannot compare it with disk db on datastore one"]);
    // An empty one has nothing to lose.
    stage.daemon.sterna("disk create log --size 16M --on three").ok();
    server.restart();
    until("the disk's server to be back", seconds(20), || {
        let made = stage.daemon.sterna("disk create web --size 16M --on two");
        (made.code == 0).then_some(())
    });
    other.kill();
}

/// Sterna has copied the disk there once; but since then it is elsewhere.
#[test]
fn an_old_copy_explains_nothing_once_the_disk_has_gone_on() {
    let Some((stage, server)) = stage() else { return };
    let tunnel = Tunnel::to(server.socket(), &stage.scratch);
    let other = Nbdkit::on_new_file(&stage.scratch, "other", 16 * MIB, &[]);
    stage.datastore("other", other.location());
    assert_eq!(stage.daemon.json("migrate db --to other")["state"], "completed");
    let uri = stage.daemon.uri("db");
    programs::run(
        "qemu-io",
        ["-f", "raw", "-c", "write -P 8 5M 1M", "-c", "flush", &uri],
    );
    // The place that the disk has left, under its other address: what it holds is older.
    stage.datastore("two", tunnel.uri(""));
    assert_eq!(stage.daemon.json("migrate db --to two")["state"], "completed");
    let refused = stage.daemon.sterna("disk create log --size 8M --on one");
    refused.fails_with(&["datastore one holds the bytes of disk db", "on datastore two"]);
}

/// The program between the device and the export is asked in blocks of its own.
#[test]
fn a_device_over_the_daemons_own_export_is_no_datastore() {
    let needs = ["nbdfuse", "losetup"];
    let Some(stage) = Stage::given_root(&needs) else { return };
    stage.disk_with_data("db", 64 * MIB, 64 * MIB);
    let shown = stage.scratch.path("shown");
    std::fs::write(&shown, "").expect("a file to mount over");
    let uri = stage.daemon.uri("db");
    let mut program = programs::command("nbdfuse")
        .arg(&shown)
        .arg(&uri)
        .spawn()
        .expect("start nbdfuse");
    until("the export to be a file", seconds(10), || {
        let size = shown.metadata().ok()?.len();
        (size == 64 * MIB).then_some(())
    });
    {
        let device = Loop::over(&shown);
        let add = format!("datastore add self {}", device.device().display());
        let refused = stage.daemon.sterna(&add);
        refused.fails_with(&["datastore self is disk db of this daemon"]);
    }
    programs::run("umount", ["--lazy".as_ref(), shown.as_os_str()]);
    let _ = program.kill();
    let _ = program.wait();
}

/// Room for a sidecar behind the disk: it says whose the place is.
#[test]
fn a_place_that_says_it_is_the_disk_itself_is_not_to_be_removed() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let server = Nbdkit::on_new_file(&stage.scratch, "one", 16 * MIB, &[]);
    stage.datastore("one", server.location());
    stage.daemon.sterna("disk create db --size 8M --on one").ok();
    let tunnel = Tunnel::to(server.socket(), &stage.scratch);
    stage.datastore("two", tunnel.uri(""));
    let refused = stage.daemon.sterna("migrate db --to two");
    let words = refused.stderr.clone();
    refused.fails_with(&["holds the disk db", "choose another place"]);
    assert!(!words.contains("remove that image"), "{words}");
}

#[test]
fn the_bytes_of_a_disk_are_not_imported_again() {
    let Some(stage) = Stage::given_root(&["losetup", "bindfs"]) else { return };
    let import = |name: &str, on: &str, file: &std::path::Path| {
        stage.daemon.sterna(&format!("disk import {name} --on {on} {}", file.display()))
    };
    // A disk on a device: the file below it.
    let below = stage.here.join("below.img");
    let device = Loop::new(&below, 16 * MIB);
    stage.datastore("device", device.device().display());
    stage.daemon.sterna("disk create db --size 16M --on device").ok();
    let same = "has the same bytes as disk db on datastore device";
    import("again", "here", &below).fails_with(&[same]);
    // A disk in a file: another name of the file, and another file system over it.
    stage.disk_with_data("web", 8 * MIB, 8 * MIB);
    let link = stage.here.join("link.img");
    std::fs::hard_link(stage.here.join("web.raw"), &link).expect("link the image");
    let same = "has the same bytes as disk web on datastore here";
    import("again", "here", &link).fails_with(&[same]);
    let shown = Bindfs::over(&stage.here, &stage.scratch, "shown");
    let add = format!("datastore add shown {}", shown.dir().display());
    stage.daemon.sterna(&add).fails_with(&["is datastore here already"]);
    // A file that another program writes to: this one.
    let served = stage.here.join("served.img");
    write_image(&served, 8 * MIB, 0);
    let writer = File::options().write(true).open(&served).expect("open the file");
    import("log", "here", &served).fails_with(&["open for writing", "stop that program"]);
    drop(writer);
    import("log", "here", &served).ok();
}
