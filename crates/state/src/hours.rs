//! What a disk's application did in the hours of the last week.

use rusqlite::{Connection, Row, params};
use sterna_core::predict::{Hour, Work};
use sterna_core::{DiskId, Nanos};

use super::{Store, StoreError, cannot, from_sql, to_sql};

/// Hours are kept for a week and a day: as long as one may count, and that it is not gone
/// the moment before.
const KEPT_S: u64 = 8 * 24 * 3600;

fn read(row: &Row<'_>) -> rusqlite::Result<Hour> {
    let response: f64 = row.get("response_us")?;
    let work = Work {
        outstanding: row.get("outstanding")?,
        response: Nanos((response.max(0.0) * 1e3) as u64),
        there: row.get("there")?,
        writes: row.get("writes")?,
    };
    Ok(Hour { at: from_sql(row.get("hour")?), work })
}

impl Store {
    /// Records what disks did in the hour that began then, and forgets what is too old.
    pub fn add_hours(
        &self,
        at: u64,
        these: Vec<(DiskId, Work)>,
    ) -> Result<(), StoreError> {
        self.transact(move |transaction| {
            let added = these.iter().try_for_each(|(disk, work)| {
                add(transaction, *disk, &Hour { at, work: *work })
            });
            let forgotten = added.and_then(|()| {
                let until = to_sql(at.saturating_sub(KEPT_S));
                transaction.execute("DELETE FROM hours WHERE hour < ?1", [until])
            });
            forgotten.map(drop).map_err(cannot("record an hour"))
        })
    }

    /// The hours of a disk that were seen.
    pub fn hours(&self, disk: DiskId) -> Result<Vec<Hour>, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT * FROM hours WHERE disk = ?1 ORDER BY hour";
            let rows = connection.prepare_cached(sql).and_then(|mut statement| {
                statement.query_map([disk.to_string()], read)?.collect()
            });
            rows.map_err(cannot("read the hours of a disk"))
        })?
    }
}

/// A disk that has gone meanwhile has no hours.
fn add(connection: &Connection, disk: DiskId, hour: &Hour) -> rusqlite::Result<()> {
    let sql =
        "INSERT OR REPLACE INTO hours (disk, hour, outstanding, response_us, there, writes)
               SELECT id, ?2, ?3, ?4, ?5, ?6 FROM disks WHERE id = ?1";
    let Work { outstanding, response, there, writes } = hour.work;
    let (disk, at) = (disk.to_string(), to_sql(hour.at));
    let response_us = response.as_secs_f64() * 1e6;
    let values = params![disk, at, outstanding, response_us, there, writes];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}
