//! The state directory is lost; the images say whose they are, and their disks come
//! back.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sterna_tests::images::identical_files;
use sterna_tests::places::Loop;
use sterna_tests::programs::{command, have, root, run};
use sterna_tests::vms::{Vm, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, MIB, Stage, checker};

/// Kills the daemon, and starts one on an empty state.
fn lose_the_state(stage: &mut Stage) {
    stage.daemon.kill();
    fs::remove_dir_all(stage.daemon.state()).expect("remove the state directory");
    stage.daemon.restart();
}

/// Gives a copy of the state as it is now.
fn back_up_the_state(stage: &mut Stage) -> PathBuf {
    stage.daemon.stop();
    let backup = stage.scratch.path("backup.db");
    fs::copy(stage.daemon.state().join("state.db"), &backup).expect("back the state up");
    stage.daemon.restart();
    backup
}

/// Stops the daemon, and starts one on a state that was backed up.
fn restore_the_state(stage: &mut Stage, backup: &Path) {
    stage.daemon.stop();
    fs::copy(backup, stage.daemon.state().join("state.db")).expect("restore the state");
    stage.daemon.restart();
}

/// Adds the datastores again; gives what was said of `there`.
#[track_caller]
fn add_datastores(stage: &Stage) -> String {
    let add = |name: &str, dir: &Path| {
        stage
            .daemon
            .sterna(&format!("datastore add {name} {}", dir.display()))
            .ok()
            .stdout
    };
    add("here", &stage.here);
    add("there", &stage.there)
}

/// What `disk recover` said of the image in a file.
#[track_caller]
fn image<'a>(recovery: &'a Value, file: &Path) -> &'a Value {
    let images = recovery["images"].as_array().expect("a list");
    let found = images.iter().find(|image| image["image"] == file.display().to_string());
    found.unwrap_or_else(|| panic!("{} should be found:\n{recovery:#}", file.display()))
}

#[track_caller]
fn is_left(recovery: &Value, file: &Path, reason: &str) {
    let image = image(recovery, file);
    assert_eq!(image["taken"], false, "{image:#}");
    assert!(image["reason"].to_string().contains(reason), "{image:#}");
}

#[test]
fn a_lost_state_is_made_anew_from_the_images() {
    if !have(&["qemu-img"]) {
        return;
    }
    let mut stage = Stage::new();
    // One that moves while it is written to, one that stays, one half on its way.
    stage.disk("moved", 64 * MIB);
    let checker = stage.checker("moved", &CheckerOptions::gentle(500).flag("--fill"));
    stage.daemon.sterna("migrate moved --to there --keep-source").ok();
    checker.finish();
    stage.disk_with_data("stayed", 16 * MIB, 8 * MIB);
    stage.disk_with_data("leaving", 64 * MIB, 64 * MIB);
    let [stayed, leaving] = ["stayed", "leaving"].map(|disk| {
        let copy = stage.scratch.path(disk);
        fs::copy(stage.daemon.image(disk), &copy).expect("copy an image");
        copy
    });
    let before = stage.daemon.json("disk show moved");
    let id = stage.daemon.migrate("leaving --to there --rate 10M");
    stage.daemon.wait_for_bytes(id, 8 * MIB);

    lose_the_state(&mut stage);
    let said = add_datastores(&stage);
    assert!(
        said.contains("does not know: 1.") && said.contains("sterna disk recover"),
        "{said}"
    );
    let done = stage.daemon.json("disk recover");

    assert_eq!(stage.daemon.json("disk list").as_array().map(Vec::len), Some(3));
    is_left(&done, &stage.here.join("moved.raw"), "retired");
    is_left(&done, &stage.there.join("leaving.raw"), "only a part");
    let moved = stage.daemon.json("disk show moved");
    assert_eq!((&moved["datastore"], &moved["id"]), (&"there".into(), &before["id"]));
    checker::verify(&stage.daemon.uri("moved"), &stage.scratch.path("moved.checked"));
    identical_files(&stayed, &stage.daemon.image("stayed"));
    identical_files(&leaving, &stage.daemon.image("leaving"));

    // Nothing is left to be done, and all goes on as ever: onto the half copy, too.
    stage.daemon.sterna("datastore list").ok();
    let again = stage.daemon.json("disk recover");
    let images = again["images"].as_array().expect("a list");
    assert!(images.iter().all(|image| image["taken"] == false), "{again:#}");
    let id = stage.daemon.migrate("leaving --to there");
    stage.daemon.wait_for(id, "completed", seconds(60));
    identical_files(&leaving, &stage.daemon.image("leaving"));
    // A recovered image may have been somebody's own: it goes only if that is said.
    stage.daemon.sterna("disk remove stayed").ok();
    assert!(stage.here.join("stayed.raw").exists());
}

