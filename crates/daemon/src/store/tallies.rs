//! What the copier has done for a migration so far, over restarts.

use rusqlite::{Row, params};

use super::{Store, StoreError, cannot, from_sql, to_sql};

/// Figures of the copier that outlive the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tallied {
    /// Bytes written to the destination.
    pub(crate) copied: u64,
    /// The time that copying took, in milliseconds.
    pub(crate) copying_ms: u64,
    /// Whether all of the disk is compared, as there was an old copy.
    pub(crate) compares: bool,
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Tallied> {
    Ok(Tallied {
        copied: from_sql(row.get("copied")?),
        copying_ms: from_sql(row.get("copying_ms")?),
        compares: row.get("compares")?,
    })
}

impl Store {
    /// What the copier has done so far.
    pub(crate) fn set_tally(&self, id: u64, one: Tallied) -> Result<(), StoreError> {
        self.run(move |connection| {
            let sql = "UPDATE migrations SET copied = ?2, copying_ms = ?3, compares = ?4
                       WHERE id = ?1";
            let (copied, time) = (to_sql(one.copied), to_sql(one.copying_ms));
            connection.execute(sql, params![to_sql(id), copied, time, one.compares])
        })?
        .map_err(cannot("record what was copied"))?;
        Ok(())
    }
}
