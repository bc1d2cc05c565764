//! Thin stays thin, and thick becomes what was asked for.

use sterna_tests::clients::nbdsh;
use sterna_tests::images::{allocated, identical};
use sterna_tests::{CheckerOptions, MIB, Stage};

const SIZE: u64 = 10 << 30;
const DATA: u64 = 1 << 30;
/// File systems round up, and metadata counts.
const SLACK: u64 = 16 * MIB;

#[test]
fn ten_gigabytes_with_one_of_data_take_one_on_a_directory() {
    let Some(stage) = Stage::given(&["qemu-img"]) else { return };
    stage.disk_with_data("a", SIZE, DATA);
    let source = stage.daemon.image("a").display().to_string();
    stage.daemon.sterna("migrate a --to there --keep-source").ok();
    let image = stage.daemon.image("a");
    let taken = allocated(&image);
    assert!((DATA..=DATA + SLACK).contains(&taken), "it takes {taken} bytes");
    identical(&source, &image.display().to_string());
}

#[test]
fn ten_gigabytes_with_one_of_data_take_one_behind_an_nbd_server() {
    let Some(stage) = Stage::given(&["nbdkit", "qemu-img"]) else { return };
    let server = stage.nbd_server("remote", SIZE, &[]);
    stage.disk_with_data("a", SIZE, DATA);
    let source = stage.daemon.image("a").display().to_string();
    stage.daemon.sterna("migrate a --to remote --keep-source").ok();
    let taken = allocated(server.file());
    assert!((DATA..=DATA + SLACK).contains(&taken), "it takes {taken} bytes");
    identical(&source, &stage.daemon.uri("a"));
}

#[test]
fn zeroes_that_were_written_are_not_written_again() {
    let stage = Stage::new();
    let line = "disk create a --size 256M --on here --provision thick-zeroed";
    stage.daemon.sterna(line).ok();
    stage.daemon.sterna("migrate a --to there --provision thin").ok();
    let taken = allocated(&stage.daemon.image("a"));
    assert!(taken <= MIB, "nothing but zeroes takes {taken} bytes");
}

#[test]
fn a_thin_disk_can_become_thick() {
    let stage = Stage::new();
    stage.disk("a", 64 * MIB);
    stage.daemon.sterna("migrate a --to there --provision thick").ok();
    let taken = allocated(&stage.daemon.image("a"));
    assert!(taken >= 64 * MIB, "a thick disk takes only {taken} bytes");
    assert_eq!(stage.daemon.disk("a")["provision"], "thick");
}

#[test]
fn what_is_trimmed_during_the_move_takes_no_room_afterwards() {
    let Some(stage) = Stage::given(&["nbdsh"]) else { return };
    let uri = stage.disk_with_data("a", 128 * MIB, 128 * MIB);
    // An image that has all of its room counts as thick.
    let id = stage.daemon.migrate("a --to there --rate 40M --provision thin");
    stage.daemon.wait_for_bytes(id, 48 * MIB);
    // Half of it has been copied, half of it has not.
    nbdsh(&uri, "h.trim(64 << 20, 16 << 20); h.flush()");
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    let taken = allocated(&stage.daemon.image("a"));
    assert!(taken <= 64 * MIB + SLACK, "it takes {taken} bytes");
}

#[test]
fn a_disk_under_load_stays_thin() {
    let stage = Stage::new();
    stage.disk("a", 1 << 30);
    let options = CheckerOptions::gentle(800).with("--span", 32 * MIB).flag("--blank");
    let checker = stage.checker("a", &options);
    let id = stage.daemon.migrate("a --to there");
    stage.daemon.completed(id);
    checker.finish_and_verify();
    let taken = allocated(&stage.daemon.image("a"));
    assert!(taken <= 32 * MIB + SLACK, "it takes {taken} bytes");
}
