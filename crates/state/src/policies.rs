//! The record of a policy.

use rusqlite::{Row, params};
use sterna_api::Aim as AimOnTheWire;
use sterna_core::qos::ClassId;
use sterna_core::qos::policy::{Aim, PolicyId};
use sterna_core::schedule::Schedule;

use super::classes::class_id;
use super::{
    Store, StoreError, cannot, from_json, from_sql, parsed, to_json, to_sql, unfit,
};

/// A policy, as the state knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRecord {
    /// Its number; given by the store.
    pub id: PolicyId,
    /// The class that it speaks of.
    pub class: ClassId,
    /// What it wants.
    pub aim: Aim,
    /// When it holds.
    pub schedule: Option<Schedule>,
    /// The migration with which it ends, of a disk of ours or of a VM's.
    pub until_job: Option<u64>,
    /// When it was made (seconds since 1970).
    pub created: u64,
}

fn read(row: &Row<'_>) -> rusqlite::Result<PolicyRecord> {
    let aim: AimOnTheWire = from_json(row, "aim")?;
    let schedule: Option<String> = row.get("schedule")?;
    let (migration, a_move): (Option<i64>, _) =
        (row.get("until_job")?, row.get("until_move")?);
    Ok(PolicyRecord {
        id: PolicyId(from_sql(row.get("id")?)),
        class: class_id(row.get("class")?),
        aim: Aim::try_from(aim).map_err(|error| unfit(row, "aim", error))?,
        schedule: schedule.map(|_| parsed(row, "schedule")).transpose()?,
        until_job: migration.or(a_move).map(from_sql),
        created: from_sql(row.get("created")?),
    })
}

/// A number that is no move's has to be a migration's.
const INSERT: &str = "
    INSERT INTO policies (class, aim, schedule, until_job, until_move, created)
    SELECT ?1, ?2, ?3, iif(one IS NULL, ?4, NULL), one, ?5
    FROM (SELECT (SELECT id FROM vm_moves WHERE id = ?4) AS one)";

impl Store {
    /// All policies, oldest first.
    pub fn policies(&self) -> Result<Vec<PolicyRecord>, StoreError> {
        self.run(|connection| {
            let sql = "SELECT * FROM policies ORDER BY id";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map([], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the policies"))
    }

    /// Adds a policy; gives its number.
    pub fn add_policy(&self, one: PolicyRecord) -> Result<PolicyId, StoreError> {
        self.run(move |connection| {
            let values = params![
                i64::from(one.class.0),
                to_json(&AimOnTheWire::from(one.aim)),
                one.schedule.as_ref().map(ToString::to_string),
                one.until_job.map(to_sql),
                to_sql(one.created),
            ];
            connection.execute(INSERT, values)?;
            Ok(PolicyId(from_sql(connection.last_insert_rowid())))
        })?
        .map_err(cannot("add a policy"))
    }

    /// Forgets a policy.
    pub fn remove_policy(&self, policy: PolicyId) -> Result<(), StoreError> {
        self.run(move |connection| {
            connection.execute("DELETE FROM policies WHERE id = ?", [to_sql(policy.0)])
        })?
        .map_err(cannot("remove a policy"))?;
        Ok(())
    }
}
