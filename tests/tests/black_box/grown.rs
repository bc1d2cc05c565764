//! Devices and exports that are made larger, which a daemon finds when it starts.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use sterna_tests::clients::nbdsh;
use sterna_tests::images::write_image;
use sterna_tests::places::Loop;
use sterna_tests::programs;
use sterna_tests::servers::Nbdkit;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 32 * MIB;
/// With so much more, there is room for a sidecar.
const ROOM: u64 = 65536;
const CLIENTS: &[&str] = &["/usr/bin/python3", "nbdkit", "sqlite3"];

/// The disk `d`, full of data, on an export of this size; the daemon is down.
#[track_caller]
fn down(export: u64) -> Option<(Stage, Nbdkit)> {
    let mut stage = Stage::given(CLIENTS)?;
    let mut server = stage.nbd_server("far", export, &[]);
    stage.daemon.sterna(&format!("disk create d --size {SIZE} --on far")).ok();
    let fill = "for at in range(32): h.pwrite(b'd' * (1 << 20), at << 20)\nh.flush()";
    nbdsh(&stage.daemon.uri("d"), fill);
    stage.daemon.looks_at_places();
    stage.daemon.stop();
    server.kill();
    Some((stage, server))
}

/// The server comes back with an export of that size.
#[track_caller]
fn has_size(server: &mut Nbdkit, size: u64) {
    let file = OpenOptions::new().write(true).open(server.file()).expect("open a file");
    file.set_len(size).expect("set its size");
    server.restart();
}

#[track_caller]
fn is_served(stage: &Stage) {
    until("the disk to be served", seconds(30), || {
        stage.daemon.disk("d")["problem"].is_null().then_some(())
    });
    let read = "print(h.get_size(), bytes(h.pread(512, 4096)[:1]))";
    let read = nbdsh(&stage.daemon.uri("d"), read);
    assert_eq!(read.trim(), format!("{SIZE} b'd'"));
}

/// What the disk has wrong with it.
#[track_caller]
fn problem(stage: &Stage) -> String {
    until("the disk to be refused", seconds(20), || {
        stage.daemon.disk("d")["problem"].as_str().map(str::to_owned)
    })
}

/// Whether a sidecar is at the end of the export of this size.
fn is_at_the_end(server: &Nbdkit, size: u64) -> bool {
    let mut magic = [0; 8];
    let file = File::open(server.file()).expect("open a file");
    file.read_exact_at(&mut magic, size - 4096).expect("read its end");
    &magic == b"STERNASC"
}

#[test]
fn a_disk_is_served_from_a_place_that_was_made_larger() {
    // With room for a sidecar before, or without.
    for export in [SIZE + ROOM, SIZE] {
        let Some((mut stage, mut server)) = down(export) else { return };
        let larger = SIZE + 40 * MIB;
        has_size(&mut server, larger);
        stage.daemon.restart();
        is_served(&stage);
        assert!(is_at_the_end(&server, larger));
        assert!(export == SIZE || !is_at_the_end(&server, export), "it is there twice");
        assert!(stage.daemon.log().contains("made larger"), "{}", stage.daemon.log());
        // From then on as ever, and once more.
        stage.daemon.kill();
        stage.daemon.restart();
        is_served(&stage);
        let id = stage.daemon.migrate("d --to here");
        stage.daemon.completed(id);
        is_served(&stage);
    }
}

#[test]
fn a_larger_place_that_is_not_the_disk_s_is_not_served() {
    let Some((mut stage, server)) = down(SIZE) else { return };
    let foreign = stage.scratch.path("foreign.raw");
    write_image(&foreign, SIZE + ROOM, SIZE);
    let before = std::fs::read(&foreign).expect("read a file");
    let _wrong = Nbdkit::on_file(&stage.scratch, "far", &foreign, &[]);
    stage.daemon.restart();
    let problem = problem(&stage);
    assert!(problem.contains("does not hold disk d any more"), "{problem}");
    assert!(before == std::fs::read(&foreign).expect("read a file"));
    drop(server);
}

