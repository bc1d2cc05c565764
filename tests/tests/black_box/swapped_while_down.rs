//! Places of disks that are swapped, or replaced, while no daemon runs. The disks fill their
//! places, so that no sidecar says whose a place is.

use std::path::Path;

use sterna_tests::clients::nbdsh;
use sterna_tests::images::{is_all, write_image};
use sterna_tests::places::{Loop, Node};
use sterna_tests::servers::Nbdkit;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 32 * MIB;
const CLIENTS: &[&str] = &["/usr/bin/python3", "nbdkit"];

/// The disk `name` on a server of its own that it fills, full of `byte`.
fn disk_on(stage: &Stage, name: &str, byte: char) -> Nbdkit {
    let server = stage.nbd_server(&format!("on-{name}"), SIZE, &[]);
    stage.daemon.sterna(&format!("disk create {name} --size {SIZE} --on on-{name}")).ok();
    fill(stage, name, byte);
    server
}

fn fill(stage: &Stage, name: &str, byte: char) {
    let script = format!(
        "
for at in range(32): h.pwrite(b'{byte}' * (1 << 20), at << 20)
h.flush()
"
    );
    nbdsh(&stage.daemon.uri(name), &script);
}

/// Another server comes up where this one was, which is gone.
fn in_the_place_of(stage: &Stage, name: &str, file: &Path) -> Nbdkit {
    Nbdkit::on_file(&stage.scratch, &format!("on-{name}"), file, &[])
}

#[track_caller]
fn is_not_served(stage: &Stage, disk: &str, why: &str) {
    let shown = until("the disk to be refused", seconds(20), || {
        let shown = stage.daemon.disk(disk);
        shown["problem"].is_string().then_some(shown)
    });
    let problem = shown["problem"].as_str().unwrap_or_default();
    assert!(problem.contains(why), "{shown:#}");
    let hint = shown["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("put the right device or server back"), "{shown:#}");
}

/// While no daemon runs, the servers of `x` and `y` swap their files; the next daemon serves
/// neither. Then they have their own again.
#[track_caller]
fn are_not_served_while_swapped(stage: &mut Stage, x: &mut Nbdkit, y: &mut Nbdkit) {
    x.kill();
    y.kill();
    let mut swapped =
        [in_the_place_of(stage, "x", y.file()), in_the_place_of(stage, "y", x.file())];
    stage.daemon.restart();
    is_not_served(stage, "x", "datastore on-x holds the bytes of disk y");
    is_not_served(stage, "y", "datastore on-y holds the bytes of disk x");
    for server in &mut swapped {
        server.kill();
    }
    x.restart();
    y.restart();
}

#[track_caller]
fn is_served(stage: &Stage, disk: &str, byte: char) {
    until("the disk to be served", seconds(30), || {
        stage.daemon.disk(disk)["problem"].is_null().then_some(())
    });
    let first = nbdsh(&stage.daemon.uri(disk), "print(bytes(h.pread(512, 4096)[:1]))");
    assert_eq!(first.trim(), format!("b'{byte}'"));
}

#[test]
fn two_servers_that_swap_their_files_serve_nothing_until_they_are_put_back() {
    for is_killed in [false, true] {
        let Some(mut stage) = Stage::given(CLIENTS) else { return };
        let mut x = disk_on(&stage, "x", 'X');
        let mut y = disk_on(&stage, "y", 'Y');
        match is_killed {
            true => {
                // A daemon looks at what has changed when it ends.
                stage.daemon.stop();
                stage.daemon.restart();
                stage.daemon.kill();
            }
            false => stage.daemon.stop(),
        }
        are_not_served_while_swapped(&mut stage, &mut x, &mut y);
        is_served(&stage, "x", 'X');
        is_served(&stage, "y", 'Y');
        is_all(x.file(), b'X');
        is_all(y.file(), b'Y');
    }
}

/// Storage that has just come back may be slow: what is not known yet is not served.
#[test]
fn slow_servers_that_swapped_their_files_serve_nothing() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    let mut x = disk_on(&stage, "x", 'X');
    let mut y = disk_on(&stage, "y", 'Y');
    stage.daemon.looks_at_places();
    stage.daemon.kill();
    x.kill();
    y.kill();
    let slow = ["--filter=delay", "rdelay=120ms"];
    let _swapped = [
        Nbdkit::on_file(&stage.scratch, "on-x", y.file(), &slow),
        Nbdkit::on_file(&stage.scratch, "on-y", x.file(), &slow),
    ];
    stage.daemon.restart();
    for (disk, other) in [("x", "y"), ("y", "x")] {
        let why = format!("holds the bytes of disk {other}");
        until("the disk to be refused", seconds(60), || {
            let shown = stage.daemon.disk(disk);
            assert_eq!(shown["served"], false, "{shown:#}");
            shown["problem"].as_str()?.contains(&why).then_some(())
        });
    }
    is_all(x.file(), b'X');
    is_all(y.file(), b'Y');
}

#[test]
fn disks_whose_beginning_is_rewritten_until_a_kill_are_known_at_each_other_s_place() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    let mut x = disk_on(&stage, "x", 'X');
    let mut y = disk_on(&stage, "y", 'Y');
    // The daemon looks at both.
    stage.daemon.stop();
    stage.daemon.restart();
    for disk in ["x", "y"] {
        let script = format!("h.pwrite(b'{disk}' * (2 << 20), 0); h.flush()");
        nbdsh(&stage.daemon.uri(disk), &script);
    }
    stage.daemon.kill();
    are_not_served_while_swapped(&mut stage, &mut x, &mut y);
    is_served(&stage, "x", 'x');
    is_served(&stage, "y", 'y');
}

