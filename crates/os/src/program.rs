//! Programs of others that the daemon runs: what starts machines on a host, and the hooks
//! of plans.
//!
//! **Rule.** A program is run by no shell, as a process group of its own, with nothing to
//! read. One that is late, or not wanted any more, is asked to end with all of its group,
//! and what is left of that after [`GRACE`] is killed. What it says on stderr goes to a
//! file; the last line is shown if it fails.
//!
//! **After a kill** of the daemon it may still run, or have ended and left others of its
//! group behind. So a file names it meanwhile, and whoever runs it the next time ends that
//! group first: what was begun before does not come late. (Between its start and the file
//! is a moment in which a kill leaves it unknown.)

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::descriptors;

/// How long one that is to end may take to clean up.
const GRACE: Duration = Duration::from_secs(5);

/// How often it is looked whether one of which we are not the parent has ended, and whether
/// one has said too much.
const LOOK: Duration = Duration::from_millis(200);

/// One that says more than this in bytes has lost its way, and would fill the state's file
/// system.
const SAID_MOST: u64 = 1 << 20;

/// So many characters of its last line are shown.
const SHOWN: usize = 200;

/// What keeps a program from being run, as far as that can be seen before.
pub fn check(path: &Path) -> Result<(), String> {
    let found = path.metadata().map_err(|error| format!("cannot be run: {error}"))?;
    match (found.is_file(), found.permissions().mode() & 0o111) {
        (false, _) => Err("is not a file".into()),
        (true, 0) => Err("is not executable".into()),
        (true, _) => Ok(()),
    }
}

/// Runs a program, no longer than `patience` and until it is `unwanted`. Says what went
/// wrong, if it did not end well. `scratch` names its files: it alone, of all that may run
/// at the same time.
pub async fn run(
    command: &mut Command,
    scratch: &Path,
    patience: Duration,
    unwanted: impl Future<Output = ()>,
) -> Result<(), String> {
    let (said, note) = (scratch.with_extension("log"), scratch.with_extension("pid"));
    end_left_over(&note).await?;
    let outcome = run_it(command, &said, &note, patience, unwanted).await;
    // They are of no use to anybody later.
    for file in [said, note] {
        let _ = fs::remove_file(file);
    }
    outcome
}

async fn run_it(
    command: &mut Command,
    said: &Path,
    note: &Path,
    patience: Duration,
    unwanted: impl Future<Output = ()>,
) -> Result<(), String> {
    let file = File::create(said).map_err(|error| format!("has no log: {error}"))?;
    descriptors::as_before(command.as_std_mut());
    let started = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(file))
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = started.map_err(|error| format!("does not start: {error}"))?;
    let group = child.id().and_then(group);
    if let Err(error) = write_note(note, &child) {
        tracing::warn!(%error, "Sterna could not identify a program after a kill");
    }
    let why = tokio::select! {
        ended = child.wait() => match ended {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => format!("ended with {status}"),
            Err(error) => format!("cannot be waited for: {error}"),
        },
        () = sleep(patience) => format!("has not ended within {} s", patience.as_secs()),
        () = unwanted => "was ended, because it is not needed any more".into(),
        () = says_too_much(said) => format!("writes more than {SAID_MOST} bytes to stderr"),
    };
    end(&mut child, group).await;
    Err(format!("{why}{}", last_words(said)))
}

/// Ends a program and what it has started.
async fn end(child: &mut Child, group: Option<Pid>) {
    let Some(group) = group else { return };
    if !end_group(group).await {
        tracing::warn!(group = group.as_raw_nonzero(), "a program does not end");
    }
    let _ = timeout(GRACE, child.wait()).await;
}

/// Has a group end; says whether it has.
async fn end_group(group: Pid) -> bool {
    for it in [Signal::TERM, Signal::KILL] {
        signal(group, it);
        let gone = async {
            while is_left(group) {
                sleep(LOOK).await;
            }
        };
        if timeout(GRACE, gone).await.is_ok() {
            return true;
        }
    }
    false
}

/// Whether anybody of a group runs.
fn is_left(group: Pid) -> bool {
    let Ok(all) = fs::read_dir("/proc") else { return false };
    let numbers = all.filter_map(|one| one.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(look).any(|it| it.group == group.as_raw_nonzero().get())
}

fn group(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

fn signal(group: Pid, signal: Signal) {
    // All of it may have ended by itself.
    let _ = kill_process_group(group, signal);
}

async fn says_too_much(said: &Path) {
    while fs::metadata(said).is_ok_and(|it| it.len() <= SAID_MOST) {
        sleep(LOOK).await;
    }
}

/// Names a program that runs: its number, when it was started, as numbers come again, and
/// since when the machine is up, as those begin anew.
fn write_note(note: &Path, child: &Child) -> io::Result<()> {
    let Some(pid) = child.id() else { return Ok(()) };
    // Also of one that has ended already: what it has started may be left.
    let Some((found, _)) = stat(pid) else { return Ok(()) };
    fs::write(note, format!("{pid} {} {}\n", found.began, boot()))
}

/// Names the time since the machine was started (random(4)).
fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.unwrap_or_default().trim().to_owned()
}

/// What is known of a process.
struct Process {
    /// The group that it is of.
    group: i32,
    /// When it was started, in ticks since the machine was.
    began: u64,
}

/// A process that runs; nothing if there is none, or only what is left of it.
fn look(pid: u32) -> Option<Process> {
    stat(pid).filter(|(_, runs)| *runs).map(|(process, _)| process)
}

/// A process, also one that has ended and was not waited for (proc(5)), and whether it
/// runs.
fn stat(pid: u32) -> Option<(Process, bool)> {
    let stat = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).ok()?;
    // Its name is in brackets and may have anything in it.
    let fields: Vec<&str> =
        stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    let (state, group, began) = (fields.first()?, fields.get(2)?, fields.get(19)?);
    let process = Process { group: group.parse().ok()?, began: began.parse().ok()? };
    Some((process, *state != "Z"))
}

