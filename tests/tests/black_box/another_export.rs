//! Servers that come back with another export, or with an older state of the right one:
//! nothing is written to what is not the disk's, and nothing is read from there.

use std::path::{Path, PathBuf};
use std::thread;

use serde_json::Value;
use sterna_tests::clients::{flushes, nbdsh};
use sterna_tests::servers::Nbdkit;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 32 * MIB;
/// What an export has: as much as the disk, or room for a sidecar.
const EXPORTS: [u64; 2] = [SIZE, SIZE + 65536];
/// What the tests below need.
const CLIENTS: &[&str] = &["/usr/bin/python3", "nbdkit"];

/// The disk `name` on a server of its own, full of `byte` and flushed.
fn disk_on(stage: &Stage, name: &str, byte: char, export: u64) -> Nbdkit {
    let server = stage.nbd_server(&format!("on-{name}"), export, &[]);
    stage.daemon.sterna(&format!("disk create {name} --size {SIZE} --on on-{name}")).ok();
    fill(stage, name, byte, 32);
    server
}

/// Writes so many MiB of `byte`, and flushes a few times.
fn fill(stage: &Stage, name: &str, byte: char, count: u64) {
    let script = format!(
        "
import time
for at in range({count}): h.pwrite(b'{byte}' * (1 << 20), at << 20)
for _ in range(4):
    h.flush()
    time.sleep(0.3)
"
    );
    nbdsh(&stage.daemon.uri(name), &script);
}

/// Another server comes up where this one was, which is gone.
fn in_the_place_of(stage: &Stage, name: &str, file: &Path) -> Nbdkit {
    Nbdkit::on_file(&stage.scratch, &format!("on-{name}"), file, &[])
}

/// All the bytes of a file that a disk of one byte has.
#[track_caller]
fn is_all(file: &Path, byte: u8) {
    let bytes = std::fs::read(file).expect("read an image");
    let others = bytes[..SIZE as usize].iter().filter(|it| **it != byte).count();
    assert_eq!(others, 0, "bytes of {} are not its disk's", file.display());
}

fn warned(stage: &Stage, disk: &str, of: &str) -> bool {
    let warnings = stage.daemon.warnings(&format!("disk {disk}"));
    warnings.iter().any(|warning| warning.contains(of))
}

/// Why a move stands still whose copy is not there. On a busy machine it pauses before it has
/// looked at what answers.
#[track_caller]
fn says_why(paused: &Value) {
    let reason = paused["reason"].as_str().unwrap_or_default();
    let reasons = [
        "another export answers at nbd+unix://",
        "connection to the destination is lost",
    ];
    assert!(reasons.iter().any(|it| reason.contains(it)), "{paused:#}");
    assert!(paused["hint"].is_string(), "{paused:#}");
}

#[test]
fn a_move_does_not_write_to_what_answers_where_its_copy_was() {
    for export in EXPORTS {
        let Some(stage) = Stage::given(CLIENTS) else { return };
        let server_of_y = disk_on(&stage, "y", 'Y', export);
        stage.daemon.sterna(&format!("disk create x --size {SIZE} --on here")).ok();
        fill(&stage, "x", 'X', 32);
        let mut copy = stage.nbd_server("on-copy", export, &[]);
        let id = stage.daemon.migrate("x --to on-copy --rate 8M --keep-source");
        stage.daemon.wait_for_bytes(id, 12 * MIB);
        copy.kill();
        // Both serve one file now.
        let mut wrong = in_the_place_of(&stage, "copy", server_of_y.file());
        let paused = stage.daemon.wait_for(id, "paused", seconds(30));
        says_why(&paused);
        is_all(server_of_y.file(), b'Y');
        // Nor if it is told to go on all the same.
        stage.daemon.sterna(&format!("migration resume {id}"));
        let again = until("it to be paused again", seconds(30), || {
            let migration = stage.daemon.migration(id);
            (migration["state"] == "paused").then_some(migration)
        });
        says_why(&again);
        is_all(server_of_y.file(), b'Y');
        wrong.kill();
        copy.restart();
        stage.daemon.sterna(&format!("migration set {id} --rate none")).ok();
        stage.daemon.resume(id);
        stage.daemon.completed(id);
        is_all(copy.file(), b'X');
        is_all(server_of_y.file(), b'Y');
    }
}

