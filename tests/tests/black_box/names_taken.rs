//! A file that has the name of a VM's new image is somebody else's, unless a daemon
//! that was killed has just made it.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use sterna_tests::between::{Between, Stop};
use sterna_tests::vms::{Vm, is_written, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage};

#[test]
fn an_empty_image_that_is_there_before_a_move_is_left_alone() {
    let Some(stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    let image = stage.here.join("web.raw");
    write_guest(&image, 64 * MIB, 8 * MIB);
    let vm = Vm::start(&stage.scratch, "web", &image, "raw", &[]);
    let socket = vm.socket().display();
    stage.daemon.sterna(&format!("vm add web --qmp {socket}")).ok();
    // The fresh disk of another daemon's guest, which has begun to count as this one has.
    let theirs = stage.there.join("web-vda-1.raw");
    let file = File::create(&theirs).expect("make a file");
    file.set_len(64 * MIB).expect("give it a size");
    let number = file.metadata().expect("look at it").ino();
    let moved = stage.daemon.json("vm move web vda --to there --detach");
    assert_eq!(moved["id"], 1, "{moved:#}");
    let ended = stage.daemon.wait_for(1, "cancelled", seconds(30));
    let why = ended["reason"].as_str().expect("why");
    assert!(why.contains("exists"), "{why}");
    assert_eq!(std::fs::metadata(&theirs).expect("it is there").ino(), number);
    is_written(&image);
}

#[test]
fn an_empty_image_that_a_killed_daemon_has_made_is_put_away_by_the_next() {
    let Some(mut stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    let image = stage.here.join("web.raw");
    write_guest(&image, 64 * MIB, 8 * MIB);
    let vm = Vm::start(&stage.scratch, "web", &image, "raw", &[]);
    let between = Between::start(&stage.scratch, "web", vm.socket());
    let socket = between.socket().display();
    stage.daemon.sterna(&format!("vm add web --qmp {socket}")).ok();
    between.stop_at("blockdev-add", Stop::Before);
    stage.daemon.json("vm move web vda --to there --detach");
    between.reached();
    assert_eq!(stage.files_there(), ["web-vda-1.raw"]);
    stage.daemon.kill();
    stage.daemon.restart();
    stage.daemon.wait_for(1, "completed", seconds(60));
    is_written(&stage.there.join("web-vda-1.raw"));
}
