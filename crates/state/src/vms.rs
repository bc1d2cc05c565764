//! The record of a VM that exists already.

use rusqlite::{Row, params};

use super::{Reach, Store, StoreError, cannot, from_json, from_sql, to_json, to_sql};

/// A VM, as the state knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmRecord {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// When it was added (seconds since 1970).
    pub added: u64,
}

fn read(row: &Row<'_>) -> rusqlite::Result<VmRecord> {
    Ok(VmRecord {
        name: row.get("name")?,
        reach: from_json(row, "reach")?,
        added: from_sql(row.get("added")?),
    })
}

impl Store {
    /// All VMs, by name.
    pub fn vms(&self) -> Result<Vec<VmRecord>, StoreError> {
        self.run(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT * FROM vms ORDER BY name")?;
            statement.query_map([], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the virtual machines"))
    }

    /// Adds a VM.
    pub fn add_vm(&self, one: VmRecord) -> Result<(), StoreError> {
        self.run(move |connection| {
            let sql = "INSERT INTO vms (name, reach, added) VALUES (?, ?, ?)";
            connection
                .execute(sql, params![one.name, to_json(&one.reach), to_sql(one.added)])
        })?
        .map_err(cannot("add a virtual machine"))?;
        Ok(())
    }

    /// Forgets a VM.
    pub fn remove_vm(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.run(move |connection| {
            let change = connection.transaction()?;
            // Another one by that name has nothing of its copies.
            let tidy = "UPDATE vm_moves SET untidy = FALSE WHERE vm = ?";
            change.execute(tidy, [&name])?;
            // Nor what its memory was like.
            for table in ["asleep_vms", "wakes", "memory_terms", "balloons"] {
                let sql = format!("DELETE FROM {table} WHERE vm = ?");
                change.execute(&sql, [&name])?;
            }
            change.execute("DELETE FROM vms WHERE name = ?", [&name])?;
            change.commit()
        })?
        .map_err(cannot("remove a virtual machine"))?;
        Ok(())
    }
}
