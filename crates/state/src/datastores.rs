//! The record of a datastore.

use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, Row, params};
use sterna_core::{Mark, Shape};

use super::{Store, StoreError, cannot, from_sql, parsed, to_sql};

/// A datastore, as the state knows it. `L` is what its location means to whoever opens it:
/// the state keeps the text.
#[derive(Clone, Debug, PartialEq)]
pub struct DatastoreRecord<L> {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub location: L,
    /// Artificial limits.
    pub shape: Option<Shape>,
    /// When it was added (seconds since 1970).
    pub added: u64,
    /// When it was put in maintenance (seconds since 1970), if it is.
    pub maintenance: Option<u64>,
    /// What its directory is known by, if it is one and has been marked.
    pub mark: Option<Mark>,
}

fn read<L>(row: &Row<'_>) -> rusqlite::Result<DatastoreRecord<L>>
where
    L: FromStr<Err: Error + Send + Sync + 'static>,
{
    let shape: Option<String> = row.get("shape")?;
    let mark: Option<String> = row.get("mark")?;
    Ok(DatastoreRecord {
        name: row.get("name")?,
        location: parsed(row, "location")?,
        shape: shape.map(|_| parsed(row, "shape")).transpose()?,
        added: from_sql(row.get("added")?),
        maintenance: row.get::<_, Option<i64>>("maintenance")?.map(from_sql),
        mark: mark.map(|_| parsed(row, "mark")).transpose()?,
    })
}

fn insert<L: Display>(
    connection: &Connection,
    one: &DatastoreRecord<L>,
) -> rusqlite::Result<usize> {
    connection.execute(
        "INSERT INTO datastores (name, location, shape, added, maintenance, mark)
         VALUES (?, ?, ?, ?, ?, ?)",
        params![
            one.name,
            one.location.to_string(),
            one.shape.as_ref().map(ToString::to_string),
            to_sql(one.added),
            one.maintenance.map(to_sql),
            one.mark.map(|mark| mark.to_string()),
        ],
    )
}

impl Store {
    /// All datastores, by name.
    pub fn datastores<L>(&self) -> Result<Vec<DatastoreRecord<L>>, StoreError>
    where
        L: FromStr<Err: Error + Send + Sync + 'static> + Send + 'static,
    {
        self.run(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT * FROM datastores ORDER BY name")?;
            statement.query_map([], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the datastores"))
    }

    /// Adds a datastore.
    pub fn add_datastore<L>(&self, one: DatastoreRecord<L>) -> Result<(), StoreError>
    where
        L: Display + Send + 'static,
    {
        self.run(move |connection| insert(connection, &one))?
            .map_err(cannot("add a datastore"))?;
        Ok(())
    }

    /// Puts a datastore in maintenance since a moment, or ends that.
    pub fn set_maintenance(
        &self,
        name: &str,
        since: Option<u64>,
    ) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.run(move |connection| {
            let sql = "UPDATE datastores SET maintenance = ? WHERE name = ?";
            connection.execute(sql, params![since.map(to_sql), name])
        })?
        .map_err(cannot("change a datastore"))?;
        Ok(())
    }

    /// Takes note of what a datastore's directory is known by.
    pub fn set_mark(&self, name: &str, mark: Mark) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.run(move |connection| {
            let sql = "UPDATE datastores SET mark = ? WHERE name = ?";
            connection.execute(sql, params![mark.to_string(), name])
        })?
        .map_err(cannot("record a datastore's mark"))?;
        Ok(())
    }

    /// How large a device or an export was when the sidecar of its disk was last known to be at
    /// its end, in bytes.
    pub fn place_size(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let name = name.to_owned();
        self.run(move |connection| {
            let sql = "SELECT size FROM datastores WHERE name = ?";
            let size = connection.query_row(sql, [name], |row| row.get(0)).optional()?;
            Ok::<_, rusqlite::Error>(size.flatten().map(from_sql))
        })?
        .map_err(cannot("read a datastore's size"))
    }

    /// Takes note of that.
    pub fn set_place_size(&self, name: &str, size: u64) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.run(move |connection| {
            let sql = "UPDATE datastores SET size = ? WHERE name = ?";
            connection.execute(sql, params![to_sql(size), name])
        })?
        .map_err(cannot("record a datastore's size"))?;
        Ok(())
    }

    /// Forgets a datastore.
    pub fn remove_datastore(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.run(move |connection| {
            connection.execute("DELETE FROM datastores WHERE name = ?", [name])
        })?
        .map_err(cannot("remove a datastore"))?;
        Ok(())
    }
}
