//! Others write to the copy of a disk that moves: while it is copied, while it stands still,
//! and over a kill; and they keep it open. What they wrote never becomes the disk's, with and
//! without a verification, and who only reads it is no matter.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sterna_tests::clients::nbdsh;
use sterna_tests::images::rests;
use sterna_tests::places::{Loop, TinyFs};
use sterna_tests::programs;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 32 * MIB;

/// A disk `a` on `here`, full but for its last quarter, that moves `there` slowly and
/// without a verification; and its copy.
fn moving() -> (Stage, u64, PathBuf) {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (24 << 20), 0); h.flush()");
    let id = stage.daemon.migrate("a --to there --rate 8M --no-verify");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    let copy = stage.there.join("a.raw");
    (stage, id, copy)
}

/// The disk is there, and has what its guest wrote.
#[track_caller]
fn moved_with_its_data(stage: &Stage) {
    assert_eq!(stage.daemon.disk("a")["datastore"], "there");
    let script = "assert h.pread(24 << 20, 0) == b'a' * (24 << 20), 'what was copied'
assert h.pread(8 << 20, 24 << 20) == bytes(8 << 20), 'what was never written'";
    nbdsh(&stage.daemon.uri("a"), script);
}

/// Somebody writes to what is copied, and to what no copy will be written to.
fn write_to(copy: &Path) {
    let file = OpenOptions::new().write(true).open(copy).expect("open the copy");
    for at in [0, 28 * MIB] {
        file.write_all_at(&[b'x'; 1 << 20], at).expect("write to the copy");
    }
}

#[test]
fn what_others_write_to_a_copy_that_stands_still_does_not_become_the_disks() {
    let (stage, id, copy) = moving();
    stage.daemon.pause(id);
    write_to(&copy);
    stage.daemon.hurry(id);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    moved_with_its_data(&stage);
}

#[test]
fn nor_does_it_after_a_kill_though_the_guest_has_written_since() {
    let (mut stage, id, copy) = moving();
    stage.daemon.pause(id);
    rests(&copy);
    write_to(&copy);
    rests(&copy);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * 65536, 1 << 20); h.flush()");
    stage.daemon.kill();
    stage.daemon.restart();
    stage.daemon.wait_for(id, "paused", seconds(20));
    stage.daemon.hurry(id);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    moved_with_its_data(&stage);
}

#[test]
fn a_kill_while_it_stands_still_costs_no_comparison_if_nobody_wrote() {
    let (mut stage, id, copy) = moving();
    stage.daemon.pause(id);
    rests(&copy);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * 65536, 1 << 20); h.flush()");
    stage.daemon.kill();
    stage.daemon.restart();
    stage.daemon.wait_for(id, "paused", seconds(20));
    stage.daemon.hurry(id);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    moved_with_its_data(&stage);
    let log = stage.daemon.log();
    assert!(!log.contains("Sterna compares what was copied"), "{log}");
}

#[test]
fn what_others_wrote_to_a_running_copy_is_not_forgotten_when_it_is_paused_at_once() {
    let (stage, id, copy) = moving();
    write_to(&copy);
    stage.daemon.sterna(&format!("migration pause {id}")).ok();
    stage.daemon.wait_for(id, "paused", seconds(20));
    stage.daemon.hurry(id);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    moved_with_its_data(&stage);
}

#[test]
fn a_program_that_has_the_copy_open_for_writing_keeps_it_from_being_switched_over_to() {
    let (stage, id, copy) = moving();
    let writer = OpenOptions::new().write(true).open(&copy).expect("open the copy");
    writer.write_all_at(&[b'x'; 1 << 20], 28 * MIB).expect("write to the copy");
    stage.daemon.hurry(id);
    let paused = stage.daemon.wait_for(id, "paused", seconds(20));
    let says = |key: &str| paused[key].as_str().unwrap_or_default().to_owned();
    assert!(says("reason").contains("another program has"), "{paused:#}");
    assert!(says("hint").contains("stop that program"), "{paused:#}");
    let answer = stage.daemon.sterna(&format!("migration resume {id}"));
    answer.fails_with(&["open for writing", "stop that program"]);
    drop(writer);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    moved_with_its_data(&stage);
}

