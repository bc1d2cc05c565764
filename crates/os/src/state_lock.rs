//! The lock on the state directory: one daemon for one state.
//!
//! Two daemons on one state would both serve the same images. The lock is an
//! `flock` on `STATE/lock`, which the kernel drops with the last one who holds the
//! file open; the file also names the process, for the one who finds it taken.
//!
//! **A daemon that was killed may still be writing.** What it had given to the
//! kernel goes on without it, and a write that lands late could land on a newer
//! one of the next daemon. So the engine's rings hold the file too
//! (`Config::keep`): the lock is free only when the last operation has ended, and
//! a start that finds it taken by a process that is gone waits for that.
//!
//! A daemon that is told to stop waits for its operations for some seconds. If one hangs
//! then, the storage behind it hangs, maybe for ever, and nobody else's disks are to wait
//! for that: the lock is given up if the images are locked themselves, as they are in
//! QEMU's manner. Those locks end with the last operation on each.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use sterna_api::{Error, Result};

use crate::is_no_room;

/// How long a daemon that was killed may take to be gone, before it counts as
/// one that runs.
const GOING: Duration = Duration::from_millis(500);

/// How long to wait for the operations of a daemon that is gone. A device that
/// takes longer is in trouble that somebody must look at.
const DRAIN: Duration = Duration::from_secs(60);

/// How often to look.
const LOOK: Duration = Duration::from_millis(10);

/// What to do about a state directory whose file system has failed, if that is what an error
/// says. Whoever began with another directory instead would have a daemon without disks.
pub fn failed_storage(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EIO | libc::EUCLEAN | libc::ESHUTDOWN | libc::ENXIO | libc::ENODEV => Some(
            "look at the kernel's log: the file system of the state directory has failed. \
             Stop the daemon if it runs, unmount, repair and mount the file system, and \
             start the daemon; do not begin with another state directory, which would know \
             no disk",
        ),
        libc::EROFS => Some(
            "look at the kernel's log: the file system of the state directory is read-only, \
             which an error there makes it. Repair it if need be, mount it writable, and \
             start the daemon; do not begin with another state directory, which would know \
             no disk",
        ),
        _ => None,
    }
}

/// Makes the state directory, if it is not there.
fn make(state: &Path) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(state);
    made.map_err(|error| match fs::metadata(state) {
        // It is there, and cannot be looked at: that is what is wrong with it.
        Err(why) if error.kind() == io::ErrorKind::AlreadyExists => why,
        _ => error,
    })
}

/// The lock; held until it and its `keep` are dropped.
#[derive(Debug)]
pub struct StateLock {
    file: Arc<OwnedFd>,
}

impl StateLock {
    /// Makes the state directory if need be, and locks it.
    pub fn take(state: &Path) -> Result<StateLock> {
        let failed = |what: &str, path: &Path, error: io::Error| {
            let elsewhere = "choose a directory that this user may write to: --state DIR";
            Error::unavailable(format!("cannot {what} {}: {error}", path.display()))
                .hint(failed_storage(&error).unwrap_or(elsewhere))
        };
        make(state).map_err(|error| failed("make the state directory", state, error))?;
        let path = state.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| failed("open", &path, error))?;
        let began = Instant::now();
        while let Err(refusal) = file.try_lock() {
            if let TryLockError::Error(error) = refusal {
                return Err(failed("lock", &path, error));
            }
            let holder = Holder::of(&mut file);
            let patience = if holder.runs { GOING } else { DRAIN };
            if began.elapsed() >= patience {
                return Err(holder.refusal(state));
            }
            thread::sleep(LOOK);
        }
        if began.elapsed() > GOING {
            let waited_ms = began.elapsed().as_millis();
            tracing::info!(waited_ms, "waited for the I/O of a daemon that was killed");
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        match written {
            // The lock is held; without the number nobody is told by whom.
            Err(error) if is_no_room(&error) => {
                tracing::warn!(%error, "the state directory is full");
            }
            written => written.map_err(|error| failed("write", &path, error))?,
        }
        Ok(StateLock { file: Arc::new(file.into()) })
    }

    /// Gives the lock up though the kernel still works for this process: the images that
    /// it works on are locked by themselves until it has ended.
    pub fn release(&self) {
        if let Err(error) = rustix::fs::flock(&self.file, FlockOperation::Unlock) {
            tracing::warn!(%error, "the state's lock is not given up");
        }
    }

    /// The lock's file, for whoever must hold the lock as long as the kernel works
    /// for this process.
    pub fn keep(&self) -> Arc<OwnedFd> {
        self.file.clone()
    }
}

/// Who has the lock, by what the file says.
struct Holder {
    pid: String,
    runs: bool,
}

impl Holder {
    fn of(file: &mut File) -> Holder {
        let mut text = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        let pid = text.trim().to_owned();
        // Without a number nobody can be shown to be gone.
        let runs = read.is_err() || pid.parse::<u32>().is_err() || is_running(&pid);
        Holder { pid, runs }
    }

    fn refusal(&self, state: &Path) -> Error {
        let (pid, state) = (&self.pid, state.display());
        if self.runs {
            let who = if pid.is_empty() { "another process" } else { "process" };
            let message =
                format!("a daemon runs on the state {state} already: {who} {pid}");
            return Error::in_use(message.trim_end()).hint(
                "use that one, stop it first, or choose another state: --state DIR",
            );
        }
        let message = format!(
            "I/O of the daemon that was killed (process {pid}) has not ended for {} s",
            DRAIN.as_secs()
        );
        Error::in_use(message)
            .hint("see which device or server does not answer, then start again")
    }
}

/// Whether the process is there, and not only waits for its parent to look.
fn is_running(pid: &str) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    !state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_daemon_is_told_who_has_the_state() {
        let state = tempfile::tempdir().unwrap();
        let dir = state.path().join("new/state");
        let first = StateLock::take(&dir).unwrap();
        let refusal = StateLock::take(&dir).unwrap_err().to_string();
        assert!(
            refusal.contains(&format!("process {}", std::process::id())),
            "{refusal}"
        );
        drop(first);
        StateLock::take(&dir).unwrap();
    }

    #[test]
    fn a_file_system_that_has_failed_is_to_be_repaired_and_not_left() {
        for errno in [libc::EIO, libc::EROFS] {
            let hint = failed_storage(&io::Error::from_raw_os_error(errno));
            assert!(hint.is_some_and(|it| it.contains("do not begin with another")));
        }
        assert_eq!(failed_storage(&io::Error::from_raw_os_error(libc::EACCES)), None);
    }
}
