//! What the copier has done for a migration so far, over restarts.

use rusqlite::{Connection, Row, params};
use sterna_api::Application;

use super::{Store, StoreError, cannot, from_sql, to_json, to_sql};

/// Figures of the copier that outlive the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Bytes written to the destination.
    pub copied: u64,
    /// The time that copying took, in milliseconds.
    pub copying_ms: u64,
    /// Whether all of the disk is compared, as there was an old copy.
    pub compares: bool,
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Counted> {
    Ok(Counted {
        copied: from_sql(row.get("copied")?),
        copying_ms: from_sql(row.get("copying_ms")?),
        compares: row.get("compares")?,
    })
}

/// What is recorded of a running migration now and then.
pub struct Figured {
    /// The migration.
    pub id: u64,
    /// What its application has noticed so far.
    pub application: Application,
    /// What the copier has done so far.
    pub counted: Counted,
}

impl Store {
    /// Records the figures of all `these` at once: one flush, not one for each.
    pub fn set_figures(&self, these: Vec<Figured>) -> Result<(), StoreError> {
        self.transact(move |transaction| {
            these.iter().try_for_each(|one| {
                let set = set(transaction, one);
                set.map(drop).map_err(cannot("record a migration's figures"))
            })
        })
    }
}

fn set(connection: &Connection, one: &Figured) -> rusqlite::Result<usize> {
    let sql = "UPDATE migrations SET copied = ?2, copying_ms = ?3, compares = ?4,
               application = ?5 WHERE id = ?1";
    let (copied, time) = (to_sql(one.counted.copied), to_sql(one.counted.copying_ms));
    let application = to_json(&one.application);
    let values = params![to_sql(one.id), copied, time, one.counted.compares, application];
    connection.prepare_cached(sql)?.execute(values)
}
