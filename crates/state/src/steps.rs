//! The steps of a migration: where a crash finds it.
//!
//! ```text
//! created ──> copying <──> switching ──> committed ──> completed
//!    └───────────┴─────────────┴──> cancelled
//! ```
//!
//! - `created`: the destination image is being made.
//! - `copying`: it is there, partial; the source is the truth.
//! - `switching`: a switch-over has begun and the destination's sidecar may say
//!   active. The source is still the truth, and before it is trusted again
//!   after a restart (or before `copying`), its generation must be raised.
//! - `committed`: the destination is the truth; the source is to be put away.
//!
//! Each change of the step is one transaction with what it means for the other
//! records, and fails if the step does not lead there.

use std::fmt;
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, params};
use sterna_api::{Application, Report};

use super::{Store, StoreError, cannot, from_sql, parsed, to_json, to_sql};

/// Where a migration is, as far as a crash must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The destination image is being made.
    Created,
    /// Regions are being copied.
    Copying,
    /// The destination's sidecar may say active.
    Switching,
    /// The destination is the truth.
    Committed,
    /// Nothing is left to do.
    Completed,
    /// The source is the truth, as before.
    Cancelled,
}

impl Step {
    /// All of them.
    #[cfg(test)]
    pub const ALL: [Step; 6] = [
        Step::Created,
        Step::Copying,
        Step::Switching,
        Step::Committed,
        Step::Completed,
        Step::Cancelled,
    ];

    /// Whether a migration may go from this step to `next`.
    pub fn leads_to(self, next: Step) -> bool {
        match self {
            Step::Created => matches!(next, Step::Copying | Step::Cancelled),
            // Each attempt at a switch-over is recorded, so it leads to itself.
            Step::Copying => matches!(next, Step::Switching | Step::Cancelled),
            Step::Switching => {
                matches!(next, Step::Switching | Step::Copying | Step::Committed)
            }
            Step::Committed => next == Step::Completed,
            Step::Completed | Step::Cancelled => false,
        }
    }

    /// Whether nothing will happen any more.
    pub fn ended(self) -> bool {
        matches!(self, Step::Completed | Step::Cancelled)
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Step::Created => "created",
            Step::Copying => "copying",
            Step::Switching => "switching",
            Step::Committed => "committed",
            Step::Completed => "completed",
            Step::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

/// The text is no step.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no step of a migration")]
pub struct ParseStepError(String);

impl FromStr for Step {
    type Err = ParseStepError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "created" => Step::Created,
            "copying" => Step::Copying,
            "switching" => Step::Switching,
            "committed" => Step::Committed,
            "completed" => Step::Completed,
            "cancelled" => Step::Cancelled,
            _ => return Err(ParseStepError(text.into())),
        })
    }
}

/// Moves a migration to `next` if its step leads there. In a transaction of the
/// caller's.
pub(super) fn advance(
    connection: &Connection,
    id: u64,
    next: Step,
) -> Result<(), StoreError> {
    let failed = || cannot("record a migration's step");
    let sql = "SELECT step FROM migrations WHERE id = ?";
    let step: Option<Step> = connection
        .query_row(sql, [to_sql(id)], |row| parsed(row, "step"))
        .optional()
        .map_err(failed())?;
    if !step.is_some_and(|step| step.leads_to(next)) {
        return Err(StoreError::Step { id, wanted: next });
    }
    let sql = "UPDATE migrations SET step = ? WHERE id = ?";
    connection.execute(sql, params![next.text(), to_sql(id)]).map_err(failed())?;
    Ok(())
}

/// What a migration's end leaves in its record.
#[derive(Clone, Debug)]
pub struct Ending {
    /// When (seconds since 1970).
    pub at: u64,
    /// How, if not as asked.
    pub note: Option<String>,
    /// What the application noticed.
    pub application: Application,
    /// What it came to.
    pub report: Option<Report>,
}

