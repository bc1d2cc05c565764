//! Every wrong wish gets a clear answer, and nothing is lost by it.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sterna_tests::images::{identical_files, write_image};
use sterna_tests::places::TinyFs;
use sterna_tests::programs::sterna;
use sterna_tests::stage::files_in;
use sterna_tests::wait::seconds;
use sterna_tests::{Answer, CheckerOptions, Daemon, MIB, Stage, checker};

#[test]
fn a_directory_that_is_a_datastore_already_is_refused_by_whatever_path() {
    let stage = Stage::new();
    let link = stage.scratch.path("link");
    std::os::unix::fs::symlink(&stage.here, &link).expect("make a link");
    for location in
        [format!("{}", link.display()), format!("array://old-fc?path={}", link.display())]
    {
        let answer = stage.daemon.sterna(&format!("datastore add again {location}"));
        answer.fails_with(&["is datastore here already"]);
    }
    stage.daemon.sterna("datastore show again").fails_with(&["again"]);
}

#[test]
fn the_daemons_own_state_is_neither_a_datastore_nor_a_disk() {
    let mut stage = Stage::new();
    stage.disk("a", MIB);
    let state = stage.daemon.state().to_owned();
    let link = stage.scratch.path("link");
    std::os::unix::fs::symlink(&state, &link).expect("make a link");
    fs::create_dir(state.join("more")).expect("make a directory");
    for place in [&state, &state.join("maps"), &state.join("more"), &link] {
        let add = format!("datastore add own {}", place.display());
        stage.daemon.sterna(&add).fails_with(&["belongs to the state of this daemon"]);
    }
    let second = stage.here.join("second.raw");
    fs::hard_link(state.join("state.db"), &second).expect("give a second name");
    let import = format!("disk import q --on here {}", second.display());
    let refused = stage.daemon.sterna(&import);
    refused.fails_with(&["belongs to the state of this daemon"]);
    // What an earlier version has added.
    stage.daemon.stop();
    fs::remove_file(&second).expect("remove it");
    fs::remove_dir_all(&stage.here).expect("remove a datastore");
    std::os::unix::fs::symlink(&state, &stage.here).expect("lead to the state");
    fs::write(state.join("odd"), "odd").expect("write a file");
    stage.daemon.restart();
    for file in ["state.db", "odd"] {
        let import = format!("disk import q --on here {file}");
        let refused = stage.daemon.sterna(&import);
        assert!(!refused.stderr.contains("truncate"), "{}", refused.stderr);
        assert_eq!(refused.code, 1);
    }
}

#[test]
fn unknown_names_are_refused_by_name() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    for (line, name) in [
        ("disk show nope", "nope"),
        ("disk remove nope", "nope"),
        ("disk uri nope", "nope"),
        ("disk create b --size 1M --on nope", "nope"),
        ("datastore show nope", "nope"),
        ("datastore remove nope", "nope"),
        ("migrate nope --to there", "nope"),
        ("migrate a --to nope", "nope"),
        ("migration show 77", "77"),
        ("migration pause 77", "77"),
        ("migration resume 77", "77"),
        ("migration cancel 77", "77"),
        ("migration watch 77", "77"),
        ("migration set 77 --rate 1M", "77"),
        ("class show nope", "nope"),
        ("class delete nope", "nope"),
        ("class set nope --shares 5", "nope"),
        ("class add nope a", "nope"),
        ("class create c nope", "nope"),
        ("policy limit nope 2M", "nope"),
        ("policy explain nope", "nope"),
        ("policy show 77", "77"),
        ("policy remove 77", "77"),
    ] {
        stage.daemon.sterna(line).fails_with(&[name]);
    }
}

#[test]
fn names_that_would_need_quoting_are_refused() {
    let stage = Stage::new();
    for name in ["a/b", "..", ".hidden", &"x".repeat(64)] {
        let line = format!("disk create {name} --size 1M --on here");
        let answer = stage.daemon.sterna(&line);
        assert!(answer.code == 1 || answer.code == 2, "{answer:?}");
        assert!(!answer.stderr.is_empty());
    }
    assert_eq!(stage.daemon.json("disk list").as_array().map(Vec::len), Some(0));
}