#[test]
fn nor_is_it_with_a_loop_device_over_it() {
    if !programs::root() {
        return programs::skip("a loop device needs root");
    }
    let (stage, id, copy) = moving();
    let device = Loop::over(&copy);
    let disk = OpenOptions::new().write(true).open(device.device()).expect("open it");
    disk.write_all_at(&[b'x'; 1 << 20], 28 * MIB).expect("write to it");
    disk.sync_all().expect("write it out");
    drop(disk);
    stage.daemon.hurry(id);
    let paused = stage.daemon.wait_for(id, "paused", seconds(20));
    assert!(
        paused["reason"].as_str().is_some_and(|why| why.contains("open for writing")),
        "{paused:#}"
    );
    drop(device);
    until("the migration to go on", seconds(20), || {
        // The kernel may still be letting go of the file.
        let answer = stage.daemon.sterna(&format!("migration resume {id}"));
        (answer.code == 0).then_some(())
    });
    stage.daemon.completed(id);
    moved_with_its_data(&stage);
}

#[test]
fn who_only_reads_the_copy_costs_no_pause() {
    let (stage, id, copy) = moving();
    let reader = File::open(&copy).expect("open the copy");
    let others = File::open(&copy).expect("once more");
    drop(others);
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    drop(reader);
    moved_with_its_data(&stage);
    let log = stage.daemon.log();
    assert!(
        log.contains("the destination is closed until the migration continues"),
        "{log}"
    );
}

#[test]
fn a_copy_that_is_open_for_writing_somewhere_is_not_copied_to() {
    let (mut stage, id, copy) = moving();
    stage.daemon.kill();
    let writer = OpenOptions::new().write(true).open(&copy).expect("open the copy");
    stage.daemon.restart();
    let paused = stage.daemon.wait_for(id, "paused", seconds(20));
    assert!(
        paused["reason"].as_str().is_some_and(|why| why.contains("open for writing")),
        "{paused:#}"
    );
    drop(writer);
    stage.daemon.hurry(id);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    moved_with_its_data(&stage);
}

#[test]
fn a_copy_that_has_lost_its_name_is_closed_so_that_its_file_system_can_be_unmounted() {
    if !programs::root() {
        return programs::skip("mounting needs root");
    }
    let mut stage = Stage::new();
    let tiny = stage.tiny_fs("tiny", 128 * MIB);
    let mount = tiny.dir().to_owned();
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (24 << 20), 0); h.flush()");
    let id = stage.daemon.migrate("a --to tiny --rate 8M");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    let (copy, away) = (mount.join("a.raw"), mount.join("away"));
    fs::rename(&copy, &away).expect("rename the copy");
    stage.daemon.wait_for(id, "paused", seconds(20));
    fs::rename(&away, &copy).expect("restore its name");
    // It is what people do about it, and it is refused while anybody has a file open.
    until("the file system to be unmounted", seconds(20), || {
        tiny.unmounted().then_some(())
    });
    tiny.come_back();
    stage.daemon.hurry(id);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    let all = "assert h.pread(24 << 20, 0) == b'a' * (24 << 20)";
    nbdsh(&stage.daemon.uri("a"), all);
    stage.daemon.stop();
}

#[test]
fn an_older_snapshot_in_the_place_of_the_copys_subvolume_is_not_believed() {
    let Some(mut stage) = Stage::given_root(&["losetup", "mkfs.btrfs", "btrfs"]) else {
        return;
    };
    let mount = stage.scratch.path("snapshots");
    let fs = TinyFs::btrfs(&stage.scratch.path("snapshots.img"), &mount, 256 * MIB);
    let subvolumes = |command: &str, paths: &[&Path]| {
        let words = ["subvolume".as_ref(), command.as_ref()];
        programs::run(
            "btrfs",
            words.into_iter().chain(paths.iter().map(|it| it.as_os_str())),
        );
    };
    let (vol, snapshot) = (fs.dir().join("vol"), fs.dir().join("snapshot"));
    subvolumes("create", &[&vol]);
    stage.datastore("vol", vol.display());
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (24 << 20), 0); h.flush()");
    let id = stage.daemon.migrate("a --to vol --rate 3M --no-verify");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    programs::run("sync", ["-f".as_ref(), vol.as_os_str()]);
    subvolumes("snapshot", &[&vol, &snapshot]);
    // Long enough for flushes to cover some of it.
    stage.daemon.wait_for_bytes(id, 20 * MIB);
    stage.daemon.kill();
    // The file has its number, its size and its time of birth, and is older.
    fs::rename(&vol, fs.dir().join("away")).expect("move the subvolume away");
    subvolumes("snapshot", &[&snapshot, &vol]);
    stage.daemon.restart();
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    assert_eq!(stage.daemon.disk("a")["datastore"], "vol");
    nbdsh(&stage.daemon.uri("a"), "assert h.pread(24 << 20, 0) == b'a' * (24 << 20)");
    stage.daemon.stop();
}
