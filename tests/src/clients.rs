//! Clients that people use.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::programs;
use crate::scratch::Scratch;
use crate::wait::{seconds, until};

/// Runs lines of Python under nbdsh, connected to `uri`. The script sees `h`,
/// the connection, and must not raise.
#[track_caller]
pub fn nbdsh(uri: &str, script: &str) -> String {
    // The distribution's Python has the module; `nbdsh` takes the first on the
    // path, which may be another one.
    let args = ["-m", "nbd", "--base-allocation", "--uri", uri, "--command", script];
    programs::run("/usr/bin/python3", args)
}

/// The same, without asking for the disk's block sizes: the script may ask for any bytes.
#[track_caller]
pub fn nbdsh_without_sizes(uri: &str, script: &str) -> String {
    let connect = format!(
        "h.set_request_block_size(False); h.set_strict_mode(0); h.connect_uri('{uri}')"
    );
    let args = ["-m", "nbd", "--command", &connect, "--command", script];
    programs::run("/usr/bin/python3", args)
}

/// The disk is in working order: what is written can be read.
#[track_caller]
pub fn writes_and_reads(uri: &str) {
    nbdsh(uri, "h.pwrite(b'x' * 512, 0); assert h.pread(512, 0) == b'x' * 512");
}

/// Flushes so often; says what came of each.
#[track_caller]
pub fn flushes(uri: &str, how_often: usize) -> Vec<String> {
    let script = format!(
        "
for i in range({how_often}):
    try:
        h.flush()
        print('ok')
    except nbd.Error as error:
        print(error.errno)
"
    );
    nbdsh(uri, &script).split_whitespace().map(str::to_owned).collect()
}

/// Clients of one disk, at work in one process: lines of Python before and after what the
/// test does between them. The lines see `connect()`, which gives a connection, and
/// `flushes(h)`, which says what becomes of two flushes of one.
pub struct Clients {
    /// None: it has ended.
    child: Option<Child>,
    went: PathBuf,
}

impl Clients {
    /// Starts them, and waits until they have done what comes before.
    #[track_caller]
    pub fn start(scratch: &Scratch, uri: &str, before: &str, after: &str) -> Clients {
        let (came, went) = (scratch.path("clients-came"), scratch.path("clients-go-on"));
        let script = format!(
            "
import os, time
def connect():
    h = nbd.NBD()
    h.connect_uri('{uri}')
    return h
def flushes(h):
    for _ in range(2):
        try:
            h.flush()
            print('ok')
        except nbd.Error as error:
            print(error.errno)
{before}
open('{}', 'w').close()
while not os.path.exists('{}'): time.sleep(0.01)
{after}
",
            came.display(),
            went.display()
        );
        let child = programs::command("/usr/bin/python3")
            .args(["-m", "nbd", "--command", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start clients");
        until("the clients to have come", seconds(10), || came.exists().then_some(()));
        Clients { child: Some(child), went }
    }

    /// Has them go on; gives what becomes of their flushes.
    #[track_caller]
    pub fn go_on(mut self) -> Vec<String> {
        std::fs::write(&self.went, "").expect("say go");
        let child = self.child.take().expect("they run");
        let output = child.wait_with_output().expect("wait for the clients");
        let text = programs::both(&output);
        assert!(output.status.success(), "the clients failed:\n{text}");
        let printed = String::from_utf8_lossy(&output.stdout);
        printed.split_whitespace().map(str::to_owned).collect()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// fio over its NBD engine, at work until [`Fio::finish`].
pub struct Fio {
    child: Child,
    _job: NamedTempFile,
}

impl Fio {
    /// Starts it with these lines of settings.
    #[track_caller]
    pub fn start(uri: &str, settings: &str) -> Fio {
        // In a job file, because fio takes the colon in a URI on its command line
        // for the end of a file name.
        let job = NamedTempFile::new().expect("make a job file");
        let text = format!(
            "[global]\nioengine=nbd\nuri={uri}\ngroup_reporting=1\n\
             verify_state_save=0\n[job]\n{settings}\n"
        );
        std::fs::write(job.path(), text).expect("write the job file");
        let child = programs::command("fio")
            .arg("--output-format=json")
            .arg(job.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start fio");
        Fio { child, _job: job }
    }

    /// Ends it before its time, in good order.
    #[track_caller]
    pub fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let asked = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        asked.expect("end fio");
        self.child.wait().expect("wait for fio");
    }

    /// Waits for its end, which must be a success; gives its own figures.
    #[track_caller]
    pub fn finish(self) -> Value {
        let output = self.child.wait_with_output().expect("wait for fio");
        let text = programs::both(&output);
        assert!(output.status.success(), "fio failed:\n{text}");
        // Where it warns of something, it does so on stdout, before the figures.
        let figures = text.find('{').and_then(|at| {
            let values = serde_json::Deserializer::from_str(&text[at..]);
            values.into_iter::<Value>().next()?.ok()
        });
        let figures = figures.unwrap_or_else(|| panic!("no figures:\n{text}"));
        figures["jobs"][0].clone()
    }
}