/// Ends what an earlier daemon has left running. Nothing is run beside one that does not
/// end.
async fn end_left_over(note: &Path) -> Result<(), String> {
    let Some((pid, group)) = left_over(note) else { return Ok(()) };
    tracing::warn!(pid, "ending a program that was started before the restart");
    if end_group(group).await {
        return Ok(());
    }
    Err(format!("is not run: process {pid}, from before a restart, does not end"))
}

/// The group of which a note tells, if there is anybody left of it. No process gets the
/// number of a group that has any; so one that has it and began at another time is
/// another's.
fn left_over(note: &Path) -> Option<(u32, Pid)> {
    let text = fs::read_to_string(note).ok()?;
    let mut fields = text.split_whitespace();
    let pid: u32 = fields.next()?.parse().ok()?;
    let began: u64 = fields.next()?.parse().ok()?;
    let is_ours =
        fields.next()? == boot() && look(pid).is_none_or(|it| it.began == began);
    let group = group(pid)?;
    (is_ours && is_left(group)).then_some((pid, group))
}

/// The last line that a program has said.
fn last_words(said: &Path) -> String {
    let text = fs::read(said).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or(String::new(), |line| {
        format!(": {}", line.chars().take(SHOWN).collect::<String>())
    })
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Instant;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_program_that_fails_says_why_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join("one");
        let mut fails = shell("echo first >&2; echo it is full >&2; exit 3");
        let error = run(&mut fails, &scratch, LONG, pending()).await.unwrap_err();
        assert_eq!(error, "ended with exit status: 3: it is full");
        run(&mut shell("exit 0"), &scratch, LONG, pending()).await.unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn one_that_is_late_or_not_wanted_is_ended_with_what_it_has_started() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join("one");
        let began = Instant::now();
        let hangs = || shell("sleep 1000 & wait");
        let short = Duration::from_millis(200);
        let error = run(&mut hangs(), &scratch, short, pending()).await.unwrap_err();
        assert!(error.contains("has not ended within"), "{error}");
        let error = run(&mut hangs(), &scratch, LONG, async {}).await.unwrap_err();
        assert!(error.contains("it is not needed any more"), "{error}");
        assert!(began.elapsed() < LONG);
    }

    #[tokio::test]
    async fn one_that_says_too_much_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join("one");
        let error = run(&mut shell("yes >&2"), &scratch, LONG, pending()).await;
        assert!(error.unwrap_err().starts_with("writes more than"));
    }

    #[tokio::test]
    async fn one_that_a_killed_daemon_has_left_is_ended_first() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join("one");
        let note = scratch.with_extension("pid");
        let mut left = shell("sleep 1000").process_group(0).spawn().unwrap();
        write_note(&note, &left).unwrap();
        // Its parent is gone, so somebody else sees to what is left of it.
        let reaped = tokio::spawn(async move { left.wait().await.unwrap() });
        run(&mut shell("exit 0"), &scratch, LONG, pending()).await.unwrap();
        assert!(!reaped.await.unwrap().success());
        // Somebody else has got its number since.
        let mut other = shell("sleep 0.1").process_group(0).spawn().unwrap();
        let text = format!("{} 1 {}\n", other.id().unwrap(), boot());
        fs::write(&note, text).unwrap();
        run(&mut shell("exit 0"), &scratch, LONG, pending()).await.unwrap();
        assert!(other.wait().await.unwrap().success());
    }

    /// Whether a line was written to a file.
    fn has_line(file: &Path) -> bool {
        fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n'))
    }

    /// Whether a process runs whose number is in a file.
    fn runs(file: &Path) -> bool {
        let number = fs::read_to_string(file).unwrap_or_default();
        look(number.trim().parse().unwrap()).is_some()
    }

    #[tokio::test]
    async fn who_is_left_of_a_group_whose_first_has_gone_is_ended_too() {
        let dir = tempfile::tempdir().unwrap();
        let (scratch, number) = (dir.path().join("one"), dir.path().join("number"));
        let note = scratch.with_extension("pid");
        // The one that is left hears no SIGTERM.
        let script = format!(
            "(trap '' TERM; sleep 1000 & echo $! > {}; wait) &",
            number.display()
        );
        let mut left = shell(&script).process_group(0).spawn().unwrap();
        write_note(&note, &left).unwrap();
        left.wait().await.unwrap();
        while !has_line(&number) {
            tokio::task::yield_now().await;
        }
        assert!(runs(&number));
        run(&mut shell("exit 0"), &scratch, LONG, pending()).await.unwrap();
        assert!(!runs(&number));
    }

    #[tokio::test]
    async fn what_a_program_has_started_may_clean_up() {
        let dir = tempfile::tempdir().unwrap();
        let (scratch, done) = (dir.path().join("one"), dir.path().join("done"));
        // The shell ends at once; the other one takes a second.
        let clean = format!("trap 'sleep 1; touch {}; exit' TERM", done.display());
        let script = format!("({clean}; sleep 1000 & wait) & echo started >&2; wait");
        let said = scratch.with_extension("log");
        let unwanted = async {
            while !has_line(&said) {
                tokio::task::yield_now().await;
            }
            // The trap is set a moment after that is said.
            sleep(Duration::from_millis(300)).await;
        };
        run(&mut shell(&script), &scratch, LONG, unwanted).await.unwrap_err();
        assert!(done.exists());
    }
}
