//! What a night of bad luck does: hundreds of kills, lost storage and restarted servers,
//! with a client that remembers every acknowledged write.
//!
//! These tests are not part of `make test`: they run as long as somebody wants.
//!
//!     STERNA_ROUNDS=500 cargo test --release -p sterna-tests --test black_box endurance \
//!         -- --ignored --nocapture --test-threads=1
//!
//! Each prints its seed, how often it did what, and ends with the checker's verdict. A
//! lost write, an error that the client saw, or a move that does not end fails it. The
//! figures of the last long run are in `docs/reliability.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sterna_tests::forgetful::Forgetful;
use sterna_tests::places::TinyFs;
use sterna_tests::programs::have;
use sterna_tests::random::Random;
use sterna_tests::steps::{Places, Step, Tracer};
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
    let mut refused = String::new();
    until(&format!("migration {id} to end"), ROUND, || {
        let answer = daemon.sterna(&format!("migration show {id} --json"));
        let state = (answer.code == 0).then(|| answer.json()["state"].clone())?;
        if state == "paused" {
            let told = daemon.sterna(&format!("migration resume {id}"));
            if told.code != 0 && told.stderr != refused {
                refused = told.stderr;
                println!("migration {id} is not resumed: {refused}");
            }
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

/// How fast a move is until `strace` is there; it ends as fast as it can.
const UNTIL_IT_IS_TRACED: &str = "16M";

/// A disk's moves to and fro, whose steps are watched, or the last thing that a daemon does.
struct Ends {
    stage: Stage,
    to: &'static str,
}

impl Ends {
    /// A move that has begun, and what its files are called.
    fn begin(&self) -> (u64, Places) {
        let Stage { daemon, here, there, .. } = &self.stage;
        let (source, destination) =
            if self.to == "there" { (here, there) } else { (there, here) };
        let id =
            daemon.migrate(&format!("a --to {} --rate {UNTIL_IT_IS_TRACED}", self.to));
        let places = [
            ("state", daemon.state()),
            ("source", source.as_path()),
            ("destination", destination.as_path()),
        ];
        (id, Places::new(id, &places))
    }

    /// The move goes on to its end.
    fn finish(&mut self, id: u64) {
        ends(&self.stage.daemon, id);
        assert_eq!(self.stage.daemon.disk("a")["datastore"], self.to);
        self.to = other(self.to);
    }

    fn log(&self) -> PathBuf {
        self.stage.scratch.path("steps.strace")
    }

    /// All the steps of a move that nothing happens to.
    fn watch(&mut self) -> Vec<Step> {
        let (id, places) = self.begin();
        let tracer = Tracer::watch(&self.stage.daemon, &self.log());
        self.stage.daemon.hurry(id);
        self.finish(id);
        tracer.steps(&places)
    }

    /// Kills the daemon at a step of a move, and starts it again; the step that it was, if
    /// the move has come to it.
    fn kill_at(&mut self, step: &Step) -> Option<Step> {
        let (id, places) = self.begin();
        let daemon = &self.stage.daemon;
        let tracer = Tracer::kill(daemon, &self.log(), step, &places);
        // It may be dead before it answers.
        let _ = daemon.sterna(&format!("migration set {id} --rate none"));
        let killed = until("the kill, or the end", ROUND, || {
            let over = || {
                let shown = daemon.sterna(&format!("migration show {id} --json"));
                shown.code == 0 && shown.json()["state"] == "completed"
            };
            if daemon.is_over() { Some(true) } else { over().then_some(false) }
        });
        let at = tracer.killed_at(step, &places);
        // A client's flush after the end may be the kill as well, which does not count. The
        // daemon may be dying of it and not be over yet, so it is started anew in any case.
        self.stage.daemon.kill();
        self.stage.daemon.restart();
        self.finish(id);
        killed.then(|| at.unwrap_or_else(|| panic!("killed, but not at {step}")))
    }
}

/// Moves without a kill, one after the other, after which something is wrong with the test.
const PATIENCE: usize = 60;

#[test]
#[ignore = "runs as long as somebody wants (STERNA_ROUNDS)"]
fn kills_at_each_step_of_the_end() {
    if !have(&["strace"]) {
        return;
    }
    let stage = Stage::new();
    stage.disk("a", SIZE);
    let checker = stage.checker("a", &load());
    let mut moves = Ends { stage, to: "there" };
    let mut hit: BTreeMap<Step, u64> = BTreeMap::new();
    let (mut known, mut next, mut kills, mut missed) = (Vec::new(), 0, 0, 0);
    while kills < rounds() {
        let Some(step) = known.get(next).cloned() else {
            // Each time the moves take their own course: what is new is added.
            let mut seen = moves.watch();
            seen.retain(|step| !known.contains(step));
            known.append(&mut seen);
            next = 0;
            continue;
        };
        next += 1;
        if let Some(step) = moves.kill_at(&step) {
            *hit.entry(step).or_default() += 1;
            (kills, missed) = (kills + 1, 0);
        } else {
            missed += 1;
            assert!(missed < PATIENCE, "{missed} moves ended without a kill");
        }
    }
    let summary = checker.finish_and_verify();
    let mut calls: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (Step { file, call, thread, nth }, times) in &hit {
        let call = format!("{thread}: {call} of {file}");
        calls.entry(call).or_default().push(format!("{nth} ({times})"));
    }
    for (call, times) in &calls {
        println!("{call}: number (kills) {}", times.join(", "));
    }
    println!(
        "{kills} kills at {} of {} steps, of {} calls, {summary}",
        hit.len(),
        known.len(),
        calls.len()
    );
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

/// How fast a move is until its destination's file system is lost: it takes 12 s to copy
/// and compare the disk, so that a busy host, too, loses it before the end.
const UNTIL_IT_IS_LOST: &str = "8M";
/// The latest moment of that, in milliseconds; two thirds are copied then.
const LATEST_LOSS: u64 = 4000;

/// The destination's file system loses its device in the middle of each move; it is
/// unmounted and mounted again while the daemon runs, and the move goes on.
fn aborts<F: Frail>(kind: &str, make: fn(&Path, &Path, u64) -> F, mkfs: &str) {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.xfs", mkfs]) else {
        return;
    };
    let mut moments = Random::of_this_run();
    let (file, mount) = (stage.scratch.path("lost.img"), stage.scratch.path("lost"));
    let mut place = make(&file, &mount, 400 * MIB);
    stage.datastore("lost", place.dir().display());
    stage.disk("a", SIZE);
    let checker = stage.checker("a", &load());
    for _ in 0..rounds() {
        let rate = UNTIL_IT_IS_LOST;
        let id = stage.daemon.migrate(&format!("a --to lost --rate {rate}"));
        std::thread::sleep(Duration::from_millis(moments.below(LATEST_LOSS)));
        place.abort();
        // Had the disk been there already, its client would have lost it, too.
        stage.daemon.wait_for(id, "paused", seconds(40));
        place.mount_anew();
        stage.daemon.hurry(id);
        ends(&stage.daemon, id);
        let back = stage.daemon.migrate("a --to here");
        ends(&stage.daemon, back);
    }
    let summary = checker.finish_and_verify();
    println!("{} aborts of {kind}, {summary}", rounds());
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
