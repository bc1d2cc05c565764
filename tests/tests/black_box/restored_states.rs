//! A backup of the state directory is restored, and it is older than the disks: it was made
//! in the middle of a move that has ended since. Nothing stale is served, nothing that came
//! since is overwritten, and the newest image can be recovered.

use std::fs;
use std::path::{Path, PathBuf};

use sterna_tests::clients::nbdsh;
use sterna_tests::images::is_all;
use sterna_tests::programs::{command, run};
use sterna_tests::wait::seconds;
use sterna_tests::{Forgetful, MIB, Stage, until};

const SIZE: u64 = 32 * MIB;
const CLIENTS: &[&str] = &["/usr/bin/python3", "nbdkit", "sqlite3"];

/// Writes a byte all over a disk, durably.
fn fill(stage: &Stage, disk: &str, byte: char) {
    let script = format!("h.pwrite(b'{byte}' * (32 << 20), 0); h.flush()");
    nbdsh(&stage.daemon.uri(disk), &script);
}

/// A disk has this byte everywhere.
#[track_caller]
fn reads(stage: &Stage, disk: &str, byte: char) {
    let script = format!("print(h.pread(32 << 20, 0) == b'{byte}' * (32 << 20))");
    assert_eq!(nbdsh(&stage.daemon.uri(disk), &script).trim(), "True", "{disk}");
}

/// Puts a copy of a directory in another's place.
#[track_caller]
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    run("cp", [Path::new("-a"), from, to]);
}

/// Stops the daemon, backs its whole state directory up, and starts it again.
fn back_up(stage: &mut Stage) -> PathBuf {
    stage.daemon.stop();
    let backup = stage.scratch.path("backup");
    copy(stage.daemon.state(), &backup);
    stage.daemon.restart();
    backup
}

fn restore(stage: &mut Stage, backup: &Path) {
    stage.daemon.stop();
    let state = stage.daemon.state().to_owned();
    copy(backup, &state);
    stage.daemon.restart();
}

/// Has the backup say that the migration was at this step.
#[track_caller]
fn was_at(backup: &Path, step: &str) {
    let sql = format!("UPDATE migrations SET step = '{step}'");
    let edited = command("sqlite3").arg(backup.join("state.db")).arg(sql).status();
    assert!(edited.expect("run sqlite3").success());
}

#[track_caller]
fn is_not_served(stage: &Stage, disk: &str, why: &str, what_to_do: &str) {
    let shown = stage.daemon.disk(disk);
    let says = |key: &str| shown[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(shown["served"], false, "{shown:#}");
    assert!(says("problem").contains(why), "{shown:#}");
    assert!(says("hint").contains(what_to_do), "{shown:#}");
}

/// Ends the migration and the disk of the restored state, and takes in what is newest.
#[track_caller]
fn recover(stage: &Stage, id: u64, disk: &str) {
    stage.daemon.sterna(&format!("migration cancel {id}")).ok();
    stage.daemon.sterna(&format!("disk remove {disk} --keep-image")).ok();
    stage.daemon.sterna("disk recover").ok();
}

#[test]
fn a_place_that_the_disk_has_left_by_the_move_of_the_backup_is_not_served() {
    for step in ["copying", "switching"] {
        let Some(mut stage) = Stage::given(CLIENTS) else { return };
        let server = stage.nbd_server("full", SIZE, &[]);
        stage.daemon.sterna(&format!("disk create x --size {SIZE} --on full")).ok();
        fill(&stage, "x", 'A');
        let id = stage.daemon.migrate("x --to there --rate 8M");
        stage.daemon.wait_for_bytes(id, 4 * MIB);
        let backup = back_up(&mut stage);
        was_at(&backup, step);
        stage.daemon.hurry(id);
        stage.daemon.completed(id);
        fill(&stage, "x", 'B');
        restore(&mut stage, &backup);

        let newer = "datastore there has a newer image of the disk";
        let cancel = format!("sterna migration cancel {id}");
        is_not_served(&stage, "x", newer, &cancel);
        is_not_served(&stage, "x", newer, "restore the newest state directory");
        recover(&stage, id, "x");
        assert_eq!(stage.daemon.disk("x")["datastore"], "there", "{step}");
        reads(&stage, "x", 'B');
        is_all(server.file(), b'A');
    }
}

#[test]
fn an_old_image_that_was_restored_with_the_state_is_not_served() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    stage.disk("x", SIZE);
    fill(&stage, "x", 'A');
    let id = stage.daemon.migrate("x --to there --rate 8M");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    let backup = back_up(&mut stage);
    let images = stage.scratch.path("images");
    copy(&stage.here, &images);
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    fill(&stage, "x", 'B');
    stage.daemon.stop();
    for file in ["x.raw", "x.raw.sterna"] {
        fs::copy(images.join(file), stage.here.join(file)).expect("restore an image");
    }
    copy(&backup, stage.daemon.state());
    stage.daemon.restart();
    is_not_served(&stage, "x", "there has a newer image", "restore the newest");
    recover(&stage, id, "x");
    assert_eq!(stage.daemon.disk("x")["datastore"], "there");
    reads(&stage, "x", 'B');
}