#[test]
fn which_of_two_copies_is_right_is_not_guessed() {
    let mut stage = Stage::new();
    stage.disk_with_data("a", MIB, MIB);
    lose_the_state(&mut stage);
    for file in ["a.raw", "a.raw.sterna"] {
        fs::copy(stage.here.join(file), stage.there.join(file)).expect("copy a file");
    }
    add_datastores(&stage);
    let [ours, theirs] = [&stage.here, &stage.there].map(|dir| dir.join("a.raw"));
    for line in ["disk recover", "disk recover --on here"] {
        is_left(
            &stage.daemon.json(line),
            &ours,
            "Sterna cannot tell which image of disk a is right",
        );
    }
    assert_eq!(stage.daemon.json("disk list").as_array().map(Vec::len), Some(0));

    // The operator finds out, and says so.
    let sidecar = stage.there.join("a.raw.sterna");
    let away = stage.scratch.path("a.raw.sterna");
    fs::copy(&sidecar, &away).expect("keep the sidecar");
    fs::remove_file(&sidecar).expect("take the sidecar away");
    let would = stage.daemon.json("disk recover --dry-run");
    assert_eq!(image(&would, &ours)["taken"], true, "{would:#}");
    assert_eq!(stage.daemon.json("disk list").as_array().map(Vec::len), Some(0));
    let words = stage.daemon.sterna("disk recover").ok().stdout;
    assert!(words.contains("Recovered: 1 disk."), "{words}");
    assert_eq!(stage.daemon.json("disk show a")["datastore"], "here");

    // And the copy is known for what it is from now on.
    fs::copy(&away, &sidecar).expect("put the sidecar back");
    is_left(&stage.daemon.json("disk recover"), &theirs, "out of date");
}

#[test]
fn while_a_datastore_is_out_of_sight_nothing_is_recovered() {
    let mut stage = Stage::new();
    stage.disk("a", MIB);
    lose_the_state(&mut stage);
    add_datastores(&stage);
    stage.daemon.stop();
    let away = stage.scratch.path("away");
    fs::rename(&stage.there, &away).expect("take a datastore away");
    stage.daemon.restart();
    stage.daemon.sterna("disk recover --on here").fails_with(&[
        "datastore there",
        "newer",
        "datastore remove there",
    ]);
    fs::rename(&away, &stage.there).expect("bring it back");
    stage.daemon.sterna("disk recover --on here").ok();
    assert_eq!(stage.daemon.json("disk show a")["served"], true);
    stage.daemon.sterna("disk recover --on nowhere").fails_with(&["nowhere"]);
}

#[test]
fn a_device_says_whose_it_is_unless_the_disk_fills_it() {
    if !root() || !have(&["losetup"]) {
        return;
    }
    let mut stage = Stage::new();
    let devices = [("room", 8 * MIB), ("full", 16 * MIB)].map(|(name, size)| {
        let device = Loop::new(&stage.scratch.path(name), 16 * MIB);
        let add = format!("datastore add {name} {}", device.device().display());
        stage.daemon.sterna(&add).ok();
        let create = format!("disk create on-{name} --size {size} --on {name}");
        stage.daemon.sterna(&create).ok();
        (device, add)
    });
    let checker =
        stage.checker("on-room", &CheckerOptions::gentle(500).with("--seconds", 1));
    checker.finish();
    lose_the_state(&mut stage);
    for (_, add) in &devices {
        stage.daemon.sterna(add).ok();
    }
    let done = stage.daemon.json("disk recover");
    assert_eq!(done["images"].as_array().map(Vec::len), Some(1), "{done:#}");
    assert_eq!(image(&done, devices[0].0.device())["taken"], true, "{done:#}");
    assert_eq!(stage.daemon.json("disk show on-room")["size"], 8 * MIB);
    checker::verify(&stage.daemon.uri("on-room"), &stage.scratch.path("on-room.checked"));
    // The daemon goes before its devices do.
    stage.daemon.stop();
}

