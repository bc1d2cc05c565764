//! A real guest whose balloon gives memory that it does not need, and gets it back.

use serde_json::{Value, json};
use sterna_tests::vms::ask;
use sterna_tests::wait::seconds;
use sterna_tests::{Guest, MIB, Stage, until};

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How much memory the guest has.
const MEMORY: u64 = 512 * MIB;

/// What is to stay available in the guest.
const FLOOR: u64 = 128 * MIB;

/// A few steps of a balloon, which come every ten seconds.
const STEPS: Duration = seconds(90);

/// How soon a daemon that has come back gives back what it may not keep.
const GIVEN_BACK: Duration = seconds(60);

/// A daemon that knows a guest with a balloon.
struct Scene {
    qmp: PathBuf,
    guest: Guest,
    stage: Stage,
}

impl Scene {
    fn set() -> Option<Scene> {
        let stage = Stage::new();
        let qmp = stage.scratch.socket("qmp");
        let words = [
            "-qmp".into(),
            format!("unix:{},server=on,wait=off", qmp.display()),
            "-device".into(),
            "virtio-balloon-pci".into(),
        ];
        let guest = Guest::given(&stage.scratch, &words)?;
        stage.daemon.sterna(&format!("vm add db --qmp {}", qmp.display())).ok();
        Some(Scene { qmp, guest, stage })
    }

    /// What QEMU says that the balloon has.
    fn has(&self) -> u64 {
        let answer = ask(&self.qmp, &json!({ "execute": "query-balloon" }));
        let actual = answer["actual"].as_u64();
        MEMORY - actual.unwrap_or_else(|| panic!("no size: {answer}"))
    }

    fn balloon(&self) -> Value {
        self.stage.daemon.json("memory show db")["balloon"].clone()
    }

    /// The host lacks memory, whatever it has, and Sterna may use balloons.
    fn presses(&self) {
        let total = self.stage.daemon.json("memory show")["total"].as_u64();
        let reserve = total.expect("bytes");
        self.stage
            .daemon
            .sterna(&format!("memory auto partial --reserve {reserve}"))
            .ok();
    }

    /// Waits until the balloon has something.
    fn takes(&self) {
        until("the balloon to take memory", STEPS, || (self.has() > 0).then_some(()));
    }

    fn given_back(&self, within: Duration) {
        until("the balloon to give all back", within, || (self.has() == 0).then_some(()));
    }
}

#[test]
fn a_balloon_takes_what_the_guest_can_do_without_and_gives_it_back_whole() {
    let Some(mut scene) = Scene::set() else { return };
    assert_eq!(scene.has(), 0);
    scene.presses();
    scene.takes();
    let available = scene.guest.run("sed -n 's/MemAvailable: *//p' /proc/meminfo");
    let kib: u64 = available.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kib * 1024 >= FLOOR, "{available} are left to the guest");
    let explained = scene.stage.daemon.json("memory explain db");
    assert_ne!(explained["state"], "high", "{explained}");
    assert!(explained["lacks"].as_u64() > Some(0), "{explained}");
    // A wake is what nothing may delay: all comes back at once.
    let began = Instant::now();
    scene.stage.daemon.sterna("memory wake db --detach");
    scene.given_back(seconds(5));
    println!("released {:?} after it was asked for", began.elapsed());
    scene.takes();
    scene.stage.daemon.sterna("memory auto manual").ok();
    scene.given_back(seconds(20));
    assert_eq!(scene.balloon()["taken"], 0);
    // The guest is as well as it was.
    scene.guest.run("true");
}

#[test]
fn a_daemon_that_is_killed_or_stopped_leaves_no_balloon_behind() {
    let Some(mut scene) = Scene::set() else { return };
    scene.presses();
    scene.takes();
    scene.stage.daemon.kill();
    // Nothing but a daemon gives it back; the next one knows of it, whatever it may do then.
    assert!(scene.has() > 0);
    scene.stage.daemon.restart();
    scene.stage.daemon.sterna("memory auto manual").ok();
    scene.given_back(GIVEN_BACK);
    scene.presses();
    scene.takes();
    scene.stage.daemon.stop();
    scene.given_back(seconds(5));
    scene.stage.daemon.restart();
    scene.guest.run("true");
}
