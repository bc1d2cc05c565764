//! The record of a migration.
//!
//! Its step is in `steps`. Pausing and cancelling are wishes beside the step:
//! they hold in any of the steps before `committed`, and over restarts.

use rusqlite::{
    Connection, OptionalExtension, Row, named_params, params, params_from_iter,
};
use serde::{Deserialize, Serialize};
use sterna_api::{Application, Guard, Places, Provision, Report};
use sterna_core::DiskId;

use super::counted::{self, Counted};
use super::disks::{provision, provision_text};
use super::{
    Forecast, Learned, Step, Store, StoreError, cannot, from_json, from_sql, parsed,
    to_json, to_sql,
};

/// Whose fault it is that a migration stands still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// Something else's, or nobody's.
    #[default]
    Other,
    /// The destination has no room.
    Full,
    /// The destination fails.
    Destination,
    /// The destination is away: it cannot be reached, or does not answer.
    Away,
    /// The destination does not keep what is written to it.
    Untrue,
    /// The source cannot be read, or its disk is not served.
    Source,
}

/// Why a migration stands still.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Why.
    pub reason: String,
    /// What to do about it; absent if the operator asked for the pause.
    pub hint: Option<String>,
    /// The region map cannot be used: going on means comparing both sides.
    pub compare: bool,
    /// The destination's datastore is offline: it goes on when that is back.
    #[serde(default)]
    pub unreachable: bool,
    /// Whose fault it is.
    #[serde(default)]
    pub blame: Blame,
}

/// An image on a datastore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The datastore.
    pub datastore: String,
    /// What the datastore calls the image.
    pub image: String,
}

/// What was found out about the images of a migration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FoundInImages {
    /// Sectors of the source that cannot be read.
    pub bad: Option<Places>,
    /// What goes on to read differently on the destination.
    pub differing: Option<Places>,
}

/// A migration, as the state knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationRecord {
    /// Its number; given by the store.
    pub id: u64,
    /// The disk.
    pub disk: DiskId,
    /// The disk's name.
    pub name: String,
    /// The disk's size in bytes.
    pub size: u64,
    /// The source image.
    pub from: Place,
    /// The destination image.
    pub to: Place,
    /// How the destination image is provisioned.
    pub provision: Provision,
    /// A destination image reads as zeroes when it is new.
    pub reads_zero: bool,
    /// The copier's limit in bytes per second.
    pub rate: Option<u64>,
    /// What must hold for the application meanwhile.
    pub guard: Guard,
    /// Compare both sides before the switch-over.
    pub verify: bool,
    /// Keep the source image.
    pub keep_source: bool,
    /// Leave sectors of the source behind that cannot be read.
    pub skip_bad: bool,
    /// What was found out about its images.
    pub found: FoundInImages,
    /// Where it is.
    pub step: Step,
    /// The source image's generation.
    pub source_generation: u64,
    /// The destination image's generation.
    pub destination_generation: u64,
    /// Whether it is to be cancelled.
    pub cancel: bool,
    /// Why it stands still.
    pub pause: Option<Pause>,
    /// When it was asked for (seconds since 1970).
    pub started: u64,
    /// When it ended.
    pub ended: Option<u64>,
    /// How it ended, if not as asked.
    pub note: Option<String>,
    /// What the application noticed.
    pub application: Application,
    /// What the copier has done.
    pub counted: Counted,
    /// What was known of it when it began.
    pub forecast: Option<Forecast>,
    /// What its guard has found out, if it had one and that is enough.
    pub experience: Option<Learned>,
    /// What it came to.
    pub report: Option<Report>,
}

impl MigrationRecord {
    /// Whether an image is its source or its destination.
    pub fn has(&self, datastore: &str, image: &str) -> bool {
        let here = |it: &Place| it.datastore == datastore && it.image == image;
        here(&self.from) || here(&self.to)
    }