#[test]
fn service_levels_that_are_none_are_usage_errors() {
    let stage = Stage::new();
    stage.daemon.sterna("class create c").ok();
    for line in [
        "class set c",
        "class set c --reservation 5ms",
        "class set c --reservation 0",
        "class set c --shares=-1",
        "policy limit c 0",
        "policy limit c 2X",
        "policy limit c 2M --schedule tonight",
        "policy limit c 2M --schedule 08:00-08:00",
        "policy limit c 2M --until-job db",
        "policy cruise c 2M",
        "policy cruise c 2M --tolerance 0%",
        "policy cruise c 2M --tolerance 51%",
        "policy cruise c 2M --tolerance -1%",
        "policy cruise c 2M --tolerance 10% --floor 5ms",
        "policy cruise c 2M --tolerance 10% --fallback limit=0",
        "policy queue-depth c 0",
        "policy queue-depth c 65536",
        "policy show c",
    ] {
        stage.daemon.sterna(line).is_usage_error();
    }
    assert_eq!(stage.daemon.json("policy list").as_array().map(Vec::len), Some(0));
}

#[test]
fn names_are_not_given_twice() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    stage.daemon.sterna("disk create a --size 2M --on here").fails_with(&["a"]);
    let line = format!("datastore add here {}", stage.there.display());
    stage.daemon.sterna(&line).fails_with(&["here"]);
    assert_eq!(stage.daemon.disk("a")["size"], MIB);
}

#[test]
fn sizes_must_be_whole_sectors_and_not_zero() {
    let stage = Stage::new();
    for size in ["0", "1000", "513"] {
        let answer =
            stage.daemon.sterna(&format!("disk create a --size {size} --on here"));
        assert!(answer.code == 1 || answer.code == 2, "{answer:?}");
        assert!(answer.stderr.contains("512"), "{answer:?}");
    }
    for size in ["ten", "-1", "1Q"] {
        let line = format!("disk create a --size={size} --on here");
        stage.daemon.sterna(&line).is_usage_error();
    }
}

#[test]
fn a_place_that_is_not_there_is_refused() {
    let stage = Stage::new();
    let add =
        |location: &str| stage.daemon.sterna(&format!("datastore add x {location}"));
    add("/dev").fails_with(&["/dev", "give a directory"]);
    add("/nowhere/at/all").fails_with(&["/nowhere/at/all"]);
    add("nbd+unix:///?socket=/nowhere.sock").fails_with(&["/nowhere.sock"]);
    let file = stage.scratch.path("file");
    fs::write(&file, "not a directory").expect("write a file");
    let answer = add(file.to_str().expect("a plain path"));
    assert!(answer.code != 0, "{answer:?}");
    let answer = add("ftp://example.org/x");
    assert!(answer.code != 0, "{answer:?}");
    let line = format!("disk import x --on here {}/nope.raw", stage.here.display());
    stage.daemon.sterna(&line).fails_with(&["nope.raw"]);
}

#[test]
fn a_move_that_is_refused_at_its_destination_leaves_no_trace() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let theirs = stage.there.join("a.raw");
    fs::write(&theirs, "somebody's").expect("write a file");
    stage.daemon.sterna("migrate a --to there").fails_with(&["a.raw", "exists"]);
    assert_eq!(stage.daemon.json("migration list"), serde_json::json!([]));
    assert_eq!(fs::read(&theirs).expect("it is there"), b"somebody's");
    assert_eq!(stage.files_there(), ["a.raw"]);
    fs::remove_file(&theirs).expect("remove it");
    let id = stage.daemon.migrate("a --to there");
    stage.daemon.completed(id);
}

#[test]
fn an_image_of_another_format_is_refused_with_the_way_to_convert_it() {
    let stage = Stage::new();
    fs::write(stage.here.join("q.qcow2"), b"QFI\xfb\0\0\0\x03").expect("write a file");
    let answer = stage.daemon.sterna("disk import q --on here q.qcow2");
    let answer = answer.fails_with(&["qcow2", "qemu-img convert"]);
    assert!(!answer.stderr.contains("truncate"), "{answer:?}");
}

#[test]
fn an_image_that_is_served_is_known_as_that_of_its_disk() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let line = format!("disk import b --on here {}", stage.daemon.image("a").display());
    stage.daemon.sterna(&line).fails_with(&["is the image of disk a"]);
}

#[test]
fn a_place_instead_of_a_name_is_refused_with_the_way_to_name_it() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let line = format!("migrate a --to {}", stage.there.display());
    stage.daemon.sterna(&line).fails_with(&["sterna datastore add"]);
}

#[test]
fn a_datastore_in_use_is_not_removed() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    stage.daemon.sterna("datastore remove here").fails_with(&["a"]);
    assert!(stage.daemon.image("a").exists());
}

#[test]
fn a_move_to_where_the_disk_is_is_refused() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    stage.daemon.sterna("migrate a --to here").fails_with(&["here"]);
}

#[test]
fn a_second_move_of_a_disk_is_refused_and_the_first_goes_on() {
    let stage = Stage::new();
    stage.disk_with_data("a", 64 * MIB, 64 * MIB);
    let third = stage.directory("third");
    let id = stage.daemon.migrate("a --to there --rate 20M");
    stage.daemon.sterna("migrate a --to third").fails_with(&["a"]);
    stage.daemon.sterna("disk remove a").fails_with(&["a"]);
    assert!(files_in(&third).is_empty());
    stage.daemon.completed(id);
}

