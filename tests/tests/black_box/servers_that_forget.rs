//! Storage servers that lose what nobody had asked them to keep, and writes that end late:
//! what an application has flushed is there, and what cannot be kept it is told.

use std::process::Child;
use std::thread;

use sterna_tests::clients::{Clients, flushes, nbdsh};
use sterna_tests::images::identical_files;
use sterna_tests::wait::seconds;
use sterna_tests::{Forgetful, MIB, Stage, programs, until};

const SIZE: u64 = 32 * MIB;
/// A disk on a server, with room for its sidecar.
const EXPORT: u64 = SIZE + 65536;
/// What the tests below need.
const CLIENTS: &[&str] = &["/usr/bin/python3", "qemu-img"];

/// The datastore `far` on a server that forgets.
fn far(stage: &Stage) -> Forgetful {
    let server = Forgetful::start(&stage.scratch, "far", EXPORT);
    stage.datastore("far", server.location());
    server
}

/// The disk `d` on `far`; gives its URI.
fn disk_on(stage: &Stage, server: &Forgetful) -> String {
    stage.daemon.sterna(&format!("disk create d --size {SIZE} --on far")).ok();
    server.wait_for_connections();
    stage.daemon.uri("d")
}

/// What somebody should look at about the disk `d`.
#[track_caller]
fn warnings(stage: &Stage) -> Vec<String> {
    stage.daemon.warnings("disk d")
}

/// A client that runs until it has done what it is told, or is killed.
fn client(uri: &str, script: &str) -> Child {
    let args = ["-m", "nbd", "--uri", uri, "--command", script];
    programs::command("/usr/bin/python3").args(args).spawn().expect("start a client")
}

#[test]
fn a_destination_that_forgot_while_the_move_was_paused_is_compared() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let server = far(&stage);
    stage.disk_with_data("d", SIZE, SIZE);
    let before = stage.scratch.path("before.raw");
    std::fs::copy(stage.here.join("d.raw"), &before).expect("copy the image");
    let id = stage.daemon.migrate("d --to far --rate 16M");
    stage.daemon.wait_for_bytes(id, 8 * MIB);
    stage.daemon.pause(id);
    server.wait_for_connections();
    // Idle connections find out one by one; there is a way to the server all the time.
    let lost = server.lose_power_and_tell_one_by_one();
    assert!(lost > 0, "the copy was durable already");
    stage.daemon.sterna(&format!("migration set {id} --rate none")).ok();
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    let image = stage.scratch.path("durable.raw");
    std::fs::write(&image, server.durable(0..SIZE as usize)).expect("keep the image");
    identical_files(&image, &before);
}

#[test]
fn after_its_server_forgot_an_application_s_flush_fails_once() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let server = far(&stage);
    let uri = disk_on(&stage, &server);
    nbdsh(&uri, "h.pwrite(b'old' * 1024, 0); h.flush(); h.pwrite(b'new' * 1024, 0)");
    assert_eq!(warnings(&stage), Vec::<String>::new());
    assert!(server.lose_power() > 0, "there was something to lose");
    let told = until("the loss to be known", seconds(10), || warnings(&stage).pop());
    assert!(told.contains("may have lost writes on"), "{told}");
    assert!(told.contains("client that does not know yet fails"), "{told}");
    assert_eq!(flushes(&uri, 3), ["EIO", "ok", "ok"]);
    let told = warnings(&stage).pop().unwrap_or_default();
    assert!(told.contains("a flush has failed since"), "{told}");
    assert!(stage.daemon.log().contains("may be lost"), "{}", stage.daemon.log());
    // What is written from then on is as durable as ever.
    nbdsh(&uri, "h.pwrite(b'new' * 1024, 0); h.flush()");
    assert_eq!(server.durable(0..3), b"new");
    // What was flushed cannot be lost, and nobody is alarmed.
    assert_eq!(server.lose_power(), 0);
    assert_eq!(flushes(&uri, 1), ["ok"]);
    // A write that must be durable tells as well.
    nbdsh(&uri, "h.pwrite(b'n' * 512, 0)");
    server.lose_power_and_tell_one_by_one();
    let fua = "
try:
    h.pwrite(b'f' * 512, 4096, flags=nbd.CMD_FLAG_FUA)
    print('ok')
except nbd.Error as error:
    print(error.errno)
h.flush()
";
    assert_eq!(nbdsh(&uri, fua).trim(), "EIO");
}

