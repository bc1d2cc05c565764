//! A file system goes away from under a datastore's path, and the bare mount point is
//! found there: the datastore is offline then, and nothing gets on to what is below.

use std::fs;
use std::path::Path;

use sterna_tests::images::identical_files;
use sterna_tests::places::TinyFs;
use sterna_tests::stage::files_in;
use sterna_tests::wait::seconds;
use sterna_tests::{Daemon, MIB, Stage, until};

/// The programs that make file systems.
const NEEDED: [&str; 2] = ["losetup", "mkfs.ext4"];
/// The mark in a datastore's directory.
const MARK: &str = ".sterna-datastore";

fn problem(daemon: &Daemon, datastore: &str) -> Option<String> {
    let shown = daemon.json(&format!("datastore show {datastore}"));
    shown["problem"].as_str().map(Into::into)
}

/// Waits until a datastore is offline, as another file system is at its path.
#[track_caller]
fn goes_offline(daemon: &Daemon, datastore: &str) {
    let told =
        until("the datastore to be offline", seconds(10), || problem(daemon, datastore));
    assert!(told.contains("another file system is at"), "{told}");
}

#[track_caller]
fn comes_online(daemon: &Daemon, datastore: &str) {
    until("the datastore to be online", seconds(15), || {
        problem(daemon, datastore).is_none().then_some(())
    });
}

/// Nothing whatever is in the bare mount point.
#[track_caller]
fn is_bare(directory: &Path) {
    let found = fs::read_dir(directory).expect("read a directory").flatten();
    let names: Vec<_> = found.map(|entry| entry.file_name()).collect();
    assert!(names.is_empty(), "in the mount point: {names:?}");
}

/// A stage with a datastore `fast` on a file system of its own.
fn stage_and_fast() -> Option<(Stage, TinyFs)> {
    let stage = Stage::given_root(&NEEDED)?;
    let fast = stage.tiny_fs("fast", 128 * MIB);
    Some((stage, fast))
}

#[test]
fn nothing_goes_on_to_the_bare_mount_point() {
    let Some((mut stage, fast)) = stage_and_fast() else { return };
    stage.disk("a", MIB);
    stage.daemon.sterna("disk create kept --size 1M --on fast").ok();
    fast.leave();
    goes_offline(&stage.daemon, "fast");
    let status = stage.daemon.json("status").to_string();
    assert!(status.contains("offline, with disk kept on it"), "{status}");
    let refused = ["mount"];
    stage.daemon.sterna("disk create b --size 1M --on fast").fails_with(&refused);
    stage.daemon.sterna("migrate a --to fast").fails_with(&refused);
    stage.daemon.sterna("disk import b --on fast b.raw").fails_with(&[]);
    assert_eq!(stage.daemon.json("disk list").as_array().map(Vec::len), Some(2));
    assert_eq!(stage.daemon.disk("kept")["served"], true, "it is open still");
    is_bare(fast.dir());

    // A daemon that starts before the file system is mounted waits for it.
    stage.daemon.stop();
    stage.daemon.restart();
    goes_offline(&stage.daemon, "fast");
    assert_eq!(stage.daemon.disk("kept")["served"], false);
    is_bare(fast.dir());
    fast.come_back();
    until("the disk to be served", seconds(20), || {
        stage.daemon.disk("kept")["served"].as_bool().filter(|served| *served)
    });
    comes_online(&stage.daemon, "fast");
    stage.daemon.sterna("disk create b --size 1M --on fast").ok();
    assert!(fast.dir().join("b.raw").exists());
}

#[test]
fn an_image_whose_file_system_was_taken_away_is_out_of_sight_and_not_lost() {
    let Some((stage, fast)) = stage_and_fast() else { return };
    stage.daemon.sterna("disk create kept --size 1M --on fast").ok();
    fast.leave();
    let of_the_disk = || {
        let status = stage.daemon.json("status");
        let warnings = status["warnings"].as_array().expect("a list of warnings");
        warnings.iter().find(|one| one["about"] == "disk kept").cloned()
    };
    let warning = until("a warning of the disk", seconds(10), of_the_disk);
    let told = warning.to_string();
    assert!(told.contains("out of sight"), "{warning:#}");
    assert!(told.contains("do not stop the daemon before"), "{warning:#}");
    assert!(!told.contains("sterna migrate"), "{warning:#}");
    fast.come_back();
    until("the warning to be over", seconds(20), || {
        of_the_disk().is_none().then_some(())
    });
    assert_eq!(stage.daemon.disk("kept")["served"], true);
}

#[test]
fn a_move_waits_for_the_file_system_that_it_goes_to() {
    let Some((stage, fast)) = stage_and_fast() else { return };
    stage.disk_with_data("a", 32 * MIB, 32 * MIB);
    let before = stage.scratch.path("before");
    fs::copy(stage.daemon.image("a"), &before).expect("copy an image");
    let id = stage.daemon.migrate("a --to fast --rate 10M");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    fast.leave();
    let paused = stage.daemon.wait_for(id, "paused", seconds(60));
    let reason = paused["reason"].to_string();
    assert!(reason.contains("another file system"), "{paused:#}");
    is_bare(fast.dir());
    assert_eq!(stage.daemon.disk("a")["datastore"], "here");
    assert!(stage.here.join("a.raw").exists());

    fast.come_back();
    stage.daemon.wait_for(id, "completed", seconds(60));
    assert_eq!(stage.daemon.image("a"), fast.dir().join("a.raw"));
    identical_files(&before, &fast.dir().join("a.raw"));
    assert!(!stage.here.join("a.raw").exists());
}