#[test]
fn a_device_that_is_too_small_is_refused() {
    let Some(stage) = Stage::given_root(&["losetup"]) else { return };
    let _device = stage.block_device("small", 16 * MIB);
    stage.disk("a", 32 * MIB);
    stage.daemon.sterna("migrate a --to small").fails_with(&["small"]);
    assert_eq!(stage.daemon.disk("a")["datastore"], "here");
}

#[test]
fn an_nbd_export_that_is_too_small_is_refused() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let _server = stage.nbd_server("small", 16 * MIB, &[]);
    stage.disk("a", 32 * MIB);
    stage.daemon.sterna("migrate a --to small").fails_with(&["small"]);
}

#[test]
fn a_state_directory_has_one_daemon() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let output = command_for_second(&stage.daemon, &stage.scratch.socket("second.sock"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let state = stage.daemon.state().display().to_string();
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&state), "it should name {state}: {said}");
    assert_eq!(stage.daemon.disk("a")["served"], true);
}

fn command_for_second(daemon: &Daemon, socket: &Path) -> std::process::Output {
    std::process::Command::new(sterna())
        .arg("--socket")
        .arg(socket)
        .args(["serve", "--state"])
        .arg(daemon.state())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("start sterna serve")
}

/// All files below a directory, but for a datastore's own, which begin with a dot.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("list a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            found.push(path);
        }
    }
    found
}

/// Turns over bits here and there in the first 64 KiB of a file.
fn damage(path: &Path) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).expect("open");
    let len = file.metadata().expect("stat").len().min(64 << 10);
    for at in (16..len).step_by(61) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("read");
        file.write_all_at(&[byte[0] ^ 0x5a], at).expect("write");
    }
}

#[test]
fn a_damaged_region_map_is_noticed_and_never_guessed() {
    let Some(mut stage) = Stage::given(&["qemu-img"]) else { return };
    stage.disk_with_data("a", 64 * MIB, 64 * MIB);
    let id = stage.daemon.migrate("a --to there --rate 10M --keep-source");
    stage.daemon.wait_for_bytes(id, 16 * MIB);
    stage.daemon.kill();
    let maps: Vec<PathBuf> = files_below(stage.daemon.state())
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("map"))
        .collect();
    assert!(!maps.is_empty(), "the map should be in the state directory");
    maps.iter().for_each(|map| damage(map));
    stage.daemon.restart();
    assert_eq!(stage.daemon.disk("a")["served"], true);
    let paused = stage.daemon.wait_for(id, "paused", seconds(20));
    let reason = paused["reason"].as_str().unwrap_or_default().to_lowercase();
    assert!(reason.contains("map"), "{paused:#}");
    // What can be done about it: let it compare everything, or start again.
    stage.daemon.cancel(id);
    let source = stage.daemon.image("a");
    stage.daemon.sterna("migrate a --to there --keep-source").ok();
    identical_files(&source, &stage.daemon.image("a"));
}

