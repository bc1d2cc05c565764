//! The record of a disk.

use rusqlite::{OptionalExtension, Row, params};
use sterna_api::Provision;
use sterna_core::DiskId;

use super::{Store, StoreError, cannot, from_sql, parsed, to_sql};

/// A disk, as the state knows it: the truth about which image is its truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskRecord {
    /// Its id.
    pub id: DiskId,
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The datastore of its image.
    pub datastore: String,
    /// What the datastore calls the image.
    pub image: String,
    /// How the image was provisioned.
    pub provision: Provision,
    /// The image is the operator's own file, taken as it was.
    pub imported: bool,
    /// The image's generation.
    pub generation: u64,
    /// When it was created (seconds since 1970).
    pub created: u64,
    /// The socket on which a VM has it.
    pub vhost_user: Option<String>,
}

/// A provisioning as text.
pub(super) fn provision_text(provision: Provision) -> &'static str {
    match provision {
        Provision::Thin => "thin",
        Provision::Thick => "thick",
        Provision::ThickZeroed => "thick-zeroed",
    }
}

/// A provisioning read back; what nobody wrote reads as the harmless one.
pub(super) fn provision(text: &str) -> Provision {
    match text {
        "thick" => Provision::Thick,
        "thick-zeroed" => Provision::ThickZeroed,
        _ => Provision::Thin,
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<DiskRecord> {
    Ok(DiskRecord {
        id: parsed(row, "id")?,
        name: row.get("name")?,
        size: from_sql(row.get("size")?),
        datastore: row.get("datastore")?,
        image: row.get("image")?,
        provision: provision(&row.get::<_, String>("provision")?),
        imported: row.get("imported")?,
        generation: from_sql(row.get("generation")?),
        created: from_sql(row.get("created")?),
        vhost_user: row.get("vhost_user")?,
    })
}

const INSERT: &str = "
    INSERT INTO disks
        (id, name, size, datastore, image, provision, imported, generation, created)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";

impl Store {
    /// All disks, by name.
    pub fn disks(&self) -> Result<Vec<DiskRecord>, StoreError> {
        self.run(|connection| {
            let sql = "SELECT * FROM disks ORDER BY name";
            connection
                .prepare_cached(sql)?
                .query_map([], read)?
                .collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the disks"))
    }

    /// The names of all disks: a monitor asks for them again and again.
    pub fn disk_names(&self) -> Result<Vec<(DiskId, String)>, StoreError> {
        self.run(|connection| {
            let sql = "SELECT id, name FROM disks ORDER BY name";
            connection
                .prepare_cached(sql)?
                .query_map([], |row| Ok((parsed(row, "id")?, row.get("name")?)))?
                .collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the names of disks"))
    }

    /// The disk of that name.
    pub fn disk(&self, name: &str) -> Result<Option<DiskRecord>, StoreError> {
        let name = name.to_owned();
        self.run(move |connection| {
            let sql = "SELECT * FROM disks WHERE name = ?";
            connection.prepare_cached(sql)?.query_row([name], read).optional()
        })?
        .map_err(cannot("look up a disk"))
    }

    /// Adds a disk.
    pub fn add_disk(&self, one: DiskRecord) -> Result<(), StoreError> {
        self.run(move |connection| {
            connection.execute(
                INSERT,
                params![
                    one.id.to_string(),
                    one.name,
                    to_sql(one.size),
                    one.datastore,
                    one.image,
                    provision_text(one.provision),
                    one.imported,
                    to_sql(one.generation),
                    to_sql(one.created),
                ],
            )
        })?
        .map_err(cannot("add a disk"))?;
        Ok(())
    }

    /// Says on which socket a VM has a disk.
    pub fn set_vhost_user(
        &self,
        id: DiskId,
        path: Option<String>,
    ) -> Result<(), StoreError> {
        self.run(move |connection| {
            let sql = "UPDATE disks SET vhost_user = ? WHERE id = ?";
            connection.execute(sql, params![path, id.to_string()])
        })?
        .map_err(cannot("set a disk's socket"))?;
        Ok(())
    }

    /// Forgets a disk.
    pub fn remove_disk(&self, id: DiskId) -> Result<(), StoreError> {
        self.run(move |connection| {
            connection.execute("DELETE FROM disks WHERE id = ?", [id.to_string()])
        })?
        .map_err(cannot("remove a disk"))?;
        Ok(())
    }
}
