//! The commit of a migration, as the state has it: the disk is the destination.
//!
//! What makes the destination the truth is the commit's own record (`commit_record`); the state
//! is told afterwards, and as often as it takes.

use rusqlite::params;

use super::steps::advance;
use super::{Step, Store, StoreError, cannot, from_sql, to_sql};

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

impl Store {
    /// Makes the destination the disk's image: the disk's record and the migration's
    /// step in one transaction, durable when it returns.
    pub fn commit_migration(&self, id: u64) -> Result<(), StoreError> {
        self.transact(move |transaction| {
            advance(transaction, id, Step::Committed)?;
            let left = transaction.execute(LEAVE, params![to_sql(id)]);
            left.map_err(cannot("leave the source"))?;
            let moved = transaction.execute(MOVE, params![to_sql(id)]);
            match moved.map_err(cannot("move the disk"))? {
                1 => Ok(()),
                _ => Err(StoreError::Step { id, wanted: Step::Committed }),
            }
        })
    }

    /// How many switch-overs of a migration were begun.
    pub fn switch_overs(&self, id: u64) -> Result<u64, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT attempts FROM migrations WHERE id = ?";
            connection
                .query_row(sql, [to_sql(id)], |row| row.get(0).map(from_sql))
                .map_err(cannot("read how often a switch-over was begun"))
        })?
    }
}