#[test]
fn a_sidecar_far_behind_its_disk_is_not_found_by_an_old_state_and_people_are_told() {
    let export = SIZE + 20 * MIB;
    let Some((mut stage, mut server)) = down(export) else { return };
    has_size(&mut server, export + ROOM);
    // A state of before this was kept.
    let state = stage.daemon.state().join("state.db");
    let sql = "UPDATE datastores SET size = NULL";
    programs::run("sqlite3", [state.as_os_str(), sql.as_ref()]);
    stage.daemon.restart();
    let problem = problem(&stage);
    let advice = "stop the daemon, make it as large as before, and start the daemon";
    assert!(problem.contains(advice), "{problem}");
    stage.daemon.stop();
    server.kill();
    has_size(&mut server, export);
    stage.daemon.restart();
    is_served(&stage);
}

/// The sidecar goes to the end that the daemon knows, far behind the disk.
#[test]
fn a_device_that_is_made_larger_while_the_daemon_runs_has_its_disk_found_afterwards() {
    let Some(mut stage) = Stage::given_root(&["losetup", "/usr/bin/python3"]) else {
        return;
    };
    let file = stage.scratch.path("volume.img");
    let device = Loop::new(&file, 128 * MIB);
    stage.datastore("volume", device.device().display());
    device.grow(256 * MIB);
    stage.daemon.sterna(&format!("disk create d --size {SIZE} --on volume")).ok();
    nbdsh(&stage.daemon.uri("d"), "h.pwrite(b'd' * (1 << 20), 0); h.flush()");
    for grown in [256, 300, 400] {
        device.grow(grown * MIB);
        stage.daemon.kill();
        stage.daemon.restart();
        is_served(&stage);
    }
}

#[test]
fn a_copy_whose_place_is_made_larger_in_the_move_goes_on_after_a_kill() {
    // With room for a sidecar before, or without.
    for export in [SIZE + 20 * MIB, SIZE] {
        let Some(mut stage) = Stage::given(CLIENTS) else { return };
        let mut server = stage.nbd_server("far", export, &[]);
        stage.disk_with_data("d", SIZE, SIZE);
        let id = stage.daemon.migrate("d --to far --rate 1M");
        stage.daemon.wait_for_bytes(id, 2 * MIB);
        stage.daemon.looks_at_places();
        stage.daemon.kill();
        server.kill();
        has_size(&mut server, SIZE + 80 * MIB);
        stage.daemon.restart();
        stage.daemon.hurry(id);
        stage.daemon.completed(id);
        stage.daemon.kill();
        stage.daemon.restart();
        until("the disk to be served", seconds(30), || {
            stage.daemon.disk("d")["problem"].is_null().then_some(())
        });
    }
}

/// The state does not say any more how far the switch-over came.
#[test]
fn a_source_that_is_made_larger_in_a_switch_over_is_served() {
    // With room for a sidecar before, or without.
    for export in [SIZE + 20 * MIB, SIZE] {
        let Some((mut stage, mut server)) = down(export) else { return };
        server.restart();
        stage.daemon.restart();
        is_served(&stage);
        let id = stage.daemon.migrate("d --to here --rate 1M");
        stage.daemon.wait_for_bytes(id, 2 * MIB);
        stage.daemon.looks_at_places();
        stage.daemon.kill();
        server.kill();
        has_size(&mut server, SIZE + 80 * MIB);
        let state = stage.daemon.state().join("state.db");
        let sql = "UPDATE migrations SET step = 'switching'";
        programs::run("sqlite3", [state.as_os_str(), sql.as_ref()]);
        stage.daemon.restart();
        is_served(&stage);
        stage.daemon.hurry(id);
        stage.daemon.completed(id);
        is_served(&stage);
    }
}

/// The disk `d` has left its export, where the old image stays; then the export was made larger.
/// The daemon is down.
#[track_caller]
fn kept_on_a_larger_place() -> Option<(Stage, Nbdkit)> {
    let (mut stage, mut server) = down(SIZE + 20 * MIB)?;
    server.restart();
    stage.daemon.restart();
    is_served(&stage);
    let id = stage.daemon.migrate("d --to here --keep-source");
    stage.daemon.completed(id);
    stage.daemon.stop();
    server.kill();
    has_size(&mut server, SIZE + 80 * MIB);
    Some((stage, server))
}

/// When somebody wrote to the file of an export last.
fn written(server: &Nbdkit) -> SystemTime {
    let metadata = std::fs::metadata(server.file()).expect("look at a file");
    metadata.modified().expect("its time")
}

