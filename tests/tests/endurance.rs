//! What a night of bad luck does: hundreds of kills, lost storage and restarted servers,
//! with a client that remembers every acknowledged write.
//!
//! These tests are not part of `make test`: they run as long as somebody wants.
//!
//!     STERNA_ROUNDS=500 cargo test --release -p sterna-tests --test endurance \
//!         -- --ignored --nocapture --test-threads=1
//!
//! Each prints its seed, how often it did what, and ends with the checker's verdict. A
//! lost write, an error that the client saw, or a move that does not end fails it. The
//! figures of the last long run are in `docs/reliability.md`.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use sterna_tests::forgetful::Forgetful;
use sterna_tests::places::TinyFs;
use sterna_tests::programs::{command, have};
use sterna_tests::random::Random;
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, Daemon, MIB, Stage, until};

/// Rounds, unless `STERNA_ROUNDS` says otherwise.
const ROUNDS: u64 = 10;
const SIZE: u64 = 48 * MIB;
/// A round's move ends within this, repairs included.
const ROUND: Duration = seconds(120);

fn rounds() -> u64 {
    std::env::var("STERNA_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(ROUNDS)
}

/// A disk that is written and discarded all the time, with flushes.
fn load() -> CheckerOptions {
    CheckerOptions::gentle(1500)
        .with("--connections", 2)
        .with("--trims", 3)
        .with("--zeroes", 3)
        .with("--block", 4096)
        .flag("--fill")
}

fn other(place: &str) -> &'static str {
    if place == "there" { "here" } else { "there" }
}