#[test]
fn a_move_does_not_seal_what_answers_new_clients_where_its_copy_is() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let export = SIZE + 65536;
    let server_of_y = disk_on(&stage, "y", 'Y', export);
    let of_y = std::fs::read(server_of_y.file()).expect("read an image");
    stage.daemon.sterna(&format!("disk create x --size {SIZE} --on here")).ok();
    fill(&stage, "x", 'X', 32);
    let mut copy = stage.nbd_server("on-copy", export, &[]);
    let id = stage.daemon.migrate("x --to on-copy --rate 8M --keep-source");
    stage.daemon.wait_for_bytes(id, 12 * MIB);
    // The server goes on with those that it has, and new clients come to another one.
    let mut wrong = in_the_place_of(&stage, "copy", server_of_y.file());
    stage.daemon.hurry(id);
    let paused = stage.daemon.wait_for(id, "paused", seconds(60));
    let reason = paused["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("its sidecar says disk y"), "{paused:#}");
    assert_eq!(std::fs::read(server_of_y.file()).expect("read an image"), of_y);
    wrong.kill();
    copy.kill();
    copy.restart();
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    is_all(copy.file(), b'X');
    assert_eq!(std::fs::read(server_of_y.file()).expect("read an image"), of_y);
}

#[test]
fn a_disk_is_not_read_from_another_one_s_export() {
    for export in EXPORTS {
        let Some(stage) = Stage::given(CLIENTS) else { return };
        let mut x = disk_on(&stage, "x", 'X', export);
        let mut y = disk_on(&stage, "y", 'Y', export);
        x.kill();
        y.kill();
        let mut swapped = [
            in_the_place_of(&stage, "x", y.file()),
            in_the_place_of(&stage, "y", x.file()),
        ];
        for disk in ["x", "y"] {
            until("somebody to be told", seconds(20), || {
                warned(&stage, disk, "another export answers at the address")
                    .then_some(())
            });
        }
        let shown = stage.daemon.json("disk show x").to_string();
        assert!(shown.contains("another export answers"), "{shown}");
        let uri = stage.daemon.uri("x");
        let waits = thread::spawn(move || {
            nbdsh(&uri, "h.pwrite(b'x' * 512, 0); print(bytes(h.pread(512, 4096)[:1]))")
        });
        for server in &mut swapped {
            server.kill();
        }
        is_all(y.file(), b'Y');
        x.restart();
        y.restart();
        assert_eq!(waits.join().expect("the client ends").trim(), "b'X'");
        until("nobody to be told any more", seconds(20), || {
            (!warned(&stage, "x", "another export")).then_some(())
        });
        is_all(y.file(), b'Y');
    }
}

#[test]
fn after_an_older_state_was_put_back_a_flush_fails_once() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    let mut server = disk_on(&stage, "d", 'O', SIZE);
    let older: PathBuf = stage.scratch.path("older.raw");
    std::fs::copy(server.file(), &older).expect("keep the state");
    fill(&stage, "d", 'N', 16);
    server.kill();
    std::fs::copy(&older, server.file()).expect("put the state back");
    server.restart();
    until("the loss to be known", seconds(20), || {
        warned(&stage, "d", "came back without writes that it had flushed").then_some(())
    });
    assert_eq!(flushes(&stage.daemon.uri("d"), 2), ["EIO", "ok"]);
    assert!(!warned(&stage, "d", "another export"));
    let read = nbdsh(&stage.daemon.uri("d"), "print(bytes(h.pread(512, 0)[:1]))");
    assert_eq!(read.trim(), "b'O'");
}

#[test]
fn a_copy_that_went_back_to_an_older_state_is_compared() {
    let Some(stage) = Stage::given(CLIENTS) else { return };
    stage.daemon.sterna(&format!("disk create x --size {SIZE} --on here")).ok();
    fill(&stage, "x", 'X', 32);
    let mut copy = stage.nbd_server("on-copy", SIZE, &[]);
    // Slow enough that the copy is flushed twice, which happens every 5 s: what the first
    // flush has covered is read then, and the second says that it must be there.
    let id = stage.daemon.migrate("x --to on-copy --rate 2M --keep-source");
    stage.daemon.wait_for_bytes(id, 28 * MIB);
    copy.kill();
    // Half of it is as it was before, here and there: of the few places that are remembered
    // some are equal and some differ.
    let mut older = std::fs::read(copy.file()).expect("read the state");
    older.chunks_mut(64 << 10).step_by(2).for_each(|stretch| stretch.fill(0));
    std::fs::write(copy.file(), older).expect("put an older state back");
    copy.restart();
    stage.daemon.sterna(&format!("migration set {id} --rate none")).ok();
    let shown = stage.daemon.migration(id);
    if shown["state"] == "paused" {
        stage.daemon.resume(id);
    }
    stage.daemon.completed(id);
    is_all(copy.file(), b'X');
    // The verification would have found it, too, place by place.
    let log = stage.daemon.log();
    assert!(log.contains("is back without writes that it had flushed"), "{log}");
}

#[test]
fn the_same_server_is_accepted_however_often_it_is_restarted_under_load() {
    for export in EXPORTS {
        let Some(stage) = Stage::given(CLIENTS) else { return };
        let mut server = disk_on(&stage, "d", 'D', export);
        let (uri, stop) = (stage.daemon.uri("d"), stage.scratch.path("stop"));
        // Each write is durable when it is answered, so there is nothing to forget.
        let script = format!(
            "
import os, random
done = 0
while not os.path.exists({:?}):
    at = random.randrange({SIZE} // 4096) * 4096
    h.pwrite(bytes([random.randrange(256)]) * 4096, at, flags=nbd.CMD_FLAG_FUA)
    if done % 8 == 0: h.flush()
    done += 1
print(done)
",
            stop.display().to_string()
        );
        let client = thread::spawn(move || nbdsh(&uri, &script));
        for _ in 0..10 {
            server.kill();
            server.restart();
            let read = nbdsh(&stage.daemon.uri("d"), "print(len(h.pread(512, 0)))");
            assert_eq!(read.trim(), "512");
        }
        std::fs::write(&stop, "").expect("say stop");
        let done = client.join().expect("the client ends without an error");
        assert!(done.trim().parse::<u64>().is_ok_and(|done| done > 10), "{done}");
        assert_eq!(stage.daemon.warnings("disk d"), Vec::<String>::new());
        let log = stage.daemon.log();
        assert!(!log.contains("another export") && !log.contains("is back without"));
    }
}