#[test]
fn an_image_that_is_kept_on_a_place_that_is_made_larger_is_not_overwritten() {
    let Some((mut stage, server)) = kept_on_a_larger_place() else { return };
    let before = std::fs::read(server.file()).expect("read the export");
    // What the daemon learned of the place at one start holds at the next, too.
    for _ in 0..2 {
        stage.daemon.restart();
        let create = format!("disk create e --size {SIZE} --on far");
        stage.daemon.sterna(&create).fails_with(&["disk d"]);
        stage.daemon.stop();
    }
    assert!(before == std::fs::read(server.file()).expect("read the export"));
}

#[test]
fn a_larger_place_with_an_old_image_is_imported_with_all_bytes_that_it_has() {
    let Some((mut stage, server)) = kept_on_a_larger_place() else { return };
    // The operator has put something else there, up to the end.
    let file = OpenOptions::new().write(true).open(server.file()).expect("open a file");
    file.write_all_at(&[7; 4096], SIZE + 80 * MIB - 4096).expect("write its end");
    stage.daemon.restart();
    stage.daemon.sterna(&format!("disk import y {} --on far", server.location())).ok();
    let read =
        format!("print(h.pread(4096, {}) == b'\\x07' * 4096)", SIZE + 80 * MIB - 4096);
    assert_eq!(nbdsh(&stage.daemon.uri("y"), &read).trim(), "True");
}

#[test]
fn a_disk_that_has_come_back_to_a_larger_place_is_found_when_that_grows_again() {
    let Some((mut stage, mut server)) = kept_on_a_larger_place() else { return };
    stage.daemon.restart();
    let id = stage.daemon.migrate("d --to far");
    stage.daemon.completed(id);
    stage.daemon.stop();
    server.kill();
    has_size(&mut server, SIZE + 160 * MIB);
    stage.daemon.restart();
    is_served(&stage);
}

/// The place `far`, which the disk `y` has by what is there, and was made larger; the daemon,
/// which is down, has a state of before `y` was there. By that state, the disk `had` is.
#[track_caller]
fn has_another_disk(had: Option<&str>) -> Option<(Stage, Nbdkit)> {
    let mut stage = Stage::given(CLIENTS)?;
    let mut server = stage.nbd_server("far", SIZE + 20 * MIB, &[]);
    let copy = |from: &Path, to: &Path| {
        let _ = std::fs::remove_dir_all(to);
        programs::run("cp", [Path::new("-a"), from, to]);
    };
    let create = |stage: &Stage, disk| {
        stage.daemon.sterna(&format!("disk create {disk} --size {SIZE} --on far")).ok();
    };
    had.into_iter().for_each(|disk| create(&stage, disk));
    stage.daemon.stop();
    let (state, backup) = (stage.daemon.state().to_owned(), stage.scratch.path("backup"));
    copy(&state, &backup);
    stage.daemon.restart();
    if let Some(disk) = had {
        stage.daemon.sterna(&format!("disk remove {disk}")).ok();
    }
    create(&stage, "y");
    stage.daemon.stop();
    server.kill();
    has_size(&mut server, SIZE + 80 * MIB);
    copy(&backup, &state);
    Some((stage, server))
}

#[test]
fn nothing_is_written_to_a_larger_place_that_another_disk_has() {
    let Some((mut stage, server)) = has_another_disk(None) else { return };
    stage.daemon.restart();
    // What goes to `far` might come to light there.
    let _other = stage.nbd_server("other", SIZE, &[]);
    stage.daemon.sterna(&format!("disk create o --size {SIZE} --on other")).ok();
    let before = written(&server);
    let create = format!("disk create e --size {SIZE} --on far");
    stage.daemon.sterna(&create).fails_with(&["disk y"]);
    assert_eq!(written(&server), before);
}

#[test]
fn a_disk_whose_larger_place_another_disk_has_is_removed_without_a_trace() {
    let Some((mut stage, server)) = has_another_disk(Some("x")) else { return };
    stage.daemon.restart();
    let problem = until("the disk to be refused", seconds(20), || {
        stage.daemon.disk("x")["problem"].as_str().map(str::to_owned)
    });
    assert!(problem.contains("belongs to the disk y"), "{problem}");
    stage.daemon.sterna("disk remove x --keep-image").ok();
    assert!(is_at_the_end(&server, SIZE + 20 * MIB));
    assert!(!is_at_the_end(&server, SIZE + 80 * MIB));
}

