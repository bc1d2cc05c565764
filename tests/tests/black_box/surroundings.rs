//! What is around the daemon misbehaves: its log, its terminal, its limits, those who ask.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;
use rustix::process::Signal;
use sterna_tests::clients::writes_and_reads;
use sterna_tests::daemon::send_signal;
use sterna_tests::programs::{self, sterna};
use sterna_tests::wait::seconds;
use sterna_tests::{Daemon, MIB, Scratch, Stage, until};

/// A place for a log that is always full.
fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("open /dev/full")
}

/// A pipe that no program inherits by itself: what reads, and what writes.
fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).expect("a pipe")
}

/// One that has no room any more.
fn hung_pipe() -> (OwnedFd, OwnedFd) {
    let (reads, writes) = pipe();
    let flags = rustix::fs::fcntl_getfl(&writes).expect("its flags");
    rustix::fs::fcntl_setfl(&writes, flags | OFlags::NONBLOCK).expect("set them");
    while rustix::io::write(&writes, &[b'.'; 1024]).is_ok() {}
    rustix::fs::fcntl_setfl(&writes, flags).expect("set them back");
    (reads, writes)
}

/// Makes a disk and moves it there and back.
#[track_caller]
fn works(stage: &Stage, disk: &str) {
    let uri = stage.disk(disk, MIB);
    writes_and_reads(&uri);
    stage.daemon.sterna(&format!("migrate {disk} --to there")).ok();
    stage.daemon.sterna(&format!("migrate {disk} --to here")).ok();
}

fn warns_of(stage: &Stage, about: &str) -> Option<String> {
    let status = stage.daemon.json("status");
    let all = status["warnings"].as_array().expect("warnings").clone();
    let found = all.iter().find(|warning| warning["about"] == about)?;
    found["message"].as_str().map(str::to_owned)
}

#[test]
fn a_log_that_is_full_keeps_nobody_from_anything() {
    let stage = Stage::with(|daemon| daemon.log_to(full()));
    works(&stage, "a");
    let warning = warns_of(&stage, "log").expect("a warning");
    assert!(warning.contains("No space left"), "{warning}");
    assert!(stage.daemon.json("status")["lost_log_lines"].as_u64() > Some(0));
}

#[test]
fn a_log_that_nobody_reads_any_more_keeps_nobody_from_anything() {
    let (reads, writes) = pipe();
    let mut stage = Stage::with(|daemon| daemon.log_to(writes));
    drop(reads);
    works(&stage, "a");
    assert!(warns_of(&stage, "log").is_some_and(|it| it.contains("Broken pipe")));
    stage.daemon.stop();
}

