//! The database file: whose it is, its version, and how it comes up to date.
//!
//! `application_id` is the magic that tells our file from any other SQLite
//! file, `user_version` the schema's number. A newer schema is refused, an
//! older one is brought up to date in one transaction.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use sterna_os::is_copied_on_write;

use super::{StoreError, cannot};

/// "STRN": this file is Sterna's.
const APPLICATION_ID: i64 = 0x5354_524E;

/// What brings a database from each version to the next. A released step never changes:
/// databases exist that took it.
pub(super) const STEPS: [&str; 26] = [
    include_str!("sql/0001_disks.sql"),
    include_str!("sql/0002_imported_images.sql"),
    include_str!("sql/0003_classes.sql"),
    include_str!("sql/0004_vms.sql"),
    include_str!("sql/0005_kinds_of_vm_moves.sql"),
    include_str!("sql/0006_policies_until_vm_moves.sql"),
    include_str!("sql/0007_untidy_vm_moves.sql"),
    include_str!("sql/0008_forecasts.sql"),
    include_str!("sql/0009_hours.sql"),
    include_str!("sql/0010_storage_drs.sql"),
    include_str!("sql/0011_hosts.sql"),
    include_str!("sql/0012_plans.sql"),
    include_str!("sql/0013_transfers.sql"),
    include_str!("sql/0014_hours_of_writes.sql"),
    include_str!("sql/0015_unclear_vm_moves.sql"),
    include_str!("sql/0016_plan_workloads.sql"),
    include_str!("sql/0017_marks.sql"),
    include_str!("sql/0018_bad_sectors.sql"),
    include_str!("sql/0019_experience.sql"),
    include_str!("sql/0020_left_images.sql"),
    include_str!("sql/0021_fingerprints.sql"),
    include_str!("sql/0022_kept_hours.sql"),
    include_str!("sql/0023_made_files.sql"),
    include_str!("sql/0024_place_sizes.sql"),
    include_str!("sql/0025_memory.sql"),
    include_str!("sql/0026_memory_terms.sql"),
];

/// The schema that this Sterna writes: the number of steps to it.
pub(super) const VERSION: i64 = 26;

const _: () = assert!(STEPS.len() as u64 == VERSION.unsigned_abs());

/// How long to wait for someone who looks inside with the sqlite3 tool: less than the API
/// waits for the database, so that whoever asks hears of the lock.
const BUSY: Duration = Duration::from_secs(3);

/// Opens the database, made or brought up to date as need be.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    make_private(path).map_err(|error| StoreError::Sqlite {
        what: "make a file",
        source: rusqlite::Error::ToSqlConversionFailure(Box::new(error)),
    })?;
    let mut connection = connect(path, BUSY)?;
    upgrade(&mut connection)?;
    Ok(connection)
}

/// Connects to a database that is there, to wait for others' locks as long as
/// `busy`.
pub(super) fn connect(path: &Path, busy: Duration) -> Result<Connection, StoreError> {
    let mut connection = Connection::open(path).map_err(cannot("open the file"))?;
    keep_to_itself(&connection, path)?;
    check(&connection, path)?;
    // A transaction that reads before it writes would be refused at once if
    // another connection wrote meanwhile; one that begins as a writer waits.
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    let set_up = connection.busy_timeout(busy).and_then(|()| {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // In WAL mode only FULL makes a commit durable before it returns.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)
    });
    set_up.map_err(cannot("set up the connection"))?;
    Ok(connection)
}

/// SQLite maps the index of its WAL (`-shm`) into memory. Where a file system writes to
/// new places and has no room left, a store to such memory ends the process by a signal.
/// There, the index is kept in plain memory, at the price that nobody else can look into
/// the database meanwhile. Before anything is read.
fn keep_to_itself(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let copied = File::open(path).and_then(|file| is_copied_on_write(&file));
    if copied.unwrap_or(false) {
        let kept = connection.pragma_update(None, "locking_mode", "EXCLUSIVE");
        kept.map_err(cannot("set up the connection"))?;
    }
    Ok(())
}

/// SQLite gives its other files the mode of this one.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    if fs::exists(path)? {
        return Ok(());
    }
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    Ok(())
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

/// Refuses files that are not ours or from the future, before writing anything.
fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let read = number(connection, "application_id")
        .and_then(|magic| Ok((magic, number(connection, "user_version")?)))
        .and_then(|(magic, version)| {
            let count = "SELECT count(*) FROM sqlite_schema";
            let tables: i64 = connection.query_row(count, [], |row| row.get(0))?;
            Ok((magic, version, tables))
        });
    let (magic, version, tables) = match read {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            return Err(StoreError::Foreign(path.into()));
        }
        read => read.map_err(cannot("read the schema"))?,
    };
    let empty = magic == 0 && version == 0 && tables == 0;
    if !empty && magic != APPLICATION_ID {
        return Err(StoreError::Foreign(path.into()));
    }
    if version > VERSION {
        return Err(StoreError::Newer { found: version });
    }
    Ok(())
}

fn upgrade(connection: &mut Connection) -> Result<(), StoreError> {
    let mut apply = || -> rusqlite::Result<()> {
        let transaction = connection.transaction()?;
        let version = number(&transaction, "user_version")?;
        for step in STEPS.iter().skip(usize::try_from(version).unwrap_or(0)) {
            transaction.execute_batch(step)?;
        }
        if version != VERSION {
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()
    };
    apply().map_err(cannot("bring the schema up to date"))
}
