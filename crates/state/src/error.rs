//! Why the state database did not do what was asked of it, and what to do about it.

use std::path::PathBuf;

use sterna_api::Error;
use sterna_os::limits::THREADS;

use super::Step;
use super::in_place::was_taken_back;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite said no.
    #[error("cannot {what} in the state database")]
    Sqlite {
        /// What was attempted.
        what: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The file is somebody else's.
    #[error("{} is not a Sterna state database", .0.display())]
    Foreign(PathBuf),
    /// The file is from a newer Sterna.
    #[error(
        "the state database has schema {found}, this Sterna knows only {known}",
        known = super::schema::VERSION
    )]
    Newer {
        /// The file's schema.
        found: i64,
    },
    /// What it says may be gone after a power loss.
    #[error(
        "Sterna cannot make the state database durable: {} cannot be synced: {source}",
        path.display()
    )]
    NotDurable {
        /// What was synced.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The record was in a step that this change cannot start from.
    #[error("migration {id} can no longer become `{wanted}`")]
    Step {
        /// The migration.
        id: u64,
        /// The step that was wanted.
        wanted: Step,
    },
    /// Another move goes there.
    #[error("migration {id} goes to {place}, or has not removed its copy there yet")]
    Taken {
        /// Where.
        place: String,
        /// The other one.
        id: u64,
    },
    /// The file is not where it was opened.
    #[error(
        "the state database was removed, unmounted or replaced while the daemon has it open, \
         or cannot be looked at any more, and the next daemon would not know of a change"
    )]
    Gone,
    /// The store has no thread.
    #[error("cannot start the thread of the state database: {0}")]
    NoThread(std::io::Error),
    /// The store's thread is gone.
    #[error("the state database is closed")]
    Closed,
}

impl StoreError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            StoreError::Sqlite { source, .. } if is_damaged(source) => DAMAGED,
            StoreError::Sqlite { source, .. } if is_failed(source) => FAILED,
            StoreError::Sqlite { .. } => {
                "check that the state directory is writable and has free space"
            }
            StoreError::Foreign(_) => {
                "if the file was a state database, see \"A damaged state database\" in \
                 docs/manual/files.md; else choose another state directory: --state DIR"
            }
            StoreError::Newer { .. } => {
                "use the newer Sterna that wrote it, or restore an older backup"
            }
            StoreError::NotDurable { .. } => {
                "Sterna serves and removes nothing before the state database is durable: \
                 repair the storage of the state directory, then start the daemon again"
            }
            StoreError::Step { .. } => "see `sterna migration list`",
            StoreError::Taken { .. } => "choose another name, or wait for the migration",
            StoreError::Gone => GONE,
            StoreError::NoThread(_) => THREADS,
            StoreError::Closed => "the daemon is stopping; ask again when it runs",
        }
    }

    /// Whether the database's storage may be what has refused a change, and takes it once it
    /// has room or works again.
    pub fn may_be_storage(&self) -> bool {
        match self {
            StoreError::Sqlite { source, .. } => !is_damaged(source),
            StoreError::NotDurable { .. } | StoreError::Gone => true,
            _ => false,
        }
    }

    /// The error with what SQLite said.
    pub fn with_cause(&self) -> String {
        match self {
            StoreError::Sqlite { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

/// What to do about a database that is elsewhere.
pub(super) const GONE: &str = "Sterna still serves all disks, and changes nothing. Put the state \
    directory back in its place, with its permissions; if it is lost, stop the daemon, restore a \
    backup of state.db, or begin with an empty state directory, add the datastores and `sterna \
    disk recover`: see docs/manual/files.md";

/// What to do about a database that cannot be read any more.
const DAMAGED: &str = "look at the kernel's log first: if the file system of the state \
    directory has failed, repair it and start the daemon again. If the file itself is \
    damaged, restore a backup of state.db, or begin with an empty state directory, add the \
    datastores and `sterna disk recover`: see \"A damaged state database\" in \
    docs/manual/files.md";

/// What to do about storage that fails.
const FAILED: &str = "look at the kernel's log: if the file system of the state directory has \
    failed or is read-only, stop the daemon, repair and mount the file system, and start the \
    daemon; else check that the state directory is writable and has free space";

/// Whether the file cannot be read or written.
fn is_failed(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    let failed = [ErrorCode::SystemIoFailure, ErrorCode::ReadOnly];
    error.sqlite_error_code().is_some_and(|code| failed.contains(&code))
}

/// Whether the file itself is broken.
fn is_damaged(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    let broken = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];
    error.sqlite_error_code().is_some_and(|code| broken.contains(&code))
}

/// Names what was attempted, for SQLite's errors.
pub(super) fn cannot(what: &'static str) -> impl FnOnce(rusqlite::Error) -> StoreError {
    move |source| match was_taken_back(&source) {
        true => StoreError::Gone,
        false => StoreError::Sqlite { what, source },
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let (message, hint) = (error.with_cause(), error.hint());
        match error {
            StoreError::Taken { .. } => Error::in_use(message).hint(hint),
            _ => Error::internal(message).hint(hint),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_damaged_database_is_not_taken_for_a_full_directory() {
        let hint = |code| {
            let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = StoreError::Sqlite { what: "list the disks", source };
            Error::from(error).hint
        };
        assert!(hint(ffi::SQLITE_CORRUPT).contains("sterna disk recover"));
        assert!(hint(ffi::SQLITE_FULL).contains("free space"));
    }
}
