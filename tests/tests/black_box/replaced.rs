//! Files get lost: while a disk is served or moves, somebody removes, replaces or shortens
//! an image, or puts a link where a file of ours should be. Nothing is switched over to
//! what is not there, nobody else's file is removed, and somebody is told.

mod exchanged;
mod undated;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sterna_tests::clients::nbdsh;
use sterna_tests::images::write_image;
use sterna_tests::programs::{have, run};
use sterna_tests::servers::Nbdkit;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 32 * MIB;

/// A disk `a` on `here` with data, that moves `there` slowly; and the new image.
fn moving() -> (Stage, u64, PathBuf) {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (32 << 20), 0); h.flush()");
    let id = stage.daemon.migrate("a --to there --rate 8M");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    let image = stage.there.join("a.raw");
    (stage, id, image)
}

/// The disk is what it was, now and after a restart.
#[track_caller]
fn has_its_data(stage: &mut Stage) {
    let all = "assert h.pread(32 << 20, 0) == b'a' * (32 << 20)";
    nbdsh(&stage.daemon.uri("a"), all);
    stage.daemon.stop();
    stage.daemon.restart();
    nbdsh(&stage.daemon.uri("a"), all);
}

/// The migration pauses, and says this of why, and this of what to do.
#[track_caller]
fn pauses(stage: &Stage, id: u64, why: &str, what_to_do: &str) {
    let paused = stage.daemon.wait_for(id, "paused", seconds(20));
    let says = |key: &str| paused[key].as_str().unwrap_or_default().to_owned();
    assert!(says("reason").contains(why), "{paused:#}");
    assert!(says("hint").contains(what_to_do), "{paused:#}");
}

/// The status warns of the disk in this way.
#[track_caller]
fn status_warns(stage: &Stage, disk: &str, words: &str) -> Value {
    until(&format!("a warning of {disk}: {words}"), seconds(20), || {
        let status = stage.daemon.json("status");
        let warnings = status["warnings"].as_array().expect("a list of warnings");
        let about = format!("disk {disk}");
        let says = |one: &&Value| {
            one["about"] == about.as_str()
                && one["message"].as_str().is_some_and(|text| text.contains(words))
        };
        warnings.iter().find(says).cloned()
    })
}

fn set_len(path: &Path, len: u64) {
    let file = OpenOptions::new().write(true).open(path).expect("open an image");
    file.set_len(len).expect("change its length");
}

/// Puts another file in the place of one.
fn replace(path: &Path) {
    let aside = path.with_extension("aside");
    fs::write(&aside, "another file").expect("write another file");
    fs::rename(&aside, path).expect("put it in the place of one");
}

#[track_caller]
fn is_another(path: &Path) {
    assert_eq!(fs::read(path).expect("the other file is there"), b"another file");
}

#[test]
fn a_new_image_that_was_removed_is_not_switched_over_to() {
    let (mut stage, id, image) = moving();
    fs::remove_file(&image).expect("remove the new image");
    fs::remove_file(image.with_extension("raw.sterna")).expect("and its sidecar");
    stage.daemon.hurry(id);
    pauses(&stage, id, "the file was removed", "migration cancel");
    assert!(stage.here.join("a.raw").exists(), "the old image is gone");
    has_its_data(&mut stage);
    stage.daemon.cancel(id);
    let again = stage.daemon.migrate("a --to there");
    stage.daemon.completed(again);
    has_its_data(&mut stage);
}

#[test]
fn a_new_image_that_was_renamed_goes_on_when_it_has_its_name_back() {
    let (mut stage, id, image) = moving();
    let away = stage.there.join("away");
    fs::rename(&image, &away).expect("rename the new image");
    pauses(&stage, id, "the file, or its directory, was renamed", "restore its name");
    fs::rename(&away, &image).expect("restore its name");
    stage.daemon.hurry(id);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    has_its_data(&mut stage);
}

#[test]
fn another_file_in_the_place_of_the_new_image_is_neither_used_nor_removed() {
    let (mut stage, id, image) = moving();
    replace(&image);
    stage.daemon.hurry(id);
    pauses(&stage, id, "another file was put in its place", "move the other file away");
    let cancelled = stage.daemon.cancel(id);
    assert!(
        cancelled["reason"].as_str().is_some_and(|note| note.contains("is not Sterna's")),
        "{cancelled:#}"
    );
    is_another(&image);
    has_its_data(&mut stage);
}