/// The state thinks that another disk has the place to which the disk has moved.
#[test]
fn an_old_place_is_not_served_although_the_new_one_was_another_disks() {
    // The other disk had left room for a sidecar, or had none in its place.
    for other in [SIZE, SIZE + 65536] {
        let Some(mut stage) = Stage::given(CLIENTS) else { return };
        let _full = stage.nbd_server("full", SIZE, &[]);
        let _roomy = stage.nbd_server("roomy", SIZE + 65536, &[]);
        stage.daemon.sterna(&format!("disk create x --size {SIZE} --on full")).ok();
        stage.daemon.sterna(&format!("disk create y --size {other} --on roomy")).ok();
        fill(&stage, "x", 'A');
        let backup = back_up(&mut stage);
        stage.daemon.sterna("disk remove y").ok();
        let id = stage.daemon.migrate("x --to roomy");
        stage.daemon.completed(id);
        fill(&stage, "x", 'B');
        restore(&mut stage, &backup);
        is_not_served(&stage, "x", "roomy has a newer image", "restore the newest");
    }
}

/// How many connections the server of the first of so many disks, each of which fills its
/// export, gets when the daemon starts.
fn connections_at_the_start(disks: usize) -> Option<u64> {
    let mut stage = Stage::given(&[])?;
    // The others would have room for a sidecar at the end of the first.
    let size = |at| if at == 0 { 2 * MIB } else { MIB };
    let start = |at| Forgetful::start(&stage.scratch, &format!("export{at}"), size(at));
    let servers: Vec<Forgetful> = (0..disks).map(start).collect();
    for (at, server) in servers.iter().enumerate() {
        stage.datastore(&format!("exact{at}"), server.location());
        let create = format!("disk create d{at} --size {} --on exact{at}", size(at));
        stage.daemon.sterna(&create).ok();
    }
    stage.daemon.stop();
    let before = servers[0].connections_so_far();
    stage.daemon.restart();
    for at in 0..disks {
        until("the disks to be served", seconds(20), || {
            (stage.daemon.disk(&format!("d{at}"))["served"] == true).then_some(())
        });
    }
    servers[0].wait_for_connections();
    Some(servers[0].connections_so_far() - before)
}

#[test]
fn an_export_in_use_is_not_asked_by_each_other_disk() {
    let Some(few) = connections_at_the_start(2) else { return };
    let Some(many) = connections_at_the_start(10) else { return };
    // What is looked at now and then may come in between.
    assert!(many <= few + 3, "{few} connections with two disks, {many} with ten");
}

/// A disk `x` that has moved from `here` to `there`, the state of before, and what was on
/// `here` then.
fn moved_after_a_backup() -> Option<(Stage, PathBuf, PathBuf)> {
    let mut stage = Stage::given(CLIENTS)?;
    stage.disk("x", SIZE);
    fill(&stage, "x", 'A');
    let backup = back_up(&mut stage);
    let images = stage.scratch.path("images");
    copy(&stage.here, &images);
    let id = stage.daemon.migrate("x --to there");
    stage.daemon.completed(id);
    Some((stage, backup, images))
}

