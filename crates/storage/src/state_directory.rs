//! What is wrong with the state directory, as far as the state database does not say it.
//!
//! **Its file system has failed.** What is read of it comes from memory, so nobody would notice
//! before something is to be recorded. So it is asked to make a file durable that nobody has
//! changed: nothing is written, and one that has stopped refuses (ext4, XFS). One that was made
//! read-only says so by itself. The question may hang, so a task of its own asks.
//!
//! **Its database knows no disk**, and beside it is what only disks have: a copy of `state.db`
//! without `state.db-wal` is valid, and empty.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::StatVfsMountFlags;
use sterna_api::Warning;
use sterna_os::{failed_storage, lock};
use sterna_runtime::tasks::Task;
use sterna_state::DiskRecord;

use crate::Storage;

/// How often its file system is asked.
const EVERY: Duration = Duration::from_secs(3);
/// What has a file for each disk, or for each move of one.
const OF_DISKS: [&str; 2] = ["accounts", "maps"];

/// What was last seen.
#[derive(Default)]
pub(crate) struct StateDirectory {
    /// Why its file system takes no changes, and what to do.
    refuses: Mutex<Option<(String, &'static str)>>,
}

/// Looks at the state directory.
pub fn looking(storage: &Arc<Storage>) -> Task {
    let look = |storage: &Arc<Storage>| {
        storage.look_at_state();
        Ok(())
    };
    Task::every("state", "look at the file system of the state", EVERY, storage, look)
}

impl Storage {
    fn look_at_state(&self) {
        let found = refuses(&self.places.state);
        let before =
            std::mem::replace(&mut *lock(&self.state_directory.refuses), found.clone());
        match (&before, &found) {
            (None, Some((why, hint))) => tracing::error!("{why}: {hint}"),
            (Some(_), None) => tracing::info!("the state directory takes changes again"),
            _ => {}
        }
    }

    /// Says at the start what the state database seems to lack.
    pub fn tell_of_missing_disks(&self) -> sterna_api::Result<()> {
        if let Some(Warning { message, hint, .. }) =
            self.state_is_without_disks(&self.store.disks()?)
        {
            tracing::warn!("{message}; {hint}");
        }
        Ok(())
    }

    /// Its file system takes no changes.
    pub fn state_refuses(&self) -> Option<Warning> {
        let (message, hint) = lock(&self.state_directory.refuses).clone()?;
        let hint = format!(
            "{hint}. Until then Sterna serves all disks, refuses changes, and running jobs \
             stop at their next step"
        );
        Some(Warning { about: "state".into(), message, hint })
    }

    /// The state knows no disk, and was not always like that.
    pub fn state_is_without_disks(&self, disks: &[DiskRecord]) -> Option<Warning> {
        let state = &self.places.state;
        let left = disks.is_empty().then(|| left_by_disks(state)).flatten()?;
        Some(Warning {
            about: "state".into(),
            message: format!(
                "the state database knows no disk, but {left} in {} has files of disks: \
                 state.db may have been copied without state.db-wal",
                state.display()
            ),
            hint: format!(
                "if disks are missing, stop the daemon and restore a whole backup (see \
                 docs/manual/files.md), or add the datastores and `sterna disk recover`; if \
                 none is, remove what is in {left}"
            ),
        })
    }
}

/// What of the state directory has files that only disks and their moves leave there.
fn left_by_disks(state: &Path) -> Option<&'static str> {
    let has_files = |name: &&str| {
        let mut entries = fs::read_dir(state.join(name)).into_iter().flatten();
        entries.any(|entry| entry.is_ok())
    };
    OF_DISKS.into_iter().find(has_files)
}

/// Why the file system of the state directory takes no changes, and what to do.
fn refuses(state: &Path) -> Option<(String, &'static str)> {
    let error = ask(state).err()?;
    let hint = failed_storage(&error)?;
    let place = state.display();
    Some((format!("the file system of {place} takes no changes: {error}"), hint))
}

fn ask(state: &Path) -> io::Result<()> {
    let file = File::open(state.join("lock"))?;
    if rustix::fs::fstatvfs(&file)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(rustix::io::Errno::ROFS.into());
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_takes_changes_or_is_gone_is_not_one_that_has_failed() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(refuses(state.path()), None, "it is told elsewhere");
        fs::write(state.path().join("lock"), "1\n").unwrap();
        assert_eq!(refuses(state.path()), None);
    }

    #[test]
    fn files_of_disks_are_found() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(left_by_disks(state.path()), None);
        for name in OF_DISKS {
            fs::create_dir(state.path().join(name)).unwrap();
        }
        assert_eq!(left_by_disks(state.path()), None);
        fs::write(state.path().join("maps/1.map"), "").unwrap();
        assert_eq!(left_by_disks(state.path()), Some("maps"));
        fs::write(state.path().join("accounts/x"), "").unwrap();
        assert_eq!(left_by_disks(state.path()), Some("accounts"));
    }
}
