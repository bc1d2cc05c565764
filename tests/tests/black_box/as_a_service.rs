//! The daemon as a service of its host: a file tells it what to do, and it tells
//! systemd how it is.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use sterna_tests::programs::{both, sterna};
use sterna_tests::wait::seconds;
use sterna_tests::{Daemon, Scratch, until};

/// How long a daemon may take to start, on a busy host.
const START: std::time::Duration = seconds(20);

/// A file of the daemon's, and where it says that things are.
struct Configured {
    scratch: Scratch,
    file: PathBuf,
    api: PathBuf,
}

impl Configured {
    /// With these lines beside those for the state and the API's socket.
    fn with(more: &str) -> Configured {
        let scratch = Scratch::new();
        let (file, api) = (scratch.path("sterna.toml"), scratch.socket("told.sock"));
        let state = scratch.path("state");
        let text = format!("state = {state:?}\nsocket = {api:?}\n{more}");
        fs::write(&file, text).expect("write the file");
        Configured { scratch, file, api }
    }

    /// `sterna serve` with this file.
    fn serve(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(sterna());
        command
            .args(["serve", "--config"])
            .arg(&self.file)
            .args(arguments)
            .env_remove("STERNA_SOCKET")
            .stdin(Stdio::null());
        command
    }

    fn check(&self) -> Output {
        self.serve(&["--check"]).output().expect("start sterna serve")
    }

    fn status(&self) -> Option<serde_json::Value> {
        let mut command = Command::new(sterna());
        command.args(["--json", "status"]).env("STERNA_SOCKET", &self.api);
        let output = command.output().expect("start sterna status");
        output
            .status
            .success()
            .then(|| serde_json::from_slice(&output.stdout).expect("a status is JSON"))
    }
}

/// A daemon that ends with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_says_where_a_daemon_keeps_and_serves_things() {
    let told = Configured::with("listen = ['127.0.0.1:0']\nio = 'threads'\n");
    let log = fs::File::create(told.scratch.path("daemon.log")).expect("make its log");
    let other = told.scratch.socket("other.nbd");
    let mut command = told.serve(&["--nbd-socket"]);
    let _served = Served(command.arg(&other).stderr(log).spawn().expect("start it"));
    let status = until("the daemon to serve", START, || told.status());
    let state = told.scratch.path("state").display().to_string();
    assert_eq!(status["state"], state.as_str(), "{status:#}");
    assert_eq!(status["io"]["engine"], "threads", "{status:#}");
    let nbd = status["nbd"].to_string();
    assert!(nbd.contains("nbd://127.0.0.1:"), "{nbd}");
    assert!(nbd.contains(&other.display().to_string()), "{nbd}");
}

#[test]
fn a_check_says_that_all_is_good_and_changes_nothing() {
    let told = Configured::with("listen = ['127.0.0.1:10809']\n");
    let checked = told.check();
    let said = both(&checked);
    assert_eq!(checked.status.code(), Some(0), "{said}");
    assert!(said.to_lowercase().contains("configuration is good"), "{said}");
    assert!(!told.scratch.path("state").exists(), "a check made the state directory");
    assert!(!told.api.exists(), "a check made a socket");
}

#[test]
fn a_wrong_file_is_refused_with_line_and_key_by_the_check_and_by_the_start() {
    let told = Configured::with("nbd-sokcet = '/x'\nio = 'psync'\n");
    for arguments in [&["--check"][..], &[]] {
        let output = told.serve(arguments).output().expect("start sterna serve");
        let said = both(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        // Lines are broken at blanks alone.
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.contains("sterna.toml:3: there is no option `nbd-sokcet`"),
            "{said}"
        );
        assert!(flat.contains("sterna.toml:4: `io` cannot be \"psync\""), "{said}");
        assert!(flat.contains("auto, io_uring, threads"), "{said}");
    }
    assert!(!told.scratch.path("state").exists(), "a refused start made its state");
}

#[test]
fn a_check_says_what_is_in_the_way() {
    let told = Configured::with("");
    fs::write(&told.api, "no socket").expect("write a file");
    let checked = told.check();
    let said = both(&checked);
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(said.contains("is not a socket"), "{said}");
    assert_eq!(fs::read_to_string(&told.api).expect("it is there"), "no socket");
}

/// What systemd hears, message by message.
struct Systemd(UnixDatagram);

impl Systemd {
    /// Listens to a daemon that is not started yet, with a watchdog of this patience.
    fn of(daemon: &mut Daemon, scratch: &Scratch, patience: &str) -> Systemd {
        let path = scratch.socket("notify.sock");
        let socket = UnixDatagram::bind(&path).expect("make a socket");
        socket.set_read_timeout(Some(START)).expect("set a time limit");
        daemon.variable("NOTIFY_SOCKET", &path.display().to_string());
        daemon.variable("WATCHDOG_USEC", patience);
        Systemd(socket)
    }

    /// The next message.
    #[track_caller]
    fn hears(&self) -> String {
        let mut message = [0; 512];
        let length = self.0.recv(&mut message).expect("systemd should hear something");
        String::from_utf8_lossy(&message[..length]).into_owned()
    }
}

#[test]
fn systemd_hears_that_the_daemon_serves_that_it_answers_and_that_it_stops() {
    let scratch = Scratch::new();
    let mut daemon = Daemon::prepare(&scratch);
    let systemd = Systemd::of(&mut daemon, &scratch, "300000");
    daemon.restart();
    let first = systemd.hears();
    assert!(first.lines().any(|line| line == "READY=1"), "{first}");
    daemon.sterna("status").ok();
    for _ in 0..5 {
        assert_eq!(systemd.hears().trim_end(), "WATCHDOG=1");
    }
    daemon.stop();
    let last = loop {
        let message = systemd.hears();
        if message.trim_end() != "WATCHDOG=1" {
            break message;
        }
    };
    assert!(last.lines().any(|line| line == "STOPPING=1"), "{last}");
}

#[test]
fn a_purge_of_the_package_removes_all_that_a_daemon_without_disks_leaves() {
    let scratch = Scratch::new();
    let mut daemon = Daemon::prepare(&scratch);
    daemon.restart();
    daemon.stop();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/deb/postrm");
    let script = fs::read_to_string(script).expect("read the script");
    for entry in fs::read_dir(daemon.state()).expect("list the state").flatten() {
        let name = entry.file_name().into_string().expect("a name is text");
        let named =
            script.split_whitespace().any(|word| word == format!("\"$state/{name}\""));
        assert!(named, "packaging/deb/postrm leaves {name}");
    }
}
