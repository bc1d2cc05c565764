//! The state directory stands still: its file system is frozen, as for a snapshot of the
//! host, or its device hangs. Whoever uses a disk goes on, whether the disk is being
//! moved or not; and a daemon that is killed meanwhile has lost nothing of what is copied.

use std::fs::File;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use sterna_tests::checker::{Checker, now_ms};
use sterna_tests::daemon::send_signal;
use sterna_tests::places::TinyFs;
use sterna_tests::programs;
use sterna_tests::servers::Bindfs;
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, MIB, Scratch, Stage, until};

/// As long as the state stands still, in lines of figures (ten a second): longer than any
/// of what the daemon does each second.
const LINES: usize = 40;
/// No request waits for the state. They would for as long as that; the rest is for a
/// host that is busy with other things.
const LONGEST_MS: f64 = 1500.0;
/// Eight seconds of patience with the state, and what a busy host takes.
const ANSWERED: Duration = seconds(14);
const ROOM: u64 = 128 * MIB;
/// What the manual says of systemd's patience, and what a busy host takes.
const STOPPED: Duration = seconds(20);

/// Disks with clients, by who uses them: one that moves, one whose move is paused, and
/// some that stay, so that every reactor has one.
struct Scene {
    stage: Stage,
    /// The moves of `moves` and `rests`.
    ids: [u64; 2],
    clients: Vec<Checker>,
}

const STAY: [&str; 4] = ["s1", "s2", "s3", "s4"];

impl Scene {
    #[track_caller]
    fn on(stage: Stage) -> Scene {
        let load = CheckerOptions::gentle(150);
        let ids = ["moves", "rests"].map(|disk| {
            stage.disk_with_data(disk, 64 * MIB, 64 * MIB);
            let id = stage.daemon.migrate(&format!("{disk} --to there --rate 2M"));
            stage.daemon.wait_for_bytes(id, 2 * MIB);
            id
        });
        stage.daemon.pause(ids[1]);
        for disk in STAY {
            stage.disk(disk, 16 * MIB);
        }
        let all = ["moves", "rests"].into_iter().chain(STAY);
        let clients = all.map(|disk| stage.checker(disk, &load)).collect();
        Scene { stage, ids, clients }
    }

    /// Everybody is served while the state stands still, and has been since `from`.
    #[track_caller]
    fn everybody_goes_on(&mut self, from: u64) {
        for client in &mut self.clients {
            client.wait_for_intervals(LINES);
        }
        let longest: Vec<f64> =
            self.clients.iter().map(|client| client.longest_ms(from)).collect();
        println!("longest, in ms: {longest:.0?}");
        assert!(longest.iter().all(|ms| *ms < LONGEST_MS), "{longest:.0?}");
    }

    /// The moves end well, and everything that was acknowledged is there.
    #[track_caller]
    fn ends_well(self) {
        let Scene { stage, ids, clients } = self;
        // It has to catch up with what it could not record.
        until("the state to answer", seconds(60), || {
            (stage.daemon.sterna("status").code == 0).then_some(())
        });
        for id in ids {
            stage.daemon.hurry(id);
            until("the move to end", seconds(60), || {
                let state = stage.daemon.migration(id)["state"].clone();
                if state == "paused" {
                    stage.daemon.resume(id);
                }
                (state == "completed").then_some(())
            });
        }
        for client in clients {
            client.finish_and_verify();
        }
    }
}

fn given() -> Option<(Scene, TinyFs)> {
    if !programs::have(&["fsfreeze"]) {
        return None;
    }
    let (stage, state) = Stage::given_tiny_state(ROOM)?;
    Some((Scene::on(stage), state))
}

#[test]
fn a_state_that_is_frozen_holds_no_disk() {
    let Some((mut scene, state)) = given() else { return };
    let from = now_ms();
    let frozen = state.freeze();
    scene.everybody_goes_on(from);
    drop(frozen);
    scene.ends_well();
}

