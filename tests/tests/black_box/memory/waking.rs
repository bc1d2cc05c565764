//! A guest whose disk Sterna serves is woken by its first request.

use serde_json::json;
use sterna_tests::vms::{Vm, ask, tell};
use sterna_tests::wait::seconds;
use sterna_tests::{Stage, until};

use std::path::Path;
use std::time::{Duration, Instant};

use super::{DATA, Scene};

/// A disk is quiet after ten seconds, which are looked at every ten.
const QUIET: Duration = seconds(30);

/// From the moment in which the guest may ask its disk until it is woken: the signal takes no more
/// than 50 ms, which a machine with other work may stretch.
const SOON: Duration = seconds(2);

fn on_its_disk(stage: &Stage, image: &Path, more: &[&str]) -> Vm {
    // The image becomes a disk where it is.
    let stands = image.parent().expect("a directory");
    stage.daemon.sterna(&format!("datastore add images {}", stands.display())).ok();
    let import = format!("disk import sys {} --on images", image.display());
    stage.daemon.sterna(&import).ok();
    Vm::start_on_export(&stage.scratch, "db", stage.daemon.nbd_socket(), "sys", more)
}

#[test]
fn a_guest_that_asks_its_disk_after_a_rest_is_woken_at_once() {
    let Some(scene) = Scene::set_with(on_its_disk) else { return };
    let daemon = &scene.stage.daemon;
    tell(scene.vm.socket(), "stop");
    daemon.sterna("memory sleep db --all").ok();
    assert!(scene.out() >= DATA);
    until("the disk to be quiet for the daemon", QUIET, || {
        daemon.log().contains("is watched by its disks").then_some(())
    });
    assert_eq!(scene.memory()["state"], "asleep");
    let began = Instant::now();
    ask(scene.vm.socket(), &json!({ "execute": "cont" }));
    until("the guest to be woken by its request", SOON, || {
        daemon.log().contains("asks for its disk").then_some(())
    });
    println!("woken {:?} after it went on", began.elapsed());
    until("all its memory to be back", seconds(20), || {
        (scene.memory()["out"] == 0).then_some(())
    });
    scene.memory_is_whole();
}
