//! A disk moves while it is in use, and nothing is lost.
//!
//! The application is the checker or fio with verification; they see no error,
//! and every acknowledged write is there afterwards.

use std::process::Stdio;

use sterna_tests::clients::{identical, identical_files};
use sterna_tests::places::Loop;
use sterna_tests::programs::{both, command, have, root};
use sterna_tests::servers::Nbdkit;
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, MIB, Stage};

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

/// Moves disk `a` to datastore `to` under the checker's load.
#[track_caller]
fn move_under_load(stage: &Stage, to: &str) {
    let mut checker = stage.checker("a", &load());
    checker.wait_for_intervals(5);
    let id = stage.daemon.migrate(&format!("a --to {to} --verify"));
    let done = stage.daemon.wait_for(id, "completed", seconds(120));
    assert_eq!(done["report"]["verified"].as_u64(), Some(SIZE), "{done:#}");
    let held = done["report"]["switch_over_ms"].as_f64().expect("a length");
    assert!(held <= 100.0, "the switch-over took {held} ms");
    checker.wait_for_intervals(5);
    let summary = checker.finish_and_verify();
    assert_eq!(summary["reconnects"], 0, "{summary}");
    assert_eq!(stage.daemon.json("disk show a")["datastore"], to);
}

#[test]
fn from_a_directory_to_a_directory() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    move_under_load(&stage, "there");
    let image = stage.here.join("a.raw");
    assert!(!image.exists(), "the old image should be gone");
}

#[test]
fn from_a_directory_to_a_directory_through_the_thread_pool() {
    let stage = Stage::with(|daemon| {
        daemon.argument("--io");
        daemon.argument("threads");
    });
    stage.disk("a", SIZE);
    move_under_load(&stage, "there");
}

#[test]
fn from_a_directory_to_an_nbd_server_and_back() {
    if !have(&["nbdkit"]) {
        return;
    }
    let stage = Stage::new();
    let file = stage.scratch.path("remote.raw");
    std::fs::File::create(&file)
        .and_then(|file| file.set_len(SIZE + MIB))
        .expect("a file");
    let server = Nbdkit::start(&stage.scratch.socket("nbdkit"), &file, &[]);
    stage.daemon.sterna(&format!("datastore add remote {}", server.location())).ok();
    stage.disk("a", SIZE);
    move_under_load(&stage, "remote");
    std::fs::remove_file(stage.scratch.path("a.checked")).expect("remove the log");
    let mut checker = stage.checker("a", &CheckerOptions::gentle(1500).flag("--fill"));
    checker.wait_for_intervals(3);
    let id = stage.daemon.migrate("a --to here");
    stage.daemon.wait_for(id, "completed", seconds(120));
    checker.finish_and_verify();
}

#[test]
fn from_a_directory_to_a_block_device_and_back() {
    if !root() || !have(&["losetup"]) {
        return;
    }
    let stage = Stage::new();
    let device = Loop::new(&stage.scratch.path("backing"), SIZE + MIB);
    let line = format!("datastore add device {}", device.device().display());
    stage.daemon.sterna(&line).ok();
    stage.disk("a", SIZE);
    move_under_load(&stage, "device");
    std::fs::remove_file(stage.scratch.path("a.checked")).expect("remove the log");
    let mut checker = stage.checker("a", &CheckerOptions::gentle(1500).flag("--fill"));
    checker.wait_for_intervals(3);
    let id = stage.daemon.migrate("a --to here");
    stage.daemon.wait_for(id, "completed", seconds(120));
    checker.finish_and_verify();
}

#[test]
fn at_full_load_with_four_connections() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    let options = CheckerOptions::hard(64)
        .with("--connections", 4)
        .with("--trims", 3)
        .with("--zeroes", 3)
        .with("--span", 96 * MIB)
        .flag("--fill");
    let mut checker = stage.checker("a", &options);
    checker.wait_for_intervals(3);
    let id = stage.daemon.migrate("a --to there");
    stage.daemon.wait_for(id, "completed", seconds(180));
    checker.wait_for_intervals(3);
    checker.finish_and_verify();
}

#[test]
fn under_fio_with_verification() {
    if !have(&["fio"]) {
        return;
    }
    let stage = Stage::new();
    let uri = stage.disk("a", SIZE);
    let job = stage.scratch.path("job.fio");
    let text = format!(
        "[global]\nioengine=nbd\nuri={uri}\n[verified]\nrw=randwrite\nbs=16k\n\
         iodepth=16\nsize={SIZE}\nrate_iops=1500\nloops=3\nverify=crc32c\n\
         verify_fatal=1\nverify_backlog=256\nverify_state_save=0\n"
    );
    std::fs::write(&job, text).expect("write the job file");
    let fio = command("fio")
        .arg(&job)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start fio");
    sterna_tests::until("fio to write", seconds(30), || {
        let written = stage.daemon.json("disk show a")["activity"]["writes"].as_u64();
        (written > Some(500)).then_some(())
    });
    for to in ["there", "here"] {
        let id = stage.daemon.migrate(&format!("a --to {to} --verify"));
        stage.daemon.wait_for(id, "completed", seconds(120));
    }
    let output = fio.wait_with_output().expect("wait for fio");
    assert!(output.status.success(), "fio failed:\n{}", both(&output));
}