/// Waits for the move's end, whatever has to be resumed on the way.
#[track_caller]
fn ends(daemon: &Daemon, id: u64) {
    until(&format!("migration {id} to end"), ROUND, || {
        let answer = daemon.sterna(&format!("migration show {id} --json"));
        let state = (answer.code == 0).then(|| answer.json()["state"].clone())?;
        if state == "paused" {
            let _ = daemon.sterna(&format!("migration resume {id}"));
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(state != "cancelled", "nobody cancelled it:\n{}", daemon.log());
        (state == "completed").then_some(())
    });
}

#[test]
#[ignore = "runs as long as somebody wants (STERNA_ROUNDS)"]
fn kills_at_random_moments() {
    let mut moments = Random::of_this_run();
    let mut stage = Stage::new();
    stage.disk("a", SIZE);
    let mut checker = stage.checker("a", &load());
    let (mut to, mut moves) = ("there", 0);
    let mut id = stage.daemon.migrate(&format!("a --to {to} --rate 60M"));
    for round in 0..rounds() {
        // Mostly soon, which is hard on what begins; sometimes late enough for an end.
        let within = if moments.below(3) == 0 { 6000 } else { 900 };
        std::thread::sleep(Duration::from_millis(moments.below(within)));
        stage.daemon.kill();
        std::thread::sleep(Duration::from_millis(moments.below(50)));
        stage.daemon.restart();
        if round % 8 == 0 {
            checker.wait_for_intervals(1);
        }
        if stage.daemon.migration(id)["state"] == "completed" {
            moves += 1;
            to = other(to);
            id = stage.daemon.migrate(&format!("a --to {to} --rate 60M"));
        }
    }
    ends(&stage.daemon, id);
    let summary = checker.finish_and_verify();
    println!("{} kills, {} moves, {summary}", rounds(), moves + 1);
}

/// The system calls of a migration's end that change something on a disk.
const STEPS: &str = "fsync,fdatasync,sync_file_range,pwrite64,pwritev,pwritev2,write,unlink,\
                     unlinkat,rename,renameat,renameat2,ftruncate,fallocate,openat,ioctl";

/// Kills the daemon at the `nth` such call of the thread that carries out migration `id`.
fn kill_at(daemon: &Daemon, id: u64, nth: u64) -> Option<Child> {
    let threads = format!("/proc/{}/task", daemon.pid());
    let name = format!("sterna-job-{id}");
    let thread = until("the migration's thread", seconds(10), || {
        let all = std::fs::read_dir(&threads).ok()?;
        all.flatten().map(|entry| entry.path()).find(|path| {
            let comm = std::fs::read_to_string(path.join("comm"));
            comm.is_ok_and(|comm| comm.trim() == name)
        })
    });
    let thread = thread.file_name()?.to_str()?.to_owned();
    let inject = format!("inject={STEPS}:signal=SIGKILL:when={nth}");
    let trace = format!("trace={STEPS}");
    command("strace")
        .args(["-q", "-p", &thread, "-e", &trace, "-e", &inject, "-o", "/dev/null"])
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

#[test]
#[ignore = "runs as long as somebody wants (STERNA_ROUNDS)"]
fn kills_at_each_step_of_the_end() {
    if !have(&["strace"]) {
        return;
    }
    let mut stage = Stage::new();
    stage.disk("a", SIZE);
    let checker = stage.checker("a", &load());
    let (mut to, mut kills, mut nth) = ("there", 0, 1);
    while kills < rounds() {
        let id = stage.daemon.migrate(&format!("a --to {to} --rate 200M"));
        let mut tracer = kill_at(&stage.daemon, id, nth).expect("start strace");
        let killed = until("the kill, or the end", ROUND, || {
            let dead =
                std::fs::read_to_string(format!("/proc/{}/stat", stage.daemon.pid()))
                    .map_or(true, |stat| stat.contains(") Z "));
            let over = || {
                let shown = stage.daemon.sterna(&format!("migration show {id} --json"));
                shown.code == 0 && shown.json()["state"] == "completed"
            };
            if dead { Some(true) } else { over().then_some(false) }
        });
        let _ = tracer.kill();
        let _ = tracer.wait();
        if killed {
            stage.daemon.kill();
            stage.daemon.restart();
            kills += 1;
            nth += 1;
        } else {
            println!("{} steps were tried", nth - 1);
            nth = 1;
        }
        ends(&stage.daemon, id);
        assert_eq!(stage.daemon.disk("a")["datastore"], to);
        to = other(to);
    }
    let summary = checker.finish_and_verify();
    println!("{kills} kills at steps of the end, {summary}");
}

/// A file system that loses its device and is mounted again.
trait Frail {
    fn dir(&self) -> &Path;
    fn abort(&self);
    /// Nothing of it may be open any more.
    fn mount_anew(&mut self);
}

#[track_caller]
fn unmount(place: &TinyFs) {
    until("the file system not to be in use", seconds(20), || {
        place.unmounted().then_some(())
    });
}

impl Frail for TinyFs {
    fn dir(&self) -> &Path {
        TinyFs::dir(self)
    }

    fn abort(&self) {
        self.shut_down();
    }

    fn mount_anew(&mut self) {
        unmount(self);
        self.come_back();
    }
}

/// A btrfs, which cannot be told to shut down, over a file in an XFS, which can: all that
/// it asks of its device fails from then on.
struct Nested {
    btrfs: TinyFs,
    file: PathBuf,
    below: TinyFs,
}

impl Nested {
    fn new(file: &Path, mount: &Path, size: u64) -> Nested {
        let below = TinyFs::xfs(file, &file.with_extension("below"), size + 200 * MIB);
        let file = below.dir().join("btrfs.img");
        Nested { btrfs: TinyFs::btrfs(&file, mount, size), file, below }
    }
}

impl Frail for Nested {
    fn dir(&self) -> &Path {
        self.btrfs.dir()
    }

    fn abort(&self) {
        self.below.shut_down();
    }

    fn mount_anew(&mut self) {
        unmount(&self.btrfs);
        self.btrfs.let_go();
        unmount(&self.below);
        self.below.come_back();
        self.btrfs.come_back_over(&self.file);
    }
}

/// The destination's file system loses its device in the middle of each move; it is
/// unmounted and mounted again while the daemon runs, and the move goes on.
fn aborts<F: Frail>(kind: &str, make: fn(&Path, &Path, u64) -> F, mkfs: &str) {
    let Some(stage) = Stage::given_root(&["losetup", "xfs_io", "mkfs.xfs", mkfs]) else {
        return;
    };
    let mut moments = Random::of_this_run();
    let (file, mount) = (stage.scratch.path("lost.img"), stage.scratch.path("lost"));
    let mut place = make(&file, &mount, 400 * MIB);
    stage.datastore("lost", place.dir().display());
    stage.disk("a", SIZE);
    let checker = stage.checker("a", &load());
    let mut aborted = 0;
    for _ in 0..rounds() {
        let id = stage.daemon.migrate("a --to lost --rate 15M");
        std::thread::sleep(Duration::from_millis(200 + moments.below(900)));
        if stage.daemon.migration(id)["ended"].is_null() {
            place.abort();
            aborted += 1;
            stage.daemon.wait_for(id, "paused", seconds(40));
            place.mount_anew();
        }
        ends(&stage.daemon, id);
        let back = stage.daemon.migrate("a --to here");
        ends(&stage.daemon, back);
    }
    let summary = checker.finish_and_verify();
    println!("{aborted} aborts of {kind}, {summary}");
}

#[test]
#[ignore = "runs as long as somebody wants (STERNA_ROUNDS)"]
fn an_ext4_that_aborts() {
    aborts("ext4", TinyFs::new, "mkfs.ext4");
}

#[test]
#[ignore = "runs as long as somebody wants (STERNA_ROUNDS)"]
fn an_xfs_that_aborts() {
    aborts("XFS", TinyFs::xfs, "mkfs.xfs");
}

#[test]
#[ignore = "runs as long as somebody wants (STERNA_ROUNDS)"]
fn a_btrfs_that_aborts() {
    aborts("btrfs", Nested::new, "mkfs.btrfs");
}

#[test]
#[ignore = "runs as long as somebody wants (STERNA_ROUNDS)"]
fn a_caching_server_that_loses_its_power() {
    let mut moments = Random::of_this_run();
    let stage = Stage::new();
    let server = Forgetful::start(&stage.scratch, "remote", SIZE + MIB);
    stage.datastore("remote", server.location());
    stage.disk("a", SIZE);
    let checker = stage.checker("a", &load());
    let mut lost = 0;
    for round in 0..rounds() {
        let id = stage.daemon.migrate("a --to remote --rate 30M");
        std::thread::sleep(Duration::from_millis(200 + moments.below(900)));
        // Once it is switched over, the server's loss is the application's.
        if stage.daemon.migration(id)["state"] == "copying" {
            lost += match round % 2 {
                0 => server.lose_power(),
                _ => server.lose_power_and_tell_one_by_one(),
            };
        }
        ends(&stage.daemon, id);
        let back = stage.daemon.migrate("a --to here");
        ends(&stage.daemon, back);
    }
    let summary = checker.finish_and_verify();
    println!("{} restarts that lost {lost} bytes, {summary}", rounds());
}
