//! The daemon is killed, at whatever moment, and its migrations go on when it
//! starts again.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use sterna_tests::images::{allocated, identical, identical_files};
use sterna_tests::programs::have;
use sterna_tests::random::Random;
use sterna_tests::servers::QemuClient;
use sterna_tests::wait::seconds;
use sterna_tests::{Checker, CheckerOptions, MIB, Stage, checker};

const KILLS: u32 = 20;
/// Two boots of the host.
const FIRST: &str = "11111111-1111-4111-8111-111111111111";
const SECOND: &str = "22222222-2222-4222-8222-222222222222";

#[test]
fn at_twenty_random_moments_nothing_is_lost() {
    let mut moments = Random::of_this_run();
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
    let mut id = stage.daemon.migrate("a --to there --rate 60M");
    let mut moves = 0;
    for _ in 0..KILLS {
        // The one place where time is the point: any moment is a good one.
        std::thread::sleep(Duration::from_millis(moments.below(600)));
        stage.daemon.kill();
        std::thread::sleep(Duration::from_millis(moments.below(100)));
        stage.daemon.restart();
        checker.wait_for_intervals(1);
        if stage.daemon.migration(id)["state"] == "completed" {
            assert_eq!(stage.daemon.disk("a")["datastore"], to);
            moves += 1;
            to = if to == "there" { "here" } else { "there" };
            id = stage.daemon.migrate(&format!("a --to {to} --rate 60M"));
        }
    }
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    println!("{} moves were completed", moves + 1);
    let summary = checker.finish_and_verify();
    assert!(summary["reconnects"].as_u64() >= Some(u64::from(KILLS)), "{summary}");
}

#[test]
fn close_to_the_switch_over_nothing_is_lost() {
    let mut moments = Random::of_this_run();
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
        stage.daemon.completed(id);
        assert_eq!(stage.daemon.disk("a")["datastore"], to);
        checker.wait_for_intervals(1);
    }
    checker.finish_and_verify();
}

#[test]
fn a_resumed_move_does_not_start_from_zero() {
    let mut stage = Stage::new();
    stage.disk_with_data("a", 128 * MIB, 128 * MIB);
    let id = stage.daemon.migrate("a --to there --rate 10M");
    // It takes 9 s, and the destination is flushed every 5 s: about half is durable.
    stage.daemon.wait_for_bytes(id, 90 * MIB);
    stage.daemon.kill();
    stage.daemon.restart();
    let resumed = &stage.daemon.migration(id)["progress"];
    let believed = resumed["synced"].as_u64().expect("a number");
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    assert!(believed >= 32 * MIB, "of 90 MiB {believed} bytes were believed");
}

#[test]
fn a_paused_move_stays_paused_over_a_restart() {
    let mut stage = Stage::new();
    stage.disk_with_data("a", 128 * MIB, 128 * MIB);
    let id = stage.daemon.migrate("a --to there --rate 20M");
    stage.daemon.wait_for_bytes(id, 8 * MIB);
    stage.daemon.pause(id);
    stage.daemon.kill();
    stage.daemon.restart();
    let shown = stage.daemon.wait_for(id, "paused", seconds(10));
    assert!(shown["reason"].is_string(), "{shown:#}");
    stage.daemon.hurry(id);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
}

#[test]
fn a_move_whose_image_is_gone_after_a_restart_says_so_and_goes_on_when_it_is_back() {
    let mut stage = Stage::new();
    stage.disk_with_data("a", 64 * MIB, 64 * MIB);
    let id = stage.daemon.migrate("a --to there --rate 20M");
    stage.daemon.wait_for_bytes(id, 8 * MIB);
    stage.daemon.kill();
    let (image, away) = (stage.here.join("a.raw"), stage.here.join("away"));
    std::fs::rename(&image, &away).expect("move the image away");
    stage.daemon.restart();
    let shown = stage.daemon.wait_for(id, "paused", seconds(10));
    let reason = shown["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("disk a is not served: "), "{shown:#}");
    let status = stage.daemon.json("status");
    assert_eq!(status["counts"]["migrations_paused"], 1);
    let warnings = status["warnings"].as_array().expect("a list of warnings");
    let about = |what: &str| warnings.iter().any(|warning| warning["about"] == what);
    assert!(about("disk a") && about(&format!("migration {id}")), "{status:#}");
    std::fs::rename(&away, &image).expect("put the image back");
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
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
    stage.daemon.completed(id);
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
    let copy = stage.there.join("a.raw");
    let before = allocated(&copy);
    // What a power cut does to writes that were not flushed: they are gone.
    spoil(&copy);
    stage.daemon.variable("STERNA_BOOT_ID", SECOND);
    stage.daemon.restart();
    stage.daemon.hurry(id);
    let done = stage.daemon.completed(id);
    identical_files(&source, &stage.daemon.image("a"));
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
    file.write_all_at(&vec![7; SPOILT as usize], 8 * MIB).expect("spoil the copy");
}

#[test]
fn an_nbd_server_that_was_restarted_while_the_daemon_was_gone_is_compared() {
    let Some(mut stage) = Stage::given(&["nbdkit", "qemu-img"]) else { return };
    stage.disk_with_data("a", 128 * MIB, 128 * MIB);
    let source = stage.daemon.image("a");
    let mut server = stage.nbd_server("remote", 129 * MIB, &[]);
    let id = stage.daemon.migrate("a --to remote --rate 10M --keep-source");
    // It takes 9 s, and the destination is flushed every 5 s: about half is durable.
    stage.daemon.wait_for_bytes(id, 90 * MIB);
    stage.daemon.kill();
    server.kill();
    // Nobody had told it to keep all that it was given, and it has not.
    spoil(server.file());
    server.restart();
    stage.daemon.restart();
    let copied = |of: &Value| of["copied"].as_u64().expect("a number");
    let before = copied(&stage.daemon.migration(id)["progress"]);
    stage.daemon.hurry(id);
    let done = stage.daemon.completed(id);
    identical(&source.display().to_string(), &stage.daemon.uri("a"));
    let again = copied(&done["report"]) - before;
    assert!(
        again <= 96 * MIB + SPOILT,
        "{again} bytes were copied: what was equal should only be compared"
    );
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
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    checker.finish_and_verify();
}

#[test]
fn qemu_waits_for_the_daemon_and_its_guest_sees_nothing() {
    let Some(mut stage) = Stage::given(&["qemu-storage-daemon"]) else { return };
    stage.disk("a", 128 * MIB);
    let socket = stage.scratch.socket("qemu.sock");
    let qemu = QemuClient::start(&socket, stage.daemon.nbd_socket(), "a");
    let log = stage.checked("a");
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
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    let summary = checker.finish();
    assert_eq!(summary["reconnects"], 0, "QEMU should have hidden it: {summary}");
    drop(qemu);
    checker::verify(&stage.daemon.uri("a"), &log);
}
