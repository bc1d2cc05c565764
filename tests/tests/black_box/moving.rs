//! A disk moves while it is in use, and nothing is lost.
//!
//! The application is the checker or fio with verification; they see no error,
//! and every acknowledged write is there afterwards.

use std::time::Instant;

use serde_json::Value;
use sterna_tests::clients::{Fio, nbdsh_without_sizes};
use sterna_tests::images::{identical, identical_files};
use sterna_tests::wait::seconds;
use sterna_tests::{Checker, CheckerOptions, MIB, Stage, until};

const SIZE: u64 = 192 * MIB;

/// Trims and zeroes as well, small blocks, and data everywhere at first.
fn load() -> CheckerOptions {
    CheckerOptions::gentle(1500)
        .with("--block", 512)
        .with("--trims", 4)
        .with("--zeroes", 4)
        .flag("--blank")
        .flag("--fill")
}

/// Moves disk `a` as `line` says while a checker is at work on it; nothing that
/// was acknowledged may be lost. Gives the migration, and what the checker says.
#[track_caller]
fn moves_under(options: &CheckerOptions, stage: &Stage, line: &str) -> (Value, Value) {
    let mut checker = stage.checker("a", options);
    checker.wait_for_intervals(5);
    let id = stage.daemon.migrate(line);
    let done = stage.daemon.completed(id);
    checker.wait_for_intervals(5);
    (done, checker.finish_and_verify())
}

/// Moves disk `a`, of `SIZE` bytes, to datastore `to` with everything that is
/// promised, but for how long its switch-over takes, which other tests have a part in (see
/// `timed::switching_over`).
#[track_caller]
fn moves_unnoticed(stage: &Stage, to: &str) {
    let line = format!("a --to {to}");
    let (done, summary) = moves_under(&load(), stage, &line);
    assert_eq!(done["report"]["verified"].as_u64(), Some(SIZE), "{done:#}");
    assert_eq!(summary["reconnects"], 0, "{summary}");
    assert_eq!(stage.daemon.disk("a")["datastore"], to);
}

/// Moves disk `a` to datastore `to` and home again.
#[track_caller]
fn moves_there_and_back(stage: &Stage, to: &str) {
    stage.disk("a", SIZE);
    moves_unnoticed(stage, to);
    let options = CheckerOptions::gentle(1500).flag("--fill");
    moves_under(&options, stage, "a --to here");
}

#[test]
fn from_a_directory_to_a_directory() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    moves_unnoticed(&stage, "there");
    let image = stage.here.join("a.raw");
    assert!(!image.exists(), "the old image should be gone");
}

#[test]
fn from_a_directory_to_a_directory_through_the_thread_pool() {
    let stage = Stage::with_threads();
    stage.disk("a", SIZE);
    moves_unnoticed(&stage, "there");
}

#[test]
fn from_a_directory_to_an_nbd_server_and_back() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let _server = stage.nbd_server("remote", SIZE + MIB, &[]);
    moves_there_and_back(&stage, "remote");
}

#[test]
fn from_a_directory_to_a_block_device_and_back() {
    let Some(stage) = Stage::given_root(&["losetup"]) else { return };
    let _device = stage.block_device("device", SIZE + MIB);
    moves_there_and_back(&stage, "device");
}

#[test]
fn under_fio_with_verification() {
    let Some(stage) = Stage::given(&["fio"]) else { return };
    let uri = stage.disk("a", SIZE);
    let settings = format!(
        "rw=randwrite\nbs=16k\niodepth=16\nsize={SIZE}\nrate_iops=1500\nloops=3\n\
         verify=crc32c\nverify_fatal=1\nverify_backlog=256"
    );
    let fio = Fio::start(&uri, &settings);
    until("fio to write", seconds(30), || {
        let written = stage.daemon.disk("a")["activity"]["writes"].as_u64();
        (written > Some(500)).then_some(())
    });
    for to in ["there", "here"] {
        let id = stage.daemon.migrate(&format!("a --to {to}"));
        stage.daemon.completed(id);
    }
    fio.finish();
}

#[test]
fn a_disk_with_an_odd_end_moves_whole() {
    let stage = Stage::new();
    stage.disk("a", 40 * MIB + 3 * 512);
    let options = CheckerOptions::gentle(1000).with("--block", 512).flag("--fill");
    moves_under(&options, &stage, "a --to there");
}

#[test]
fn parts_of_blocks_that_are_written_meanwhile_move_along() {
    let Some(stage) = Stage::given(&["nbdsh"]) else { return };
    let uri = stage.disk("a", 40 * MIB);
    let over = stage.scratch.path("over");
    let script = format!(
        r#"
import os, random
dice = random.Random(3)
size = h.get_size()
model = bytearray(size)
h.pwrite(b"x" * (20 << 20), 7)
model[7:7 + (20 << 20)] = b"x" * (20 << 20)
open("{over}.begun", "w").close()
while not os.path.exists("{over}"):
    data = dice.randbytes(1 + dice.randrange(5000))
    offset = dice.randrange(size - len(data))
    h.pwrite(data, offset)
    model[offset:offset + len(data)] = data
for offset in range(0, size, 8 << 20):
    assert h.pread(8 << 20, offset) == model[offset:offset + (8 << 20)], offset
"#,
        over = over.display()
    );
    std::thread::scope(|scope| {
        let client = scope.spawn(|| nbdsh_without_sizes(&uri, &script));
        let begun = stage.scratch.path("over.begun");
        until("the client to begin", seconds(60), || begun.exists().then_some(()));
        let id = stage.daemon.migrate("a --to there --rate 10M");
        stage.daemon.completed(id);
        std::fs::write(&over, "").expect("tell the client");
        client.join().expect("the client finds what it wrote");
    });
}

