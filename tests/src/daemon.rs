//! `sterna serve`, to be started, killed and started again.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::cli::Answer;
use crate::http;
use crate::lines::Lines;
use crate::programs;
use crate::scratch::Scratch;
use crate::terminal::Terminal;
use crate::wait::{seconds, until};

/// How long a daemon may take until it serves.
const START: Duration = seconds(20);
/// How long a command may take before it is killed: in seconds, and longer than any test
/// waits for one.
const LONGEST: &str = "600";

/// A daemon on a state directory of its own.
pub struct Daemon {
    state: PathBuf,
    socket: PathBuf,
    nbd: PathBuf,
    log: PathBuf,
    variables: Vec<(String, String)>,
    arguments: Vec<String>,
    /// What starts it, if it is not started as it is.
    under: Vec<String>,
    /// Where its stderr goes, if not to its log.
    stderr: Option<OwnedFd>,
    child: Option<Child>,
}

impl Daemon {
    /// A daemon that keeps its state in `scratch`, not started yet.
    pub fn prepare(scratch: &Scratch) -> Daemon {
        Daemon {
            state: scratch.path("state"),
            socket: scratch.socket("api.sock"),
            nbd: scratch.socket("nbd.sock"),
            log: scratch.path("daemon.log"),
            variables: Vec::new(),
            arguments: Vec::new(),
            under: Vec::new(),
            stderr: None,
            child: None,
        }
    }

    /// Sets an environment variable for the next start.
    pub fn variable(&mut self, name: &str, value: &str) {
        self.variables.retain(|(have, _)| have != name);
        self.variables.push((name.into(), value.into()));
    }

