//! The record of a transfer: a VM's way from one QEMU to another.
//!
//! ```text
//! created ──> copying ──> committed ──> completed, lost
//!    │           └─> returning <─┘
//!    └──> cancelled     └──> cancelled, lost
//! ```
//!
//! - `created`: the other QEMU is being started, or told what comes.
//! - `copying`: the guest may be on its way. It runs where it was.
//! - `returning`: it is taken back. Only the one that it was in may run it.
//! - `committed`: the other QEMU has all of it, and may have been told to run it. The one
//!   that it left may not run it any more.
//!
//! From `committed` it is taken back only where the other QEMU has not run it, or the one that
//! it left does. `lost` is one of which nobody knows where the guest is, or that is in
//! neither.
//!
//! Transfers that have not ended are read with the registry, and changed with it.

use std::path::PathBuf;

use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use sterna_api::TransferReport;

use super::{Store, StoreError, cannot, from_json, from_sql, to_json, to_sql};

/// Where a transfer is, as far as a crash must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferStep {
    /// The other QEMU is being started, or told what comes.
    Created,
    /// The guest may be on its way.
    Copying,
    /// It is taken back.
    Returning,
    /// The other QEMU has all of it.
    Committed,
    /// It runs where it was to go.
    Completed,
    /// It runs where it was.
    Cancelled,
    /// Nobody knows where it is, or it is nowhere.
    Lost,
}

impl TransferStep {
    /// Whether nothing will happen any more.
    pub fn ended(self) -> bool {
        matches!(
            self,
            TransferStep::Completed | TransferStep::Cancelled | TransferStep::Lost
        )
    }
}

/// A transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferRecord {
    /// 0 while it has none.
    pub id: u64,
    /// The VM.
    pub vm: String,
    /// Where it is.
    pub step: TransferStep,
    /// What is to be done.
    pub design: TransferDesign,
    /// Somebody wants it to be given up.
    pub cancel: bool,
    /// When it began (seconds since 1970).
    pub started: u64,
    /// How it has ended, if it has.
    pub end: Option<TransferEnd>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferDesign {
    /// The host that the VM leaves.
    pub from: String,
    /// The host that it goes to.
    pub to: String,
    /// The QMP socket of the QEMU that it is in.
    pub source: PathBuf,
    /// And of the other QEMU.
    pub destination: PathBuf,
    /// The program that starts the other QEMU, if one is to.
    pub program: Option<PathBuf>,
    /// The disks of ours that the VM has, by id.
    pub disks: Vec<String>,
    /// Bytes per second at most.
    pub rate: Option<u64>,
    /// What it is for, in words.
    pub reason: String,
    /// How much that matters.
    pub priority: u8,
    /// Whether nobody has asked for it.
    pub automatic: bool,
    /// The process of the QEMU that waits, once it was told of the guest, and if it could
    /// be seen.
    #[serde(default)]
    pub receiver: Option<ReceiverProcess>,
}

/// The process of a QEMU that waits for a guest, and none that gets its number after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverProcess {
    /// Its number.
    pub pid: i32,
    /// When it was started, in ticks since the host was.
    pub started: u64,
}

/// How a transfer has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferEnd {
    /// When (seconds since 1970).
    pub at: u64,
    /// What there is to be said of it.
    pub note: Option<String>,
    /// How it went, if it has moved the VM.
    pub report: Option<TransferReport>,
}

/// Those that have not ended.
pub(super) const OPEN: &str = "SELECT * FROM transfers
    WHERE step NOT IN ('\"completed\"', '\"cancelled\"', '\"lost\"') ORDER BY id";

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<TransferRecord> {
    Ok(TransferRecord {
        id: from_sql(row.get("id")?),
        vm: row.get("vm")?,
        step: from_json(row, "step")?,
        design: from_json(row, "design")?,
        cancel: row.get("cancel")?,
        started: from_sql(row.get("started")?),
        end: from_json(row, "end")?,
    })
}

/// Enters a new one, or one that has changed.
pub(super) fn write(
    connection: &Connection,
    one: &TransferRecord,
) -> rusqlite::Result<usize> {
    let id = (one.id > 0).then(|| to_sql(one.id));
    connection.execute(
        "INSERT OR REPLACE INTO transfers (id, vm, step, design, cancel, started, end)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![
            id,
            one.vm,
            to_json(&one.step),
            to_json(&one.design),
            one.cancel,
            to_sql(one.started),
            one.end.as_ref().map(to_json),
        ],
    )
}

impl Store {
    /// All transfers, oldest first.
    pub fn transfers(&self) -> Result<Vec<TransferRecord>, StoreError> {
        self.run(|connection| {
            let sql = "SELECT * FROM transfers ORDER BY id";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map([], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the transfers"))
    }
}
