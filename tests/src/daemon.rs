//! `sterna serve`, to be started, killed and started again.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::cli::Answer;
use crate::lines::Lines;
use crate::programs;
use crate::scratch::Scratch;
use crate::wait::{seconds, until};

/// How long a daemon may take until it serves.
const START: Duration = seconds(20);

/// A daemon on a state directory of its own.
pub struct Daemon {
    state: PathBuf,
    socket: PathBuf,
    nbd: PathBuf,
    log: PathBuf,
    variables: Vec<(String, String)>,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Daemon {
    /// Starts a daemon that keeps its state in `scratch`.
    pub fn start(scratch: &Scratch) -> Daemon {
        let mut daemon = Daemon::prepare(scratch);
        daemon.restart();
        daemon
    }

    /// A daemon that is not started yet.
    pub fn prepare(scratch: &Scratch) -> Daemon {
        Daemon {
            state: scratch.path("state"),
            socket: scratch.socket("api.sock"),
            nbd: scratch.socket("nbd.sock"),
            log: scratch.path("daemon.log"),
            variables: Vec::new(),
            arguments: Vec::new(),
            child: None,
        }
    }

    /// Sets an environment variable for the next start.
    pub fn variable(&mut self, name: &str, value: &str) {
        self.variables.retain(|(have, _)| have != name);
        self.variables.push((name.into(), value.into()));
    }

    /// Adds an argument of `serve` for the next start.
    pub fn argument(&mut self, argument: &str) {
        self.arguments.push(argument.into());
    }

    /// The command that starts it.
    fn command(&self) -> Command {
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let mut command = Command::new(programs::sterna());
        command
            .arg("--json")
            .arg("--socket")
            .arg(&self.socket)
            .args(["serve", "--state"])
            .arg(&self.state)
            .arg("--nbd-socket")
            .arg(&self.nbd)
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.expect("open the daemon's log"));
        command
    }

    /// Starts it (it must not run) and waits until it serves.
    #[track_caller]
    pub fn restart(&mut self) {
        assert!(self.child.is_none(), "the daemon runs already");
        let mut child = self.command().spawn().expect("start sterna serve");
        let stdout = child.stdout.take().expect("it is piped");
        let (lines, _) = Lines::collect(stdout);
        until("the daemon to be ready", START, || {
            if let Some(status) = child.try_wait().expect("ask for the daemon") {
                panic!("the daemon ended at its start ({status}):\n{}", self.log());
            }
            (lines.count() > 0).then_some(())
        });
        self.child = Some(child);
    }

    /// Starts a daemon that must refuse to start; gives what it said.
    #[track_caller]
    pub fn refuses_to_start(&self) -> Answer {
        let mut command = self.command();
        command.stderr(Stdio::piped());
        let mut child = command.spawn().expect("start sterna serve");
        until("the daemon to refuse", START, || {
            child.try_wait().expect("ask for the daemon")
        });
        let output = child.wait_with_output().expect("collect the output");
        Answer::new("sterna serve".into(), &output)
    }

    /// Kills it as a power cut would, or the kernel short of memory.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("the daemon runs");
        child.kill().expect("kill the daemon");
        child.wait().expect("wait for the daemon");
    }

    /// Ends it in good order; it must say goodbye with success.
    #[track_caller]
    pub fn stop(&mut self) {
        let mut child = self.child.take().expect("the daemon runs");
        send_signal(&child, rustix::process::Signal::TERM);
        let status = until("the daemon to stop", seconds(20), || {
            child.try_wait().expect("ask for the daemon")
        });
        assert!(status.success(), "the daemon stopped with {status}:\n{}", self.log());
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the daemon runs").id()
    }

    /// Where it keeps its state.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    /// Runs `sterna` with these arguments (in one string, or several).
    pub fn sterna(&self, line: &str) -> Answer {
        let args: Vec<&str> = line.split_whitespace().collect();
        let output = Command::new(programs::sterna())
            .args(&args)
            .env("STERNA_SOCKET", &self.socket)
            .stdin(Stdio::null())
            .output()
            .expect("start sterna");
        Answer::new(format!("sterna {line}"), &output)
    }

    /// Runs `sterna … --json`, which must succeed, and gives the JSON.
    #[track_caller]
    pub fn json(&self, line: &str) -> Value {
        self.sterna(&format!("{line} --json")).ok().json()
    }

    /// Adds a datastore on a fresh directory; gives the directory.
    #[track_caller]
    pub fn directory(&self, scratch: &Scratch, name: &str) -> PathBuf {
        let dir = scratch.dir(name);
        self.sterna(&format!("datastore add {name} {}", dir.display())).ok();
        dir
    }

    /// The disk's NBD URI.
    pub fn uri(&self, disk: &str) -> String {
        format!("nbd+unix:///{disk}?socket={}", self.nbd.display())
    }

    /// The NBD socket.
    pub fn nbd_socket(&self) -> &Path {
        &self.nbd
    }

    /// The disk's image file, as the daemon says.
    pub fn image(&self, disk: &str) -> PathBuf {
        let disk = self.json(&format!("disk show {disk}"));
        PathBuf::from(disk["image"].as_str().expect("an image"))
    }

    /// Starts a migration that goes on by itself; gives its number.
    #[track_caller]
    pub fn migrate(&self, line: &str) -> u64 {
        let migration = self.json(&format!("migrate {line} --detach"));
        migration["id"].as_u64().expect("a migration has a number")
    }

    /// The migration now.
    #[track_caller]
    pub fn migration(&self, id: u64) -> Value {
        self.json(&format!("migration show {id}"))
    }

    /// Waits until the migration is in this state, and gives it.
    #[track_caller]
    pub fn wait_for(&self, id: u64, state: &str, limit: Duration) -> Value {
        let mut last = Value::Null;
        let what = format!("migration {id} to be {state}");
        let deadline = std::time::Instant::now() + limit;
        loop {
            let answer = self.sterna(&format!("migration show {id} --json"));
            if answer.code == 0 {
                last = answer.json();
                if last["state"] == state {
                    return last;
                }
                let over = last["state"] == "completed" || last["state"] == "cancelled";
                assert!(!over, "waited for {what}, but:\n{last:#}\n{}", self.log());
            }
            assert!(
                std::time::Instant::now() < deadline,
                "waited {limit:?} for {what}; last seen:\n{last:#}\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until so many bytes are on the destination; the move must not have
    /// ended by then.
    #[track_caller]
    pub fn wait_for_bytes(&self, id: u64, bytes: u64) -> Value {
        until(&format!("{bytes} bytes of migration {id}"), seconds(60), || {
            let migration = self.migration(id);
            let ended = migration["ended"].is_number();
            assert!(!ended, "the move was over too soon for this test:\n{migration:#}");
            let synced = migration["progress"]["synced"].as_u64().unwrap_or(0);
            (synced >= bytes).then_some(migration)
        })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- the daemon's log ends with:\n{}\n---", self.log());
        }
    }
}

/// Sends a signal to a child.
pub fn send_signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).expect("send a signal");
}

/// Makes a file of `size` bytes whose first `data` bytes are not zero and
/// differ from block to block.
pub fn write_image(path: &Path, size: u64, data: u64) {
    use std::io::Write;
    let mut file = File::create(path).expect("create an image");
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    let mut chunk = vec![0; 1 << 20];
    for _ in 0..data.div_ceil(1 << 20) {
        for bytes in chunk.chunks_exact_mut(8) {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        file.write_all(&chunk).expect("write an image");
    }
    file.set_len(size).expect("size an image");
}