    /// Whether its source or its destination is on a datastore.
    pub fn is_on(&self, datastore: &str) -> bool {
        self.from.datastore == datastore || self.to.datastore == datastore
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<MigrationRecord> {
    let place = |datastore, image| -> rusqlite::Result<Place> {
        Ok(Place { datastore: row.get(datastore)?, image: row.get(image)? })
    };
    Ok(MigrationRecord {
        id: from_sql(row.get("id")?),
        disk: parsed(row, "disk")?,
        name: row.get("name")?,
        size: from_sql(row.get("size")?),
        from: place("from_datastore", "from_image")?,
        to: place("to_datastore", "to_image")?,
        provision: provision(&row.get::<_, String>("provision")?),
        reads_zero: row.get("reads_zero")?,
        rate: row.get::<_, Option<i64>>("rate")?.map(from_sql),
        guard: from_json::<Option<Guard>>(row, "guard")?.unwrap_or_default(),
        verify: row.get("verify")?,
        keep_source: row.get("keep_source")?,
        skip_bad: row.get("skip_bad")?,
        found: from_json::<Option<FoundInImages>>(row, "found")?.unwrap_or_default(),
        step: parsed(row, "step")?,
        source_generation: from_sql(row.get("source_generation")?),
        destination_generation: from_sql(row.get("destination_generation")?),
        cancel: row.get("cancel")?,
        pause: from_json(row, "pause")?,
        started: from_sql(row.get("started")?),
        ended: row.get::<_, Option<i64>>("ended")?.map(from_sql),
        note: row.get("note")?,
        application: from_json(row, "application")?,
        counted: counted::read(row)?,
        forecast: from_json(row, "forecast")?,
        experience: from_json(row, "experience")?,
        report: from_json(row, "report")?,
    })
}

const INSERT: &str = "
    INSERT INTO migrations
        (disk, name, size, from_datastore, from_image, to_datastore, to_image,
         provision, reads_zero, rate, guard, verify, keep_source, skip_bad, step,
         source_generation, destination_generation, cancel, started,
         application, forecast)
    VALUES
        (:disk, :name, :size, :from_datastore, :from_image, :to_datastore, :to_image,
         :provision, :reads_zero, :rate, :guard, :verify, :keep_source, :skip_bad, :step,
         :source_generation, :destination_generation, :cancel, :started,
         :application, :forecast)";

fn insert(connection: &Connection, one: &MigrationRecord) -> rusqlite::Result<u64> {
    connection.execute(
        INSERT,
        named_params! {
            ":disk": one.disk.to_string(),
            ":name": one.name,
            ":size": to_sql(one.size),
            ":from_datastore": one.from.datastore,
            ":from_image": one.from.image,
            ":to_datastore": one.to.datastore,
            ":to_image": one.to.image,
            ":provision": provision_text(one.provision),
            ":reads_zero": one.reads_zero,
            ":rate": one.rate.map(to_sql),
            ":guard": to_json(&one.guard),
            ":verify": one.verify,
            ":keep_source": one.keep_source,
            ":skip_bad": one.skip_bad,
            ":step": one.step.text(),
            ":source_generation": to_sql(one.source_generation),
            ":destination_generation": to_sql(one.destination_generation),
            ":cancel": one.cancel,
            ":started": to_sql(one.started),
            ":application": to_json(&one.application),
            ":forecast": one.forecast.as_ref().map(to_json),
        },
    )?;
    Ok(from_sql(connection.last_insert_rowid()))
}

impl Store {
    /// All migrations, oldest first.
    pub fn migrations(&self) -> Result<Vec<MigrationRecord>, StoreError> {
        self.list_migrations("SELECT * FROM migrations ORDER BY id", [])
    }

    /// Those that have not ended, which are few, however many there were.
    pub fn open_migrations(&self) -> Result<Vec<MigrationRecord>, StoreError> {
        let sql = "SELECT * FROM migrations WHERE step NOT IN ('completed', 'cancelled')
                   ORDER BY id";
        self.list_migrations(sql, [])
    }

    /// How many have come to each end, those of machines' disks among them.
    pub fn ended_migrations(&self) -> Result<Vec<(Step, u64)>, StoreError> {
        let sql = "SELECT step, count(*) AS many FROM
                       (SELECT step FROM migrations UNION ALL SELECT step FROM vm_moves)
                   WHERE step IN ('completed', 'cancelled') GROUP BY step";
        self.run(move |connection| {
            let read =
                |row: &Row<'_>| Ok((parsed(row, "step")?, from_sql(row.get("many")?)));
            connection
                .prepare_cached(sql)?
                .query_map([], read)?
                .collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("count the migrations"))
    }

    /// The latest that were completed as they were asked for, and that have one of these
    /// ends; the latest first.
    pub fn lessons(
        &self,
        from: &str,
        to: &str,
        most: u32,
    ) -> Result<Vec<MigrationRecord>, StoreError> {
        let sql = "SELECT * FROM migrations WHERE step = 'completed' AND NOT changed
                   AND (from_datastore = ?1 OR to_datastore = ?2)
                   ORDER BY id DESC LIMIT ?3";
        self.list_migrations(sql, [from.to_owned(), to.to_owned(), most.to_string()])
    }

    /// The latest that were completed as they were asked for, and had been predicted; the
    /// latest first.
    pub fn predicted_migrations(
        &self,
        most: u32,
    ) -> Result<Vec<MigrationRecord>, StoreError> {
        let sql = "SELECT * FROM migrations WHERE step = 'completed' AND NOT changed
                   AND forecast ->> 'predicted' IS NOT NULL
                   ORDER BY id DESC LIMIT ?1";
        self.list_migrations(sql, [most.to_string()])
    }

    fn list_migrations<const N: usize>(
        &self,
        sql: &'static str,
        values: [String; N],
    ) -> Result<Vec<MigrationRecord>, StoreError> {
        self.run(move |connection| {
            connection
                .prepare_cached(sql)?
                .query_map(params_from_iter(values), read)?
                .collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the migrations"))
    }

    /// The latest number of a migration; 0 if there are none.
    pub fn last_migration(&self) -> Result<u64, StoreError> {
        self.run(|connection| {
            let sql = "SELECT coalesce(max(id), 0) FROM migrations";
            connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).map(from_sql)
        })?
        .map_err(cannot("look up the last migration"))
    }

    /// The first migration of a disk after this number.
    pub fn migration_after(
        &self,
        disk: DiskId,
        number: u64,
    ) -> Result<Option<MigrationRecord>, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT * FROM migrations WHERE disk = ? AND id > ?
                       ORDER BY id LIMIT 1";
            let values = params![disk.to_string(), to_sql(number)];
            connection.prepare_cached(sql)?.query_row(values, read).optional()
        })?
        .map_err(cannot("look up a migration"))
    }

    /// The migration of that number.
    pub fn migration(&self, id: u64) -> Result<Option<MigrationRecord>, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT * FROM migrations WHERE id = ?";
            connection.prepare_cached(sql)?.query_row([to_sql(id)], read).optional()
        })?
        .map_err(cannot("look up a migration"))
    }

    /// Adds a migration and gives it its number.
    pub fn add_migration(&self, one: MigrationRecord) -> Result<u64, StoreError> {
        self.run(move |connection| insert(connection, &one))?
            .map_err(cannot("add a migration"))
    }

    /// The migration stands still for a reason, or goes on.
    pub fn set_pause(&self, id: u64, pause: Option<&Pause>) -> Result<(), StoreError> {
        let pause = pause.map(to_json);
        let sql = "UPDATE migrations SET pause = ?2, changed = changed OR ?2 IS NOT NULL
                   WHERE id = ?1";
        self.update(id, sql, pause)
    }

    /// The migration is to be cancelled.
    pub fn set_cancel(&self, id: u64) -> Result<(), StoreError> {
        self.update(id, "UPDATE migrations SET cancel = ?2 WHERE id = ?1", true)
    }

    /// Sectors that cannot be read are left behind.
    pub fn set_skip_bad(&self, id: u64) -> Result<(), StoreError> {
        self.update(id, "UPDATE migrations SET skip_bad = ?2 WHERE id = ?1", true)
    }

    /// What was found out about the images.
    pub fn set_found(&self, id: u64, found: &FoundInImages) -> Result<(), StoreError> {
        let text = (*found != FoundInImages::default()).then(|| to_json(found));
        self.update(id, "UPDATE migrations SET found = ?2 WHERE id = ?1", text)
    }

    /// The copier has a new limit.
    pub fn set_rate(&self, id: u64, rate: Option<u64>) -> Result<(), StoreError> {
        let rate = rate.map(to_sql);
        let sql = "UPDATE migrations SET rate = ?2, changed = TRUE WHERE id = ?1";
        self.update(id, sql, rate)
    }

    /// Something else must hold meanwhile.
    pub fn set_guard(&self, id: u64, guard: &Guard) -> Result<(), StoreError> {
        let text = to_json(guard);
        let sql = "UPDATE migrations SET guard = ?2, changed = TRUE WHERE id = ?1";
        self.update(id, sql, text)
    }

    /// What the application has noticed so far.
    pub fn set_application(
        &self,
        id: u64,
        application: &Application,
    ) -> Result<(), StoreError> {
        let text = to_json(application);
        self.update(id, "UPDATE migrations SET application = ?2 WHERE id = ?1", text)
    }

    /// What its guard has found out.
    pub fn set_experience(&self, id: u64, learned: &Learned) -> Result<(), StoreError> {
        let text = to_json(learned);
        self.update(id, "UPDATE migrations SET experience = ?2 WHERE id = ?1", text)
    }

    fn update<V: rusqlite::ToSql + Send + 'static>(
        &self,
        id: u64,
        sql: &'static str,
        value: V,
    ) -> Result<(), StoreError> {
        self.run(move |connection| connection.execute(sql, params![to_sql(id), value]))?
            .map_err(cannot("change a migration"))?;
        Ok(())
    }
}