/// Its datastore had failed when the disk moved away, and is in order again.
#[test]
fn an_old_image_that_could_not_be_put_away_is_not_served() {
    let Some((mut stage, backup, images)) = moved_after_a_backup() else { return };
    fill(&stage, "x", 'B');
    // As another name: what counts is what the sidecar says.
    stage.daemon.stop();
    for end in ["raw", "raw.sterna"] {
        let [from, to] =
            ["x", "renamed"].map(|it| stage.there.join(format!("{it}.{end}")));
        fs::rename(from, to).expect("rename an image");
        let file = format!("x.{end}");
        fs::copy(images.join(&file), stage.here.join(&file)).expect("bring it back");
    }
    copy(&backup, stage.daemon.state());
    stage.daemon.restart();
    is_not_served(&stage, "x", "there has a newer image", "restore the newest");
    stage.daemon.sterna("disk remove x --keep-image").ok();
    stage.daemon.sterna("disk recover").ok();
    assert_eq!(stage.daemon.disk("x")["datastore"], "there");
    reads(&stage, "x", 'B');
}

/// The newer image's sidecar is where the end of its place was when the state was made.
#[test]
fn an_old_image_is_not_served_although_the_place_of_the_newer_one_has_grown() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    let mut far = stage.nbd_server("far", SIZE + 20 * MIB, &[]);
    stage.disk("x", SIZE);
    fill(&stage, "x", 'A');
    let backup = back_up(&mut stage);
    let images = stage.scratch.path("images");
    copy(&stage.here, &images);
    let id = stage.daemon.migrate("x --to far");
    stage.daemon.completed(id);
    stage.daemon.stop();
    for file in ["x.raw", "x.raw.sterna"] {
        fs::copy(images.join(file), stage.here.join(file)).expect("bring an image back");
    }
    far.kill();
    let larger = fs::File::options().write(true).open(far.file()).expect("open a file");
    larger.set_len(SIZE + 80 * MIB).expect("make it larger");
    far.restart();
    copy(&backup, stage.daemon.state());
    stage.daemon.restart();
    is_not_served(&stage, "x", "far has a newer image", "restore the newest");
}

/// The state's directory has a sidecar of what filled the place before; the newer image has left
/// room for its own.
#[test]
fn a_newer_image_is_found_behind_a_sidecar_that_is_in_a_file() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    let _full = stage.nbd_server("full", SIZE, &[]);
    let larger = SIZE + 65536;
    let roomy = stage.nbd_server("roomy", larger, &[]);
    // Its old image says nothing, as it has no room.
    stage.daemon.sterna(&format!("disk create x --size {SIZE} --on full")).ok();
    fill(&stage, "x", 'A');
    stage.daemon.sterna(&format!("disk create z --size {larger} --on roomy")).ok();
    let id = stage.daemon.migrate("z --to here --keep-source");
    stage.daemon.completed(id);
    let backup = back_up(&mut stage);
    let import = format!("disk import old {} --on roomy", roomy.location());
    stage.daemon.sterna(&import).ok();
    stage.daemon.sterna("disk remove old --delete-image").ok();
    let id = stage.daemon.migrate("x --to roomy");
    stage.daemon.completed(id);
    restore(&mut stage, &backup);
    is_not_served(&stage, "x", "roomy has a newer image", "restore the newest");
}

/// Nothing is known against it, and its clients wait.
#[test]
fn an_old_image_is_warned_of_when_the_datastore_of_the_newer_one_is_back() {
    let Some((mut stage, backup, images)) = moved_after_a_backup() else { return };
    stage.daemon.stop();
    for file in ["x.raw", "x.raw.sterna"] {
        fs::copy(images.join(file), stage.here.join(file)).expect("bring an image back");
    }
    let away = stage.scratch.path("away");
    fs::rename(&stage.there, &away).expect("take the datastore away");
    copy(&backup, stage.daemon.state());
    stage.daemon.restart();
    reads(&stage, "x", 'A');
    let warned = || {
        let mut all = stage.daemon.warnings("disk x").into_iter();
        all.find(|it| it.contains("has a newer image"))
    };
    assert_eq!(warned(), None);

    fs::rename(&away, &stage.there).expect("bring the datastore back");
    until("a warning", seconds(30), warned);
    // Its sidecar alone says nothing.
    fs::remove_file(stage.there.join("x.raw")).expect("remove the newer image");
    until("the warning to end", seconds(30), || warned().is_none().then_some(()));
}

