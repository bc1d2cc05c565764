//! Programs from elsewhere, and our own; what is missing is a skip.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::scratch::target_dir;

/// Says why a test does nothing here. Written past the test runner's capture,
/// because a passing test's words are thrown away.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "\nskipped: {test}: {reason}");
}

/// Whether all of these programs are there; if not, the test is skipped.
pub fn have(programs: &[&str]) -> bool {
    let missing: Vec<&str> =
        programs.iter().copied().filter(|name| find(name).is_none()).collect();
    if !missing.is_empty() {
        skip(&format!("{} not installed (make deps)", missing.join(", ")));
    }
    missing.is_empty()
}

/// Whether we are root; if not, the test is skipped.
pub fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("needs root (loop devices)");
    }
    root
}

/// Where a program is.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")])
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// A command for a program that [`have`] has found.
pub fn command(name: &str) -> Command {
    let path = find(name).unwrap_or_else(|| panic!("{name} is not installed"));
    let mut command = Command::new(path);
    command.stdin(Stdio::null());
    command
}

/// Runs a program to its end; anything but success fails the test with what
/// the program said.
#[track_caller]
pub fn run<S: AsRef<OsStr>>(name: &str, args: impl IntoIterator<Item = S>) -> String {
    let (ok, text) = attempt(name, args);
    assert!(ok, "{name} failed:\n{text}");
    text
}

/// Runs a program that answers in JSON.
#[track_caller]
pub fn json<S: AsRef<OsStr>>(name: &str, args: impl IntoIterator<Item = S>) -> Value {
    let text = run(name, args);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{name} gave no JSON ({error}):\n{text}"))
}

/// Runs a program to its end: whether it succeeded, and what it said.
#[track_caller]
pub fn attempt<S: AsRef<OsStr>>(
    name: &str,
    args: impl IntoIterator<Item = S>,
) -> (bool, String) {
    let output = command(name)
        .args(args)
        .output()
        .unwrap_or_else(|error| panic!("start {name}: {error}"));
    (output.status.success(), both(&output))
}

/// Everything that a program said.
pub fn both(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text
}

/// The `sterna` program.
pub fn sterna() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| ours("sterna", "STERNA"))
}

/// The `sterna-checker` program.
pub fn checker() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| ours("sterna-checker", "STERNA_CHECKER"))
}

/// One of our programs: named by a variable, or built with the profile of the tests, so
/// that it is what the sources say.
fn ours(name: &str, variable: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        return path.into();
    }
    let (target, debug) = (target_dir(), cfg!(debug_assertions));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--locked", "--quiet", "--bin", name])
        .args((!debug).then_some("--release"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .expect("start cargo");
    assert!(status.success(), "cargo could not build {name}");
    target.join(if debug { "debug" } else { "release" }).join(name)
}