#[test]
fn a_new_image_that_was_shortened_is_compared_before_it_is_switched_over_to() {
    let (mut stage, id, image) = moving();
    // What comes next is behind the new end, and gives the file its length back.
    set_len(&image, MIB);
    pauses(&stage, id, "the new image", "compares both images");
    stage.daemon.hurry(id);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    assert_eq!(stage.daemon.disk("a")["datastore"], "there");
    has_its_data(&mut stage);
}

#[test]
fn after_a_restart_nothing_is_written_to_another_file_of_the_new_images_name() {
    let (mut stage, id, image) = moving();
    stage.daemon.kill();
    fs::remove_file(&image).expect("remove the new image");
    write_image(&image, SIZE, 2 * MIB);
    let theirs = fs::read(&image).expect("read it");
    stage.daemon.restart();
    pauses(&stage, id, "another file has its name", "put the file of the copy back");
    stage.daemon.cancel(id);
    assert!(fs::read(&image).expect("it is there") == theirs, "it was written to");
    has_its_data(&mut stage);
}

#[test]
fn a_file_that_has_the_old_images_name_is_not_removed() {
    let mut stage = Stage::new();
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (32 << 20), 0); h.flush()");
    let image = stage.here.join("a.raw");
    replace(&image);
    let warning = status_warns(&stage, "a", "another file was put in its place");
    assert!(
        warning["hint"].as_str().is_some_and(|hint| hint.contains("sterna migrate a")),
        "{warning:#}"
    );
    // To move it away is the way out.
    let id = stage.daemon.migrate("a --to there");
    let done = stage.daemon.completed(id);
    assert!(
        done["reason"].as_str().is_some_and(|note| note.contains("is not Sterna's")),
        "{done:#}"
    );
    is_another(&image);
    has_its_data(&mut stage);
}

#[test]
fn an_old_image_that_was_renamed_is_not_said_to_be_removed() {
    for with_sidecar in [false, true] {
        let mut stage = Stage::new();
        stage.disk("a", SIZE);
        nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (32 << 20), 0); h.flush()");
        let (image, away) = (stage.here.join("a.raw"), stage.here.join("b.raw"));
        let sidecar_of = |image: &Path| image.with_extension("raw.sterna");
        fs::rename(&image, &away).expect("rename the image");
        if with_sidecar {
            fs::rename(sidecar_of(&image), sidecar_of(&away)).expect("and its sidecar");
        }
        status_warns(&stage, "a", "the file, or its directory, was renamed");
        let id = stage.daemon.migrate("a --to there");
        stage.daemon.completed(id);
        let reason = stage.daemon.migration(id)["reason"].to_string();
        assert!(reason.contains("the old image has another name"), "{reason}");
        assert!(away.exists());
        has_its_data(&mut stage);
    }
}

#[test]
fn a_disk_whose_image_has_no_name_any_more_says_so_and_can_be_moved_away() {
    let mut stage = Stage::new();
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (32 << 20), 0); h.flush()");
    fs::remove_file(stage.here.join("a.raw")).expect("remove the image");
    status_warns(&stage, "a", "the file was removed");
    let shown = stage.daemon.disk("a");
    assert_eq!(shown["served"], true);
    assert!(shown["problem"].is_string(), "{shown:#}");
    let id = stage.daemon.migrate("a --to there");
    stage.daemon.completed(id);
    // Its old image may just have been looked at.
    until("the problem to be over", seconds(20), || {
        stage.daemon.disk("a")["problem"].is_null().then_some(())
    });
    has_its_data(&mut stage);
}

#[test]
fn removing_a_disk_does_not_remove_the_file_that_has_its_images_name() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    let image = stage.here.join("a.raw");
    replace(&image);
    stage
        .daemon
        .sterna("disk remove a")
        .fails_with(&["another file", "Sterna removed nothing"]);
    is_another(&image);
}

