//! Where a file system does not say when files were made, the number of a file may be that of
//! another one later: Sterna tells them apart by other means, or asks somebody.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sterna_tests::clients::nbdsh;
use sterna_tests::images::write_image;
use sterna_tests::places::TinyFs;
use sterna_tests::servers::Bindfs;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

use super::{SIZE, has_its_data, pauses};

/// The disk `a` moves slowly to a file system that does not say when files were made; and the
/// new image there.
fn moving_undated() -> Option<(Stage, TinyFs, u64, PathBuf)> {
    let stage = Stage::given_root(&["losetup", "mkfs.ext4"])?;
    let mount = stage.scratch.path("undated");
    let system = TinyFs::undated(&stage.scratch.path("undated.img"), &mount, 96 * MIB);
    stage.datastore("undated", mount.display());
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (32 << 20), 0); h.flush()");
    let id = stage.daemon.migrate("a --to undated --rate 8M");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    Some((stage, system, id, mount.join("a.raw")))
}

/// Puts an operator's file in the place of an image, with the number that the image had, and
/// gives what is in it.
#[track_caller]
fn replace_with_its_number(image: &Path) -> Vec<u8> {
    let number = || fs::symlink_metadata(image).expect("look at a file").ino();
    let was = number();
    fs::remove_file(image).expect("remove an image");
    // It has its number until nobody has it open any more.
    until("the file system to give the number again", seconds(30), || {
        write_image(image, SIZE, 2 * MIB);
        if number() == was {
            return Some(());
        }
        fs::remove_file(image).expect("remove what has another number");
        None
    });
    fs::read(image).expect("read it")
}

#[test]
fn where_files_have_no_time_of_creation_a_move_goes_on_after_a_kill() {
    let Some((mut stage, _system, id, _)) = moving_undated() else { return };
    stage.daemon.kill();
    stage.daemon.restart();
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    assert_eq!(stage.daemon.disk("a")["datastore"], "undated");
    has_its_data(&mut stage);
}

#[test]
fn where_files_have_no_time_of_creation_another_file_is_neither_written_nor_removed() {
    let Some((mut stage, _system, id, image)) = moving_undated() else { return };
    stage.daemon.kill();
    let theirs = replace_with_its_number(&image);
    stage.daemon.restart();
    pauses(&stage, id, "another file has its name", "put the file of the copy back");
    let cancelled = stage.daemon.cancel(id);
    let note = cancelled["reason"].as_str().unwrap_or_default();
    assert!(note.contains("is not Sterna's"), "{cancelled:#}");
    assert!(fs::read(&image).expect("it is there") == theirs, "it was written to");
    has_its_data(&mut stage);
}

#[test]
fn where_files_have_no_time_of_creation_no_move_begins_onto_another_file() {
    let Some((mut stage, _system, id, image)) = moving_undated() else { return };
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    let back = stage.daemon.migrate("a --to here --keep-source");
    stage.daemon.completed(back);
    let theirs = replace_with_its_number(&image);
    let refused = stage.daemon.sterna("migrate a --to undated --detach");
    refused.fails_with(&["another file has its name"]);
    assert!(fs::read(&image).expect("it is there") == theirs, "it was written to");
    has_its_data(&mut stage);
}

/// A file system in user space: a file has a number there, and nothing else.
#[test]
fn where_nothing_tells_files_apart_the_operator_says_whether_it_is_the_copy() {
    let Some(mut stage) = Stage::given_root(&["bindfs"]) else { return };
    let fuse = Bindfs::new(&stage.scratch, "fuse");
    stage.datastore("fuse", fuse.dir().display());
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (32 << 20), 0); h.flush()");
    let image = fuse.dir().join("a.raw");
    for (goes_on, ends) in [(false, "here"), (true, "fuse")] {
        let id = stage.daemon.migrate("a --to fuse --rate 8M");
        stage.daemon.wait_for_bytes(id, 4 * MIB);
        stage.daemon.kill();
        stage.daemon.restart();
        pauses(&stage, id, "cannot verify that", "check that no other program");
        if goes_on {
            stage.daemon.hurry(id);
            stage.daemon.resume(id);
            stage.daemon.completed(id);
        } else {
            let cancelled = stage.daemon.cancel(id);
            let note = cancelled["reason"].as_str().unwrap_or_default();
            assert!(note.contains("Check that before you remove it"), "{cancelled:#}");
            assert!(image.exists());
            fs::remove_file(&image).expect("remove the copy");
            fs::remove_file(fuse.dir().join("a.raw.sterna")).expect("and its sidecar");
        }
        assert_eq!(stage.daemon.disk("a")["datastore"], ends);
    }
    has_its_data(&mut stage);
}
