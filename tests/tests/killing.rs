//! The daemon is killed, at whatever moment, and its migrations go on when it
//! starts again.

use std::path::Path;
use std::time::Duration;

use sterna_tests::clients::identical;
use sterna_tests::programs::have;
use sterna_tests::servers::{Nbdkit, QemuClient};
use sterna_tests::wait::seconds;
use sterna_tests::{Checker, CheckerOptions, MIB, Stage, checker};

const KILLS: u32 = 20;
/// Two boots of the machine.
const FIRST: &str = "11111111-1111-4111-8111-111111111111";
const SECOND: &str = "22222222-2222-4222-8222-222222222222";

/// A little generator for the moments to kill at; the seed is printed when
/// the test fails, because it is printed always.
struct Moments(u64);

impl Moments {
    fn new() -> Moments {
        let seed = checker::seed().unwrap_or_else(checker::now_ms);
        println!("seed {seed} (STERNA_TEST_SEED)");
        Moments(seed | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn at_twenty_random_moments_nothing_is_lost() {
    let mut moments = Moments::new();
    let mut stage = Stage::new();
    stage.disk("a", 256 * MIB);
    let options = CheckerOptions::gentle(2000)
        .with("--connections", 2)
        .with("--trims", 3)
        .with("--zeroes", 3)
        .with("--block", 512)
        .flag("--fill");
    let mut checker = stage.checker("a", &options);
    let mut to = "there";
    let mut id = stage.daemon.migrate("a --to there --rate 60M --verify");
    let mut moves = 0;
    for _ in 0..KILLS {
        // The one place where time is the point: any moment is a good one.
        std::thread::sleep(Duration::from_millis(moments.below(600)));
        stage.daemon.kill();
        std::thread::sleep(Duration::from_millis(moments.below(100)));
        stage.daemon.restart();
        checker.wait_for_intervals(1);
        if stage.daemon.migration(id)["state"] == "completed" {
            assert_eq!(stage.daemon.json("disk show a")["datastore"], to);
            moves += 1;
            to = if to == "there" { "here" } else { "there" };
            id = stage.daemon.migrate(&format!("a --to {to} --rate 60M --verify"));
        }
    }
    stage.daemon.sterna(&format!("migration set {id} --rate none"));
    stage.daemon.wait_for(id, "completed", seconds(120));
    println!("{} moves were completed", moves + 1);
    let summary = checker.finish_and_verify();
    assert!(summary["reconnects"].as_u64() >= Some(u64::from(KILLS)), "{summary}");
}

#[test]
fn close_to_the_switch_over_nothing_is_lost() {
    let mut moments = Moments::new();
    let mut stage = Stage::new();
    stage.disk("a", 32 * MIB);
    let options = CheckerOptions::gentle(2000).flag("--fill");
    let mut checker = stage.checker("a", &options);
    for round in 0..8 {
        let to = if round % 2 == 0 { "there" } else { "here" };
        let id = stage.daemon.migrate(&format!("a --to {to}"));
        stage.daemon.wait_for_bytes(id, 24 * MIB);
        std::thread::sleep(Duration::from_millis(moments.below(60)));
        stage.daemon.kill();
        stage.daemon.restart();
        stage.daemon.wait_for(id, "completed", seconds(60));
        assert_eq!(stage.daemon.json("disk show a")["datastore"], to);
        checker.wait_for_intervals(1);
    }
    checker.finish_and_verify();
}

#[test]
fn a_resumed_move_does_not_start_from_zero() {
    let mut stage = Stage::new();
    stage.disk_with_data("a", 128 * MIB, 128 * MIB);
    let id = stage.daemon.migrate("a --to there --rate 40M");
    stage.daemon.wait_for_bytes(id, 64 * MIB);
    stage.daemon.kill();
    stage.daemon.restart();
    let resumed = stage.daemon.wait_for_bytes(id, 60 * MIB);
    let copied = resumed["progress"]["copied"].as_u64().expect("a number");
    stage.daemon.sterna(&format!("migration set {id} --rate none"));
    let done = stage.daemon.wait_for(id, "completed", seconds(60));
    let total = done["report"]["copied"].as_u64().expect("a number");
    assert!(
        total < 160 * MIB,
        "128 MiB took {total} bytes of copying ({copied} soon after the restart)"
    );
}

#[test]
fn a_paused_move_stays_paused_over_a_restart() {
    let mut stage = Stage::new();
    stage.disk_with_data("a", 128 * MIB, 128 * MIB);
    let id = stage.daemon.migrate("a --to there --rate 20M");
    stage.daemon.wait_for_bytes(id, 8 * MIB);
    stage.daemon.sterna(&format!("migration pause {id}")).ok();
    stage.daemon.wait_for(id, "paused", seconds(10));
    stage.daemon.kill();
    stage.daemon.restart();
    let shown = stage.daemon.wait_for(id, "paused", seconds(10));
    assert!(shown["reason"].is_string(), "{shown:#}");
    stage.daemon.sterna(&format!("migration set {id} --rate none")).ok();
    stage.daemon.sterna(&format!("migration resume {id}")).ok();
    stage.daemon.wait_for(id, "completed", seconds(60));
}

#[test]
fn an_orderly_stop_in_the_middle_is_no_loss_either() {
    let mut stage = Stage::new();
    stage.disk("a", 128 * MIB);
    let checker = stage.checker("a", &CheckerOptions::gentle(1000).flag("--fill"));
    let id = stage.daemon.migrate("a --to there --rate 60M");
    stage.daemon.wait_for_bytes(id, 32 * MIB);
    stage.daemon.stop();
    stage.daemon.restart();
    stage.daemon.wait_for(id, "completed", seconds(60));
    checker.finish_and_verify();
}

/// The length of the part that the destination got wrong behind our back.
const SPOILT: u64 = 512 << 10;

#[test]
fn after_a_power_cut_what_differs_is_copied_and_nothing_else() {
    if !have(&["qemu-img"]) {
        return;
    }
    let mut stage = Stage::with(|daemon| daemon.variable("STERNA_BOOT_ID", FIRST));
    stage.disk_with_data("a", 128 * MIB, 128 * MIB);
    let source = stage.daemon.image("a");
    let id = stage.daemon.migrate("a --to there --rate 40M --keep-source");
    stage.daemon.wait_for_bytes(id, 64 * MIB);
    stage.daemon.kill();
    let before = copied_bytes(&stage);
    // What a power cut does to writes that were not flushed: they are gone.
    spoil(&stage.there.join("a.raw"));
    stage.daemon.variable("STERNA_BOOT_ID", SECOND);
    stage.daemon.restart();
    stage.daemon.sterna(&format!("migration set {id} --rate none"));
    let done = stage.daemon.wait_for(id, "completed", seconds(60));
    identical_images(&stage, &source);
    // What was on both sides was compared, not copied; what was spoilt was
    // copied, and so was the rest of the disk.
    let copied = done["report"]["copied"].as_u64().expect("a number");
    let rest = 128 * MIB - 64 * MIB;
    assert!(
        copied <= before + rest + SPOILT + 16 * MIB,
        "{copied} bytes were copied: too much ({before} were on the other side)"
    );
}

/// Spoils a part of the copy that was copied long ago.
fn spoil(copy: &Path) {
    let file = std::fs::OpenOptions::new().write(true).open(copy).expect("open");
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; SPOILT as usize], 8 * MIB)
        .expect("spoil the copy");
}

#[test]
fn an_nbd_server_that_was_restarted_while_the_daemon_was_gone_is_compared() {
    if !have(&["nbdkit", "qemu-img"]) {
        return;
    }
    let mut stage = Stage::new();
    stage.disk_with_data("a", 128 * MIB, 128 * MIB);
    let source = stage.daemon.image("a");
    let copy = stage.scratch.path("remote.raw");
    std::fs::File::create(&copy)
        .and_then(|file| file.set_len(129 * MIB))
        .expect("a file");
    let mut server = Nbdkit::start(&stage.scratch.socket("nbdkit"), &copy, &[]);
    stage.daemon.sterna(&format!("datastore add remote {}", server.location())).ok();
    let id = stage.daemon.migrate("a --to remote --rate 40M --keep-source");
    stage.daemon.wait_for_bytes(id, 64 * MIB);
    stage.daemon.kill();
    server.kill();
    // Nobody had told it to keep what it was given, and it has not.
    spoil(&copy);
    server.restart();
    stage.daemon.restart();
    stage.daemon.sterna(&format!("migration set {id} --rate none"));
    let done = stage.daemon.wait_for(id, "completed", seconds(60));
    identical(&source.display().to_string(), &stage.daemon.uri("a"));
    let copied = done["report"]["copied"].as_u64().expect("a number");
    assert!(
        copied <= 128 * MIB + SPOILT + 16 * MIB,
        "{copied} bytes were copied: what was equal should only be compared"
    );
}

/// What the copy takes by now.
fn copied_bytes(stage: &Stage) -> u64 {
    sterna_tests::places::allocated(&stage.there.join("a.raw"))
}

fn identical_images(stage: &Stage, source: &Path) {
    sterna_tests::clients::identical_files(source, &stage.daemon.image("a"));
}

#[test]
fn after_a_power_cut_under_load_everything_acknowledged_is_there() {
    let mut stage = Stage::with(|daemon| daemon.variable("STERNA_BOOT_ID", FIRST));
    stage.disk("a", 128 * MIB);
    let checker = stage.checker("a", &CheckerOptions::gentle(1000).flag("--fill"));
    let id = stage.daemon.migrate("a --to there --rate 60M");
    stage.daemon.wait_for_bytes(id, 48 * MIB);
    stage.daemon.kill();
    stage.daemon.variable("STERNA_BOOT_ID", SECOND);
    stage.daemon.restart();
    stage.daemon.sterna(&format!("migration set {id} --rate none"));
    stage.daemon.wait_for(id, "completed", seconds(120));
    checker.finish_and_verify();
}

#[test]
fn qemu_waits_for_the_daemon_and_its_guest_sees_nothing() {
    if !have(&["qemu-storage-daemon"]) {
        return;
    }
    let mut stage = Stage::new();
    stage.disk("a", 128 * MIB);
    let socket = stage.scratch.socket("qemu.sock");
    let qemu = QemuClient::start(&socket, stage.daemon.nbd_socket(), "a");
    let log = stage.scratch.path("a.checked");
    let options = CheckerOptions::gentle(800).flag("--fill");
    let mut checker = Checker::start(&qemu.uri(), &log, &options);
    // Slowly: QEMU may take seconds to come back, and the move goes on meanwhile.
    let id = stage.daemon.migrate("a --to there --rate 8M");
    for bytes in [4 * MIB, 40 * MIB] {
        stage.daemon.wait_for_bytes(id, bytes);
        stage.daemon.kill();
        stage.daemon.restart();
        checker.wait_for_intervals(1);
    }
    stage.daemon.sterna(&format!("migration set {id} --rate none")).ok();
    stage.daemon.wait_for(id, "completed", seconds(60));
    let summary = checker.finish();
    assert_eq!(summary["reconnects"], 0, "QEMU should have hidden it: {summary}");
    drop(qemu);
    checker::verify(&stage.daemon.uri("a"), &log);
}