#[test]
fn what_was_cut_off_an_image_is_an_error_and_never_zeroes() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (32 << 20), 0); h.flush()");
    set_len(&stage.here.join("a.raw"), SIZE / 2);
    let script = "
try:
    h.pread(65536, 24 << 20)
    raise SystemExit('what is not there was read')
except nbd.Error as error:
    assert error.errno == 'EIO', error
assert h.pread(65536, 8 << 20) == b'a' * 65536
";
    nbdsh(&stage.daemon.uri("a"), script);
    status_warns(&stage, "a", "shortened");
    // What is written behind the end gives the file a length, and not its data.
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'b' * 512, (32 << 20) - 512)");
    let id = stage.daemon.migrate("a --to there");
    let paused = stage.daemon.wait_for(id, "paused", seconds(20));
    assert!(
        paused["reason"].as_str().is_some_and(|reason| reason.contains("shortened")),
        "{paused:#}"
    );
    assert!(stage.here.join("a.raw").exists());
}

#[test]
fn a_move_stops_at_once_if_its_source_is_cut_off_and_offers_to_skip_nothing() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (32 << 20), 0); h.flush()");
    // The part that is cut off comes last.
    let id = stage.daemon.migrate("a --to there --rate 1M");
    set_len(&stage.here.join("a.raw"), SIZE / 2);
    let paused = stage.daemon.wait_for(id, "paused", seconds(20));
    assert!(
        paused["reason"].as_str().is_some_and(|reason| reason.contains("shortened")),
        "{paused:#}"
    );
    assert!(!paused["hint"].to_string().contains("skip"), "{paused:#}");
}

#[test]
fn an_image_that_was_replaced_while_the_daemon_was_gone_is_not_taken_without_a_word() {
    let mut stage = Stage::new();
    stage.disk("a", MIB);
    stage.daemon.stop();
    let image = stage.here.join("a.raw");
    let copy = stage.here.join("copy");
    fs::copy(&image, &copy).expect("copy the image");
    fs::rename(&copy, &image).expect("put the copy in its place");
    stage.daemon.restart();
    status_warns(&stage, "a", "was replaced while the daemon was down");
    // Whoever has put it there knows by now.
    stage.daemon.stop();
    stage.daemon.restart();
    assert!(stage.daemon.disk("a")["problem"].is_null());
    stage.daemon.sterna("disk remove a").ok();
    assert!(!image.exists());
}

#[test]
fn a_move_that_comes_to_nothing_leaves_an_imported_file_that_it_came_back_to() {
    let stage = Stage::new();
    stage.disk_with_data("a", SIZE, SIZE);
    let imported = stage.here.join("a.raw");
    let there = stage.daemon.migrate("a --to there --keep-source");
    stage.daemon.completed(there);
    assert!(imported.exists());
    let back = stage.daemon.migrate("a --to here --rate 8M");
    stage.daemon.wait_for_bytes(back, 4 * MIB);
    let cancelled = stage.daemon.cancel(back);
    assert!(imported.exists(), "the operator's own file was removed");
    assert!(
        cancelled["reason"]
            .as_str()
            .is_some_and(|note| note.contains("existed before the migration")),
        "{cancelled:#}"
    );
    // It is still good for going back to, and is yours as before then.
    let back = stage.daemon.migrate("a --to here");
    stage.daemon.completed(back);
    assert_eq!(stage.daemon.disk("a")["imported"], true);
    // What a migration has made itself goes with it.
    let away = stage.daemon.migrate("a --to there --rate 8M");
    stage.daemon.wait_for_bytes(away, 4 * MIB);
    stage.daemon.cancel(away);
    assert_eq!(stage.files_there(), [""; 0]);
}