    /// From the next start on it finds a script in a program's place.
    #[track_caller]
    pub fn use_instead(&mut self, scratch: &Scratch, program: &str, script: &str) {
        let programs = scratch.dir("programs");
        let file = programs.join(program);
        std::fs::write(&file, script).expect("write a program");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).expect("make it one");
        let path = std::env::var("PATH").expect("a path");
        self.variable("PATH", &format!("{}:{path}", programs.display()));
    }

    /// Adds arguments of `serve` (in one string) for the next start.
    pub fn arguments(&mut self, line: &str) {
        self.arguments.extend(line.split_whitespace().map(str::to_owned));
    }

    /// From the next start on it is started by this program, with these arguments.
    pub fn start_under(&mut self, line: &str) {
        self.under = line.split_whitespace().map(str::to_owned).collect();
    }

    /// From the next start on its stderr goes there.
    pub fn log_to(&mut self, place: impl Into<OwnedFd>) {
        self.stderr = Some(place.into());
    }

    /// The command that starts it.
    fn command(&self) -> Command {
        let log = match &self.stderr {
            Some(place) => place.try_clone().expect("another handle"),
            None => {
                let log = OpenOptions::new().create(true).append(true).open(&self.log);
                log.expect("open the daemon's log").into()
            }
        };
        let mut all = self.under.iter().map(OsString::from).collect::<Vec<_>>();
        all.push(programs::sterna().into());
        let mut command = Command::new(&all[0]);
        command
            .args(&all[1..])
            .arg("--json")
            .arg("--socket")
            .arg(&self.socket)
            // What is installed on this host has a file that is not for this one.
            .args(["serve", "--config", "/dev/null", "--state"])
            .arg(&self.state)
            .arg("--nbd-socket")
            .arg(&self.nbd)
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
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

    /// Starts it under a program that becomes it, as `strace -D` does.
    #[track_caller]
    pub fn restart_under(&mut self, program: &[&str]) {
        self.under = program.iter().map(|part| (*part).to_owned()).collect();
        self.restart();
        self.under.clear();
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

    /// Ends it while storage hangs: what waits in the kernel for that cannot go, but the
    /// daemon is over. Gives what is left of it, to be kept until the storage goes on.
    #[track_caller]
    pub fn leave(&mut self, limit: Duration) -> Left {
        let child = self.child.take().expect("the daemon runs");
        send_signal(&child, rustix::process::Signal::TERM);
        let stat = format!("/proc/{}/stat", child.id());
        until("the daemon to be over", limit, || {
            let stat = std::fs::read_to_string(&stat).unwrap_or_default();
            let state = stat.rsplit_once(") ").map_or("Z", |(_, state)| state);
            state.starts_with('Z').then_some(())
        });
        Left(child)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the daemon runs").id()
    }

    /// Whether it has ended, or was killed, by itself.
    pub fn is_over(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()));
        stat.map_or(true, |stat| stat.contains(") Z "))
    }

    /// Where it keeps its state.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Its state directory is renamed while it does not run.
    #[track_caller]
    pub fn rename_state(&mut self) {
        assert!(self.child.is_none(), "the daemon runs");
        let renamed = self.state.with_extension("renamed");
        std::fs::rename(&self.state, &renamed).expect("rename a directory");
        self.state = renamed;
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
        // A command that is never answered fails its own test, and not all those after it.
        let output = Command::new("timeout")
            .args(["--signal=KILL", LONGEST])
            .arg(programs::sterna())
            .args(&args)
            .env("STERNA_SOCKET", &self.socket)
            .stdin(Stdio::null())
            .output()
            .expect("start sterna");
        Answer::new(format!("sterna {line}"), &output)
    }

    /// Runs `sterna` with these arguments on a terminal of its own.
    pub fn on_terminal(&self, line: &str, columns: u16, rows: u16) -> Terminal {
        let mut command = Command::new(programs::sterna());
        command.args(line.split_whitespace()).env("STERNA_SOCKET", &self.socket);
        Terminal::run(command, columns, rows)
    }

    /// Runs `sterna` with these arguments, its output to be read while it runs.
    pub fn piped(&self, line: &str) -> Child {
        Command::new(programs::sterna())
            .args(line.split_whitespace())
            .env("STERNA_SOCKET", &self.socket)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start sterna")
    }

    /// What bash makes of the line when Tab is pressed at its end: the function that the
    /// completion script defines is called as bash calls it.
    pub fn tab(&self, line: &str) -> Vec<String> {
        const SCRIPT: &str = r#"
            set -eu
            source <("$0" completion bash)
            COMP_WORDS=("$0" "$@") COMP_CWORD=$#
            _sterna "$0" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\n' "${COMPREPLY[@]}"
        "#;
        let output = Command::new("bash")
            .args(["-c", SCRIPT])
            .arg(programs::sterna())
            .args(line.split(' '))
            .env("STERNA_SOCKET", &self.socket)
            .output()
            .expect("start bash");
        let answer = Answer::new(format!("complete {line}"), &output).ok();
        answer.stdout.lines().map(Into::into).collect()
    }

    /// Waits until the daemon has looked at what is on exact places.
    #[track_caller]
    pub fn looks_at_places(&self) {
        let runs = || {
            let tasks = self.json("status --tasks");
            let tasks = tasks.as_array().cloned().unwrap_or_default();
            let task = tasks.into_iter().find(|task| task["name"] == "fingerprints");
            task.map_or(0, |task| task["runs"].as_u64().unwrap_or(0))
        };
        let before = runs();
        // The one under way may have begun before.
        until("the places to be looked at", seconds(30), || {
            (runs() > before + 1).then_some(())
        });
    }

    /// What `sterna … --json` prints; it must succeed. That is the API's answer, word for word
    /// (`cli::what_commands_print_as_json_is_the_apis_answer`). So what many tests look at again
    /// and again is asked of the API: a process for each look takes a third of a processor.
    #[track_caller]
    pub fn json(&self, line: &str) -> Value {
        let answer = address(line).and_then(|path| http::get(&self.socket, &path));
        answer.unwrap_or_else(|| self.sterna(&format!("{line} --json")).ok().json())
    }

    /// The same of a daemon that may be away, or not know it.
    pub fn json_if_any(&self, line: &str) -> Option<Value> {
        http::get(&self.socket, &address(line)?)
    }

    /// The disk's NBD URI.
    pub fn uri(&self, disk: &str) -> String {
        format!("nbd+unix:///{disk}?socket={}", self.nbd.display())
    }

    /// The API's socket.
    pub fn api_socket(&self) -> &Path {
        &self.socket
    }

    /// The NBD socket.
    pub fn nbd_socket(&self) -> &Path {
        &self.nbd
    }

    /// The disk, as the daemon says.
    #[track_caller]
    pub fn disk(&self, name: &str) -> Value {
        self.json(&format!("disk show {name}"))
    }

    /// What somebody should look at about that.
    #[track_caller]
    pub fn warnings(&self, about: &str) -> Vec<String> {
        let status = self.json("status");
        let all = status["warnings"].as_array().cloned().unwrap_or_default();
        let mine = all.into_iter().filter(|warning| warning["about"] == about);
        mine.map(|warning| warning["message"].as_str().unwrap_or("").to_owned()).collect()
    }

    /// The disk's image file.
    #[track_caller]
    pub fn image(&self, disk: &str) -> PathBuf {
        PathBuf::from(self.disk(disk)["image"].as_str().expect("an image"))
    }
}