#[test]
fn a_disk_is_served_when_the_right_export_is_there_whatever_was_there_first() {
    let Some((mut stage, mut server)) = down(SIZE + ROOM) else { return };
    let right = server.file().to_owned();
    let aside = right.with_extension("aside");
    for first in [0, SIZE / 2, SIZE + 512, SIZE + 40 * MIB] {
        std::fs::rename(&right, &aside).expect("put the image aside");
        File::create(&right)
            .expect("create a file")
            .set_len(first)
            .expect("set its size");
        server.restart();
        stage.daemon.restart();
        let problem = problem(&stage);
        let says = if first < SIZE { "attach the right device" } else { "sidecar" };
        assert!(problem.contains(says), "{first}: {problem}");
        std::fs::rename(&aside, &right).expect("put the image back");
        server.restart();
        is_served(&stage);
        stage.daemon.stop();
        server.kill();
    }
}

#[test]
fn a_device_that_is_attached_after_the_start_is_served_and_a_free_one_has_its_size() {
    let Some(mut stage) = Stage::given_root(CLIENTS) else { return };
    let (image, free) = (stage.here.join("device"), stage.here.join("free"));
    for path in [&image, &free] {
        File::create(path)
            .expect("create a file")
            .set_len(SIZE + ROOM)
            .expect("its size");
    }
    let (device, other) = (Loop::over(&image), Loop::over(&free));
    let add = |stage: &Stage, name: &str, device: &Loop| {
        let device = device.device().display();
        stage.daemon.sterna(&format!("datastore add {name} {device}")).ok();
    };
    add(&stage, "far", &device);
    add(&stage, "free", &other);
    stage.daemon.sterna(&format!("disk create d --size {SIZE} --on far")).ok();
    nbdsh(&stage.daemon.uri("d"), "h.pwrite(b'd' * 4096, 512); h.flush()");
    stage.daemon.stop();
    let at = device.device().to_owned();
    let at = at.to_str().expect("a plain path");
    programs::run("losetup", ["--detach", at]);
    stage.daemon.restart();
    assert!(problem(&stage).contains("the disk needs"), "{}", problem(&stage));
    programs::run("losetup", [at, image.to_str().expect("a plain path")]);
    is_served(&stage);
    let len = SIZE + 40 * MIB;
    other.grow(len);
    until("the size to be known", seconds(30), || {
        (stage.daemon.json("datastore show free")["capacity"] == len).then_some(())
    });
}

#[test]
fn a_kept_image_is_found_though_its_device_was_away_for_a_moment_and_came_back_larger() {
    let Some(stage) = Stage::given_root(CLIENTS) else { return };
    let image = stage.here.join("device");
    File::create(&image).expect("create a file").set_len(SIZE + ROOM).expect("its size");
    let device = Loop::over(&image);
    let at = device.device().to_str().expect("a plain path");
    stage.daemon.sterna(&format!("datastore add far {at}")).ok();
    stage.daemon.sterna(&format!("disk create d --size {SIZE} --on far")).ok();
    let id = stage.daemon.migrate("d --to there --keep-source");
    stage.daemon.wait_for(id, "completed", seconds(60));
    let has_size = |size: u64| {
        until("the size to be known", seconds(30), || {
            let shown = stage.daemon.json("datastore show far");
            (shown["capacity"] == size).then_some(())
        });
    };
    programs::run("losetup", ["--detach", at]);
    has_size(0);
    let larger = SIZE + 40 * MIB;
    let file = OpenOptions::new().write(true).open(&image).expect("open the file");
    file.set_len(larger).expect("make it longer");
    programs::run("losetup", [at, image.to_str().expect("a plain path")]);
    has_size(larger);
    stage
        .daemon
        .sterna(&format!("disk create e --size {SIZE} --on far"))
        .fails_with(&["d"]);
}

#[test]
fn a_device_that_leads_to_nothing_is_not_added() {
    let Some(stage) = Stage::given_root(CLIENTS) else { return };
    let image = stage.here.join("device");
    File::create(&image).expect("create a file").set_len(SIZE).expect("its size");
    let device = Loop::over(&image);
    let at = device.device().to_str().expect("a plain path");
    programs::run("losetup", ["--detach", at]);
    stage
        .daemon
        .sterna(&format!("datastore add far {at}"))
        .fails_with(&["has 0 bytes", "lsblk"]);
    stage.daemon.sterna("datastore show far").fails_with(&["far"]);
    programs::run("losetup", [at, image.to_str().expect("a plain path")]);
    stage.daemon.sterna(&format!("datastore add far {at}")).ok();
}