#[test]
fn a_log_that_is_read_again_tells_how_much_it_has_lost() {
    let scratch = Scratch::new();
    let path = scratch.path("log.pipe");
    programs::run("mkfifo", [&path]);
    // Whoever opens one end waits for the other.
    let (for_reader, opened) = (path.clone(), std::sync::mpsc::channel());
    std::thread::spawn(move || opened.0.send(File::open(for_reader)));
    let writes = OpenOptions::new().write(true).open(&path).expect("open a pipe");
    let reads = opened.1.recv().expect("the other end").expect("open it");
    let stage = Stage::with(|daemon| daemon.log_to(writes));
    drop(reads);
    works(&stage, "a");
    assert!(warns_of(&stage, "log").is_some());
    let mut reads = File::open(&path).expect("open it again");
    stage.disk("b", MIB);
    let mut said = String::new();
    while !said.contains("lines of the log were lost lost=") {
        let mut bytes = [0; 4096];
        let count = reads.read(&mut bytes).expect("read the log");
        said.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    until("no warning", seconds(10), || warns_of(&stage, "log").is_none().then_some(()));
    assert!(stage.daemon.json("status")["lost_log_lines"].as_u64() > Some(0));
}

#[test]
fn a_daemon_whose_log_hangs_ends_when_it_is_told_to() {
    let (_reads, writes) = hung_pipe();
    let mut stage = Stage::with(|daemon| daemon.log_to(writes));
    works(&stage, "a");
    let since = std::time::Instant::now();
    stage.daemon.stop();
    assert!(since.elapsed() < seconds(8), "{:?}", since.elapsed());
}

/// A pipe whose other end is closed.
fn to_nobody() -> Stdio {
    pipe().1.into()
}

#[test]
fn exit_codes_are_what_they_are_whether_anybody_reads_or_not() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let run = |line: &str, stdout: Stdio, stderr: Stdio| {
        let status = Command::new(sterna())
            .args(line.split_whitespace())
            .env("STERNA_SOCKET", stage.daemon.api_socket())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .status();
        status.expect("start sterna").code()
    };
    for (line, code) in [
        ("nosuch", 2),
        ("disk create", 2),
        ("policy limit a 0", 2),
        ("--json nosuch", 2),
        ("disk show nosuch", 1),
        ("--json disk show nosuch", 1),
        ("migrate a --to nosuch", 1),
        ("disk list", 0),
        ("status --json", 0),
        ("--help", 0),
        ("--version", 0),
        ("top --batch --count 2 --interval 100ms", 0),
        ("migrate a --to there", 0),
    ] {
        assert_eq!(
            run(line, Stdio::null(), to_nobody()),
            Some(code),
            "{line}, no stderr"
        );
        if !line.starts_with("migrate a --to there") {
            assert_eq!(
                run(line, to_nobody(), to_nobody()),
                Some(code),
                "{line}, neither"
            );
        }
    }
    // An answer that cannot be kept is a failure.
    assert_eq!(run("disk list", full().into(), Stdio::null()), Some(1));
}

/// The directories of experiments in a directory.
fn experiments(directory: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(directory).expect("read a directory").flatten();
    let all = found.map(|entry| entry.path());
    all.filter(|path| path.to_string_lossy().contains("sterna-lab-")).collect()
}

/// Who runs with this in the command line.
fn running(word: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").expect("read /proc").flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(word)).collect()
}