#[test]
fn a_state_from_an_old_backup_is_brought_up_to_date() {
    let mut stage = Stage::new();
    stage.disk_with_data("a", 16 * MIB, 16 * MIB);
    let data = fs::read(stage.daemon.image("a")).expect("read an image");
    let backup = back_up_the_state(&mut stage);
    stage.daemon.sterna("migrate a --to there --keep-source").ok();
    stage.disk("later", MIB);
    restore_the_state(&mut stage, &backup);

    // It believes that the disk is where it was, and does not serve it from there.
    assert_eq!(stage.daemon.json("disk show a")["served"], false);
    let done = stage.daemon.json("disk recover");
    assert_eq!(image(&done, &stage.here.join("later.raw"))["taken"], true, "{done:#}");
    let moved = stage.there.join("a.raw");
    is_left(&done, &moved, "sterna disk remove a --keep-image");
    stage.daemon.sterna("disk remove a --keep-image").ok();
    stage.daemon.sterna("disk recover").ok();
    assert_eq!(stage.daemon.image("a"), moved);
    assert!(fs::read(&moved).expect("read an image") == data);
}

#[test]
fn a_state_from_the_middle_of_a_move_does_not_cost_the_only_image() {
    // Backed up during the copy; and during the switch-over, with the source kept.
    for (step, options) in [("copying", ""), ("switching", "--keep-source")] {
        if !have(&["sqlite3"]) {
            return;
        }
        let mut stage = Stage::new();
        stage.disk_with_data("a", 16 * MIB, 16 * MIB);
        let data = fs::read(stage.daemon.image("a")).expect("read an image");
        let id = stage.daemon.migrate(&format!("a --to there --rate 4M {options}"));
        stage.daemon.wait_for_bytes(id, 2 * MIB);
        let backup = back_up_the_state(&mut stage);
        let sql = format!("UPDATE migrations SET step = '{step}'");
        let edited = command("sqlite3").arg(&backup).arg(&sql).status();
        assert!(edited.expect("run sqlite3").success());
        stage.daemon.hurry(id);
        stage.daemon.completed(id);
        let says = |dir: &Path| fs::read(dir.join("a.raw.sterna")).ok();
        let said = [&stage.here, &stage.there].map(|dir| says(dir));
        restore_the_state(&mut stage, &backup);

        // The state takes the only image for a copy that is not finished.
        let moved = stage.there.join("a.raw");
        assert_eq!(stage.daemon.disk("a")["served"], false);
        let cancel = format!("sterna migration cancel {id}");
        is_left(&stage.daemon.json("disk recover"), &moved, &cancel);
        stage.daemon.sterna("disk remove a --keep-image").fails_with(&[&cancel]);
        let cancelled = stage.daemon.cancel(id);
        assert!(
            cancelled["reason"].to_string().contains("Sterna kept the image"),
            "{cancelled:#}"
        );
        assert_eq!([&stage.here, &stage.there].map(|dir| says(dir)), said, "{step}");

        let remove = "disk remove a --keep-image";
        is_left(&stage.daemon.json("disk recover"), &moved, &format!("sterna {remove}"));
        stage.daemon.sterna(remove).ok();
        stage.daemon.sterna("disk recover").ok();
        assert_eq!(stage.daemon.image("a"), moved);
        assert!(fs::read(&moved).expect("read an image") == data, "{step}");
    }
}

