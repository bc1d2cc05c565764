//! The destination is full, fails, hangs, is slow or goes away: the
//! application sees no error and waits no longer than patience and a bit, the
//! migration pauses with the reason, and it can be resumed.
//!
//! How long is too long on a host that is busy with other things? The
//! promise is "patience + 100 ms over its normal time". Normal is the longest
//! wait that the same checker had before the fault, or the longest that a
//! *witness* had meanwhile: a second checker with the same kind of load on an
//! nbdkit of its own, in the same directory, which shares nothing with our
//! daemon but the host. What the host does to everybody is thereby not
//! held against the daemon, and what the daemon does is.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use sterna_tests::servers::Nbdkit;
use sterna_tests::wait::seconds;
use sterna_tests::{Checker, CheckerOptions, MIB, Stage, checker, until};

const SIZE: u64 = 128 * MIB;
/// Patience (20 ms) and what is allowed beyond it. On a host that makes the witness wait for
/// longer than this, twice the witness's.
const ALLOWED_MS: f64 = 120.0;
/// How long a hanging destination takes until it counts as hung, and a bit.
const HANGS: Duration = seconds(40);

/// A disk in use on `here`, and the witness.
struct Scene {
    checker: Checker,
    witness: Checker,
    _witness_server: Nbdkit,
    stage: Stage,
}

/// The moment before something happens, and what was normal until then.
struct Before {
    longest_ms: f64,
    unix_ms: u64,
}

impl Scene {
    /// Sets the scene, unless there is no nbdkit for the witness.
    fn new() -> Option<Scene> {
        Stage::given(&["nbdkit"]).map(Scene::on)
    }

    fn on(stage: Stage) -> Scene {
        stage.disk("a", SIZE);
        let server = Nbdkit::on_new_file(&stage.scratch, "witness", SIZE, &[]);
        let load = CheckerOptions::gentle(400).with("--size", 16384).flag("--fill");
        let log = stage.checked("witness");
        let witness = Checker::start(&server.location(), &log, &load);
        let checker = stage.checker("a", &load.with("--block", 4096));
        Scene { checker, witness, _witness_server: server, stage }
    }

    /// An nbdkit with filters as the datastore `remote`.
    #[track_caller]
    fn remote(&self, filters: &[&str]) -> Nbdkit {
        self.stage.nbd_server("remote", SIZE, filters)
    }

    /// `remote` on an nbdkit whose writes (and zeroes and trims) fail like this
    /// while the switch is there.
    #[track_caller]
    fn failing_remote(&self, errno: &str) -> Nbdkit {
        let switch = self.switch().display().to_string();
        let mut filters = vec!["--filter=error".to_owned(), format!("error={errno}")];
        for operation in ["pwrite", "zero", "trim"] {
            filters.push(format!("error-{operation}-rate=100%"));
            filters.push(format!("error-{operation}-file={switch}"));
        }
        let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
        self.remote(&filters)
    }

    /// A path that switches a fault on when it is there.
    fn switch(&self) -> PathBuf {
        self.stage.scratch.path("fault")
    }

    /// Starts the move, lets it get a third of the way, gives its number.
    #[track_caller]
    fn move_begins(&mut self, to: &str) -> u64 {
        self.checker.wait_for_intervals(10);
        let line = format!("a --to {to} --rate 40M --keep-source");
        let id = self.stage.daemon.migrate(&line);
        self.stage.daemon.wait_for_bytes(id, SIZE / 3);
        id
    }

    /// The fault happens now, the migration pauses with one of these words, and
    /// the application goes on undisturbed.
    #[track_caller]
    fn pauses(&mut self, id: u64, words: &[&str], fault: impl FnOnce()) -> Value {
        let before = self.before();
        fault();
        let paused = self.stage.daemon.wait_for(id, "paused", HANGS);
        // A while longer: the pause itself must not be felt either.
        self.checker.wait_for_intervals(10);
        self.undisturbed_since(&before);
        says(&paused, words);
        assert!(!hint(&paused).is_empty(), "it should say what to do: {paused:#}");
        paused
    }

    fn before(&self) -> Before {
        Before { longest_ms: self.checker.longest_ms(0), unix_ms: checker::now_ms() }
    }