#[test]
fn paused_resumed_and_verified_both_images_are_identical() {
    let Some(stage) = Stage::given(&["qemu-img"]) else { return };
    stage.disk("a", SIZE);
    let mut checker = stage.checker("a", &load());
    let source = stage.daemon.image("a");
    let id = stage.daemon.migrate("a --to there --rate 40M --keep-source");
    stage.daemon.wait_for_bytes(id, 32 * MIB);
    stage.daemon.pause(id);
    stands_still(&stage, id, &mut checker);
    // The client stops, so that both images can be compared afterwards.
    checker.finish_and_verify();
    stage.daemon.hurry(id);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    identical_files(&source, &stage.daemon.image("a"));
    identical(&source.display().to_string(), &stage.daemon.uri("a"));
}

/// A paused move copies nothing once what was on its way has arrived.
fn stands_still(stage: &Stage, id: u64, checker: &mut Checker) {
    let copied = || stage.daemon.migration(id)["progress"]["copied"].as_u64();
    until("the paused move to stand still", seconds(30), || {
        let before = copied();
        checker.wait_for_intervals(5);
        (copied() == before).then_some(())
    });
}

#[test]
fn cancelled_under_load_the_source_has_everything() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    let mut checker = stage.checker("a", &load());
    let id = stage.daemon.migrate("a --to there --rate 40M");
    stage.daemon.wait_for_bytes(id, 32 * MIB);
    stage.daemon.cancel(id);
    checker.wait_for_intervals(3);
    let summary = checker.finish_and_verify();
    assert_eq!(summary["reconnects"], 0, "{summary}");
    assert_eq!(stage.daemon.disk("a")["datastore"], "here");
    assert!(!stage.there.join("a.raw").exists(), "the copy should be gone");
}

#[test]
fn a_cancel_does_not_wait_until_the_guest_has_nothing_under_way() {
    let stage = Stage::new();
    let slow = stage.scratch.dir("slow");
    let location = format!("{} --shape iops=250,latency=5ms", slow.display());
    stage.datastore("slow", location);
    stage.daemon.sterna("disk create a --size 16M --on slow").ok();
    let mut checker = stage.checker("a", &CheckerOptions::hard(8));
    checker.wait_for_intervals(2);
    for _ in 0..3 {
        let id = stage.daemon.migrate("a --to there --no-verify");
        let began = Instant::now();
        stage.daemon.cancel(id);
        let took = began.elapsed();
        assert!(took < seconds(10), "the cancel took {took:?}");
        checker.wait_for_intervals(2);
    }
    checker.finish_and_verify();
}

#[test]
fn there_and_back_and_there_again() {
    let stage = Stage::new();
    stage.disk("a", 64 * MIB);
    let mut checker = stage.checker("a", &load());
    let mut generation = 0;
    for to in ["there", "here", "there", "here"] {
        let id = stage.daemon.migrate(&format!("a --to {to}"));
        stage.daemon.completed(id);
        let now = stage.daemon.disk("a")["generation"].as_u64().expect("one");
        assert!(now > generation, "each move should raise the generation");
        generation = now;
        checker.wait_for_intervals(2);
    }
    checker.finish_and_verify();
}

#[test]
fn two_disks_move_in_opposite_directions() {
    let stage = Stage::new();
    stage.disk("a", 64 * MIB);
    stage.daemon.sterna("disk create b --size 64M --on there").ok();
    let options = CheckerOptions::gentle(700).flag("--fill");
    let (a, b) = (stage.checker("a", &options), stage.checker("b", &options));
    let first = stage.daemon.migrate("a --to there");
    let second = stage.daemon.migrate("b --to here");
    stage.daemon.completed(first);
    stage.daemon.completed(second);
    a.finish_and_verify();
    b.finish_and_verify();
}

#[test]
fn an_idle_disk_with_no_client_moves_too() {
    let Some(stage) = Stage::given(&["qemu-img"]) else { return };
    stage.disk_with_data("a", SIZE, 64 * MIB);
    let source = stage.daemon.image("a");
    stage.daemon.sterna("migrate a --to there --keep-source").ok();
    identical_files(&source, &stage.daemon.image("a"));
}

#[test]
fn to_a_shaped_datastore_at_its_pace() {
    let stage = Stage::new();
    let dir = stage.scratch.dir("slow");
    let location = format!("{} --shape mbps=40,latency=1ms", dir.display());
    stage.datastore("slow", location);
    stage.disk("a", 64 * MIB);
    let options = CheckerOptions::gentle(300).with("--size", 4096).flag("--fill");
    let checker = stage.checker("a", &options);
    let began = std::time::Instant::now();
    let id = stage.daemon.migrate("a --to slow");
    stage.daemon.completed(id);
    let took = began.elapsed().as_secs_f64();
    // 67 MB at 40 MB/s are 1.7 s; a bucket may give the first moments for
    // nothing.
    assert!(took > 1.2, "64 MiB at 40 MB/s took only {took:.1} s");
    checker.finish_and_verify();
}
