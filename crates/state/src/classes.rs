//! The record of a class, and which disks are in it.

use rusqlite::{Connection, Row, params};
use sterna_api::Rate as RateOnTheWire;
use sterna_core::DiskId;
use sterna_core::qos::{ClassId, Rate};

use super::{
    Store, StoreError, cannot, from_json, from_sql, parsed, to_json, to_sql, unfit,
};

/// A class, as the state knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRecord {
    /// Its number; given by the store.
    pub id: ClassId,
    /// Its name.
    pub name: String,
    /// Its shares.
    pub shares: u32,
    /// Its reservation.
    pub reservation: Option<Rate>,
    /// When it was created (seconds since 1970).
    pub created: u64,
}

/// What becomes of a class. All of it is done, or nothing.
#[derive(Clone, Debug)]
pub struct ClassChange {
    /// Its shares.
    pub shares: u32,
    /// Its reservation.
    pub reservation: Option<Rate>,
    /// Disks that come to it; they are in no other class.
    pub add: Vec<DiskId>,
    /// Disks of its that leave it.
    pub remove: Vec<DiskId>,
}

fn read(row: &Row<'_>) -> rusqlite::Result<ClassRecord> {
    let reservation: Option<RateOnTheWire> = from_json(row, "reservation")?;
    let reservation = reservation.map(Rate::try_from).transpose();
    Ok(ClassRecord {
        id: class_id(row.get("id")?),
        name: row.get("name")?,
        shares: u32::try_from(row.get::<_, i64>("shares")?).unwrap_or(1),
        reservation: reservation.map_err(|error| unfit(row, "reservation", error))?,
        created: from_sql(row.get("created")?),
    })
}

/// A class's number as SQLite kept it: counted up from 1, so it stays small.
pub(super) fn class_id(number: i64) -> ClassId {
    ClassId(u32::try_from(number).unwrap_or(u32::MAX))
}

fn reservation_text(reservation: Option<Rate>) -> Option<String> {
    reservation.map(|rate| to_json(&RateOnTheWire::from(rate)))
}

fn join(connection: &Connection, class: i64, disks: &[DiskId]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO members (disk, class) VALUES (?, ?)";
    disks.iter().try_for_each(|disk| {
        let member = params![disk.to_string(), class];
        connection.prepare_cached(sql)?.execute(member).map(drop)
    })
}

fn leave(connection: &Connection, class: i64, disks: &[DiskId]) -> rusqlite::Result<()> {
    let sql = "DELETE FROM members WHERE disk = ? AND class = ?";
    disks.iter().try_for_each(|disk| {
        let member = params![disk.to_string(), class];
        connection.prepare_cached(sql)?.execute(member).map(drop)
    })
}

fn insert(connection: &Connection, one: &ClassRecord) -> rusqlite::Result<i64> {
    connection.execute(
        "INSERT INTO classes (name, shares, reservation, created) VALUES (?, ?, ?, ?)",
        params![
            one.name,
            one.shares,
            reservation_text(one.reservation),
            to_sql(one.created)
        ],
    )?;
    Ok(connection.last_insert_rowid())
}

impl Store {
    /// All classes, the built-in ones first, then as they were made.
    pub fn classes(&self) -> Result<Vec<ClassRecord>, StoreError> {
        self.run(|connection| {
            let sql = "SELECT * FROM classes ORDER BY id";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map([], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the classes"))
    }

    /// Which disk is in which class.
    pub fn members(&self) -> Result<Vec<(DiskId, ClassId)>, StoreError> {
        self.run(|connection| {
            let sql = "SELECT disk, class FROM members";
            let mut statement = connection.prepare_cached(sql)?;
            let member =
                |row: &Row<'_>| Ok((parsed(row, "disk")?, class_id(row.get("class")?)));
            statement.query_map([], member)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the members of classes"))
    }

    /// Adds a class with its disks, which are in no other; gives its number.
    pub fn add_class(
        &self,
        one: ClassRecord,
        disks: Vec<DiskId>,
    ) -> Result<ClassId, StoreError> {
        self.transact(move |transaction| {
            let id = insert(transaction, &one).map_err(cannot("add a class"))?;
            join(transaction, id, &disks).map_err(cannot("put disks into a class"))?;
            Ok(class_id(id))
        })
    }

    /// Changes a class.
    pub fn change_class(
        &self,
        class: ClassId,
        change: ClassChange,
    ) -> Result<(), StoreError> {
        self.transact(move |transaction| {
            let id = i64::from(class.0);
            let sql = "UPDATE classes SET shares = ?, reservation = ? WHERE id = ?";
            let reservation = reservation_text(change.reservation);
            transaction
                .execute(sql, params![change.shares, reservation, id])
                .and_then(|_| leave(transaction, id, &change.remove))
                .and_then(|()| join(transaction, id, &change.add))
                .map_err(cannot("change a class"))
        })
    }

    /// Forgets a class and its policies; its disks are in none then.
    pub fn remove_class(&self, class: ClassId) -> Result<(), StoreError> {
        self.run(move |connection| {
            let sql = "DELETE FROM classes WHERE id = ?";
            connection.execute(sql, [i64::from(class.0)])
        })?
        .map_err(cannot("remove a class"))?;
        Ok(())
    }
}