    #[track_caller]
    fn undisturbed_since(&self, before: &Before) {
        let longest = self.checker.longest_ms(before.unix_ms);
        let witness = self.witness.longest_ms(before.unix_ms);
        let normal = before.longest_ms.max(witness);
        println!(
            "longest wait {longest:.1} ms; normal {normal:.1} ms (witness {witness:.1})"
        );
        assert!(
            longest <= normal + ALLOWED_MS.max(normal),
            "the application waited {longest:.1} ms, {normal:.1} ms would be normal"
        );
    }

    /// The fault is over: resumed, the move ends, and everything is there.
    #[track_caller]
    fn resumes_to_the_end(self, id: u64) {
        // A question that was asked while it hung may still be open for a moment.
        until("the move to be let go on", seconds(30), || {
            let resumed = self.stage.daemon.sterna(&format!("migration resume {id}"));
            (resumed.code == 0).then_some(())
        });
        self.ends(id);
    }

    /// The move ends by itself, and everything is there.
    #[track_caller]
    fn ends(self, id: u64) {
        self.stage.daemon.hurry(id);
        self.stage.daemon.completed(id);
        let summary = self.checker.finish_and_verify();
        assert_eq!(summary["reconnects"], 0, "{summary}");
    }
}

fn hint(paused: &Value) -> &str {
    paused["hint"].as_str().unwrap_or_default()
}

#[track_caller]
fn says(paused: &Value, words: &[&str]) {
    let reason = paused["reason"].as_str().unwrap_or_default();
    println!("paused because {reason}");
    let said = words.iter().any(|word| reason.contains(word));
    assert!(said, "the reason should have one of {words:?}: {reason}");
}

/// The remote's writes fail with this error for a while; the migration pauses with
/// one of these words, and ends when the error does.
#[track_caller]
fn a_failure_of_the_remote_pauses(errno: &str, words: &[&str]) {
    let Some(mut scene) = Scene::new() else { return };
    let _server = scene.failing_remote(errno);
    let id = scene.move_begins("remote");
    let switch = scene.switch();
    scene.pauses(id, words, || std::fs::write(&switch, "").expect("switch on"));
    std::fs::remove_file(&switch).expect("switch off");
    scene.resumes_to_the_end(id);
}

#[test]
fn a_full_nbd_destination_pauses_the_move_and_nothing_else() {
    a_failure_of_the_remote_pauses("ENOSPC", &["full", "ENOSPC"]);
}

#[test]
fn a_failing_destination_pauses_the_move_and_nothing_else() {
    a_failure_of_the_remote_pauses("EIO", &["failed", "EIO", "errno 5"]);
}

#[test]
fn a_full_file_system_pauses_the_move_and_room_resumes_it() {
    let programs = ["losetup", "mkfs.ext4", "nbdkit"];
    let Some(stage) = Stage::given_root(&programs) else { return };
    let mut scene = Scene::on(stage);
    let tiny = scene.stage.tiny_fs("tiny", SIZE + 64 * MIB);
    // There seems to be room when the move begins; then others take it.
    let id = scene.move_begins("tiny");
    let mut ballast = PathBuf::new();
    scene.pauses(id, &["full", "ENOSPC"], || ballast = tiny.fill(MIB));
    std::fs::remove_file(&ballast).expect("make room");
    scene.resumes_to_the_end(id);
    // The tiny file system is unmounted after its daemon has ended.
}

#[test]
fn a_hanging_destination_is_noticed_and_the_application_is_not_kept() {
    let Some(mut scene) = Scene::new() else { return };
    let server = scene.remote(&[]);
    let id = scene.move_begins("remote");
    scene.pauses(id, &["not answered", "timed out", "lost"], || server.hang());
    server.go_on();
    scene.resumes_to_the_end(id);
}

#[test]
fn a_destination_that_is_gone_is_lost_soon_and_resumed_when_it_is_back() {
    let Some(mut scene) = Scene::new() else { return };
    let mut server = scene.remote(&[]);
    let id = scene.move_begins("remote");
    let gone = Instant::now();
    let paused = scene.pauses(id, &["lost"], || server.kill());
    // Two seconds, and a bit for a host that is busy; not the ten of one that hangs.
    assert!(gone.elapsed() < seconds(8), "it took {:?} to notice", gone.elapsed());
    assert!(hint(&paused).contains("datastore show remote"), "{paused:#}");
    // Resumed too early, it says so again, and finds the server once it is back.
    scene.stage.daemon.resume(id);
    let paused = scene.stage.daemon.wait_for(id, "paused", HANGS);
    says(&paused, &["lost"]);
    server.restart();
    scene.resumes_to_the_end(id);
}