#[test]
fn each_client_that_was_there_is_told_whoever_flushes_first() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let server = far(&stage);
    let uri = disk_on(&stage, &server);
    // The other one hears of it first, and works on.
    let clients = Clients::start(
        &stage.scratch,
        &uri,
        "a, b = connect(), connect(); a.pwrite(b'a' * 4096, 0)",
        "flushes(b); b.pread(512, 1 << 20); flushes(a); flushes(connect())",
    );
    assert!(server.lose_power() > 0, "there was something to lose");
    until("the loss to be known", seconds(10), || warnings(&stage).pop());
    assert_eq!(clients.go_on(), ["EIO", "ok", "EIO", "ok", "ok", "ok"]);
    let told = warnings(&stage).pop().unwrap_or_default();
    assert!(told.contains("a flush has failed since"), "{told}");
}

#[test]
fn after_a_server_failed_a_flush_each_client_is_told_once() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let server = far(&stage);
    let uri = disk_on(&stage, &server);
    // The other one does not flush before the server has dropped its write as well, and the
    // server's next flush succeeds.
    let clients = Clients::start(
        &stage.scratch,
        &uri,
        "a, b = connect(), connect(); a.pwrite(b'a' * 4096, 0); b.pwrite(b'b' * 4096, 8192)",
        "flushes(a); flushes(b); flushes(a); flushes(connect())",
    );
    server.fails_a_flush();
    let told = ["EIO", "ok", "EIO", "ok", "ok", "ok", "ok", "ok"];
    assert_eq!(clients.go_on(), told);
    assert_eq!(server.durable(8192..8193), [0], "it was dropped");
    let told = warnings(&stage).pop().unwrap_or_default();
    assert!(told.contains("a flush of its image failed"), "{told}");
    // If nothing was unflushed, nothing is lost, and nobody else is alarmed.
    nbdsh(&uri, "h.pwrite(b'n' * 4096, 0); h.flush()");
    let clients = Clients::start(
        &stage.scratch,
        &uri,
        "a, b = connect(), connect()",
        "flushes(a); flushes(b)",
    );
    server.fails_a_flush();
    assert_eq!(clients.go_on(), ["EIO", "ok", "ok", "ok"]);
    assert_eq!(server.durable(0..1), b"n");
}

#[test]
fn what_was_told_to_a_client_that_goes_without_a_word_is_told_to_the_next_one() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let server = far(&stage);
    let uri = disk_on(&stage, &server);
    nbdsh(&uri, "h.pwrite(b'new' * 1024, 0)");
    assert!(server.lose_power() > 0, "there was something to lose");
    until("the loss to be known", seconds(10), || warnings(&stage).pop());
    // It is killed as its flush fails, and is started anew.
    let flush = "
import os
try:
    h.flush()
except nbd.Error as error:
    print(error.errno, flush=True)
os._exit(0)
";
    assert_eq!(nbdsh(&uri, flush).trim(), "EIO");
    until("it to be gone", seconds(10), || {
        let told = warnings(&stage).pop().unwrap_or_default();
        told.contains("client that does not know yet fails").then_some(())
    });
    assert_eq!(flushes(&uri, 2), ["EIO", "ok"]);
    let told = warnings(&stage).pop().unwrap_or_default();
    assert!(told.contains("a flush has failed since"), "{told}");
    assert_eq!(flushes(&uri, 1), ["ok"]);
}

#[test]
fn a_flush_under_way_when_the_server_forgets_is_not_acknowledged() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let server = far(&stage);
    let uri = disk_on(&stage, &server);
    // The server's host is gone without a word: its connections are silent.
    nbdsh(&uri, "h.pwrite(b'new' * 1024, 0)");
    assert!(server.forget_silently() > 0);
    let flush = thread::spawn(move || flushes(&uri, 2));
    server.wait_for_unanswered(1);
    server.break_all_connections();
    assert_eq!(flush.join().expect("the client ends"), ["EIO", "ok"]);
}

#[test]
fn a_source_that_forgot_and_its_copy_end_equal() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let server = far(&stage);
    let uri = disk_on(&stage, &server);
    nbdsh(&uri, "for i in range(32): h.pwrite(b'o' * (1 << 20), i << 20)\nh.flush()");
    let id = stage.daemon.migrate("d --to there --rate 8M --keep-source");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    // Copied, then written on both sides; but never flushed.
    nbdsh(&uri, "h.pwrite(b'n' * 65536, 0)");
    assert!(server.lose_power() > 0, "there was something to lose");
    until("the loss to be known", seconds(10), || warnings(&stage).pop());
    assert_eq!(flushes(&uri, 2), ["EIO", "ok"]);
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    let image = stage.scratch.path("source.raw");
    std::fs::write(&image, server.durable(0..SIZE as usize)).expect("keep the image");
    identical_files(&image, &stage.there.join("d.raw"));
    assert_eq!(server.durable(0..1), b"o");
}

