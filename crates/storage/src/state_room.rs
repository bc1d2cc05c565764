//! The room in the state directory: for what is recorded, and for the accounts of disks.
//!
//! A disk whose account finds no room is served without, and gets it later (see
//! `Engine::complete_accounts`). A new disk has no guest yet, so it waits for room.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{StatVfs, statvfs};
use sterna_api::{Error, Result};
use sterna_core::Bytes;
use sterna_runtime::tasks::Task;

use crate::Storage;

/// How often accounts are tried again that could not be made: a kill until then is told to
/// nobody.
const EVERY: Duration = Duration::from_secs(3);

/// What the log of the state database grows to before it is taken over, in bytes.
const LEAST: u64 = 4 << 20;

/// A few records and maps, each a file, and another one while it is written.
const LEAST_FILES: u64 = 8;

/// Makes the accounts of disks that could not be made when the disks came.
pub fn completing_accounts(storage: &Arc<Storage>) -> Task {
    let complete = |storage: &Arc<Storage>| {
        // An engine that has ended has no disks any more.
        let _ = storage.engine.complete_accounts();
        Ok(())
    };
    Task::every("accounts", "note what disks' clients are owed", EVERY, storage, complete)
}

impl Storage {
    /// What the state directory lacks, if it has no room for what is to be recorded.
    pub fn state_lacks_room(&self) -> Option<String> {
        let state = &self.places.state;
        lacks_room(state, &statvfs(state).ok()?)
    }

    /// Refuses something new while it could not be recorded for certain.
    pub(crate) fn check_state_has_room(&self, what: &str) -> Result<()> {
        self.state_lacks_room().map_or(Ok(()), |lacks| {
            let message = format!("cannot create {what}: {lacks}");
            Err(Error::unavailable(message)
                .hint("make room in the state directory, then try again"))
        })
    }
}

fn lacks_room(state: &Path, found: &StatVfs) -> Option<String> {
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let state = state.display();
    // A file system that does not count its files has room for more.
    let has_files = found.f_files == 0 || found.f_favail >= LEAST_FILES;
    match (free < LEAST, has_files) {
        (true, _) => {
            let free = Bytes(free);
            Some(format!("no room to record changes in {state}: {free} are free"))
        }
        (false, false) => Some(format!(
            "no room to record changes in {state}: its file system can have {} more files \
             (inodes)",
            found.f_favail
        )),
        (false, true) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_without_bytes_or_without_files_has_no_room() {
        let lacks = |blocks, all, files| {
            let mut found = statvfs("/").unwrap();
            found.f_frsize = 4096;
            found.f_bavail = blocks;
            (found.f_files, found.f_favail) = (all, files);
            lacks_room(Path::new("/state"), &found)
        };
        assert_eq!(lacks(1 << 20, 1000, 100), None);
        assert_eq!(lacks(1 << 20, 0, 0), None, "a file system without inodes");
        let bytes = lacks(2, 1000, 100).unwrap();
        assert!(bytes.ends_with("in /state: 8.00 KiB are free"), "{bytes}");
        let files = lacks(1 << 20, 1000, 1).unwrap();
        assert!(files.ends_with("can have 1 more files (inodes)"), "{files}");
    }
}
