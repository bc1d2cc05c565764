//! The steps of a daemon: its system calls that change something on a disk, whichever
//! thread makes them, seen with `strace`; and a kill at any of them.
//!
//! A step is named by the thread, the call, the file, and how often that thread has made
//! that call on that file since `strace` was attached. Files are named by their places
//! ([`Places`]), so that a step of one move can be found again in the next, which goes
//! elsewhere. What a ring of `io_uring` carries out is no system call, and no step.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::Signal;

use crate::daemon::{Daemon, send_signal};
use crate::programs::command;
use crate::wait::{seconds, until};

/// The calls that change something on a disk; some of them only some hosts have.
const CALLS: &str = "fsync,fdatasync,sync_file_range,pwrite64,pwritev,pwritev2,write,\
                     copy_file_range,?unlink,unlinkat,?rename,?renameat,renameat2,?link,\
                     linkat,ftruncate,fallocate,openat";

/// How often the same call of a thread on a file is a step of its own. Later ones are
/// the flushes of clients, again and again.
const REPEATS: u64 = 24;

/// Names for directories and for a migration, which are others in each move.
pub struct Places {
    directories: Vec<(&'static str, PathBuf)>,
    /// `/7.`, as in the names of migration 7's files.
    migration: String,
}

impl Places {
    /// The names of these directories, and of the files of migration `id`.
    pub fn new(id: u64, directories: &[(&'static str, &Path)]) -> Places {
        let owned = |(name, path): &(&'static str, &Path)| (*name, path.to_path_buf());
        Places {
            directories: directories.iter().map(owned).collect(),
            migration: format!("/{id}."),
        }
    }

    /// What a file is called, if it is in one of the places.
    fn name(&self, path: &str) -> Option<String> {
        self.directories.iter().find_map(|(name, directory)| {
            let rest = path.strip_prefix(directory.to_str()?)?;
            let inside = rest.is_empty() || rest.starts_with('/');
            inside.then(|| format!("{name}{}", rest.replace(&self.migration, "/ID.")))
        })
    }

    /// Where the file of that name is.
    fn path(&self, file: &str) -> String {
        let (name, rest) = file.split_at(file.find('/').unwrap_or(file.len()));
        let directory = self.directories.iter().find(|(known, _)| *known == name);
        let directory = directory.expect("a name that was given here").1.display();
        format!("{directory}{}", rest.replace("/ID.", &self.migration))
    }
}

/// A system call that changes something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// What it is made on.
    pub file: String,
    /// Its name.
    pub call: String,
    /// What the thread is called, without its number.
    pub thread: String,
    /// How often the thread has made it on that file, with this time.
    pub nth: u64,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { file, call, thread, nth } = self;
        write!(f, "{thread}: {call} of {file}, {nth}")
    }
}

/// The steps in what `strace` has written, in their order, each once.
fn steps(log: &str, places: &Places) -> Vec<Step> {
    let mut counts: HashMap<(&str, &str, String), u64> = HashMap::new();
    let mut steps = Vec::new();
    for line in log.lines() {
        let Some((task, thread, call, file)) = read(line, places) else { continue };
        let nth = counts.entry((task, call, file.clone())).or_default();
        *nth += 1;
        let changes = (call != "openat" || line.contains("O_CREAT"))
            && !line.contains(" = -1 ")
            && *nth <= REPEATS;
        let (thread, call) = (thread.to_owned(), call.to_owned());
        let step = Step { file, call, thread, nth: *nth };
        if changes && !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

/// The number and the name of the thread, the call and the file in a line of `strace`.
fn read<'a>(
    line: &'a str,
    places: &Places,
) -> Option<(&'a str, &'a str, &'a str, String)> {
    let (task, rest) = line.trim_start().split_once('<')?;
    let (thread, rest) = rest.split_once("> ")?;
    let (call, arguments) = rest.split_once('(')?;
    let is_call = call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let quoted = || arguments.split('"').nth(1);
    let path = if arguments.starts_with('"') || arguments.starts_with("AT_FDCWD") {
        quoted()?
    } else {
        arguments.split_once('<')?.1.split_once('>')?.0
    };
    let thread = thread.trim_end_matches(|it: char| it.is_ascii_digit());
    let file = places.name(path)?;
    is_call.then_some((task, thread.trim_end_matches('-'), call, file))
}

/// `strace` at all threads of a daemon, those that are still to come as well.
pub struct Tracer {
    child: Child,
    log: PathBuf,
}

impl Tracer {
    /// Has it write down what the daemon does, for [`Tracer::steps`].
    #[track_caller]
    pub fn watch(daemon: &Daemon, log: &Path) -> Tracer {
        Tracer::attach(daemon, log, &["-e", &format!("trace={CALLS}")])
    }

    /// Has it kill the daemon at this step, before the call does anything.
    #[track_caller]
    pub fn kill(daemon: &Daemon, log: &Path, step: &Step, places: &Places) -> Tracer {
        let Step { file, call, nth, .. } = step;
        let inject = format!("inject={call}:signal=SIGKILL:when={nth}");
        let (trace, path) = (format!("trace={call}"), places.path(file));
        Tracer::attach(daemon, log, &["-P", &path, "-e", &trace, "-e", &inject])
    }

    #[track_caller]
    fn attach(daemon: &Daemon, log: &Path, arguments: &[&str]) -> Tracer {
        let process = daemon.pid().to_string();
        let child = command("strace")
            .args(["-f", "-q", "-y", "-Y", "-e", "signal=none", "-p", &process, "-o"])
            .arg(log)
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .expect("start strace");
        let tracer = Tracer { child, log: log.into() };
        until("strace to be at all threads", seconds(20), || {
            // The daemon may have come to its step, and its end, by now.
            let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok();
            let tasks = tasks.into_iter().flatten().flatten();
            // The kernel's own workers of a ring are listed as well; nobody can trace them.
            let is_free = |task: &Path| {
                let status = std::fs::read_to_string(task.join("status"));
                status.is_ok_and(|status| {
                    status.contains("\nTracerPid:\t0\n")
                        && !status.starts_with("Name:\tiou-")
                })
            };
            let all =
                daemon.is_over() || !tasks.map(|task| task.path()).any(|it| is_free(&it));
            all.then_some(())
        });
        tracer
    }

    /// Takes it away; gives the steps that it has seen.
    pub fn steps(mut self, places: &Places) -> Vec<Step> {
        self.end();
        let log = std::fs::read(&self.log).unwrap_or_default();
        steps(&String::from_utf8_lossy(&log), places)
    }

    /// Takes it away after its kill; gives the step at which that was, by whichever thread.
    pub fn killed_at(mut self, step: &Step, places: &Places) -> Option<Step> {
        // What it was about is written when a call begins. It may wait for ever for a
        // thread that has died with the others, so it is not asked to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let log = std::fs::read(&self.log).unwrap_or_default();
        let seen = steps(&String::from_utf8_lossy(&log), places);
        let by_this = |one: &Step| Step { thread: step.thread.clone(), ..one.clone() };
        seen.into_iter().find(|one| by_this(one) == *step)
    }

    /// It lets go of the threads, and writes what it has still to write.
    fn end(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            send_signal(&self.child, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"
19200<sterna-helper> write(17<anon_inode:[eventfd]>, "\1\0", 8) = 8
19018<sterna-io-0> pwrite64(35</memfd:sterna-map>(deleted), "yA", 8, 0) = 8
   17<sterna-store> pwrite64(12</s/state/state.db-wal>, "\0<", 24, 65952) = 24
   17<sterna-store> pwrite64(12</s/state/state.db-wal>, "\r", 4096, 65976) = 4096
   17<sterna-store> fsync(12</s/state/state.db-wal> <unfinished ...>
   18<sterna-job-7> openat(AT_FDCWD</w>, "/s/state/commits/7.commit", O_RDWR) = -1 ENOENT (N)
   17<sterna-store> <... fsync resumed>) = 0
   18<sterna-job-7> openat(AT_FDCWD</w>, "/s/state/commits/7.commit", O_WRONLY|O_CREAT, 0600) = 26
   18<sterna-job-7> renameat(26</s/here>, "a.raw", 26</s/here>, ".removed-26") = 0
   18<sterna-job-7> unlink("/s/hereafter/7.map") = 0
   18<sterna-job-7> unlink("/s/here/a.raw.sterna") = 0
   18<sterna-job-7> +++ exited with 0 +++
"#;

    fn places(id: u64, from: &str) -> Places {
        let (state, from) = (Path::new("/s/state"), Path::new(from));
        Places::new(id, &[("state", state), ("source", from)])
    }

    #[test]
    fn what_changes_a_file_in_a_place_is_a_step() {
        let steps = steps(LOG, &places(7, "/s/here"));
        let told: Vec<String> = steps.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "sterna-store: pwrite64 of state/state.db-wal, 1",
                "sterna-store: pwrite64 of state/state.db-wal, 2",
                "sterna-store: fsync of state/state.db-wal, 1",
                "sterna-job: openat of state/commits/ID.commit, 2",
                "sterna-job: renameat of source, 1",
                "sterna-job: unlink of source/a.raw.sterna, 1",
            ]
        );
    }

    #[test]
    fn a_step_is_found_again_in_a_move_from_elsewhere() {
        let next = places(8, "/s/there");
        assert_eq!(next.path("state/commits/ID.commit"), "/s/state/commits/8.commit");
        assert_eq!(next.path("source/a.raw.sterna"), "/s/there/a.raw.sterna");
        assert_eq!(next.path("source"), "/s/there");
    }
}
