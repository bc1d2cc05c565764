//! File attributes that somebody has set (`chattr`): what they forbid is refused before
//! anything is made, or told.

use std::path::Path;

use sterna_tests::clients::nbdsh;
use sterna_tests::programs::run;
use sterna_tests::stage::files_in;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const PROGRAMS: &[&str] = &["losetup", "mkfs.ext4", "chattr", "/usr/bin/python3"];

/// An attribute of a file or directory, until this is dropped: nothing could be tidied up.
struct Attribute<'a>(&'a str, &'a Path);

impl<'a> Attribute<'a> {
    fn set(letter: &'a str, path: &'a Path) -> Attribute<'a> {
        run("chattr", [Path::new(&format!("+{letter}")), path]);
        Attribute(letter, path)
    }
}

impl Drop for Attribute<'_> {
    fn drop(&mut self) {
        run("chattr", [Path::new(&format!("-{}", self.0)), self.1]);
    }
}

#[test]
fn a_move_to_a_directory_that_chattr_has_locked_is_refused_and_leaves_nothing() {
    let Some(stage) = Stage::given_root(PROGRAMS) else { return };
    let tiny = stage.tiny_fs("tiny", 32 * MIB);
    stage.disk("x", MIB);
    let before = files_in(tiny.dir());
    for (letter, called) in [("a", "append-only"), ("i", "immutable")] {
        let _locked = Attribute::set(letter, tiny.dir());
        let ends = format!("chattr -{letter}");
        for line in ["migrate x --to tiny", "disk create y --size 1M --on tiny"] {
            stage.daemon.sterna(line).fails_with(&[called, &ends]);
            assert_eq!(files_in(tiny.dir()), before, "{line}");
        }
    }
    stage.daemon.sterna("migrate x --to tiny").ok();
}

#[test]
fn a_file_system_without_inodes_is_not_said_to_lack_space() {
    let Some(stage) = Stage::given_root(PROGRAMS) else { return };
    let tiny = stage.tiny_fs("tiny", 32 * MIB);
    let files = tiny.use_up_inodes();
    // One file is not enough for an image and its sidecar.
    for free in [None, files.first()] {
        free.into_iter().for_each(|file| std::fs::remove_file(file).expect("remove it"));
        let refused = stage.daemon.sterna("disk create y --size 1M --on tiny");
        refused.fails_with(&["no room for another file", "inodes", "remove files there"]);
        assert!(!tiny.dir().join("y.raw").exists());
    }
}

#[test]
fn if_only_the_sidecar_of_an_old_image_stays_nobody_counts_on_the_image() {
    let Some(stage) = Stage::given_root(PROGRAMS) else { return };
    let tiny = stage.tiny_fs("tiny", 32 * MIB);
    stage.daemon.sterna("disk create x --size 1M --on tiny").ok();
    let sidecar = tiny.dir().join("x.raw.sterna");
    let immutable = Attribute::set("i", &sidecar);
    stage.daemon.sterna("migrate x --to there").ok();
    let moved = stage.daemon.migration(1);
    let reason = moved["reason"].to_string();
    assert!(
        reason.contains("the old image is removed, and its sidecar stays"),
        "{reason}"
    );
    assert!(!tiny.dir().join("x.raw").exists());
    drop(immutable);
}

#[test]
fn an_image_whose_directory_is_away_is_not_said_to_be_removed() {
    let Some(stage) = Stage::given_root(PROGRAMS) else { return };
    let (nas, away) = (stage.scratch.dir("nas"), stage.scratch.path("away"));
    let images = nas.join("images");
    std::fs::create_dir(&images).expect("make a directory");
    stage.datastore("nas", images.display());
    for disk in ["x", "y"] {
        stage.daemon.sterna(&format!("disk create {disk} --size 1M --on nas")).ok();
    }
    stage.disk_with_data("z", 8 * MIB, 8 * MIB);
    stage.daemon.sterna("migrate z --to nas").ok();
    let id = stage.daemon.migrate("z --to there --rate 4M");
    stage.daemon.wait_for_bytes(id, MIB);
    std::fs::rename(&nas, &away).expect("take it away");
    let removed = stage.daemon.sterna("disk remove x --keep-image");
    removed.fails_with(&["its image is as it was", "sterna disk recover"]);
    let removed = stage.daemon.sterna("disk remove y");
    removed.fails_with(&["its image is as it was", "remove the image and its sidecar"]);
    stage.daemon.completed(id);
    let reason = stage.daemon.migration(id)["reason"].to_string();
    assert!(reason.contains("the old image stays at"), "{reason}");
    std::fs::rename(&away, &nas).expect("bring it back");
    for file in ["x.raw", "x.raw.sterna", "y.raw", "z.raw"] {
        assert!(images.join(file).exists(), "{file}");
    }
}

#[test]
fn an_image_that_is_kept_is_not_to_be_removed_by_hand() {
    let Some(stage) = Stage::given_root(PROGRAMS) else { return };
    let tiny = stage.tiny_fs("tiny", 32 * MIB);
    stage.daemon.sterna("disk create x --size 1M --on tiny").ok();
    let sidecar = tiny.dir().join("x.raw.sterna");
    let immutable = Attribute::set("i", &sidecar);
    let removed = stage.daemon.sterna("disk remove x --keep-image");
    removed.fails_with(&["the image is kept", "sterna disk recover"]);
    drop(immutable);
    stage.daemon.sterna("disk recover").ok();
    stage.daemon.sterna("disk show x").ok();
}

#[test]
fn writes_that_the_image_refuses_are_counted_in_the_status() {
    let Some(stage) = Stage::given_root(PROGRAMS) else { return };
    let tiny = stage.tiny_fs("tiny", 32 * MIB);
    stage.daemon.sterna("disk create x --size 1M --on tiny").ok();
    let image = tiny.dir().join("x.raw");
    let immutable = Attribute::set("i", &image);
    let script = "
for i in range(3):
    try: h.pwrite(b'x' * 512, 0)
    except nbd.Error: pass
";
    nbdsh(&stage.daemon.uri("x"), script);
    let warned = until("a warning", seconds(20), || {
        stage.daemon.warnings("disk x").into_iter().next()
    });
    assert!(warned.contains("3 writes of the disk failed on datastore tiny"), "{warned}");
    drop(immutable);
    nbdsh(&stage.daemon.uri("x"), "h.pwrite(b'x' * 512, 0)");
    // It was not where the disk is now.
    stage.daemon.sterna("migrate x --to there").ok();
    let warned = stage.daemon.warnings("disk x").pop().expect("still a warning");
    assert!(warned.contains("3 writes of the disk failed on datastore tiny"), "{warned}");
}