#[test]
fn a_short_outage_of_the_destination_is_got_over() {
    let Some(mut scene) = Scene::new() else { return };
    let mut server = scene.remote(&[]);
    let id = scene.move_begins("remote");
    let before = scene.before();
    let gone = Instant::now();
    server.kill();
    server.restart();
    let outage = gone.elapsed();
    scene.checker.wait_for_intervals(10);
    scene.undisturbed_since(&before);
    if scene.stage.daemon.migration(id)["state"] == "paused" {
        assert!(outage > seconds(1), "it paused for an outage of {outage:?}");
        scene.resumes_to_the_end(id);
    } else {
        scene.ends(id);
    }
}

#[test]
fn a_slow_destination_slows_the_move_and_not_the_application() {
    let Some(mut scene) = Scene::new() else { return };
    // Slower than patience. Who waits for the switch-over waits for this, too.
    let _server = scene.remote(&["--filter=delay", "wdelay=30ms"]);
    scene.checker.wait_for_intervals(10);
    let before = scene.before();
    let id = scene.stage.daemon.migrate("a --to remote");
    scene.stage.daemon.wait_for_bytes(id, SIZE / 3);
    scene.undisturbed_since(&before);
    // It is slower than patience, so the end needs patience raised, or a
    // gentler load: either it converges, or it says that it does not.
    let end = until("the move to end or to say why not", seconds(120), || {
        let now = scene.stage.daemon.migration(id);
        (now["state"] == "completed" || now["state"] == "paused").then_some(now)
    });
    scene.undisturbed_since(&before);
    if end["state"] == "paused" {
        says(&end, &["slow"]);
        scene.stage.daemon.cancel(id);
    }
    scene.checker.finish_and_verify();
}

#[test]
fn a_destination_that_stutters_is_got_over() {
    let Some(mut scene) = Scene::new() else { return };
    let server = scene.remote(&[]);
    let id = scene.move_begins("remote");
    let before = scene.before();
    for _ in 0..5 {
        server.hang();
        std::thread::sleep(Duration::from_millis(300));
        server.go_on();
        scene.checker.wait_for_intervals(2);
    }
    scene.undisturbed_since(&before);
    scene.ends(id);
}

#[test]
fn a_full_state_directory_pauses_the_move_and_everybody_is_told() {
    let Some((mut stage, state)) = Stage::given_tiny_state(8 * MIB) else { return };
    stage.disk_with_data("a", 32 * MIB, 32 * MIB);
    let id = stage.daemon.migrate("a --to there --rate 12M");
    stage.daemon.wait_for_bytes(id, MIB);
    let ballast = state.fill_up();
    let paused = stage.daemon.wait_for(id, "paused", HANGS);
    says(&paused, &["the state directory cannot record"]);
    assert!(hint(&paused).contains("has free space"), "{paused:#}");
    let about: Vec<Value> =
        warnings(&stage).iter().map(|warning| warning["about"].clone()).collect();
    assert_eq!(about, [format!("migration {id}"), "state".into()]);
    let watched = stage.daemon.sterna(&format!("migration watch {id}"));
    watched.fails_with(&["paused", "state directory"]);
    // Resumed too early, it says so again.
    stage.daemon.resume(id);
    stage.daemon.wait_for(id, "paused", HANGS);
    std::fs::remove_file(&ballast).expect("make room");
    // The pause is recorded by now at the latest.
    stage.daemon.stop();
    stage.daemon.restart();
    let paused = stage.daemon.wait_for(id, "paused", HANGS);
    says(&paused, &["the state directory cannot record"]);
    stage.daemon.resume(id);
    stage.daemon.completed(id);
    assert_eq!(warnings(&stage), Vec::<Value>::new());
}