#[test]
fn what_others_have_put_in_the_way_of_our_files_is_not_followed() {
    let mut stage = Stage::new();
    let victim = stage.scratch.path("victim");
    fs::write(&victim, "precious").expect("write a file");
    fs::set_permissions(&stage.here, PermissionsExt::from_mode(0o1777)).expect("open it");
    for name in ["a.raw.sterna.new", "a.raw.sterna", ".unfinished-a"] {
        symlink(&victim, stage.here.join(name)).expect("make a link");
    }
    stage.disk("a", MIB);
    stage.daemon.stop();
    let mark = stage.here.join(".sterna-datastore");
    fs::remove_file(&mark).expect("remove the mark");
    symlink(&victim, &mark).expect("put a link in its place");
    stage.daemon.restart();
    until("the disk to be served", seconds(20), || {
        (stage.daemon.disk("a")["served"] == true).then_some(())
    });
    assert_eq!(fs::read(&victim).expect("it is there"), b"precious");
}

#[test]
fn an_image_that_is_a_link_or_has_too_long_a_name_is_refused_and_told_why() {
    let stage = Stage::new();
    let real = stage.there.join("real.raw");
    write_image(&real, MIB, MIB);
    symlink(&real, stage.here.join("link.raw")).expect("make a link");
    let link = stage.daemon.sterna("disk import a --on here link.raw");
    link.fails_with(&[
        "is a symbolic link to",
        "real.raw",
        "replace the link by the file",
    ]);
    let long = format!("{}.raw", "z".repeat(246));
    write_image(&stage.here.join(&long), MIB, MIB);
    let answer = stage.daemon.sterna(&format!("disk import a --on here {long}"));
    answer.fails_with(&["has 250 bytes", "234", "rename the file"]);
}

/// Somebody has put the image of another disk where the copy was, on a server.
#[test]
fn of_another_image_in_the_place_of_the_copy_it_is_said_whose_it_is_and_what_to_do() {
    let Some(mut stage) = Stage::given(&["nbdkit"]) else { return };
    let one = stage.nbd_server("one", 32 * MIB, &[]);
    let two = stage.nbd_server("two", 32 * MIB, &[]);
    stage.daemon.sterna("disk create y --size 16M --on two").ok();
    stage.disk_with_data("a", 16 * MIB, 16 * MIB);
    let id = stage.daemon.migrate("a --to one --rate 1M");
    stage.daemon.kill();
    // Both have their sidecar at the end, behind the disk.
    let end = 31 * MIB;
    let mut says = vec![0; MIB as usize];
    let open =
        |server: &Nbdkit| File::options().read(true).write(true).open(server.file());
    open(&two).and_then(|file| file.read_exact_at(&mut says, end)).expect("read");
    open(&one).and_then(|file| file.write_all_at(&says, end)).expect("write");
    stage.daemon.restart();
    let paused = stage.daemon.wait_for(id, "paused", seconds(20));
    let part = |key: &str| paused[key].as_str().unwrap_or_default().to_owned();
    let found =
        "Sterna has found another image in the place of the copy on datastore one";
    assert!(part("reason").starts_with(found), "{paused:#}");
    assert!(part("reason").contains("disk y"), "{paused:#}");
    assert!(part("hint").contains("put the copy back"), "{paused:#}");
    assert!(part("hint").contains(&format!("migration cancel {id}")), "{paused:#}");
    stage.daemon.sterna(&format!("migration cancel {id}")).ok();
    stage.daemon.wait_for(id, "cancelled", seconds(20));
    let mut left = vec![0; MIB as usize];
    open(&one).and_then(|file| file.read_exact_at(&mut left, end)).expect("read");
    assert!(left == says, "what is not the copy stays");
}

#[test]
fn a_new_image_that_was_replaced_while_the_move_cleaned_up_is_told_of() {
    if !have(&["sqlite3"]) {
        return;
    }
    let (mut stage, id, image) = moving();
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    stage.daemon.stop();
    // As if the daemon had been killed before the move was at its end.
    let state = stage.daemon.state().join("state.db").display().to_string();
    run("sqlite3", [&state, "UPDATE migrations SET step = 'committed', ended = NULL"]);
    let aside = image.with_extension("aside");
    fs::copy(&image, &aside).expect("copy the new image");
    fs::rename(&aside, &image).expect("put the copy in its place");
    stage.daemon.restart();
    stage.daemon.completed(id);
    status_warns(&stage, "a", "was replaced while the daemon was down");
    // It goes with the image.
    stage.daemon.sterna("migrate a --to here").ok();
    assert!(stage.daemon.warnings("disk a").is_empty());
}
