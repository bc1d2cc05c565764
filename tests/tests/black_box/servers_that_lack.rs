//! Servers that come back with fewer abilities: what is a convenience is done without, and
//! what is not is told, wherever somebody would look.

use std::thread;
use std::time::Duration;

use sterna_tests::clients::nbdsh;
use sterna_tests::servers::Nbdkit;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 32 * MIB;
/// What the tests below need.
const CLIENTS: &[&str] = &["/usr/bin/python3", "nbdkit"];

/// A server on the same file and at the same address as this one, which is gone.
fn instead(stage: &Stage, name: &str, was: &Nbdkit, filters: &[&str]) -> Nbdkit {
    Nbdkit::on_file(&stage.scratch, name, was.file(), filters)
}

/// A server with everything, which is killed, and the URI of the disk `d` on it.
fn written_and_gone(stage: &Stage) -> (Nbdkit, String) {
    let mut server = stage.nbd_server("far", SIZE, &[]);
    stage.daemon.sterna(&format!("disk create d --size {SIZE} --on far")).ok();
    let uri = stage.daemon.uri("d");
    nbdsh(&uri, "h.pwrite(b'1' * 4096, 0); h.flush()");
    server.kill();
    (server, uri)
}

#[test]
fn a_disk_goes_on_at_a_server_that_has_lost_conveniences() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let (server, uri) = written_and_gone(&stage);
    let filters = ["--filter=nozero", "--filter=noextents"];
    let _less = instead(&stage, "far", &server, &filters);
    let script = "
h.pwrite(b'2' * 4096, 4096, nbd.CMD_FLAG_FUA)
h.zero(1 << 20, 1 << 20)
h.flush()
print(bytes(h.pread(512, 0)[:1] + h.pread(512, 4096)[:1]))";
    assert_eq!(nbdsh(&uri, script).trim(), "b'12'");
    assert_eq!(
        stage.daemon.json("datastore show far")["problem"],
        serde_json::Value::Null
    );
}

#[test]
fn a_write_that_must_be_durable_is_flushed_at_a_server_that_has_lost_fua() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let (server, uri) = written_and_gone(&stage);
    let seen = stage.scratch.path("seen.log");
    let log = format!("logfile={}", seen.display());
    let filters = ["--filter=log", &log, "--filter=fua"];
    let _less = instead(&stage, "far", &server, &filters);
    nbdsh(&uri, "h.pwrite(b'2' * 4096, 4096, nbd.CMD_FLAG_FUA)");
    let log = std::fs::read_to_string(&seen).unwrap();
    let words = ["Write", "...Write", "Flush"];
    let places = words.map(|word| log.find(word).unwrap_or_else(|| panic!("{log}")));
    assert!(places.is_sorted() && !log.contains("fua=1"), "{log}");
}

#[test]
fn a_disk_whose_export_came_back_read_only_says_so_everywhere() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let (mut server, uri) = written_and_gone(&stage);
    // The first attempts find nobody there: that is not all that the log may say.
    thread::sleep(Duration::from_millis(700));
    let mut read_only = instead(&stage, "far", &server, &["--readonly"]);
    let words = "can no longer be written: it is read-only now";
    until("somebody to be told", seconds(20), || {
        let warnings = stage.daemon.warnings("disk d");
        warnings.iter().any(|it| it.contains(words)).then_some(())
    });
    for shown in ["datastore show far", "disk show d"] {
        let problem = stage.daemon.json(shown)["problem"].to_string();
        assert!(problem.contains(words), "{shown}: {problem}");
    }
    assert!(stage.daemon.log().contains(words), "{}", stage.daemon.log());
    read_only.kill();
    server.restart();
    assert_eq!(nbdsh(&uri, "print(bytes(h.pread(512, 0)[:1]))").trim(), "b'1'");
    until("nobody to be told any more", seconds(20), || {
        stage.daemon.json("datastore show far")["problem"].is_null().then_some(())
    });
}

#[test]
fn a_move_to_an_export_that_lacks_something_pauses_with_that_reason() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    stage.disk_with_data("d", SIZE, SIZE);
    let mut copy = stage.nbd_server("copy", SIZE + MIB, &[]);
    let id = stage.daemon.migrate("d --to copy --rate 4M --keep-source");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    copy.kill();
    let alone = ["--filter=multi-conn", "multi-conn-mode=disable"];
    let mut less = instead(&stage, "copy", &copy, &alone);
    let paused = stage.daemon.wait_for(id, "paused", seconds(30));
    let reason = paused["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("can no longer be used over several connections"),
        "{paused:#}"
    );
    let hint = paused["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("restart the daemon"), "{paused:#}");
    less.kill();
    copy.restart();
    stage.daemon.sterna(&format!("migration set {id} --rate none")).ok();
    stage.daemon.resume(id);
    stage.daemon.completed(id);
}

#[test]
fn a_migration_is_cancelled_while_its_start_waits_for_a_server_that_hangs() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    stage.disk_with_data("d", SIZE, SIZE);
    let copy = stage.nbd_server("copy", SIZE + MIB, &[]);
    let id = stage.daemon.migrate("d --to copy --rate 4M");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    stage.daemon.kill();
    copy.hang();
    stage.daemon.restart();
    until("the disk to be served", seconds(20), || {
        (stage.daemon.json("disk show d")["problem"].is_null()).then_some(())
    });
    // The start waits for the copy by now.
    thread::sleep(Duration::from_millis(500));
    for _ in ["once", "again"] {
        let cancelled = stage.daemon.json(&format!("migration cancel {id}"));
        assert_eq!(cancelled["state"], "cancelling", "{cancelled:#}");
    }
    copy.go_on();
    let ended = stage.daemon.wait_for(id, "cancelled", seconds(60));
    assert_eq!(ended["state"], "cancelled", "{ended:#}");
    assert_eq!(stage.daemon.json("disk show d")["datastore"], "here");
}
