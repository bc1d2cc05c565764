//! Storage that forgets: what it answered for and was not made to keep is gone. Nothing of
//! that is lost, as it is copied again; and images that others wrote to while no daemon was
//! there are made equal again.

use std::fs;
use std::path::PathBuf;

use sterna_tests::images::identical_files;
use sterna_tests::places::TinyFs;
use sterna_tests::programs::run;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 48 * MIB;

/// A disk full of data that moves to a file system which stops in the middle of it.
struct Scene {
    stage: Stage,
    fast: TinyFs,
    /// What the disk holds.
    copy: PathBuf,
    id: u64,
}

impl Scene {
    #[track_caller]
    fn new(make: &str) -> Option<Scene> {
        let stage = Stage::given_root(&["losetup", make])?;
        let (file, mount) = (stage.scratch.path("fast.img"), stage.scratch.path("fast"));
        let fast = match make {
            "mkfs.xfs" => TinyFs::xfs(&file, &mount, 320 * MIB),
            _ => TinyFs::new(&file, &mount, 128 * MIB),
        };
        stage.datastore("fast", mount.display());
        stage.disk_with_data("db", SIZE, SIZE);
        let copy = stage.scratch.path("db.copy");
        fs::copy(stage.daemon.image("db"), &copy).expect("copy an image");
        let id = stage.daemon.migrate("db --to fast --rate 12M");
        stage.daemon.wait_for_bytes(id, SIZE / 3);
        fast.shut_down();
        stage.daemon.wait_for(id, "paused", seconds(20));
        Some(Scene { stage, fast, copy, id })
    }

    /// The operator mounts the file system anew.
    #[track_caller]
    fn mount_anew(&self) {
        // Nothing of it may be open any more for that: it is let go of in a moment.
        let mount = self.fast.dir().to_str().expect("a plain path");
        until("the file system not to be in use", seconds(10), || {
            let unmounted = std::process::Command::new("umount").arg(mount).output();
            unmounted.is_ok_and(|output| output.status.success()).then_some(())
        });
        self.fast.come_back();
    }

    /// It comes to its end, and nothing is missing.
    #[track_caller]
    fn ends(&self) {
        let daemon = &self.stage.daemon;
        daemon.hurry(self.id);
        daemon.completed(self.id);
        identical_files(&self.copy, &daemon.image("db"));
        run("sync", ["-f", self.fast.dir().to_str().expect("a plain path")]);
    }
}

/// Asks for it until it is granted: the daemon sees in its own time that a datastore is
/// back.
#[track_caller]
fn resume(stage: &Stage, id: u64) {
    until("the migration to go on", seconds(20), || {
        if stage.daemon.migration(id)["state"] != "paused" {
            return Some(());
        }
        let line = format!("migration resume {id}");
        (stage.daemon.sterna(&line).code == 0).then_some(())
    });
}

#[test]
fn a_destination_that_stopped_is_mounted_anew_and_goes_on_without_a_restart() {
    for make in ["mkfs.xfs", "mkfs.ext4"] {
        let Some(scene) = Scene::new(make) else { return };
        scene.mount_anew();
        resume(&scene.stage, scene.id);
        scene.ends();
    }
}

#[test]
fn a_destination_that_stopped_is_mounted_anew_while_the_daemon_is_away() {
    for (make, killed) in [("mkfs.xfs", true), ("mkfs.ext4", false)] {
        let Some(mut scene) = Scene::new(make) else { return };
        if killed {
            scene.stage.daemon.kill();
        } else {
            scene.stage.daemon.stop();
        }
        scene.mount_anew();
        scene.stage.daemon.restart();
        resume(&scene.stage, scene.id);
        scene.ends();
    }
}

#[test]
fn what_others_wrote_to_the_source_while_the_daemon_was_away_is_not_lost() {
    for killed in [true, false] {
        let Some(mut stage) = Stage::given(&["qemu-io"]) else { return };
        stage.disk_with_data("db", SIZE, SIZE);
        let id = stage.daemon.migrate("db --to there --rate 6M --keep-source");
        // So much that a flush has covered some of it.
        stage.daemon.wait_for_bytes(id, SIZE * 3 / 4);
        if killed {
            stage.daemon.kill();
        } else {
            stage.daemon.stop();
        }
        // After what a write of the daemon's own may have been noted late.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let image = stage.here.join("db.raw");
        let write = ["-f", "raw", "-c", "write -P 0xee 1M 64k", "-c", "flush"];
        run("qemu-io", write.into_iter().chain([image.to_str().expect("a plain path")]));
        stage.daemon.restart();
        stage.daemon.hurry(id);
        stage.daemon.completed(id);
        identical_files(&image, &stage.there.join("db.raw"));
    }
}

#[test]
fn after_a_kill_what_a_flush_covered_is_not_copied_again() {
    let mut stage = Stage::new();
    stage.disk_with_data("db", SIZE, SIZE);
    let id = stage.daemon.migrate("db --to there --rate 6M --keep-source");
    stage.daemon.wait_for_bytes(id, SIZE * 3 / 4);
    stage.daemon.kill();
    stage.daemon.restart();
    let first = until("the migration to go on", seconds(10), || {
        stage.daemon.migration(id)["progress"]["synced"].as_u64()
    });
    assert!(first >= SIZE / 2, "{first} bytes, and most of the rest was flushed");
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    identical_files(&stage.here.join("db.raw"), &stage.there.join("db.raw"));
}
