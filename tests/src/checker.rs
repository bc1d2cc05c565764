//! The checker as a client: it writes, remembers what was acknowledged, and
//! says afterwards whether it is still there.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::lines::Lines;
use crate::programs;
use crate::random::seed;
use crate::wait::{seconds, until};

/// How the checker is to behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// More arguments of `sterna-checker run`.
    pub arguments: Vec<String>,
}

impl Options {
    /// A gentle load, so that two cores are enough for everyone: `rate`
    /// requests per second at a depth of 16, figures ten times a second.
    pub fn gentle(rate: u32) -> Options {
        let options = Options { arguments: Vec::new() };
        options.with("--rate", rate).with("--depth", 16).with("--report-ms", 100)
    }

    /// As fast as it goes at this depth.
    pub fn hard(depth: u32) -> Options {
        let options = Options { arguments: Vec::new() };
        options.with("--depth", depth).with("--report-ms", 100)
    }

    /// Another argument with a value.
    pub fn with(mut self, name: &str, value: impl std::fmt::Display) -> Options {
        self.arguments.extend([name.to_owned(), value.to_string()]);
        self
    }

    /// Another argument without one.
    pub fn flag(mut self, name: &str) -> Options {
        self.arguments.push(name.to_owned());
        self
    }
}

/// A checker that runs until it is told to finish.
pub struct Checker {
    uri: String,
    log: PathBuf,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines,
    words: Lines,
    readers: Vec<JoinHandle<()>>,
    finished: bool,
}

impl Checker {
    /// Starts it on a disk; it is at work when this returns.
    #[track_caller]
    pub fn start(uri: &str, log: &Path, options: &Options) -> Checker {
        let mut child = Command::new(programs::checker())
            .args(["run", "--uri", uri, "--log"])
            .arg(log)
            .args(&options.arguments)
            .args(seed_argument())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start sterna-checker");
        let (lines, out) = Lines::collect(child.stdout.take().expect("piped"));
        let (words, err) = Lines::collect(child.stderr.take().expect("piped"));
        let mut checker = Checker {
            uri: uri.into(),
            log: log.into(),
            stdin: child.stdin.take(),
            child,
            lines,
            words,
            readers: vec![out, err],
            finished: false,
        };
        checker.wait_for_intervals(2);
        checker
    }

    /// Waits for so many more lines of figures in which something was done.
    #[track_caller]
    pub fn wait_for_intervals(&mut self, count: usize) {
        let from = self.lines.count();
        until("the checker to do its work", seconds(120), || {
            if let Some(status) = self.child.try_wait().expect("ask for the checker") {
                self.hear_it_out();
                panic!("the checker ended ({status}): {}", self.said());
            }
            let lines = self.lines.all();
            let busy = lines[from..].iter().filter(|line| ios(line) > 0.0).count();
            (busy >= count).then_some(())
        });
    }

    /// The longest that a request took or waited, in milliseconds, among the
    /// figures given since `from` (a moment of [`now_ms`]).
    pub fn longest_ms(&self, from: u64) -> f64 {
        let lines = self.lines.all();
        let figures = lines.iter().filter_map(|line| line_value(line));
        figures
            .filter(|figures| figures["unix_ms"].as_u64().unwrap_or(0) >= from)
            .map(|figures| {
                let max = figures["max_us"].as_u64().unwrap_or(0);
                max.max(figures["waiting_us"].as_u64().unwrap_or(0)) as f64 / 1000.0
            })
            .fold(0.0, f64::max)
    }

    /// Lets it finish what is outstanding and end. It must have seen no error
    /// and read nothing wrong. Gives its summary.
    #[track_caller]
    pub fn finish(mut self) -> Value {
        drop(self.stdin.take());
        let status = until("the checker to finish", seconds(120), || {
            self.child.try_wait().expect("ask for the checker")
        });
        self.hear_it_out();
        self.finished = true;
        assert!(status.success(), "the checker found something wrong: {}", self.said());
        let last = self.lines.all().pop().expect("a summary");
        let summary: Value = serde_json::from_str(&last).expect("a summary in JSON");
        let summary = summary["summary"].clone();
        assert!(summary["writes"].as_u64() > Some(0), "it wrote nothing: {summary}");
        summary
    }

    /// Kills it, as a host would be lost.
    pub fn kill(mut self) {
        self.finished = true;
        self.child.kill().expect("kill the checker");
        self.child.wait().expect("wait for the checker");
    }

    /// Finishes, and asks for every acknowledged write.
    #[track_caller]
    pub fn finish_and_verify(self) -> Value {
        let (uri, log) = (self.uri.clone(), self.log.clone());
        let summary = self.finish();
        verify(&uri, &log);
        summary
    }

    /// Waits for the last words of a checker that has ended: they may still be on
    /// their way when its end is known.
    fn hear_it_out(&mut self) {
        for reader in self.readers.drain(..) {
            reader.join().expect("the readers do not panic");
        }
    }

    fn said(&self) -> String {
        let wrong: Vec<String> = self
            .lines
            .all()
            .into_iter()
            .filter(|line| line.contains("wrong") || line.contains("summary"))
            .collect();
        format!("{}\n{}", self.words.tail(10), wrong.join("\n"))
    }
}

impl Drop for Checker {
    fn drop(&mut self) {
        if !self.finished {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Reads the whole disk back; every acknowledged write must be there. Gives
/// the verdict.
#[track_caller]
pub fn verify(uri: &str, log: &Path) -> Value {
    let output = Command::new(programs::checker())
        .args(["verify", "--uri", uri, "--log"])
        .arg(log)
        .output()
        .expect("start sterna-checker");
    let text = programs::both(&output);
    assert!(output.status.success(), "acknowledged writes are lost:\n{text}");
    let verdict =
        text.lines().filter_map(line_value).find_map(|line| line.get("verdict").cloned());
    verdict.expect("a verdict")
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::as_millis(&now) as u64
}

fn seed_argument() -> Vec<String> {
    seed().map_or_else(Vec::new, |seed| vec!["--seed".into(), seed.to_string()])
}

fn line_value(line: &str) -> Option<Value> {
    serde_json::from_str(line).ok()
}

fn ios(line: &str) -> f64 {
    line_value(line).and_then(|value| value["ios"].as_f64()).unwrap_or(0.0)
}
