//! What disks are known by that fill their device or their export.

use rusqlite::{Connection, OptionalExtension, Row, params};
use sterna_core::DiskId;
use sterna_core::fingerprint::{Fingerprint, Mark};

use super::{Store, StoreError, cannot, from_json, from_sql, parsed, to_json, to_sql};

/// A disk's fingerprint, and where it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintRecord {
    /// Whose it is.
    pub disk: DiskId,
    /// The datastore on which the disk was.
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
    /// The fingerprint of a disk.
    pub fn fingerprint(
        &self,
        disk: DiskId,
    ) -> Result<Option<FingerprintRecord>, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT * FROM fingerprints WHERE disk = ?1";
            let row = connection.prepare_cached(sql).and_then(|mut statement| {
                statement.query_row([disk.to_string()], read).optional()
            });
            row.map_err(cannot("read the fingerprint of a disk"))
        })?
    }

    /// The fingerprints of all disks.
    pub fn fingerprints(&self) -> Result<Vec<FingerprintRecord>, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT * FROM fingerprints ORDER BY disk";
            let rows = connection
                .prepare_cached(sql)
                .and_then(|mut statement| statement.query_map([], read)?.collect());
            rows.map_err(cannot("read the fingerprints of disks"))
        })?
    }

    /// Records fingerprints, each in the place of an earlier one.
    pub fn set_fingerprints(
        &self,
        these: Vec<FingerprintRecord>,
    ) -> Result<(), StoreError> {
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