#[test]
fn whoever_asks_while_a_state_is_frozen_hears_of_it_and_waits_for_nothing() {
    if !programs::have(&["fsfreeze"]) {
        return;
    }
    let Some((stage, state)) = Stage::given_tiny_state(ROOM) else { return };
    let frozen = state.freeze();
    let answers = |line: &str| {
        let asked = Instant::now();
        let answer = stage.daemon.sterna(line);
        assert!(asked.elapsed() < ANSWERED, "`{line}` took {:?}", asked.elapsed());
        assert_ne!(answer.code, 0, "{}", answer.stdout);
        assert!(answer.stderr.contains("the state directory"), "{}", answer.stderr);
        answer.stderr
    };
    // This one waits for the state, and is the first to hear that it stands still.
    let first = answers("disk create early --size 8M --on here");
    assert!(first.contains("may then carry out"), "{first}");
    for line in ["status", "disk list", "disk create late --size 8M --on here"] {
        let refused = answers(line);
        assert!(!refused.contains("may then carry out"), "{refused}");
    }
    drop(frozen);
    // What was under way is done, and what was refused is not.
    until("the first disk to be there", seconds(20), || {
        (stage.daemon.sterna("disk show early").code == 0).then_some(())
    });
    assert_ne!(stage.daemon.sterna("disk show late").code, 0);
}

#[test]
fn a_daemon_that_is_killed_meanwhile_knows_what_is_copied() {
    let Some((mut scene, state)) = given() else { return };
    let from = now_ms();
    let frozen = state.freeze();
    scene.everybody_goes_on(from);
    // Its threads that wait for the state end with the frost.
    programs::run("kill", ["-KILL", &scene.stage.daemon.pid().to_string()]);
    drop(frozen);
    scene.stage.daemon.kill();
    scene.stage.daemon.restart();
    let log = scene.stage.daemon.log();
    assert!(!log.contains("Sterna compares what was copied"), "{log}");
    scene.ends_well();
}

#[test]
fn a_daemon_that_is_told_to_stop_meanwhile_stops() {
    let Some((mut scene, state)) = given() else { return };
    let frozen = state.freeze();
    scene.everybody_goes_on(now_ms());
    programs::run("kill", ["-TERM", &scene.stage.daemon.pid().to_string()]);
    // The kernel keeps the process as long as its file system is frozen; it serves nobody.
    until("the daemon to have stopped", STOPPED, || {
        scene.stage.daemon.log().contains("stopped without waiting").then_some(())
    });
    drop(frozen);
    scene.stage.daemon.kill();
    scene.stage.daemon.restart();
    scene.ends_well();
}

#[test]
fn a_daemon_that_starts_meanwhile_says_what_it_waits_for() {
    if !programs::have(&["fsfreeze"]) {
        return;
    }
    let Some((mut stage, state)) = Stage::given_tiny_state(ROOM) else { return };
    stage.daemon.stop();
    let frozen = state.freeze();
    let socket = |name: &str| stage.scratch.socket(name).display().to_string();
    let log = stage.scratch.path("next.log");
    let mut next = Command::new(programs::sterna())
        .args(["serve", "--state", &state.dir().display().to_string()])
        .args(["--socket", &socket("next"), "--nbd-socket", &socket("next-nbd")])
        .stderr(File::create(&log).expect("a log"))
        .spawn()
        .expect("the next daemon");
    until("the next daemon to say what it waits for", seconds(30), || {
        let said = std::fs::read_to_string(&log).expect("the log");
        said.contains("it waits for the state directory").then_some(())
    });
    drop(frozen);
    send_signal(&next, Signal::TERM);
    assert!(next.wait().expect("the next daemon ends").success());
    stage.daemon.restart();
}

#[test]
fn a_state_whose_device_hangs_holds_no_disk() {
    if !(programs::root() && programs::have(&["bindfs", "losetup", "mkfs.ext4"])) {
        return;
    }
    let place = Scratch::new();
    let fuse = Bindfs::new(&place, "fuse");
    let mut state = None;
    let stage = Stage::with(|daemon| {
        let file = fuse.dir().join("state.img");
        state = Some(TinyFs::new(&file, daemon.state(), ROOM));
    });
    let mut scene = Scene::on(stage);
    let from = now_ms();
    fuse.hang();
    let awake = Awake(&fuse);
    scene.everybody_goes_on(from);
    drop(awake);
    scene.ends_well();
}

/// Has the device go on before anybody waits for the daemon: also when a test fails.
struct Awake<'a>(&'a Bindfs);

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        self.0.go_on();
    }
}