#[test]
fn a_state_from_the_middle_of_a_vms_move_does_not_cost_its_disk() {
    for line in ["move web vda --to there", "adopt web vda --on there"] {
        let programs = ["qemu-system-x86_64", "qemu-io"];
        let Some(mut stage) = Stage::given(&programs) else { return };
        let old = stage.here.join("web.raw");
        write_guest(&old, 64 * MIB, 32 * MIB);
        let mut vm = Vm::start(&stage.scratch, "web", &old, "raw", &[]);
        let socket = vm.socket().display().to_string();
        stage.daemon.sterna(&format!("vm add web --qmp {socket}")).ok();
        let started = stage.daemon.json(&format!("vm {line} --rate 1M --detach"));
        let id = started["id"].as_u64().expect("a number");
        stage.daemon.wait_for(id, "copying", seconds(20));
        let backup = back_up_the_state(&mut stage);
        stage.daemon.hurry(id);
        stage.daemon.completed(id);
        vm.kill();
        let there = stage.files_there();
        let says = fs::read(stage.there.join("web-vda.raw.sterna")).ok();
        restore_the_state(&mut stage, &backup);

        // The state takes the VM's disk for a copy, and the VM is off.
        let ended = stage.daemon.wait_for(id, "cancelled", seconds(20));
        assert!(ended["reason"].to_string().contains("Sterna kept"), "{ended:#}");
        assert_eq!(stage.files_there(), there, "{line}");
        assert_eq!(fs::read(stage.there.join("web-vda.raw.sterna")).ok(), says);
        if says.is_some() {
            assert_eq!(stage.daemon.disk("web-vda")["served"], true);
            // It is a disk like any other.
            let uri = stage.daemon.uri("web-vda");
            run("qemu-io", ["-r", "-f", "raw", "-c", "read 0 512", &uri]);
        }
    }
}

#[test]
fn an_image_that_cannot_be_read_may_be_newer_than_the_one_that_can() {
    let mut stage = Stage::new();
    stage.disk("a", MIB);
    stage.daemon.sterna("migrate a --to there --keep-source").ok();
    lose_the_state(&mut stage);
    let [old, new] = [&stage.here, &stage.there].map(|dir| dir.join("a.raw.sterna"));
    let good = fs::read(&new).expect("read a sidecar");
    // An old one that calls itself the truth, and a newer one that is torn.
    let mut stale = good.clone();
    stale.truncate(100);
    fs::rename(&new, &old).expect("make the old image an active one");
    fs::write(&new, &stale).expect("tear the newer one");
    add_datastores(&stage);
    let file = stage.here.join("a.raw");
    is_left(&stage.daemon.json("disk recover"), &file, "move its sidecar to another");
    fs::write(&new, &good).expect("put the sidecar back");
    is_left(
        &stage.daemon.json("disk recover"),
        &file,
        "Sterna cannot tell which image of disk a is right",
    );
    fs::remove_file(&new).expect("take the sidecar away");
    stage.daemon.sterna("disk recover").ok();
    assert_eq!(stage.daemon.image("a"), file);
}

#[test]
fn a_server_whose_disk_is_served_need_not_answer() {
    let Some(mut stage) = Stage::given(&["nbdkit"]) else { return };
    let server = stage.nbd_server("remote", 16 * MIB, &[]);
    stage.disk("a", MIB);
    stage.daemon.sterna("disk create b --size 8M --on remote").ok();
    lose_the_state(&mut stage);
    stage.datastore("remote", server.location());
    stage.daemon.sterna("disk recover").ok();
    assert_eq!(stage.daemon.disk("b")["served"], true);
    server.hang();
    stage.datastore("here", stage.here.display());
    stage.daemon.sterna("disk recover").ok();
    server.go_on();
    assert_eq!(stage.daemon.disk("a")["served"], true);
}

#[test]
fn an_image_that_does_not_say_whose_it_is_is_not_removed() {
    let mut stage = Stage::new();
    for disk in ["torn", "mute", "served"] {
        stage.disk(disk, MIB);
    }
    let [torn, mute, served] =
        ["torn", "mute", "served"].map(|it| stage.daemon.image(it));
    stage.daemon.stop();
    fs::write(stage.here.join("torn.raw.sterna"), "torn").expect("tear a sidecar");
    fs::remove_file(stage.here.join("mute.raw.sterna")).expect("remove a sidecar");
    stage.daemon.restart();
    fs::remove_file(stage.here.join("served.raw.sterna")).expect("remove a sidecar");
    for disk in ["torn", "mute", "served"] {
        stage.daemon.sterna(&format!("disk remove {disk} --delete-image")).ok();
    }
    assert_eq!([torn, mute, served].map(|image| image.exists()), [true, true, false]);
}
