//! Servers that come back before anything that is on their export is known to be durable:
//! nothing there says whose it is, so it is compared with the places of other disks.

use std::path::Path;
use std::thread;
use std::time::Instant;

use sterna_tests::clients::nbdsh;
use sterna_tests::servers::Nbdkit;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 32 * MIB;
const SIDECAR: u64 = 65536;
const CLIENTS: &[&str] = &["/usr/bin/python3", "nbdkit"];

/// Writes 8 MiB of `byte` at the beginning of a disk, and flushes.
fn fill(stage: &Stage, name: &str, byte: char) {
    let script = format!(
        "
for at in range(8): h.pwrite(b'{byte}' * (1 << 20), at << 20)
h.flush()
"
    );
    nbdsh(&stage.daemon.uri(name), &script);
}

/// A disk `y` of 8 MiB of data on an export of this size.
fn y_on(stage: &Stage, export: u64) -> Nbdkit {
    let server = stage.nbd_server("on-y", export, &[]);
    stage.daemon.sterna(&format!("disk create y --size {SIZE} --on on-y")).ok();
    fill(stage, "y", 'Y');
    server
}

/// The 8 MiB are there, and nothing behind them.
#[track_caller]
fn is_intact(file: &Path) {
    let bytes = std::fs::read(file).expect("read an image");
    let (data, rest) = bytes[..SIZE as usize].split_at(8 << 20);
    assert!(data.iter().all(|byte| *byte == b'Y'), "data was overwritten");
    assert!(rest.iter().all(|byte| *byte == 0), "zeroes were overwritten");
}

#[test]
fn a_copy_that_has_just_begun_does_not_go_on_at_another_disk() {
    // With a sidecar of `y` at its end, or without.
    for export in [SIZE, SIZE + SIDECAR] {
        let Some(stage) = Stage::given(CLIENTS) else { return };
        let y = y_on(&stage, export);
        stage.daemon.sterna(&format!("disk create x --size {export} --on here")).ok();
        fill(&stage, "x", 'X');
        let mut copy = stage.nbd_server("on-copy", export, &[]);
        let id = stage.daemon.migrate("x --to on-copy --rate 4M");
        stage.daemon.wait_for_bytes(id, 3 * MIB);
        copy.kill();
        let mut wrong = Nbdkit::on_file(&stage.scratch, "on-copy", y.file(), &[]);
        let paused = stage.daemon.wait_for(id, "paused", seconds(30));
        let reason = paused["reason"].as_str().unwrap_or_default();
        // On a busy machine it pauses before it has looked at what answers.
        let reasons = ["another export answers", "connection to the destination is lost"];
        assert!(reasons.iter().any(|it| reason.contains(it)), "{paused:#}");
        is_intact(y.file());
        wrong.kill();
        copy.restart();
        stage.daemon.sterna(&format!("migration set {id} --rate none")).ok();
        stage.daemon.resume(id);
        stage.daemon.completed(id);
        is_intact(y.file());
    }
}

#[test]
fn a_disk_that_nobody_has_flushed_is_not_served_from_another_s_place() {
    for export in [SIZE, SIZE + SIDECAR] {
        let Some(stage) = Stage::given(CLIENTS) else { return };
        let y = y_on(&stage, export);
        let mut x = stage.nbd_server("on-x", export, &[]);
        stage.daemon.sterna(&format!("disk create x --size {export} --on on-x")).ok();
        nbdsh(&stage.daemon.uri("x"), "h.pwrite(b'X' * (1 << 20), 0)");
        x.kill();
        let mut wrong = Nbdkit::on_file(&stage.scratch, "on-x", y.file(), &[]);
        let uri = stage.daemon.uri("x");
        let writes = thread::spawn(move || nbdsh(&uri, "h.pwrite(b'x' * 512, 512)"));
        until("somebody to be told", seconds(30), || {
            let warnings = stage.daemon.warnings("disk x");
            warnings.iter().any(|it| it.contains("another export answers")).then_some(())
        });
        is_intact(y.file());
        wrong.kill();
        x.restart();
        writes.join().expect("the client ends");
        is_intact(y.file());
    }
}

#[test]
fn an_empty_disk_works_on_when_its_server_is_back() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let mut y = y_on(&stage, SIZE);
    let mut x = stage.nbd_server("on-x", SIZE, &[]);
    stage.daemon.sterna(&format!("disk create x --size {SIZE} --on on-x")).ok();
    nbdsh(&stage.daemon.uri("x"), "h.pwrite(b'X' * 512, 0)");
    // Also if the place of another disk does not answer.
    y.kill();
    x.kill();
    x.restart();
    nbdsh(&stage.daemon.uri("x"), "h.pwrite(b'X' * 512, 512)");
    y.restart();
    is_intact(y.file());
}

#[test]
fn a_daemon_that_stops_waits_for_no_comparison() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    let mut y = y_on_its_end(&stage);
    let mut x = stage.nbd_server("on-x", SIZE, &[]);
    stage.daemon.sterna(&format!("disk create x --size {SIZE} --on on-x")).ok();
    nbdsh(&stage.daemon.uri("x"), "h.pwrite(b'X' * 512, 16 << 20)");
    // From now on each stretch takes two seconds.
    y.kill();
    let log = stage.scratch.path("reads");
    let logged = format!("logfile={}", log.display());
    let slow = ["--filter=log", "--filter=delay", &logged, "rdelay=1"];
    let _slow = Nbdkit::on_file(&stage.scratch, "on-y", y.file(), &slow);
    // A place that does not answer yet would not be compared.
    nbdsh(&stage.daemon.uri("y"), "h.pread(512, 0)");
    x.kill();
    x.restart();
    until("the second stretch to be read", seconds(30), || {
        let reads = std::fs::read_to_string(&log).unwrap_or_default();
        reads.contains("offset=0x1000 ").then_some(())
    });
    let began = Instant::now();
    stage.daemon.stop();
    let took = began.elapsed();
    // What is unflushed has four seconds; the other stretches would take eight more.
    assert!(took < seconds(6), "the stop took {took:?}");
}

/// The disk `y`, of zeroes but for its end; nothing more is to be learned of it.
#[track_caller]
fn y_on_its_end(stage: &Stage) -> Nbdkit {
    let server = stage.nbd_server("on-y", SIZE, &[]);
    stage.daemon.sterna(&format!("disk create y --size {SIZE} --on on-y")).ok();
    nbdsh(&stage.daemon.uri("y"), "h.pwrite(b'Y' * (1 << 20), 31 << 20); h.flush()");
    stage.daemon.looks_at_places();
    server
}