#[test]
fn a_write_of_a_client_that_is_gone_lands_on_nothing_newer() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let server = far(&stage);
    let uri = disk_on(&stage, &server);
    server.hold(0..4096);
    let mut gone = client(&uri, "h.pwrite(b'o' * 4096, 0)");
    until("its write to be under way", seconds(10), || {
        (server.held() == 1).then_some(())
    });
    gone.kill().expect("kill the client");
    gone.wait().expect("wait for it");
    // Connected anew it may do all that the old write does not touch.
    nbdsh(
        &uri,
        "h.pwrite(b'x' * 4096, 4096); assert h.pread(512, 4096) == b'x' * 512; h.flush()",
    );
    let newer =
        "h.pwrite(b'n' * 512, 512); h.flush(); print(bytes(h.pread(512, 512)[:1]))";
    let writer = thread::spawn(move || nbdsh(&uri, newer));
    let told = until("somebody to be told", seconds(20), || warnings(&stage).pop());
    assert!(told.contains("a request waits since"), "{told}");
    assert_eq!(server.held(), 1, "the newer write has not been sent");
    server.release();
    assert_eq!(writer.join().expect("the client ends").trim(), "b'n'");
    assert_eq!(
        (server.durable(0..1), server.durable(512..513)),
        (b"o".into(), b"n".into())
    );
    assert_eq!(warnings(&stage), Vec::<String>::new());
}

#[test]
fn a_newer_write_waits_for_an_older_one_that_was_sent_again() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let server = far(&stage);
    let uri = disk_on(&stage, &server);
    server.hold(0..4096);
    let go = stage.scratch.path("go");
    let script = format!(
        "
import os
old = h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(b'o' * 4096)), 0)
while not os.path.exists({:?}): h.poll(10)
new = h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(b'n' * 512)), 512)
beside = h.aio_pread(nbd.Buffer(512), 8192)
while not h.aio_command_completed(beside): h.poll(-1)
print('beside', flush=True)
while not h.aio_command_completed(old): h.poll(-1)
while not h.aio_command_completed(new): h.poll(-1)
h.flush()
",
        go.display().to_string()
    );
    let client = thread::spawn(move || nbdsh(&uri, &script));
    until("the write to be under way", seconds(10), || {
        (server.held() == 1).then_some(())
    });
    server.break_connection_of_held();
    // The server is still at work on the first one.
    until("it to be sent again", seconds(10), || (server.held() == 2).then_some(()));
    std::fs::write(&go, "").expect("say go");
    until("both to have come", seconds(10), || {
        let disk = stage.daemon.json("disk show d");
        (disk["activity"]["in_flight"] == 2).then_some(())
    });
    assert_eq!(server.held(), 2, "the newer one has not been sent");
    server.release();
    client.join().expect("the client ends");
    assert_eq!(
        (server.durable(0..1), server.durable(512..513)),
        (b"o".into(), b"n".into())
    );
}

#[test]
fn a_server_is_found_however_its_address_is_spelled() {
    let stage = Stage::new();
    // What a server is called in `datastore add`, and in `disk import`.
    let spellings: [fn(&str) -> [String; 2]; 2] = [
        |socket| [format!("nbd+unix://?socket={socket}"), format!("unix:{socket}")],
        |socket| {
            let encoded = socket.replace('/', "%2F");
            [
                format!("nbd:unix:{socket}:exportname=x"),
                format!("NBD+UNIX:///%78?socket={encoded}"),
            ]
        },
    ];
    for (number, spell) in spellings.into_iter().enumerate() {
        let name = format!("d{number}");
        let server = Forgetful::start(&stage.scratch, &name, EXPORT);
        let [added, imported] = spell(&server.socket().display().to_string());
        stage.datastore(&name, added);
        let import = format!("disk import {name} --on {name} {imported}");
        stage.daemon.sterna(&import).ok();
        stage.daemon.sterna(&format!("disk remove {name}")).ok();
    }
    let tls = stage.daemon.sterna("datastore add secret nbds://host/x");
    tls.fails_with(&["TLS is not supported"]);
}

#[test]
fn a_loss_is_the_server_s_also_after_the_disk_has_left_it_and_the_daemon_was_restarted() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    let server = far(&stage);
    let uri = disk_on(&stage, &server);
    nbdsh(&uri, "h.pwrite(b'x' * 4096, 0)");
    server.lose_power();
    until("the loss to be known", seconds(20), || {
        (!warnings(&stage).is_empty()).then_some(())
    });
    let id = stage.daemon.migrate("d --to there");
    stage.daemon.completed(id);
    stage.daemon.kill();
    stage.daemon.restart();
    let told = until("the loss to be known again", seconds(20), || {
        let status = stage.daemon.json("status").to_string();
        status.contains("may have lost writes").then_some(status)
    });
    assert!(told.contains("why the server of datastore far went away"), "{told}");
}
