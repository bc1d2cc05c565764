//! The record of a plan: many moves, and how far each is.
//!
//! What was planned never changes (`design`). How far it is changes with each step of its
//! machine (`placement::waves`), all that a step has changed in one transaction: a
//! restart finds the machine between two steps.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use sterna_api::{Guard, PlanEstimate, PlanState, Predicted, RefusedDisk, Tile};
use sterna_core::DiskId;
use sterna_placement::waves::{Fault, Stage};

use super::workloads::{WorkloadCourse, update_workloads, workloads_of};
use super::{Store, StoreError, cannot, from_json, from_sql, parsed, to_json, to_sql};

/// A plan, as the state knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRecord {
    /// Its number; given by the store.
    pub id: u64,
    /// Where it is.
    pub state: PlanState,
    /// What was planned.
    pub design: PlanDesign,
    /// By datastore: why it is left alone, if it is.
    pub closed: Vec<Option<Closed>>,
    /// When it was made (seconds since 1970).
    pub created: u64,
    /// When it was applied.
    pub started: Option<u64>,
    /// When it was over.
    pub ended: Option<u64>,
    /// In the order in which they are looked at.
    pub moves: Vec<PlanMove>,
    /// By tile: how far its workload is.
    pub workloads: Vec<WorkloadCourse>,
}

/// What a step has changed of a plan's parts.
#[derive(Debug, Default)]
pub struct PlanChanges {
    /// Of its moves, by their place.
    pub moves: Vec<(usize, Course)>,
    /// Of its workloads, by their tile.
    pub workloads: Vec<(usize, WorkloadCourse)>,
}

/// What was asked for, and what was there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanDesign {
    /// The datastore that is to be empty.
    pub datastore: String,
    /// The part of a destination's room that may be taken.
    pub space: f64,
    /// What must hold meanwhile, and when copies may run.
    pub guard: Guard,
    /// When all shall have moved (seconds since 1970).
    pub by: Option<u64>,
    /// The limit of each copy.
    pub rate: Option<u64>,
    /// Whether both sides of each are compared.
    pub verify: bool,
    /// No more moves at once.
    pub at_once: Option<u64>,
    /// The tiles.
    pub tiles: Vec<Tile>,
    /// By group: the groups that go before it, and whether it stays together.
    pub groups: Vec<(Vec<usize>, bool)>,
    /// The datastores.
    pub ends: Vec<PlanEnd>,
    /// The disks that stay.
    pub refused: Vec<RefusedDisk>,
    /// What it takes.
    pub estimate: PlanEstimate,
}

/// A datastore, as a plan sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanEnd {
    /// Its name.
    pub name: String,
    /// Whether disks may go there.
    pub takes: bool,
    /// What they may fill, in bytes.
    pub room: u64,
    /// Those of one plan with the same number have this room together.
    #[serde(default)]
    pub shared_room: Option<u64>,
    /// Whether it is all one disk's.
    pub single: bool,
    /// What copies from and to it come to together, in bytes per second.
    pub speed: Option<f64>,
}

/// Why a datastore is left alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closed {
    /// In which way it fails.
    #[serde(with = "FaultText")]
    pub fault: Fault,
    /// In words.
    pub why: String,
}

/// A move of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanMove {
    /// The disk.
    pub disk: DiskId,
    /// What was planned.
    pub design: MoveDesign,
    /// How far it is.
    pub course: Course,
}

/// What was planned of a move. Datastores are numbers among the plan's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveDesign {
    /// The disk's name.
    pub name: String,
    /// The datastore that it leaves.
    pub from: usize,
    /// The one that it was to go to.
    pub to: usize,
    /// Why there.
    pub why: String,
    /// The group that it belongs to.
    pub group: Option<usize>,
    /// The wave.
    pub wave: u32,
    /// The disk's size.
    pub size: u64,
    /// What it may need at the destination.
    pub needs: u64,
    /// What there is to copy.
    pub bytes: u64,
    /// What it takes by itself; absent where nobody could know.
    pub predicted: Option<Predicted>,
    /// What it was taken to take by itself, in seconds.
    pub time_s: f64,
    /// And to copy, in bytes per second.
    pub rate: f64,
    /// When it was to begin, in seconds from the plan's beginning.
    pub begins_s: f64,
    /// When it was to end.
    pub ends_s: f64,
}

/// How far a move is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Where it goes now.
    pub to: usize,
    /// Where it is.
    #[serde(with = "StageText")]
    pub stage: Stage,
    /// How often it has failed for something that may pass, or was to go on after that.
    pub tries: u32,
    /// Whether it stands still, or is to, because the plan does.
    #[serde(default)]
    pub held: bool,
    /// Why it stands still, or cannot begin yet.
    #[serde(default)]
    pub standing: Option<String>,
    /// How often it was begun.
    pub attempts: u32,
    /// The last migration there was when it was begun last: its own has a higher number.
    pub seen: u64,
    /// Its migration.
    pub migration: Option<u64>,
    /// What went wrong last.
    pub problem: Option<String>,
    /// When it was begun last (seconds since 1970).
    pub began: Option<u64>,
    /// When it was over.
    pub ended: Option<u64>,
    /// What its migration took, in seconds, if the disk has moved.
    pub took_s: Option<f64>,
}

/// A fault as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Fault", rename_all = "kebab-case")]
enum FaultText {
    Full,
    Destination,
    Away,
    Source,
    Unrecorded,
    Passing,
    Lasting,
}