#[test]
fn a_damaged_sidecar_is_noticed_and_never_guessed() {
    let mut stage = Stage::new();
    stage.disk("a", 16 * MIB);
    stage.disk("b", 16 * MIB);
    let options = CheckerOptions::hard(8).with("--seconds", 1);
    let summary = stage.checker("a", &options).finish();
    assert!(summary["writes"].as_u64() > Some(0));
    stage.daemon.stop();
    let sidecar = stage.here.join("a.raw.sterna");
    let good = fs::read(&sidecar).expect("read the sidecar");
    damage(&sidecar);
    stage.daemon.restart();
    let shown = stage.daemon.disk("a");
    assert_eq!(shown["served"], false, "{shown:#}");
    let problem = shown["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("sidecar") || problem.contains(".sterna"), "{shown:#}");
    assert_eq!(stage.daemon.disk("b")["served"], true);
    stage.daemon.stop();
    fs::write(&sidecar, good).expect("put the sidecar back");
    stage.daemon.restart();
    checker::verify(&stage.daemon.uri("a"), &stage.checked("a"));
}

#[test]
fn a_damaged_state_database_is_refused_with_the_way_back() {
    let mut stage = Stage::new();
    stage.disk("a", MIB);
    stage.daemon.stop();
    damage(&stage.daemon.state().join("state.db"));
    let output = command_for_second(&stage.daemon, &stage.scratch.socket("second.sock"));
    Answer::new("sterna serve".into(), &output).fails_with(&["state.db", "files.md"]);
    assert!(stage.here.join("a.raw").exists());
}

#[test]
fn an_image_that_went_away_is_a_problem_of_that_disk_alone() {
    let mut stage = Stage::new();
    stage.disk("a", 16 * MIB);
    stage.disk("b", 16 * MIB);
    stage.daemon.stop();
    let image = stage.here.join("a.raw");
    fs::rename(&image, stage.here.join("elsewhere")).expect("move the image away");
    stage.daemon.restart();
    let shown = stage.daemon.disk("a");
    assert_eq!(shown["served"], false, "{shown:#}");
    assert!(shown["problem"].is_string(), "{shown:#}");
    assert_eq!(stage.daemon.disk("b")["served"], true);
    assert!(!image.exists(), "no empty image may be made in its place");
}

#[test]
fn a_full_datastore_refuses_a_thick_disk() {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.ext4"]) else { return };
    let tiny = stage.tiny_fs("tiny", 32 * MIB);
    stage
        .daemon
        .sterna("disk create a --size 64M --on tiny --provision thick")
        .fails_with(&["tiny"]);
    let left = files_below(tiny.dir());
    assert!(left.is_empty(), "it should leave nothing: {left:?}");
}

#[test]
fn a_move_that_does_not_fit_is_refused_before_anything_changes() {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.ext4"]) else { return };
    let tiny = stage.tiny_fs("tiny", 32 * MIB);
    stage.disk_with_data("a", 64 * MIB, 48 * MIB);
    let does_not_fit = ["disk a takes", "datastore tiny has", "are missing", "make room"];
    stage.daemon.sterna("migrate a --to tiny").fails_with(&does_not_fit);
    // What is thin elsewhere may be asked to take all of its size here.
    stage.disk("empty", 64 * MIB);
    let thick = "migrate empty --to tiny --provision thick";
    stage.daemon.sterna(thick).fails_with(&["disk empty takes 64.0 MiB"]);
    let left = files_below(tiny.dir());
    assert!(left.is_empty(), "it should leave nothing: {left:?}");
    assert_eq!(stage.daemon.json("migration list"), serde_json::json!([]));
    // The size is no reason, only what is in it.
    stage.daemon.sterna("migrate empty --to tiny").ok();
}

#[test]
fn a_move_within_a_file_system_that_shares_no_blocks_leaves_guests_their_room() {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.ext4"]) else { return };
    let (file, mount) = (stage.scratch.path("fs.img"), stage.scratch.path("fs"));
    let tiny = TinyFs::new(&file, &mount, 128 * MIB);
    for name in ["from", "to"] {
        fs::create_dir(tiny.dir().join(name)).expect("make a directory");
        stage.datastore(name, tiny.dir().join(name).display());
    }
    let image = tiny.dir().join("from/a.raw");
    write_image(&image, 96 * MIB, 72 * MIB);
    let import = format!("disk import a --on from {}", image.display());
    stage.daemon.sterna(&import).ok();
    let does_not_fit = ["disk a takes", "datastore to has", "are missing", "make room"];
    stage.daemon.sterna("migrate a --to to").fails_with(&does_not_fit);
}

#[test]
fn an_old_copy_counts_as_room() {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.ext4"]) else { return };
    let _tiny = stage.tiny_fs("tiny", 64 * MIB);
    stage.disk_with_data("a", 64 * MIB, 40 * MIB);
    stage.daemon.sterna("migrate a --to tiny").ok();
    stage.daemon.sterna("migrate a --to there --keep-source").ok();
    stage.daemon.sterna("migrate a --to tiny").ok();
    assert_eq!(stage.daemon.disk("a")["datastore"], "tiny");
}

#[test]
fn a_second_name_of_the_image_of_a_disk_that_is_not_served_is_not_imported() {
    let mut stage = Stage::new();
    stage.disk("web", MIB);
    stage.daemon.stop();
    let (image, link) = (stage.here.join("web.raw"), stage.here.join("link.raw"));
    fs::hard_link(&image, &link).expect("give the image a second name");
    // Without its sidecar nobody knows whether it is the disk's.
    let sidecar = stage.here.join("web.raw.sterna");
    fs::rename(&sidecar, stage.scratch.path("aside")).expect("take the sidecar away");
    stage.daemon.restart();
    assert!(stage.daemon.json("disk show web")["problem"].is_string());
    let import = format!("disk import log --on here {}", link.display());
    let refused = stage.daemon.sterna(&import);
    refused.fails_with(&["is the image of disk web", "another name of the same file"]);
    let copy = stage.here.join("copy.raw");
    fs::copy(&image, &copy).expect("copy the image");
    stage.daemon.sterna(&format!("disk import log --on here {}", copy.display())).ok();
}
