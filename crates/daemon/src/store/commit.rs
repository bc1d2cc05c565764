//! The commit of a migration: the one record that makes the destination the
//! truth.
//!
//! **It is quick or refused.** The guest is held meanwhile. So the commit has a
//! connection of its own: nothing that is queued for the store's thread is before
//! it, it waits no longer than [`WAIT`] for somebody else's lock, and it never
//! moves the WAL into the database (whoever writes next does).
//!
//! **It is never guessed.** If the transaction fails, the mirror may go back to
//! the source only when the record is *certainly absent*. That is so for every
//! failure before SQLite was told to commit, and for those of its answers that
//! mean that the last frame was not written whole ([`is_absent`]): such a frame
//! has a wrong checksum. Whatever else fails, above all a flush, the whole frame
//! may be in the page cache and come up after a crash. Then the frames are
//! overwritten by another transaction (a new writer starts at the same place in
//! the WAL), and only when that one is durable is the record gone.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, ffi, params};

use super::steps::advance;
use super::turns::Turns;
use super::{Step, Store, StoreError, cannot, to_sql};

/// How long a commit waits for the lock of another writer. A fifth of what the
/// guest may be held: long enough for a transaction of the store's thread that is
/// just being made durable, too short for the guest to notice.
const WAIT: Duration = Duration::from_millis(20);

/// Why a commit has no good answer.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// Somebody else has the database; nothing was written.
    Busy(StoreError),
    /// The record is certainly not there, now or after a crash.
    Absent(StoreError),
    /// A crash now might bring it up. Ask `erase_commit` until it says `Ok`.
    Unknown(StoreError),
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::Busy(error) | CommitError::Absent(error) => {
                f.write_str(&error.with_cause())
            }
            CommitError::Unknown(error) => {
                write!(f, "{} (it may have been written)", error.with_cause())
            }
        }
    }
}

/// Remembers whether the image that the disk leaves is the operator's own.
const LEAVE: &str = "
    UPDATE migrations SET left_imported =
        (SELECT imported FROM disks WHERE disks.id = migrations.disk)
    WHERE id = ?1";

/// Makes the destination the disk's image. That is Sterna's own, unless the disk
/// comes back to an imported file that it had left there.
const MOVE: &str = "
    UPDATE disks SET
        (datastore, image, provision, generation, imported) = (
            SELECT to_datastore, to_image, provision, destination_generation,
                EXISTS (SELECT 1 FROM migrations AS old
                    WHERE old.disk = one.disk AND old.left_imported
                    AND old.keep_source AND old.from_datastore = one.to_datastore
                    AND old.from_image = one.to_image)
            FROM migrations AS one WHERE id = ?1)
    WHERE id = (SELECT disk FROM migrations WHERE id = ?1)";

/// The connection for commits. Opened by `schema`, which knows what every
/// connection needs.
pub(super) struct Commits {
    connection: Mutex<Connection>,
    turns: Arc<Turns>,
}

impl Commits {
    pub(super) fn open(path: &Path, turns: Arc<Turns>) -> Result<Commits, StoreError> {
        let connection = super::schema::connect(path, WAIT)?;
        let never = connection.pragma_update(None, "wal_autocheckpoint", 0);
        never.map_err(cannot("set up the connection"))?;
        Ok(Commits { connection: Mutex::new(connection), turns })
    }

    fn commit(&self, id: u64) -> Result<(), CommitError> {
        // A commit that panicked has rolled back.
        let mut connection =
            self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let since = Instant::now();
        let _turn = self.turns.commit(WAIT);
        // What is left is for writers outside of this process.
        let left = connection.busy_timeout(WAIT.saturating_sub(since.elapsed()));
        left.map_err(cannot("set up the connection")).map_err(CommitError::Absent)?;
        commit(&mut connection, id)
    }
}

fn commit(connection: &mut Connection, id: u64) -> Result<(), CommitError> {
    let transaction = connection.transaction().map_err(|error| {
        let busy = is_busy(&error);
        let error = cannot("begin the commit")(error);
        if busy { CommitError::Busy(error) } else { CommitError::Absent(error) }
    })?;
    advance(&transaction, id, Step::Committed).map_err(CommitError::Absent)?;
    let left = transaction.execute(LEAVE, params![to_sql(id)]);
    left.map_err(cannot("leave the source")).map_err(CommitError::Absent)?;
    let moved = transaction.execute(MOVE, params![to_sql(id)]);
    match moved.map_err(cannot("move the disk")).map_err(CommitError::Absent)? {
        1 => {}
        _ => {
            let gone = StoreError::Step { id, wanted: Step::Committed };
            return Err(CommitError::Absent(gone));
        }
    }
    transaction.commit().map_err(|error| {
        let absent = is_absent(&error);
        let error = cannot("commit the switch-over")(error);
        if absent { CommitError::Absent(error) } else { CommitError::Unknown(error) }
    })
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Whether an answer to COMMIT means that the last frame, the one that counts, is
/// not in the WAL. It is written last, so a write that failed was of it or of one
/// before it. Errors that come after that write, and those of which nobody has
/// made sure, are not in this list.
fn is_absent(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    let full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
    full || is_busy(error) || code == Some(ffi::SQLITE_IOERR_WRITE)
}

impl Store {
    /// Makes the destination the truth: the disk's record and the migration's
    /// step in one transaction, durable when it returns.
    pub(crate) fn commit_migration(&self, id: u64) -> Result<(), CommitError> {
        self.inner.commits.commit(id)
    }

    /// Writes something else over what a failed commit may have left.
    pub(crate) fn erase_commit(&self, id: u64) -> Result<(), StoreError> {
        self.migration_switches(id)
    }
}