impl Store {
    /// The destination image is there, under this name.
    pub fn migration_begins(
        &self,
        id: u64,
        image: &str,
        reads_zero: bool,
    ) -> Result<(), StoreError> {
        let image = image.to_owned();
        self.transact(move |transaction| {
            advance(transaction, id, Step::Copying)?;
            let sql = "UPDATE migrations SET to_image = ?, reads_zero = ? WHERE id = ?";
            let set = transaction.execute(sql, params![image, reads_zero, to_sql(id)]);
            set.map(drop).map_err(cannot("record the destination image"))
        })
    }

    /// A switch-over is being tried; gives the number of the attempt, by which its
    /// commit is known.
    pub fn migration_switches(&self, id: u64) -> Result<u64, StoreError> {
        self.transact(move |transaction| {
            advance(transaction, id, Step::Switching)?;
            let sql = "UPDATE migrations SET attempts = attempts + 1 WHERE id = ?
                       RETURNING attempts";
            let attempt = transaction.query_row(sql, [to_sql(id)], |row| row.get(0));
            attempt.map(from_sql).map_err(cannot("record a switch-over"))
        })
    }

    /// The source is the only truth again, under a new generation.
    pub fn migration_unsealed(
        &self,
        id: u64,
        source_generation: u64,
        destination_generation: u64,
    ) -> Result<(), StoreError> {
        let (source, destination) =
            (to_sql(source_generation), to_sql(destination_generation));
        self.transact(move |transaction| {
            advance(transaction, id, Step::Copying)?;
            let set = transaction
                .execute(
                    "UPDATE migrations SET source_generation = ?,
                     destination_generation = ? WHERE id = ?",
                    params![source, destination, to_sql(id)],
                )
                .and_then(|_| {
                    let sql = "UPDATE disks SET generation = ? WHERE id =
                               (SELECT disk FROM migrations WHERE id = ?)";
                    transaction.execute(sql, params![source, to_sql(id)])
                });
            set.map(drop).map_err(cannot("record the source's generation"))
        })
    }

    /// The migration has ended.
    pub fn migration_ends(
        &self,
        id: u64,
        step: Step,
        ending: &Ending,
    ) -> Result<(), StoreError> {
        let ending = ending.clone();
        self.transact(move |transaction| {
            advance(transaction, id, step)?;
            let sql = "UPDATE migrations SET ended = ?, note = ?, application = ?,
                       report = ?, pause = NULL WHERE id = ?";
            let set = transaction.execute(
                sql,
                params![
                    to_sql(ending.at),
                    ending.note,
                    to_json(&ending.application),
                    ending.report.as_ref().map(to_json),
                    to_sql(id),
                ],
            );
            set.map(drop).map_err(cannot("record a migration's end"))
        })
    }

    /// What a migration that has ended says of its old image is true no longer: it says this.
    pub fn set_end_note(&self, id: u64, note: &str) -> Result<(), StoreError> {
        let note = note.to_owned();
        self.run(move |connection| {
            let sql = "UPDATE migrations SET note = ? WHERE id = ? AND ended IS NOT NULL";
            connection.execute(sql, params![note, to_sql(id)])
        })?
        .map_err(cannot("record what a migration has left"))?;
        Ok(())
    }

    /// The migration was refused before it began, and nothing of it is left: it was never
    /// there. Only its number is used up. Fails if a policy refers to it by now.
    pub fn migration_never_began(&self, id: u64) -> Result<(), StoreError> {
        self.run(move |connection| {
            connection.execute("DELETE FROM migrations WHERE id = ?", [to_sql(id)])
        })?
        .map_err(cannot("remove the record of a migration that was refused"))?;
        Ok(())
    }

    /// Carries `work` out in one transaction.
    pub(super) fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(move |connection| {
            let transaction =
                connection.transaction().map_err(cannot("begin a transaction"))?;
            let value = work(&transaction)?;
            transaction.commit().map_err(cannot("commit a transaction"))?;
            Ok(value)
        })?
    }
}