/// An experiment, once its daemon runs.
fn experiment(scratch: &Scratch) -> (Child, PathBuf) {
    let directory = scratch.socket("x");
    std::fs::create_dir_all(&directory).expect("make a directory");
    let child = Command::new(sterna())
        .args(["lab", "qos", "--quick", "--out"])
        .arg(scratch.dir("out"))
        .env("TMPDIR", &directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(to_nobody())
        .spawn()
        .expect("start an experiment");
    until("the experiment's daemon", seconds(20), || {
        let ready = experiments(&directory).iter().any(|it| it.join("api.sock").exists());
        ready.then_some(())
    });
    (child, directory)
}

#[test]
fn an_experiment_leaves_nothing_behind_however_it_ends() {
    for signal in [Signal::KILL, Signal::HUP, Signal::TERM] {
        let scratch = Scratch::new();
        let (mut child, directory) = experiment(&scratch);
        send_signal(&child, signal);
        child.wait().expect("wait for the experiment");
        until("nothing to be left", seconds(20), || {
            let word = directory.to_string_lossy().into_owned();
            (experiments(&directory).is_empty() && running(&word).is_empty())
                .then_some(())
        });
    }
}

/// A stage whose daemon may have so many open files, if that can be set.
fn limited(soft: u64, hard: u64) -> Option<Stage> {
    programs::have(&["prlimit"]).then(|| {
        let under = format!("prlimit --nofile={soft}:{hard}");
        Stage::with(|daemon: &mut Daemon| daemon.start_under(&under))
    })
}

#[test]
fn the_soft_limit_of_open_files_is_raised_to_the_hard_one() {
    let Some(stage) = limited(100, 777) else { return };
    assert_eq!(stage.daemon.json("status")["open_files"]["limit"], 777);
}

#[test]
fn what_would_need_too_many_open_files_is_refused_with_that_as_the_reason() {
    let Some(stage) = limited(128, 128) else { return };
    let refused = (0..40).find_map(|it| {
        let line = format!("disk create d{it} --size 1M --on here");
        let answer = stage.daemon.sterna(&line);
        (answer.code != 0).then_some(answer)
    });
    let refused = refused.expect("a refusal");
    refused
        .fails_with(&["the limit of open files (128) would be reached", "LimitNOFILE"]);
    stage.daemon.sterna("migrate d0 --to there").ok();
    let more = stage.scratch.dir("more");
    let added = stage.daemon.sterna(&format!("datastore add more {}", more.display()));
    added.fails_with(&["the limit of open files (128)"]);
    assert!(warns_of(&stage, "open files").is_some());
    writes_and_reads(&stage.daemon.uri("d0"));
}

#[test]
fn guests_clients_leave_the_operator_what_he_needs() {
    let Some(stage) = limited(256, 256) else { return };
    let uri = stage.disk("a", MIB);
    stage.disk("b", 4 * MIB);
    let socket = stage.daemon.nbd_socket();
    let script = format!(
        "import nbd\nall = []\nwhile True:\n    c = nbd.NBD(); c.set_export_name('a')\n    \
         try: c.connect_unix({socket:?}); all.append(c)\n    except nbd.Error: break\n\
         print(len(all))\nimport sys; sys.stdout.flush(); sys.stdin.readline()"
    );
    let mut crowd = Command::new("/usr/bin/python3")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start Python");
    let mut stdout = crowd.stdout.take().expect("it is piped");
    let mut count = [0; 8];
    let len = stdout.read(&mut count).expect("how many got in");
    let text = String::from_utf8_lossy(&count[..len]);
    let there: u64 = text.trim().parse().unwrap_or_else(|_| panic!("no number: {text}"));
    assert!((60..200).contains(&there), "{there} got in");
    let status = stage.daemon.json("status");
    assert_eq!(status["connections"]["guests"], there);
    assert!(status["connections"]["guests_refused"].as_u64() > Some(0), "{status:#}");
    stage.daemon.sterna("migrate b --to there").ok();
    crowd.stdin.take();
    crowd.wait().expect("wait for Python");
    until("a place for a guest", seconds(5), || {
        (stage.daemon.json("status")["connections"]["guests"] == 0).then_some(())
    });
    writes_and_reads(&uri);
}

#[test]
fn clients_of_the_api_that_do_nothing_make_room_for_those_that_ask() {
    let stage = Stage::new();
    let uri = stage.disk("a", MIB);
    let mut idle = Vec::new();
    for at in 0..300 {
        let mut stream = UnixStream::connect(stage.daemon.api_socket()).expect("connect");
        if at % 2 == 0 {
            // Half a request is none. It may be closed by now.
            let _ = stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost:");
        }
        idle.push(stream);
    }
    let connections = stage.daemon.json("status")["connections"].clone();
    assert!(connections["api"].as_u64() <= Some(64), "{connections}");
    assert!(connections["api_closed"].as_u64() >= Some(300 - 64), "{connections}");
    writes_and_reads(&uri);
    until("a line in the log", seconds(10), || {
        stage.daemon.log().contains("API connections closed").then_some(())
    });
    drop(idle);
}

#[test]
fn a_terminal_that_knows_no_escape_sequences_gets_none() {
    let Some(stage) = Stage::given(&["script"]) else { return };
    stage.disk("a", 8 * MIB);
    for (variable, value) in [("TERM", "dumb"), ("NO_COLOR", "1")] {
        for line in
            ["disk list", "status", "disk show nosuch", "migrate a --to there --rate 8M"]
        {
            let socket = stage.daemon.api_socket().display().to_string();
            let program = sterna().display().to_string();
            let typed = programs::command("script")
                .args([
                    "-qec",
                    &format!("{program} --socket {socket} {line}"),
                    "/dev/null",
                ])
                .env("TERM", "xterm")
                .env(variable, value)
                .output()
                .expect("start script");
            let text = String::from_utf8_lossy(&typed.stdout);
            assert!(!text.contains('\u{1b}'), "{variable}={value}: {line}: {text:?}");
            assert!(!text.is_empty(), "{line}");
        }
        stage.daemon.sterna("migrate a --to here").ok();
    }
}
