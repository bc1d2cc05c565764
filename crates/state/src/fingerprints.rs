//! What disks are known by that fill their device or their export.

use rusqlite::{Connection, Row, params, params_from_iter};
use sterna_core::DiskId;
use sterna_core::fingerprint::{Fingerprint, Mark};

use super::{Store, StoreError, cannot, from_json, from_sql, parsed, to_json, to_sql};

/// A disk's fingerprint, and where it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintRecord {
    /// Whose it is.
    pub disk: DiskId,
    /// The datastore on which the disk, or a copy of it, was.
    pub datastore: String,
    /// What it is known by.
    pub fingerprint: Fingerprint,
}

fn read(row: &Row<'_>) -> rusqlite::Result<FingerprintRecord> {
    let marks: Vec<(u64, u32)> = from_json(row, "marks")?;
    let fingerprint = Fingerprint {
        marks: marks.into_iter().map(|(at, sum)| Mark { at, sum }).collect(),
        data: from_sql(row.get("data")?),
        written: from_sql(row.get("written")?),
        is_complete: row.get("complete")?,
    };
    let (disk, datastore) = (parsed(row, "disk")?, row.get("datastore")?);
    Ok(FingerprintRecord { disk, datastore, fingerprint })
}

impl Store {
    /// What a disk, or its copy, is known by on a datastore. One that is unreadable counts as
    /// none: without its fingerprint, a disk is served as it was before there were any.
    pub fn fingerprint(
        &self,
        disk: DiskId,
        datastore: &str,
    ) -> Result<Option<FingerprintRecord>, StoreError> {
        let sql = "SELECT * FROM fingerprints WHERE disk = ?1 AND datastore = ?2";
        let all =
            self.list_fingerprints(sql, [disk.to_string(), datastore.to_owned()])?;
        Ok(all.into_iter().next())
    }

    /// The fingerprints of other disks, `most` of them.
    pub fn fingerprints_of_others(
        &self,
        disk: DiskId,
        most: usize,
    ) -> Result<Vec<FingerprintRecord>, StoreError> {
        let sql = "SELECT * FROM fingerprints WHERE disk != ?1 ORDER BY disk, datastore LIMIT ?2";
        self.list_fingerprints(sql, [disk.to_string(), most.to_string()])
    }

    fn list_fingerprints(
        &self,
        sql: &'static str,
        values: [String; 2],
    ) -> Result<Vec<FingerprintRecord>, StoreError> {
        self.run(move |connection| {
            let rows: rusqlite::Result<Vec<_>> =
                connection.prepare_cached(sql).and_then(|mut statement| {
                    Ok(statement.query_map(params_from_iter(values), read)?.collect())
                });
            let rows = rows.map_err(cannot("read the fingerprints of disks"))?;
            let good = rows.into_iter().filter_map(|row| {
                row.inspect_err(
                    |error| tracing::warn!(%error, "a fingerprint is unreadable"),
                )
                .ok()
            });
            Ok(good.collect())
        })?
    }

    /// Forgets the fingerprints of places where their disk is not, nor a copy that is being
    /// made.
    pub fn forget_old_fingerprints(&self) -> Result<(), StoreError> {
        self.transact(move |transaction| {
            let sql = "DELETE FROM fingerprints AS it
                       WHERE NOT EXISTS (
                           SELECT 1 FROM disks
                           WHERE id = it.disk AND datastore = it.datastore)
                       AND NOT EXISTS (
                           SELECT 1 FROM migrations
                           WHERE disk = it.disk
                           AND it.datastore IN (from_datastore, to_datastore)
                           AND step NOT IN ('completed', 'cancelled'))";
            let forgotten = transaction.execute(sql, []);
            forgotten.map(drop).map_err(cannot("forget the fingerprints of old places"))
        })
    }

    /// Records fingerprints, each in the place of an earlier one of that disk there; nothing
    /// is written for none.
    pub fn set_fingerprints(
        &self,
        these: Vec<FingerprintRecord>,
    ) -> Result<(), StoreError> {
        if these.is_empty() {
            return Ok(());
        }
        self.transact(move |transaction| {
            let set = these.iter().try_for_each(|one| set(transaction, one));
            set.map_err(cannot("record the fingerprint of a disk"))
        })
    }
}

/// A disk that has gone meanwhile has none.
fn set(connection: &Connection, one: &FingerprintRecord) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO fingerprints
                   (disk, datastore, marks, data, written, complete)
               SELECT id, ?2, ?3, ?4, ?5, ?6 FROM disks WHERE id = ?1";
    let FingerprintRecord { disk, datastore, fingerprint } = one;
    let marks: Vec<(u64, u32)> =
        fingerprint.marks.iter().map(|mark| (mark.at, mark.sum)).collect();
    let values = params![
        disk.to_string(),
        datastore,
        to_json(&marks),
        to_sql(fingerprint.data),
        to_sql(fingerprint.written),
        fingerprint.is_complete,
    ];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}
