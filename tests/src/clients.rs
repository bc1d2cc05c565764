//! Clients that people use.

use std::path::Path;
use std::process::Output;

use crate::programs;

/// Runs lines of Python under nbdsh, connected to `uri`. The script sees `h`,
/// the connection, and must not raise.
#[track_caller]
pub fn nbdsh(uri: &str, script: &str) -> String {
    // The distribution's Python has the module; `nbdsh` takes the first on the
    // path, which may be another one.
    let args = ["-m", "nbd", "--base-allocation", "--uri", uri, "--command", script];
    programs::run("/usr/bin/python3", args)
}

/// fio over its NBD engine, with these lines of settings.
#[track_caller]
pub fn fio(uri: &str, settings: &str) -> Output {
    // In a job file, because fio takes the colon in a URI on its command line
    // for the end of a file name.
    let job = tempfile::NamedTempFile::new().expect("make a job file");
    let text = format!(
        "[global]\nioengine=nbd\nuri={uri}\ngroup_reporting=1\n\
         verify_state_save=0\n[job]\n{settings}\n"
    );
    std::fs::write(job.path(), text).expect("write the job file");
    programs::command("fio")
        .arg("--output-format=normal")
        .arg(job.path())
        .output()
        .expect("start fio")
}

/// fio, and it must succeed.
#[track_caller]
pub fn fio_ok(uri: &str, settings: &str) {
    let output = fio(uri, settings);
    assert!(output.status.success(), "fio failed:\n{}", programs::both(&output));
}

/// Two raw images must be the same to the last byte.
#[track_caller]
pub fn identical(a: &str, b: &str) {
    let text =
        programs::run("qemu-img", ["compare", "-U", "-f", "raw", "-F", "raw", a, b]);
    assert!(text.contains("identical"), "{text}");
}

/// [`identical`], for files.
#[track_caller]
pub fn identical_files(a: &Path, b: &Path) {
    identical(&a.display().to_string(), &b.display().to_string());
}
