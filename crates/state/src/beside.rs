//! A database beside the state, on which nothing hangs: what is written there is not synced
//! one by one, and a power loss may cost the last of it. Whoever has it works without it.
//!
//! **Failures.** A file that is damaged or somebody else's is put aside, with what SQLite keeps
//! beside it, and a new one is begun. Any other error says nothing against the file: a backup or
//! the `sqlite3` shell reads it, a daemon before this one has not let go of it, or its storage
//! fails. Then the file stays as it is, and what comes is kept in memory: until the next start of
//! the daemon, or until the file can be had, if its keeper tries again.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use sterna_api::Error;

/// How long to wait for whoever reads the file: the daemon starts meanwhile.
const BUSY: Duration = Duration::from_secs(1);
/// What SQLite keeps beside a file, by the ends of their names.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

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

impl BesideError {
    /// Whether the file itself is of no use, at whatever time it is opened.
    fn is_of_the_file(&self) -> bool {
        let codes = [ErrorCode::NotADatabase, ErrorCode::DatabaseCorrupt];
        match self {
            BesideError::Foreign(_) => true,
            BesideError::Sqlite(error) => {
                error.sqlite_error_code().is_some_and(|code| codes.contains(&code))
            }
            BesideError::Io(_) | BesideError::Silent => false,
        }
    }
}

impl Kind {
    /// Opens the file at that path. One that is of no use is put aside, and if there can be
    /// none at the moment, it is in memory.
    pub(super) fn open(&self, path: &Path) -> Result<Connection, BesideError> {
        let opened = self.connect(path).or_else(|error| {
            if !error.is_of_the_file() {
                return Err(error);
            }
            let aside = path.with_extension("db.unusable");
            tracing::warn!(path = %path.display(), %error, aside = %aside.display(),
                           "cannot read this file: Sterna begins a new one");
            put_aside(path, &aside)?;
            self.connect(path)
        });
        opened.or_else(|error| {
            tracing::warn!(path = %path.display(), %error,
                           "cannot use this file now: Sterna leaves it as it is, and keeps \
                            what comes in memory");
            self.in_memory()
        })
    }

    pub(super) fn in_memory(&self) -> Result<Connection, BesideError> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(self.tables)?;
        Ok(connection)
    }

    /// Opens the file, or fails.
    pub(super) fn connect(&self, path: &Path) -> Result<Connection, BesideError> {
        super::schema::make_private(path)?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        // Then the index of the WAL is in plain memory: one that is mapped from a file would
        // end the process where a copy-on-write file system has no room left.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        let number = |sql: &str| -> rusqlite::Result<i64> {
            connection.query_row(sql, [], |row| row.get(0))
        };
        let made = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
        let has_none = number("SELECT count(*) FROM sqlite_schema")? == 0;
        let Kind { application_id, version, tables } = self;
        let is_new = made == (0, 0) && has_none;
        // Before anything is written there.
        if !is_new && made != (*application_id, *version) {
            return Err(BesideError::Foreign(path.into()));
        }
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        if is_new {
            let made = format!(
                "BEGIN; {tables} PRAGMA application_id = {application_id};
                 PRAGMA user_version = {version}; COMMIT;"
            );
            connection.execute_batch(&made)?;
        }
        Ok(connection)
    }
}

/// Gives a file another name, with all that SQLite keeps beside it. The file itself comes last:
/// a new file must not find the WAL of an old one. After a kill in between, the rest follows.
fn put_aside(path: &Path, aside: &Path) -> io::Result<()> {
    let with = |path: &Path, end: &str| -> PathBuf {
        let mut name = OsString::from(path);
        name.push(end);
        name.into()
    };
    // An earlier one is there as a whole only if its file is. If not, what is there belongs to
    // the file that is still to come.
    if aside.try_exists()? {
        for end in BESIDE {
            remove(&with(aside, end))?;
        }
        remove(aside)?;
    }
    for end in BESIDE {
        match std::fs::rename(with(path, end), with(aside, end)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            moved => moved?,
        }
    }
    std::fs::rename(path, aside)
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind {
        application_id: 77,
        version: 2,
        tables: "CREATE TABLE notes (text TEXT);",
    };

    fn notes(connection: &Connection) -> i64 {
        let sql = "SELECT count(*) FROM notes";
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn note(connection: &Connection) {
        connection.execute("INSERT INTO notes VALUES ('one')", []).unwrap();
    }

    #[test]
    fn a_file_that_somebody_else_reads_stays_and_is_used_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.db");
        note(&KIND.open(&path).unwrap());
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        assert_eq!(notes(&reader), 1);
        let inside = KIND.open(&path).unwrap();
        assert_eq!(notes(&inside), 0, "it is in memory");
        note(&inside);
        drop((inside, reader));
        assert!(!dir.path().join("notes.db.unusable").exists());
        assert_eq!(notes(&KIND.open(&path).unwrap()), 1);
    }

    #[test]
    fn a_file_that_cannot_be_read_now_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.db");
        std::fs::create_dir(&path).unwrap();
        assert_eq!(notes(&KIND.open(&path).unwrap()), 0);
        assert!(path.is_dir());
    }

    #[test]
    fn a_foreign_file_is_put_aside_with_its_wal_and_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.db");
        for version in [3, 0] {
            let theirs = Connection::open(&path).unwrap();
            theirs.execute_batch("CREATE TABLE notes (theirs TEXT)").unwrap();
            theirs.pragma_update(None, "user_version", version).unwrap();
            drop(theirs);
            let wal = dir.path().join("notes.db-wal");
            std::fs::write(&wal, "no WAL at all").unwrap();
            let was = std::fs::read(&path).unwrap();
            let ours = KIND.open(&path).unwrap();
            note(&ours);
            drop(ours);
            assert_eq!(notes(&KIND.open(&path).unwrap()), 1);
            let aside = dir.path().join("notes.db.unusable");
            assert_eq!(std::fs::read(&aside).unwrap(), was);
            std::fs::remove_file(&path).unwrap();
        }
    }

    /// The files of a directory after `a.db` was put aside.
    fn left_of(files: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in files {
            std::fs::write(at(name), name).unwrap();
        }
        put_aside(&at("a.db"), &at("a.db.unusable")).unwrap();
        let mut left: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        left
    }

    #[test]
    fn what_sqlite_keeps_beside_a_file_goes_with_it() {
        let left = left_of(&["a.db", "a.db-wal", "a.db.unusable", "a.db.unusable-shm"]);
        assert_eq!(left, ["a.db.unusable", "a.db.unusable-wal"]);
    }

    #[test]
    fn what_was_put_aside_before_a_kill_stays_with_its_file() {
        let left = left_of(&["a.db", "a.db.unusable-wal"]);
        assert_eq!(left, ["a.db.unusable", "a.db.unusable-wal"]);
    }
}