#[test]
fn devices_that_swap_their_names_serve_nothing_until_they_are_put_back() {
    let Some(mut stage) = Stage::given_root(&["losetup", "/usr/bin/python3"]) else {
        return;
    };
    let make = |name: &str| {
        let device = Loop::new(&stage.scratch.path(&format!("{name}.img")), SIZE);
        let link = Node::link_to(device.device());
        stage.datastore(&format!("on-{name}"), link.path().display());
        let create = format!("disk create {name} --size {SIZE} --on on-{name}");
        stage.daemon.sterna(&create).ok();
        (device, link)
    };
    let ((x, link_x), (y, link_y)) = (make("x"), make("y"));
    fill(&stage, "x", 'X');
    fill(&stage, "y", 'Y');
    stage.daemon.stop();
    link_x.lead_to(y.device());
    link_y.lead_to(x.device());
    stage.daemon.restart();
    is_not_served(&stage, "x", "datastore on-x holds the bytes of disk y");
    is_not_served(&stage, "y", "datastore on-y holds the bytes of disk x");
    stage.daemon.stop();
    link_x.lead_to(x.device());
    link_y.lead_to(y.device());
    stage.daemon.restart();
    is_served(&stage, "x", 'X');
    is_served(&stage, "y", 'Y');
}

#[test]
fn a_foreign_export_is_not_served_as_the_disk() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    let mut x = disk_on(&stage, "x", 'X');
    // Otherwise as much could have been written anew until the end.
    stage.daemon.looks_at_places();
    stage.daemon.stop();
    x.kill();
    let foreign = stage.scratch.path("foreign.raw");
    write_image(&foreign, SIZE, SIZE);
    let before = std::fs::read(&foreign).expect("read a file");
    let mut wrong = in_the_place_of(&stage, "x", &foreign);
    stage.daemon.restart();
    is_not_served(&stage, "x", "datastore on-x does not hold disk x any more");
    assert!(before == std::fs::read(&foreign).expect("read a file"));
    // If it is meant to be so, the operator says that.
    stage.daemon.sterna("disk remove x --keep-image").ok();
    let import = format!("disk import x {} --on on-x", wrong.location());
    stage.daemon.sterna(&import).ok();
    wrong.kill();
}

#[test]
fn a_disk_that_was_rewritten_before_the_end_is_served() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    let x = disk_on(&stage, "x", 'X');
    stage.daemon.looks_at_places();
    fill(&stage, "x", 'Z');
    stage.daemon.kill();
    stage.daemon.restart();
    is_served(&stage, "x", 'Z');
    fill(&stage, "x", 'U');
    stage.daemon.stop();
    stage.daemon.restart();
    is_served(&stage, "x", 'U');
    is_all(x.file(), b'U');
}

#[test]
fn a_move_does_not_go_on_at_another_place() {
    let Some(mut stage) = Stage::given(CLIENTS) else { return };
    let mut y = disk_on(&stage, "y", 'Y');
    stage.daemon.sterna(&format!("disk create x --size {SIZE} --on here")).ok();
    fill(&stage, "x", 'X');
    let mut copy = stage.nbd_server("on-copy", SIZE, &[]);
    let id = stage.daemon.migrate("x --to on-copy --rate 4M");
    stage.daemon.wait_for_bytes(id, 16 * MIB);
    stage.daemon.stop();
    copy.kill();
    y.kill();
    let mut wrong = in_the_place_of(&stage, "copy", y.file());
    stage.daemon.restart();
    let paused = stage.daemon.wait_for(id, "paused", seconds(30));
    let reason = paused["reason"].as_str().unwrap_or_default();
    let why = "datastore on-copy holds the bytes of disk y, and not those of the copy of disk x";
    assert!(reason.contains(why), "{paused:#}");
    stage.daemon.sterna(&format!("migration resume {id}")).fails_with(&[why]);
    is_all(y.file(), b'Y');
    wrong.kill();
    copy.restart();
    y.restart();
    stage.daemon.resume(id);
    stage.daemon.sterna(&format!("migration set {id} --rate none")).ok();
    stage.daemon.completed(id);
    is_all(copy.file(), b'X');
    is_all(y.file(), b'Y');
    is_served(&stage, "y", 'Y');
}
