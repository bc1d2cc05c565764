//! What the state says at a start is durable before anybody acts on it.
//!
//! **Rule.** A daemon that was killed between the write of a transaction and its sync
//! leaves that transaction in the page cache. The next one reads it, and whatever it does
//! upon that (serve a destination, remove a source) outlives a power loss that the
//! transaction itself would not. So before anything of the state is acted on, all of it
//! is made durable.
//!
//! **How.** The files and their directory are synced, which needs no room, and then the
//! WAL is moved into the database, whose content is thereby written anew. The second is
//! not only tidy: an error of a sync is told once, perhaps to the daemon that was killed,
//! and after that the same pages look clean. One of the two must succeed. The WAL's file
//! keeps its length, so that the next transactions find room in it where the file system
//! has none left.
//!
//! **Locks.** A process that closes any descriptor of a file loses all its POSIX locks
//! on it, those of SQLite too. So the sync by descriptor comes before this process opens
//! the database, and nowhere else.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::{StoreError, cannot};

/// What was not synced, and why.
type Unsynced = (PathBuf, io::Error);

/// Syncs the database at `path`, which this process must not have open, with what
/// belongs to it. To be given to [`settle`] once it is open.
pub(super) fn sync(path: &Path) -> Result<(), Unsynced> {
    let beside = |suffix: &str| {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        PathBuf::from(beside)
    };
    let directory = path.parent().unwrap_or(Path::new("."));
    for file in [path.to_owned(), beside("-wal"), directory.to_owned()] {
        match File::open(&file).and_then(|opened| opened.sync_all()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err((file, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Moves the WAL into the database, durably. What `sync` came to decides whether that
/// may fail.
pub(super) fn settle(
    connection: &Connection,
    synced: Result<(), Unsynced>,
) -> Result<(), StoreError> {
    let moved = connection
        .query_row("PRAGMA wal_checkpoint(FULL)", [], |row| row.get::<_, i64>(0))
        .map_err(cannot("make what it holds durable"));
    match (synced, moved) {
        (Ok(()), Ok(0)) => Ok(()),
        // Somebody reads it, or there is no room: it is where it was, and synced.
        (Ok(()), Ok(_)) => {
            tracing::info!("another program reads the state database");
            Ok(())
        }
        (Ok(()), Err(error)) => {
            let error = error.with_cause();
            tracing::warn!(error, "the state database could not be shortened");
            Ok(())
        }
        (Err((file, error)), Ok(0)) => {
            let file = file.display();
            tracing::warn!(%file, %error, "not synced at first; written anew");
            Ok(())
        }
        (Err((path, source)), _) => Err(StoreError::NotDurable { path, source }),
    }
}