#[test]
fn a_move_that_was_cleaning_up_can_be_given_up_if_its_new_image_is_gone() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    stage.disk("x", SIZE);
    fill(&stage, "x", 'A');
    stage.daemon.stop();
    let images = stage.scratch.path("images");
    copy(&stage.here, &images);
    stage.daemon.restart();
    let id = stage.daemon.migrate("x --to there");
    stage.daemon.completed(id);
    stage.daemon.stop();
    // As if it had been backed up before the old image was removed, and the new image had
    // gone since.
    was_at(stage.daemon.state(), "committed");
    for file in ["x.raw", "x.raw.sterna"] {
        fs::copy(images.join(file), stage.here.join(file)).expect("restore an image");
        fs::remove_file(stage.there.join(file)).expect("remove an image");
    }
    stage.daemon.restart();
    is_not_served(&stage, "x", "there is no image", "");
    let cancel = format!("sterna migration cancel {id}");
    let images = stage.daemon.json("disk recover")["images"].to_string();
    assert!(images.contains(&cancel) || images.contains("out of date"), "{images}");
    let given_up = stage.daemon.sterna(&format!("migration cancel {id}")).ok();
    assert!(given_up.stdout.contains("left both images"), "{}", given_up.stdout);
    stage.daemon.sterna("disk remove x --keep-image").ok();
    stage.daemon.sterna("disk recover").ok();
    assert_eq!(stage.daemon.disk("x")["datastore"], "here");
    reads(&stage, "x", 'A');
}

#[test]
fn a_move_of_the_backup_whose_copy_is_gone_says_so_and_can_be_cancelled() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    stage.disk("x", SIZE);
    fill(&stage, "x", 'X');
    let id = stage.daemon.migrate("x --to there --rate 4M");
    stage.daemon.wait_for_bytes(id, 8 * MIB);
    let backup = back_up(&mut stage);
    stage.daemon.cancel(id);
    restore(&mut stage, &backup);
    let paused = stage.daemon.wait_for(id, "paused", seconds(30));
    let reason = paused["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("datastore there has no image x.raw"), "{paused:#}");
    let hint = paused["hint"].as_str().unwrap_or_default();
    assert!(hint.starts_with("cancel the migration"), "{paused:#}");
    stage.daemon.cancel(id);
    reads(&stage, "x", 'X');
}

#[test]
fn a_move_of_the_backup_does_not_overwrite_a_disk_that_has_got_its_place() {
    // The new disk has written all of it, or a part: the rest is what the copy has left.
    for (written, why) in [
        (SIZE, "full does not hold the copy of disk x"),
        (SIZE / 8, "somebody else has written to the copy of disk x on datastore full"),
    ] {
        let Some(mut stage) = Stage::given(CLIENTS) else { return };
        stage.disk("x", SIZE);
        fill(&stage, "x", 'X');
        let server = stage.nbd_server("full", SIZE, &[]);
        // Otherwise the clients could have overwritten so much until the end.
        stage.daemon.looks_at_places();
        let id = stage.daemon.migrate("x --to full --rate 4M");
        stage.daemon.wait_for_bytes(id, 8 * MIB);
        let backup = back_up(&mut stage);
        stage.daemon.cancel(id);
        stage.daemon.sterna(&format!("disk create y --size {SIZE} --on full")).ok();
        let script = format!("h.pwrite(b'Y' * {written}, 0); h.flush()");
        nbdsh(&stage.daemon.uri("y"), &script);
        let before = std::fs::read(server.file()).expect("read the place");
        restore(&mut stage, &backup);
        let paused = stage.daemon.wait_for(id, "paused", seconds(30));
        let reason = paused["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(why), "{paused:#}");
        assert!(std::fs::read(server.file()).expect("read the place") == before);
        reads(&stage, "x", 'X');
    }
}
