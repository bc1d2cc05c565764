//! A database beside the state, on which nothing hangs: what is written there is not synced
//! one by one, a power loss may cost the last of it, and a file that cannot be used is put
//! aside. Whoever has it works without it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sterna_api::Error;

/// Which file it is, and what it is made of.
pub(super) struct Kind {
    /// The magic that tells it from any other SQLite file.
    pub(super) application_id: i64,
    /// What this Sterna writes.
    pub(super) version: i64,
    /// Its tables.
    pub(super) tables: &'static str,
}

/// Why it cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BesideError {
    /// SQLite said no.
    #[error("a database beside the state cannot be used: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The file is somebody else's, or from a newer Sterna.
    #[error("{} is not what this Sterna keeps there", .0.display())]
    Foreign(PathBuf),
    /// The system said no.
    #[error("a database beside the state cannot be opened: {0}")]
    Io(#[from] io::Error),
    /// Its file system hangs.
    #[error("the file system of the state directory does not answer")]
    Silent,
}

impl From<BesideError> for Error {
    fn from(error: BesideError) -> Self {
        let hint =
            "check the file system of the state directory; Sterna works without it";
        Error::unavailable(error.to_string()).hint(hint)
    }
}

impl Kind {
    /// Opens the file at that path. One that cannot be used is put aside, and if there can be
    /// none at all, it is in memory.
    pub(super) fn open(&self, path: &Path) -> Result<Connection, BesideError> {
        let connection = self.connect(path).or_else(|error| {
            let aside = path.with_extension("db.unusable");
            tracing::warn!(path = %path.display(), %error, aside = %aside.display(),
                           "cannot read this file: Sterna begins a new one");
            // What stays there is not needed; what cannot be moved is not written to.
            let moved = std::fs::rename(path, &aside).ok();
            moved.map_or_else(|| self.in_memory(), |()| self.connect(path))
        });
        connection.or_else(|_| self.in_memory())
    }

    pub(super) fn in_memory(&self) -> Result<Connection, BesideError> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(self.tables)?;
        Ok(connection)
    }

    fn connect(&self, path: &Path) -> Result<Connection, BesideError> {
        super::schema::make_private(path)?;
        let connection = Connection::open(path)?;
        // Then the index of the WAL is in plain memory: one that is mapped from a file would
        // end the process where a copy-on-write file system has no room left.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        let number = |name| -> rusqlite::Result<i64> {
            connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
        };
        let made = (number("application_id")?, number("user_version")?);
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let Kind { application_id, version, tables } = self;
        if made == (0, 0) {
            let made = format!(
                "BEGIN; {tables} PRAGMA application_id = {application_id};
                 PRAGMA user_version = {version}; COMMIT;"
            );
            connection.execute_batch(&made)?;
        } else if made != (*application_id, *version) {
            return Err(BesideError::Foreign(path.into()));
        }
        Ok(connection)
    }
}