#[test]
fn every_datastore_that_goes_offline_is_a_warning_until_it_is_back() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let mut killed = stage.nbd_server("killed", 16 * MIB, &[]);
    let hung = stage.nbd_server("hung", 16 * MIB, &[]);
    for (disk, datastore) in [("a", "here"), ("b", "killed"), ("c", "hung")] {
        let create = format!("disk create {disk} --size 8M --on {datastore}");
        stage.daemon.sterna(&create).ok();
    }
    assert_eq!(warnings(&stage), Vec::<Value>::new());
    let away = stage.scratch.path("away");
    std::fs::rename(&stage.here, &away).expect("move the directory away");
    killed.kill();
    hung.hang();
    let asked = Instant::now();
    let mut warned = warnings(&stage);
    assert!(asked.elapsed() < seconds(5), "status took {:?}", asked.elapsed());
    // Who has looked for the image of disk a meanwhile may miss it.
    warned.retain(|warning| warning["about"] != "disk a");
    let expected = [("here", "disk a"), ("hung", "disk c"), ("killed", "disk b")];
    assert_eq!(warned.len(), expected.len(), "{warned:#?}");
    for (warning, (datastore, disk)) in warned.iter().zip(expected) {
        assert_eq!(warning["about"], format!("datastore {datastore}"));
        let message = warning["message"].as_str().unwrap_or_default();
        assert!(message.contains("offline") && message.contains(disk), "{message}");
        assert_ne!(warning["hint"], "", "{warning:#}");
        let shown = stage.daemon.json(&format!("datastore show {datastore}"));
        assert!(shown["problem"].is_string(), "{shown:#}");
    }
    std::fs::rename(&away, &stage.here).expect("put the directory back");
    killed.restart();
    hung.go_on();
    until("no warning to be left", HANGS, || warnings(&stage).is_empty().then_some(()));
}

#[test]
fn a_datastore_that_is_full_is_a_warning_before_a_thin_disk_finds_out() {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.ext4"]) else { return };
    let tiny = stage.tiny_fs("tiny", 64 * MIB);
    stage.daemon.sterna("disk create a --size 32M --on tiny").ok();
    assert_eq!(warnings(&stage), Vec::<Value>::new());
    let ballast = tiny.fill_up();
    let warned = warnings(&stage);
    assert_eq!(warned.len(), 1, "{warned:#?}");
    assert_eq!(warned[0]["about"], "datastore tiny");
    let message = warned[0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("full") && message.contains("disk a"), "{message}");
    std::fs::remove_file(&ballast).expect("make room");
    assert_eq!(warnings(&stage), Vec::<Value>::new());
}

/// What somebody should look at.
#[track_caller]
fn warnings(stage: &Stage) -> Vec<Value> {
    let status = stage.daemon.json("status");
    status["warnings"].as_array().expect("a list of warnings").clone()
}

#[test]
fn a_failed_move_can_be_cancelled_while_the_destination_is_gone() {
    let Some(mut scene) = Scene::new() else { return };
    let mut server = scene.remote(&[]);
    let id = scene.move_begins("remote");
    scene.pauses(id, &["lost", "not answered", "timed out"], || server.kill());
    scene.stage.daemon.cancel(id);
    assert_eq!(scene.stage.daemon.disk("a")["datastore"], "here");
    scene.checker.finish_and_verify();
}

#[test]
fn a_daemon_killed_while_the_destination_is_gone_serves_the_disk_again() {
    let Some(mut scene) = Scene::new() else { return };
    let mut server = scene.remote(&[]);
    let id = scene.move_begins("remote");
    server.kill();
    scene.stage.daemon.kill();
    scene.stage.daemon.restart();
    scene.checker.wait_for_intervals(3);
    let daemon = &scene.stage.daemon;
    daemon.wait_for(id, "paused", HANGS);
    server.restart();
    daemon.hurry(id);
    daemon.resume(id);
    daemon.completed(id);
    scene.checker.finish_and_verify();
}

#[test]
fn a_source_that_is_gone_is_named_and_the_move_goes_on_when_it_is_back() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let mut server = stage.nbd_server("remote", SIZE + MIB, &[]);
    stage.disk_with_data("a", SIZE, SIZE);
    stage.daemon.sterna("migrate a --to remote").ok();
    let id = stage.daemon.migrate("a --to there --rate 20M");
    stage.daemon.wait_for_bytes(id, SIZE / 4);
    server.kill();
    let paused = stage.daemon.wait_for(id, "paused", HANGS);
    says(&paused, &["source"]);
    assert!(hint(&paused).contains("datastore remote"), "{paused:#}");
    server.restart();
    stage.daemon.resume(id);
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
}
