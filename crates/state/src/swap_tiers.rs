//! The record of a swap tier.

use rusqlite::{Row, params};

use super::{Store, StoreError, cannot, from_sql, to_sql};

/// A file or device that the kernel swaps to on Sterna's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapTierRecord {
    /// Its name.
    pub name: String,
    /// The datastore on which its file is; nothing of a device.
    pub datastore: Option<String>,
    /// The file or device.
    pub path: String,
    /// How large it is, in bytes.
    pub size: u64,
    /// How long a granule at a random place takes, in nanoseconds.
    pub access_ns: u64,
    /// What it reads in order, in bytes per second.
    pub sequential: u64,
    /// The kernel's number of it, if it is known.
    pub number: Option<u8>,
    /// The boot of the host in which that was its number.
    pub boot: String,
    /// When it was added (seconds since 1970).
    pub added: u64,
}

fn read(row: &Row<'_>) -> rusqlite::Result<SwapTierRecord> {
    Ok(SwapTierRecord {
        name: row.get("name")?,
        datastore: row.get("datastore")?,
        path: row.get("path")?,
        size: from_sql(row.get("size")?),
        access_ns: from_sql(row.get("access_ns")?),
        sequential: from_sql(row.get("sequential")?),
        number: row.get("number")?,
        boot: row.get("boot")?,
        added: from_sql(row.get("added")?),
    })
}

impl Store {
    /// All swap tiers, by name.
    pub fn swap_tiers(&self) -> Result<Vec<SwapTierRecord>, StoreError> {
        self.run(|connection| {
            let sql = "SELECT * FROM swap_tiers ORDER BY name";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map([], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the swap tiers"))
    }

    /// Adds a swap tier.
    pub fn add_swap_tier(&self, one: SwapTierRecord) -> Result<(), StoreError> {
        self.run(move |connection| {
            let sql = "INSERT INTO swap_tiers (name, datastore, path, size, access_ns,
                           sequential, number, boot, added)
                       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
            let values = params![
                one.name,
                one.datastore,
                one.path,
                to_sql(one.size),
                to_sql(one.access_ns),
                to_sql(one.sequential),
                one.number,
                one.boot,
                to_sql(one.added)
            ];
            connection.execute(sql, values)
        })?
        .map_err(cannot("add a swap tier"))?;
        Ok(())
    }

    /// Records the number that the kernel has given a swap tier.
    pub fn change_swap_tier(&self, one: SwapTierRecord) -> Result<(), StoreError> {
        self.run(move |connection| {
            let sql = "UPDATE swap_tiers SET number = ?, boot = ? WHERE name = ?";
            connection.execute(sql, params![one.number, one.boot, one.name])
        })?
        .map_err(cannot("record a swap tier's number"))?;
        Ok(())
    }

    /// Forgets a swap tier.
    pub fn remove_swap_tier(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.run(move |connection| {
            connection.execute("DELETE FROM swap_tiers WHERE name = ?", [name])
        })?
        .map_err(cannot("remove a swap tier"))?;
        Ok(())
    }
}