/// A stage as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Stage", rename_all = "kebab-case")]
enum StageText {
    Waiting,
    Starting,
    Running,
    #[serde(rename = "standing")]
    Stalled(#[serde(with = "FaultText")] Fault),
    Leaving(#[serde(with = "FaultText")] Fault),
    Moved,
    Failed(#[serde(with = "FaultText")] Fault),
    Skipped(usize),
    GivenUp,
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<PlanRecord> {
    Ok(PlanRecord {
        id: from_sql(row.get("id")?),
        state: from_json(row, "state")?,
        design: from_json(row, "design")?,
        closed: from_json(row, "closed")?,
        created: from_sql(row.get("created")?),
        started: row.get::<_, Option<i64>>("started")?.map(from_sql),
        ended: row.get::<_, Option<i64>>("ended")?.map(from_sql),
        moves: Vec::new(),
        workloads: Vec::new(),
    })
}

fn read_move(row: &Row<'_>) -> rusqlite::Result<PlanMove> {
    Ok(PlanMove {
        disk: parsed(row, "disk")?,
        design: from_json(row, "design")?,
        course: from_json(row, "course")?,
    })
}

fn moves_of(connection: &Connection, plan: u64) -> rusqlite::Result<Vec<PlanMove>> {
    let sql = "SELECT * FROM plan_moves WHERE plan = ? ORDER BY place";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map([to_sql(plan)], read_move)?.collect()
}

/// A plan with its parts.
pub(super) fn whole(
    connection: &Connection,
    plan: PlanRecord,
) -> rusqlite::Result<PlanRecord> {
    let tiles = plan.design.tiles.len();
    Ok(PlanRecord {
        moves: moves_of(connection, plan.id)?,
        workloads: workloads_of(connection, plan.id, tiles)?,
        ..plan
    })
}

fn insert(connection: &Connection, one: &PlanRecord) -> rusqlite::Result<u64> {
    let sql = "INSERT INTO plans (state, design, closed, created) VALUES (?, ?, ?, ?)";
    let (state, design) = (to_json(&one.state), to_json(&one.design));
    let values = params![state, design, to_json(&one.closed), to_sql(one.created)];
    connection.execute(sql, values)?;
    let id = from_sql(connection.last_insert_rowid());
    let sql = "INSERT INTO plan_moves (plan, place, disk, design, course)
               VALUES (?, ?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(sql)?;
    for (place, it) in one.moves.iter().enumerate() {
        let place = to_sql(place as u64);
        let (design, course) = (to_json(&it.design), to_json(&it.course));
        let disk = it.disk.to_string();
        statement.execute(params![to_sql(id), place, disk, design, course])?;
    }
    Ok(id)
}

/// Records how far a plan is, and these of its parts.
fn update(
    connection: &Connection,
    one: &PlanRecord,
    changed: &PlanChanges,
) -> rusqlite::Result<()> {
    let sql =
        "UPDATE plans SET state = ?, closed = ?, started = ?, ended = ? WHERE id = ?";
    let (started, ended) = (one.started.map(to_sql), one.ended.map(to_sql));
    let (state, closed) = (to_json(&one.state), to_json(&one.closed));
    connection.execute(sql, params![state, closed, started, ended, to_sql(one.id)])?;
    let sql = "UPDATE plan_moves SET course = ? WHERE plan = ? AND place = ?";
    let mut statement = connection.prepare_cached(sql)?;
    for (place, course) in &changed.moves {
        let place = to_sql(*place as u64);
        statement.execute(params![to_json(course), to_sql(one.id), place])?;
    }
    update_workloads(connection, one.id, &changed.workloads)
}

impl Store {
    /// All plans, oldest first.
    pub fn plans(&self) -> Result<Vec<PlanRecord>, StoreError> {
        self.run(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT * FROM plans ORDER BY id")?;
            let plans = statement.query_map([], read)?;
            let plans = plans.map(|plan| whole(connection, plan?));
            plans.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the plans"))
    }

    /// The plan of that number.
    pub fn plan(&self, id: u64) -> Result<Option<PlanRecord>, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT * FROM plans WHERE id = ?";
            let plan = connection.prepare_cached(sql)?.query_row([to_sql(id)], read);
            plan.optional()?.map(|plan| whole(connection, plan)).transpose()
        })?
        .map_err(cannot("look up a plan"))
    }

    /// Adds a plan and gives it its number.
    pub fn add_plan(&self, one: PlanRecord) -> Result<u64, StoreError> {
        self.transact(move |transaction| {
            insert(transaction, &one).map_err(cannot("add a plan"))
        })
    }

    /// Removes a plan with all of its parts.
    pub fn remove_plan(&self, id: u64) -> Result<(), StoreError> {
        self.run(move |connection| {
            connection.execute("DELETE FROM plans WHERE id = ?", [to_sql(id)])
        })?
        .map_err(cannot("remove a plan"))?;
        Ok(())
    }

    /// Records how far a plan is: it as a whole, and these of its parts.
    pub fn set_plan(
        &self,
        one: &PlanRecord,
        changed: PlanChanges,
    ) -> Result<(), StoreError> {
        let (moves, workloads) = (Vec::new(), Vec::new());
        let one = PlanRecord { moves, workloads, ..one.clone() };
        self.transact(move |transaction| {
            update(transaction, &one, &changed).map_err(cannot("change a plan"))
        })
    }
}
