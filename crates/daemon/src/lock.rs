//! The lock on the state directory: one daemon for one state.
//!
//! Two daemons on one state would both serve the same images. The lock is an
//! `flock` on `STATE/lock`, which the kernel drops with the process however it
//! ends; the file also names the process, for the one who finds it taken.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::error::{DaemonError, Result};

/// The lock; held until it is dropped.
#[derive(Debug)]
pub(crate) struct StateLock {
    _file: File,
}

impl StateLock {
    /// Makes the state directory if need be, and locks it.
    pub(crate) fn take(state: &Path) -> Result<StateLock> {
        let failed = |what: &str, path: &Path, error: std::io::Error| {
            DaemonError::unavailable(format!("cannot {what} {}: {error}", path.display()))
                .hint("choose a directory that this user may write to: --state DIR")
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(state)
            .map_err(|error| failed("make the state directory", state, error))?;
        let path = state.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| failed("open", &path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(taken(state, &mut file)),
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path, error)),
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(|error| failed("write", &path, error))?;
        Ok(StateLock { _file: file })
    }
}

fn taken(state: &Path, file: &mut File) -> DaemonError {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    let pid = text.trim();
    let who = match fs::exists(format!("/proc/{pid}")) {
        Ok(true) if !pid.is_empty() => format!("process {pid}"),
        _ => "another process".into(),
    };
    let state = state.display();
    DaemonError::in_use(format!("a daemon runs on the state {state} already: {who}"))
        .hint("use that one, stop it first, or choose another state: --state DIR")
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
}
