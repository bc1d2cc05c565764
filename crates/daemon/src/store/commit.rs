//! The commit of a migration: the one record that makes the destination the
//! truth.
//!
//! If the transaction fails, the mirror may go back to the source only when the
//! record is *certainly absent*. That is so for every failure before the WAL is
//! flushed: a frame that was not written whole has a wrong checksum. When the
//! flush itself fails, the whole frame may be in the page cache and come up
//! after a crash. Then the frames are overwritten by another transaction (a
//! new writer starts at the same place in the WAL), and only when that one is
//! durable is the record gone.

use std::fmt;

use rusqlite::{Connection, TransactionBehavior, ffi, params};

use super::steps::advance;
use super::{Step, Store, StoreError, cannot, to_sql};

/// Why a commit has no good answer.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// The record is certainly not there, now or after a crash.
    Absent(StoreError),
    /// A crash now might bring it up. Ask `erase_commit` until it says `Ok`.
    Unknown(StoreError),
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::Absent(error) => f.write_str(&error.with_cause()),
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

fn commit(connection: &mut Connection, id: u64) -> Result<(), CommitError> {
    let begun = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(cannot("begin the commit"));
    let transaction = begun.map_err(CommitError::Absent)?;
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
        let flush_failed = is_flush_failure(&error);
        let error = cannot("commit the switch-over")(error);
        if flush_failed {
            CommitError::Unknown(error)
        } else {
            CommitError::Absent(error)
        }
    })
}

/// Whether all may have been written, but not made durable.
fn is_flush_failure(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

impl Store {
    /// Makes the destination the truth: the disk's record and the migration's
    /// step in one transaction, durable when it returns.
    pub(crate) fn commit_migration(&self, id: u64) -> Result<(), CommitError> {
        let done = self.run(move |connection| commit(connection, id));
        // A store that is closed has not begun, or its thread is dead: unknown.
        done.map_err(CommitError::Unknown)?
    }

    /// Writes something else over what a failed commit may have left.
    pub(crate) fn erase_commit(&self, id: u64) -> Result<(), StoreError> {
        self.migration_switches(id)
    }
}
