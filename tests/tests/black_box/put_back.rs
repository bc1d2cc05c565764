//! Somebody writes to an image whose disk moves: a backup is put back over the source while its
//! VM is off, or another client writes to the copy where nobody sees it. The source's bytes are
//! the disk's in the end, whatever had been copied and compared before.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use sterna_tests::clients::nbdsh;
use sterna_tests::images::rests;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 32 * MIB;

/// What Sterna says when it sees others' writes.
const SEEN: &str = "another program has changed the disk's image";

/// A full disk `a` on `here` that moves like this, slowly.
fn moving(stage: &Stage, how: &str) -> u64 {
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (32 << 20), 0); h.flush()");
    stage.daemon.migrate(&format!("a --rate 16M --to {how}"))
}

/// It is paused when half of it is compared.
fn paused_in_the_comparison(stage: &Stage, id: u64) {
    stage.daemon.wait_for(id, "verifying", seconds(60));
    stage.daemon.sterna(&format!("migration set {id} --rate 4M")).ok();
    until("half of the comparison", seconds(60), || {
        let verified = stage.daemon.migration(id)["progress"]["verified"].as_u64();
        verified.is_some_and(|bytes| bytes >= SIZE / 2).then_some(())
    });
    let paused = stage.daemon.pause(id);
    assert!(paused["progress"]["verified"].as_u64() > Some(0), "{paused:#}");
}

/// A MiB at the beginning, which is copied and compared by now, is overwritten.
fn overwrite(image: &Path) {
    rests(image);
    let file = OpenOptions::new().write(true).open(image).expect("open the image");
    file.write_all_at(&[b'x'; 1 << 20], 0).expect("write to the image");
}

/// The move ends, and the disk has this at its beginning.
#[track_caller]
fn ends_with(stage: &Stage, id: u64, byte: char) {
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    let script = format!(
        "assert h.pread(1 << 20, 0) == b'{byte}' * (1 << 20), h.pread(16, 0)
assert h.pread(1 << 20, 2 << 20) == b'a' * (1 << 20), 'what nobody has changed'"
    );
    nbdsh(&stage.daemon.uri("a"), &script);
}

#[test]
fn a_backup_that_is_put_back_while_the_move_stands_still_is_the_disks_data() {
    let stage = Stage::new();
    let id = moving(&stage, "there");
    paused_in_the_comparison(&stage, id);
    overwrite(&stage.here.join("a.raw"));
    stage.daemon.resume(id);
    ends_with(&stage, id, 'x');
    assert!(stage.daemon.log().contains(SEEN), "{}", stage.daemon.log());
}

#[test]
fn nor_does_a_guest_that_writes_afterwards_hide_it() {
    let stage = Stage::new();
    let id = moving(&stage, "there");
    paused_in_the_comparison(&stage, id);
    overwrite(&stage.here.join("a.raw"));
    until("Sterna to see it", seconds(20), || {
        stage.daemon.log().contains(SEEN).then_some(())
    });
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * 65536, 2 << 20); h.flush()");
    stage.daemon.resume(id);
    ends_with(&stage, id, 'x');
}

#[test]
fn a_backup_that_is_put_back_during_the_copy_is_the_disks_data() {
    let stage = Stage::new();
    let id = moving(&stage, "there --no-verify");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    overwrite(&stage.here.join("a.raw"));
    ends_with(&stage, id, 'x');
    assert!(stage.daemon.log().contains(SEEN), "{}", stage.daemon.log());
}

#[test]
fn what_another_client_of_a_server_writes_to_the_copy_in_a_pause_is_compared() {
    let stage = Stage::new();
    let server = stage.nbd_server("far", SIZE + MIB, &[]);
    let id = moving(&stage, "far");
    paused_in_the_comparison(&stage, id);
    overwrite(server.file());
    stage.daemon.resume(id);
    ends_with(&stage, id, 'a');
}

#[test]
fn a_pause_in_which_nobody_writes_costs_no_comparison_in_a_local_file_system() {
    let stage = Stage::new();
    let id = moving(&stage, "there");
    paused_in_the_comparison(&stage, id);
    stage.daemon.resume(id);
    let goes_on = stage.daemon.migration(id);
    assert!(goes_on["progress"]["verified"].as_u64() >= Some(SIZE / 2), "{goes_on:#}");
    ends_with(&stage, id, 'a');
    assert!(!stage.daemon.log().contains(SEEN), "{}", stage.daemon.log());
    let names = fs::read_dir(&stage.here).expect("the old datastore").count();
    assert!(names <= 1, "the old image is removed");
}
