//! Devices and exports that are made larger while no daemon runs.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use sterna_tests::clients::nbdsh;
use sterna_tests::images::write_image;
use sterna_tests::servers::Nbdkit;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 32 * MIB;
/// With so much more, there is room for a sidecar.
const ROOM: u64 = 65536;
const CLIENTS: &[&str] = &["/usr/bin/python3", "nbdkit"];

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
fn a_sidecar_far_behind_its_disk_is_not_found_and_people_are_told_what_to_do() {
    let export = SIZE + 20 * MIB;
    let Some((mut stage, mut server)) = down(export) else { return };
    has_size(&mut server, export + ROOM);
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
