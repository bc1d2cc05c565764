//! The records of how a host's memory is shared: what VMs are promised, what their balloons were
//! asked for, and what Sterna does by itself.

use rusqlite::{OptionalExtension, Row, params};
use sterna_api::MemorySettings;
use sterna_core::entitle::Terms;

use super::{Store, StoreError, cannot, from_json, from_sql, to_json, to_sql};

/// What a VM is promised of its host's memory, and held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryTermsRecord {
    /// What it keeps in any case, in bytes.
    pub reservation: u64,
    /// What it holds at most, in bytes.
    pub limit: Option<u64>,
    /// Its part of what is left, against those of others.
    pub shares: u32,
    /// What its balloon may take at most, in bytes, if somebody has said.
    pub balloon_max: Option<u64>,
    /// How long a wake of it may take, in milliseconds, if somebody has said.
    pub wake_within_ms: Option<u64>,
}

impl Default for MemoryTermsRecord {
    fn default() -> MemoryTermsRecord {
        MemoryTermsRecord {
            reservation: 0,
            limit: None,
            shares: Terms::default().shares,
            balloon_max: None,
            wake_within_ms: None,
        }
    }
}

impl From<MemoryTermsRecord> for Terms {
    /// What memory is divided by.
    fn from(record: MemoryTermsRecord) -> Terms {
        Terms {
            reservation: record.reservation as f64,
            limit: record.limit.map(|limit| limit as f64),
            shares: record.shares,
        }
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<(String, MemoryTermsRecord)> {
    let maybe = |column: &str| {
        Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(from_sql))
    };
    let terms = MemoryTermsRecord {
        reservation: from_sql(row.get("reservation")?),
        limit: maybe("most")?,
        shares: row.get("shares")?,
        balloon_max: maybe("balloon_max")?,
        wake_within_ms: maybe("wake_within_ms")?,
    };
    Ok((row.get("vm")?, terms))
}

impl Store {
    /// What VMs are promised of memory, of those of which somebody has said anything, by name.
    pub fn memory_terms(&self) -> Result<Vec<(String, MemoryTermsRecord)>, StoreError> {
        self.run(|connection| {
            let sql = "SELECT * FROM memory_terms ORDER BY vm";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map([], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list what VMs are promised of memory"))
    }

    /// Changes what a VM that is known is promised of memory.
    pub fn set_memory_terms(
        &self,
        vm: &str,
        terms: MemoryTermsRecord,
    ) -> Result<(), StoreError> {
        let vm = vm.to_owned();
        self.run(move |connection| {
            let sql = "INSERT OR REPLACE INTO memory_terms
                           (vm, reservation, most, shares, balloon_max, wake_within_ms)
                       SELECT ?1, ?2, ?3, ?4, ?5, ?6
                       WHERE EXISTS (SELECT 1 FROM vms WHERE name = ?1)";
            let values = params![
                vm,
                to_sql(terms.reservation),
                terms.limit.map(to_sql),
                terms.shares,
                terms.balloon_max.map(to_sql),
                terms.wake_within_ms.map(to_sql)
            ];
            connection.execute(sql, values)
        })?
        .map_err(cannot("record what a VM is promised of memory"))?;
        Ok(())
    }

    /// What balloons were asked for, in bytes, by VM.
    pub fn balloons(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.run(|connection| {
            let sql = "SELECT vm, taken FROM balloons ORDER BY vm";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| Ok((row.get(0)?, from_sql(row.get(1)?)));
            statement.query_map([], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list what balloons have"))
    }

    /// Records what a VM's balloon is asked for, in bytes; 0 if all is given back.
    pub fn set_balloon(&self, vm: &str, taken: u64) -> Result<(), StoreError> {
        let vm = vm.to_owned();
        self.run(move |connection| match taken {
            0 => connection.execute("DELETE FROM balloons WHERE vm = ?", [vm]),
            taken => {
                let sql = "INSERT OR REPLACE INTO balloons (vm, taken)
                           SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM vms WHERE name = ?1)";
                connection.execute(sql, params![vm, to_sql(taken)])
            }
        })?
        .map_err(cannot("record what a balloon has"))?;
        Ok(())
    }

    /// What Sterna does by itself; the usual before anything was changed.
    pub fn memory_settings(&self) -> Result<MemorySettings, StoreError> {
        let settings = self.run(|connection| {
            let sql = "SELECT settings FROM memory_settings";
            let read = |row: &Row<'_>| from_json(row, "settings");
            connection.prepare_cached(sql)?.query_row([], read).optional()
        })?;
        Ok(settings.map_err(cannot("read the settings of memory"))?.unwrap_or_default())
    }

    /// Changes what Sterna does by itself.
    pub fn set_memory_settings(
        &self,
        settings: &MemorySettings,
    ) -> Result<(), StoreError> {
        let text = to_json(settings);
        self.run(move |connection| {
            let sql = "INSERT INTO memory_settings (id, settings) VALUES (1, ?1)
                       ON CONFLICT (id) DO UPDATE SET settings = ?1";
            connection.execute(sql, [text])
        })?
        .map_err(cannot("change the settings of memory"))?;
        Ok(())
    }
}
