//! The files of two disks have exchanged their names while no daemon ran: neither disk is served
//! from the other's file.

use std::fs;
use std::path::PathBuf;

use sterna_tests::clients::nbdsh;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

/// Two disks with data, `x` and `y`, whose daemon was killed; and their files.
fn two_disks() -> (Stage, [PathBuf; 2]) {
    let mut stage = Stage::new();
    for name in ["x", "y"] {
        stage.disk(name, MIB);
        let script = format!("h.pwrite(b'{name}' * (1 << 20), 0); h.flush()");
        nbdsh(&stage.daemon.uri(name), &script);
    }
    stage.daemon.kill();
    let files = ["x", "y"].map(|name| stage.here.join(format!("{name}.raw")));
    (stage, files)
}

/// The disk is not served, and this is said of why.
#[track_caller]
fn is_not_served(stage: &Stage, disk: &str, why: &str) {
    until(&format!("disk {disk} to be refused"), seconds(20), || {
        let problem = stage.daemon.disk(disk)["problem"].clone();
        problem.as_str().is_some_and(|it| it.contains(why)).then_some(())
    });
}

#[track_caller]
fn is_served(stage: &Stage, disk: &str) {
    until(&format!("disk {disk} to be served"), seconds(20), || {
        (stage.daemon.disk(disk)["served"] == true).then_some(())
    });
    let script = format!("assert h.pread(1 << 20, 0) == b'{disk}' * (1 << 20)");
    nbdsh(&stage.daemon.uri(disk), &script);
}

fn exchange([x, y]: &[PathBuf; 2]) {
    let aside = x.with_extension("aside");
    for (from, to) in [(x, &aside), (y, x), (&aside, y)] {
        fs::rename(from, to).expect("rename a file");
    }
}

#[test]
fn files_that_have_exchanged_their_names_are_not_served_until_they_are_back() {
    let (mut stage, files) = two_disks();
    exchange(&files);
    for _ in 0..2 {
        stage.daemon.restart();
        is_not_served(&stage, "x", "that of disk y");
        is_not_served(&stage, "y", "that of disk x");
        stage.daemon.stop();
    }
    stage.daemon.restart();
    exchange(&files);
    is_served(&stage, "x");
    is_served(&stage, "y");
}

#[test]
fn a_link_to_another_disk_s_file_is_not_served_and_that_disk_is() {
    let (mut stage, [x, y]) = two_disks();
    let own = x.with_extension("own");
    fs::rename(&x, &own).expect("rename a file");
    fs::hard_link(&y, &x).expect("link a file");
    stage.daemon.restart();
    is_served(&stage, "y");
    is_not_served(&stage, "x", "that of disk y");
    fs::rename(&own, &x).expect("rename a file");
    is_served(&stage, "x");
}

#[test]
fn nor_is_an_old_copy_of_another_disk() {
    let (mut stage, files) = two_disks();
    stage.daemon.restart();
    let id = stage.daemon.migrate("y --to there --keep-source");
    stage.daemon.completed(id);
    stage.daemon.kill();
    exchange(&files);
    stage.daemon.restart();
    is_not_served(&stage, "x", "that of an old copy of disk y");
    is_served(&stage, "y");
    exchange(&files);
    is_served(&stage, "x");
}

#[test]
fn files_of_two_datastores_that_were_exchanged_are_not_served_either() {
    let (mut stage, [x, _]) = two_disks();
    stage.daemon.restart();
    stage.daemon.sterna("disk create z --size 1M --on there").ok();
    nbdsh(&stage.daemon.uri("z"), "h.pwrite(b'z' * (1 << 20), 0); h.flush()");
    stage.daemon.kill();
    let files = [x, stage.there.join("z.raw")];
    exchange(&files);
    for _ in 0..3 {
        stage.daemon.restart();
        is_not_served(&stage, "x", "that of disk z");
        is_not_served(&stage, "z", "that of disk x");
        stage.daemon.kill();
    }
    exchange(&files);
    stage.daemon.restart();
    for disk in ["x", "y", "z"] {
        is_served(&stage, disk);
    }
}