impl Daemon {
    /// What the files of a directory of its state have in memory.
    fn memory_of(&self, kind: &str) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.state.join(format!("{kind}s")));
        let files = files.into_iter().flatten().flatten();
        let memory = files.filter_map(|file| {
            let mut number = [0; 8];
            let file = File::open(file.path()).ok()?;
            file.read_exact_at(&mut number, 16).ok()?;
            let number = u64::from_le_bytes(number);
            Some(format!("/dev/shm/sterna-{kind}-{number:016x}").into())
        });
        memory.collect()
    }

    /// What the accounts of its disks have in memory.
    pub fn memory_of_accounts(&self) -> Vec<PathBuf> {
        self.memory_of("account").into_iter().filter(|path| path.exists()).collect()
    }

    /// Removes what it has left in memory: its state goes with the test.
    fn forget_memory(&self) {
        for memory in ["map", "account"].map(|kind| self.memory_of(kind)).concat() {
            let _ = std::fs::remove_file(memory);
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.forget_memory();
        if std::thread::panicking() {
            eprintln!("--- the daemon's log ends with:\n{}\n---", self.log());
        }
    }
}

/// A daemon that is over, with threads that the kernel does not let go.
pub struct Left(Child);

impl Drop for Left {
    fn drop(&mut self) {
        // Where the storage still hangs it stays for whoever ends the tests.
        for _ in 0..50 {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Sends a signal to a child.
pub fn send_signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).expect("send a signal");
}

/// Where the API answers what this command asks for, if it is one that only looks.
fn address(line: &str) -> Option<String> {
    let is_plain = |word: &&&str| {
        word.bytes().all(|it| it.is_ascii_alphanumeric() || b"._-".contains(&it))
    };
    let words: Vec<&str> = line.split(' ').collect();
    let name = words.get(2).filter(is_plain);
    // A migration may be named by its disk, which the command looks up.
    let number = name.filter(|word| word.bytes().all(|it| it.is_ascii_digit()));
    match words.as_slice() {
        ["status"] => Some("/v1/status".into()),
        [noun @ ("disk" | "datastore" | "migration"), "list"] => {
            Some(format!("/v1/{noun}s"))
        }
        [noun @ ("disk" | "datastore"), "show", _] => {
            Some(format!("/v1/{noun}s/{}", name?))
        }
        [noun @ ("migration" | "plan"), "show", _] => {
            Some(format!("/v1/{noun}s/{}", number?))
        }
        _ => None,
    }
}
