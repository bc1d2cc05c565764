//! Devices and exports that are made larger, which a daemon finds when it starts.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

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

#[test]
fn an_image_that_is_kept_on_a_place_that_is_made_larger_is_not_overwritten() {
    let Some((mut stage, mut server)) = down(SIZE + 20 * MIB) else { return };
    server.restart();
    stage.daemon.restart();
    is_served(&stage);
    let id = stage.daemon.migrate("d --to here --keep-source");
    stage.daemon.completed(id);
    stage.daemon.stop();
    server.kill();
    has_size(&mut server, SIZE + 80 * MIB);
    // What the daemon learned of the place at one start holds at the next, too.
    for _ in 0..2 {
        stage.daemon.restart();
        let create = format!("disk create e --size {SIZE} --on far");
        stage.daemon.sterna(&create).fails_with(&["disk d"]);
        stage.daemon.stop();
    }
}
