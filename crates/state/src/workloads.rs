//! The record of a workload that a plan stops and starts: a row for each that was touched.

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use sterna_placement::waves::Running;

use super::plans::{read, whole};
use super::{
    PlanRecord, Store, StoreError, cannot, from_json, from_sql, to_json, to_sql,
};

/// How far a workload is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadCourse {
    /// Where it is.
    #[serde(with = "RunningText")]
    pub running: Running,
    /// How often it did not start.
    pub tries: u32,
    /// When it was told to stop (seconds since 1970).
    pub stopped: Option<u64>,
    /// When it had started again.
    pub started: Option<u64>,
    /// What its hooks failed with last.
    pub problem: Option<String>,
}

/// Where a workload is, as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Running", rename_all = "kebab-case")]
enum RunningText {
    Untouched,
    Stopping(usize),
    Stopped,
    Starting,
    Started,
    NotStarted,
}

/// Those of a plan, by tile.
pub(super) fn workloads_of(
    connection: &Connection,
    plan: u64,
    tiles: usize,
) -> rusqlite::Result<Vec<WorkloadCourse>> {
    let mut all = vec![WorkloadCourse::default(); tiles];
    let sql = "SELECT * FROM plan_workloads WHERE plan = ?";
    let mut statement = connection.prepare_cached(sql)?;
    let known = statement.query_map([to_sql(plan)], |row| {
        let tile: u64 = from_sql(row.get("tile")?);
        Ok((tile, from_json(row, "course")?))
    })?;
    for one in known {
        let (tile, course) = one?;
        let tile = usize::try_from(tile).ok().and_then(|tile| all.get_mut(tile));
        if let Some(kept) = tile {
            *kept = course;
        }
    }
    Ok(all)
}

/// Records how far these workloads of a plan are.
pub(super) fn update_workloads(
    connection: &Connection,
    plan: u64,
    changed: &[(usize, WorkloadCourse)],
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO plan_workloads (plan, tile, course) VALUES (?, ?, ?)
               ON CONFLICT (plan, tile) DO UPDATE SET course = excluded.course";
    let mut statement = connection.prepare_cached(sql)?;
    for (tile, course) in changed {
        let tile = to_sql(*tile as u64);
        statement.execute(params![to_sql(plan), tile, to_json(course)])?;
    }
    Ok(())
}

impl Store {
    /// The plans that have ended since then (seconds since 1970) and could not start what
    /// they had stopped.
    pub fn plans_left_down(&self, since: u64) -> Result<Vec<PlanRecord>, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT * FROM plans WHERE ended >= ? AND id IN
                       (SELECT plan FROM plan_workloads
                        WHERE course ->> 'running' = 'not-started') ORDER BY id";
            let mut statement = connection.prepare_cached(sql)?;
            let plans = statement.query_map([to_sql(since)], read)?;
            let plans = plans.map(|plan| whole(connection, plan?));
            plans.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the plans that left something down"))
    }
}