#[test]
fn a_disk_with_an_odd_end_moves_whole() {
    let stage = Stage::new();
    let size = 40 * MIB + 3 * 512;
    stage.disk("a", size);
    let options = CheckerOptions::gentle(1000).with("--block", 512).flag("--fill");
    let mut checker = stage.checker("a", &options);
    checker.wait_for_intervals(3);
    let id = stage.daemon.migrate("a --to there --verify");
    stage.daemon.wait_for(id, "completed", seconds(60));
    checker.finish_and_verify();
}

#[test]
fn paused_resumed_and_verified_both_images_are_identical() {
    if !have(&["qemu-img"]) {
        return;
    }
    let stage = Stage::new();
    stage.disk("a", SIZE);
    let mut checker = stage.checker("a", &load());
    let source = stage.daemon.image("a");
    let id = stage.daemon.migrate("a --to there --rate 40M --verify --keep-source");
    stage.daemon.wait_for_bytes(id, 32 * MIB);
    stage.daemon.sterna(&format!("migration pause {id}")).ok();
    let paused = stage.daemon.wait_for(id, "paused", seconds(10));
    let before = paused["progress"]["copied"].as_u64();
    checker.wait_for_intervals(5);
    let after = stage.daemon.migration(id)["progress"]["copied"].as_u64();
    assert_eq!(before, after, "a paused move should not copy");
    // The client stops, so that both images can be compared afterwards.
    checker.finish_and_verify();
    stage.daemon.sterna(&format!("migration set {id} --rate none")).ok();
    stage.daemon.sterna(&format!("migration resume {id}")).ok();
    stage.daemon.wait_for(id, "completed", seconds(120));
    identical_files(&source, &stage.daemon.image("a"));
    identical(&source.display().to_string(), &stage.daemon.uri("a"));
}

#[test]
fn cancelled_under_load_the_source_has_everything() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    let mut checker = stage.checker("a", &load());
    let id = stage.daemon.migrate("a --to there --rate 40M");
    stage.daemon.wait_for_bytes(id, 32 * MIB);
    stage.daemon.sterna(&format!("migration cancel {id}")).ok();
    stage.daemon.wait_for(id, "cancelled", seconds(20));
    checker.wait_for_intervals(3);
    let summary = checker.finish_and_verify();
    assert_eq!(summary["reconnects"], 0, "{summary}");
    assert_eq!(stage.daemon.json("disk show a")["datastore"], "here");
    assert!(!stage.there.join("a.raw").exists(), "the copy should be gone");
}

#[test]
fn there_and_back_and_there_again() {
    let stage = Stage::new();
    stage.disk("a", 64 * MIB);
    let mut checker = stage.checker("a", &load());
    let mut generation = 0;
    for to in ["there", "here", "there", "here"] {
        let id = stage.daemon.migrate(&format!("a --to {to}"));
        stage.daemon.wait_for(id, "completed", seconds(60));
        let now = stage.daemon.json("disk show a")["generation"].as_u64().expect("one");
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
    stage.daemon.wait_for(first, "completed", seconds(60));
    stage.daemon.wait_for(second, "completed", seconds(60));
    a.finish_and_verify();
    b.finish_and_verify();
}

#[test]
fn an_idle_disk_with_no_client_moves_too() {
    if !have(&["qemu-img"]) {
        return;
    }
    let stage = Stage::new();
    stage.disk_with_data("a", SIZE, 64 * MIB);
    let source = stage.daemon.image("a");
    stage.daemon.sterna("migrate a --to there --keep-source").ok();
    identical_files(&source, &stage.daemon.image("a"));
}

#[test]
fn to_a_shaped_datastore_at_its_pace() {
    let stage = Stage::new();
    let dir = stage.scratch.dir("slow");
    let line =
        format!("datastore add slow {} --shape mbps=40,latency=1ms", dir.display());
    stage.daemon.sterna(&line).ok();
    stage.disk("a", 64 * MIB);
    let options = CheckerOptions::gentle(300).with("--size", 4096).flag("--fill");
    let checker = stage.checker("a", &options);
    let began = std::time::Instant::now();
    let id = stage.daemon.migrate("a --to slow");
    stage.daemon.wait_for(id, "completed", seconds(60));
    let took = began.elapsed().as_secs_f64();
    // 67 MB at 40 MB/s are 1.7 s; a bucket may give the first moments for
    // nothing.
    assert!(took > 1.2, "64 MiB at 40 MB/s took only {took:.1} s");
    checker.finish_and_verify();
}