#[test]
fn a_half_image_is_not_looked_for_below_its_file_system() {
    let Some((stage, fast)) = stage_and_fast() else { return };
    stage.disk_with_data("a", 32 * MIB, 32 * MIB);
    let id = stage.daemon.migrate("a --to fast --rate 2M");
    stage.daemon.wait_for_bytes(id, MIB);
    fast.leave();
    // Somebody's, of the same name.
    let others = ["a.raw", "a.raw.sterna"].map(|name| fast.dir().join(name));
    for file in &others {
        fs::write(file, "theirs").expect("write a file");
    }
    stage.daemon.cancel(id);
    assert!(others.iter().all(|file| fs::read(file).is_ok_and(|it| it == b"theirs")));
    assert_eq!(stage.daemon.disk("a")["datastore"], "here");
    fast.come_back();
}

#[test]
fn a_source_that_cannot_be_seen_is_left_behind() {
    let Some((stage, fast)) = stage_and_fast() else { return };
    stage.disk_with_data("a", 16 * MIB, 16 * MIB);
    let id = stage.daemon.migrate("a --to fast");
    stage.daemon.completed(id);
    let id = stage.daemon.migrate("a --to there --rate 1M");
    fast.leave();
    let theirs = fast.dir().join("a.raw");
    fs::write(&theirs, "theirs").expect("write a file");
    stage.daemon.sterna(&format!("migration set {id} --rate 1G")).ok();
    let done = stage.daemon.wait_for(id, "completed", seconds(60));
    assert!(done.to_string().contains("the old image stays at"), "{done:#}");
    assert!(theirs.exists(), "it is another file system's");
    fast.come_back();
    assert!(theirs.exists() && fast.dir().join("a.raw.sterna").exists());
}

#[test]
fn a_plan_waits_for_a_file_system() {
    let Some((stage, fast)) = stage_and_fast() else { return };
    stage.disk_with_data("a", 8 * MIB, 8 * MIB);
    let (id, _) = stage.daemon.plan_evacuation("here --to fast");
    fast.leave();
    stage.daemon.sterna(&format!("plan apply {id}")).ok();
    goes_offline(&stage.daemon, "fast");
    std::thread::sleep(seconds(3));
    assert_eq!(stage.daemon.disk("a")["datastore"], "here");
    is_bare(fast.dir());
    fast.come_back();
    until("the disk to have moved", seconds(90), || {
        (stage.daemon.disk("a")["datastore"] == "fast").then_some(())
    });
    assert!(fast.dir().join("a.raw").exists());
}

#[test]
fn a_lost_mark_is_made_anew_where_all_images_are() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let mark = stage.here.join(MARK);
    let was = fs::read(&mark).expect("it is marked");
    fs::remove_file(&mark).expect("remove the mark");
    until("the mark to be there", seconds(15), || fs::read(&mark).ok());
    assert_eq!(fs::read(&mark).expect("read the mark"), was);
    comes_online(&stage.daemon, "here");
    // Where there are no images, nothing says so.
    fs::remove_file(stage.there.join(MARK)).expect("remove the mark");
    goes_offline(&stage.daemon, "there");
    stage.daemon.sterna("migrate a --to there").fails_with(&["there"]);
    assert!(files_in(&stage.there).is_empty());
    stage.daemon.sterna("datastore remove there").ok();
    stage.datastore("there", stage.there.display());
    stage.daemon.sterna("migrate a --to there").ok();
}

#[test]
fn a_mark_stays_when_its_datastore_is_forgotten_as_others_may_know_it() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let (here, there) = (stage.here.join(MARK), stage.there.join(MARK));
    let was = fs::read(&here).expect("it is marked");
    stage.daemon.sterna("disk remove a --keep-image").ok();
    for name in ["here", "there"] {
        stage.daemon.sterna(&format!("datastore remove {name}")).ok();
    }
    assert!(here.exists() && there.exists());
    // Whoever adds it next knows it by the same.
    stage.datastore("again", stage.here.display());
    assert_eq!(fs::read(&here).expect("read the mark"), was);
}

#[test]
fn a_file_system_that_is_full_is_marked_when_it_has_room() {
    let Some(stage) = Stage::given_root(&NEEDED) else { return };
    let mount = stage.scratch.path("full");
    let full = TinyFs::new(&stage.scratch.path("full.img"), &mount, 16 * MIB);
    let ballast = full.fill_up();
    stage.datastore("full", full.dir().display());
    assert_eq!(problem(&stage.daemon, "full"), None);
    let mark = full.dir().join(MARK);
    assert!(!mark.exists());
    fs::remove_file(ballast).expect("make room");
    until("the mark to be there", seconds(15), || mark.exists().then_some(()));
}
