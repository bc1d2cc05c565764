//! Migrations: moving a disk's image to another datastore, live.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Application, AskGuard, Balanced, Guarding, Predicted, Provision};

/// Where a migration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationState {
    /// The destination image is being made.
    Created,
    /// Regions are being copied.
    Copying,
    /// Both sides are being read and compared.
    Verifying,
    /// The switch-over is being made.
    SwitchingOver,
    /// It stands still, with a reason; `resume` makes it go on.
    Paused,
    /// It was cancelled; the destination image is being removed.
    Cancelling,
    /// The destination is the truth; the source image is being put away.
    CleaningUp,
    /// The destination is the truth, and nothing is left to do.
    Completed,
    /// The source is the truth, as before.
    Cancelled,
}

impl MigrationState {
    /// Whether nothing will happen any more.
    pub fn ended(self) -> bool {
        matches!(self, MigrationState::Completed | MigrationState::Cancelled)
    }
}

impl fmt::Display for MigrationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            MigrationState::Created => "created",
            MigrationState::Copying => "copying",
            MigrationState::Verifying => "verifying",
            MigrationState::SwitchingOver => "switching over",
            MigrationState::Paused => "paused",
            MigrationState::Cancelling => "cancelling",
            MigrationState::CleaningUp => "cleaning up",
            MigrationState::Completed => "completed",
            MigrationState::Cancelled => "cancelled",
        })
    }
}

/// How far a migration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// The disk's size.
    pub total: u64,
    /// Bytes on the destination that equal the source's.
    pub synced: u64,
    /// Bytes written to the destination by the copier (what was copied again
    /// counts again), over restarts of the daemon.
    pub copied: u64,
    /// Bytes verified so far, if verification was asked for.
    pub verified: Option<u64>,
    /// Regions that are behind and must be copied again.
    pub late_regions: u64,
    /// What the copier gets through now, bytes of the disk per second; 0 while
    /// it is paused.
    pub rate: f64,
    /// How long the rest will take at this rate, in seconds.
    pub eta_s: Option<f64>,
    /// How long the guest was held at the switch-over, in milliseconds.
    pub switch_over_ms: Option<f64>,
    /// Switch-overs begun and undone.
    pub undone: u32,
    /// How long a write may wait for the destination now, in milliseconds.
    pub patience_ms: f64,
}

/// A part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Span {
    /// Its first byte, from the disk's beginning.
    pub offset: u64,
    /// Bytes in it.
    pub length: u64,
}

/// Parts of a disk, counted and listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Places {
    /// How many parts there are; neighbours are one.
    pub places: u64,
    /// Bytes in all of them.
    pub bytes: u64,
    /// The first of them, in order: 1024 at most.
    pub listed: Vec<Span>,
}

/// What a migration came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Report {
    /// From the request to the end, pauses included, in seconds.
    pub duration_s: f64,
    /// Bytes written to the destination by the copier.
    pub copied: u64,
    /// Bytes copied per second of copying, without pauses and verification.
    pub average_rate: f64,
    /// Bytes compared because an old copy was there.
    #[serde(default)]
    pub compared: Option<u64>,
    /// How long the guest was held at the switch-over, in milliseconds.
    pub switch_over_ms: Option<f64>,
    /// Switch-overs begun and undone.
    pub undone: u32,
    /// Bytes verified, if verification was asked for.
    pub verified: Option<u64>,
    /// What the destination image takes, if its datastore can tell.
    pub allocated: Option<u64>,
}

/// A migration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Migration {
    /// Its number.
    pub id: u64,
    /// The disk's name.
    pub disk: String,
    /// The disk's size.
    pub size: u64,
    /// The datastore that the disk leaves.
    pub from: String,
    /// The datastore that it goes to.
    pub to: String,
    /// How the destination image is provisioned.
    pub provision: Provision,
    /// The copier's limit in bytes per second, if there is one.
    pub rate: Option<u64>,
    /// Whether both sides are compared before the switch-over.
    pub verify: bool,
    /// Whether the source image is kept.
    pub keep_source: bool,
    /// Whether sectors of the source that cannot be read are left behind.
    #[serde(default)]
    pub skip_bad_sectors: bool,
    /// What must hold for the application, if something was asked for, and whether it
    /// does.
    #[serde(default)]
    pub guard: Option<Guarding>,
    /// Where it is.
    pub state: MigrationState,
    /// Why it is paused, or how it ended if not as asked.
    pub reason: Option<String>,
    /// What to do about that.
    pub hint: Option<String>,
    /// When it was asked for (seconds since 1970).
    pub started: u64,
    /// When it ended (seconds since 1970).
    pub ended: Option<u64>,
    /// What it was predicted to take when it began; absent where nobody could know.
    #[serde(default)]
    pub predicted: Option<Predicted>,
    /// What Storage DRS promised of it, and what came of that; absent if somebody else
    /// asked for it.
    #[serde(default)]
    pub balanced: Option<Balanced>,
    /// How far it is; absent where nothing is known (yet).
    pub progress: Option<Progress>,
    /// What the application notices.
    pub application: Application,
    /// Sectors of the source that cannot be read, as far as is known. Once the migration is
    /// completed, those that were left behind: on the destination they read as zeroes, or
    /// as what was copied of them while they could be read.
    #[serde(default)]
    pub bad_sectors: Option<Places>,
    /// What went on to read differently on the destination after it was copied again.
    #[serde(default)]
    pub differing: Option<Places>,
    /// What it came to; present once it has ended.
    pub report: Option<Report>,
    /// It has ended, and nobody has seen in which of both images the last writes are: the
    /// virtual machine ended while it switched over. Both are kept, and `hint` says what
    /// to do. It is over once the machine was seen with the destination.
    pub unclear: bool,
}

/// Asks for a migration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartMigration {
    /// The disk to move.
    pub disk: String,
    /// The datastore to move it to.
    pub to: String,
    /// How to provision the destination image; as the source's if left out.
    #[serde(default)]
    pub provision: Option<Provision>,
    /// The copier's limit in bytes per second.
    #[serde(default)]
    pub rate: Option<u64>,
    /// Compare both sides before the switch-over: yes, if left out.
    #[serde(default = "crate::yes")]
    pub verify: bool,
    /// Keep the source image (as a retired one).
    #[serde(default)]
    pub keep_source: bool,
    /// Leave sectors behind that cannot be read on the source, instead of pausing for them
    /// when all else is done. What they held is lost.
    #[serde(default)]
    pub skip_bad_sectors: bool,
    /// What must hold for the application meanwhile.
    #[serde(default)]
    pub guard: AskGuard,
}

/// Makes a paused migration go on; all of it may be left out.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct ResumeMigration {
    /// From now on leave sectors behind that cannot be read on the source. They are tried
    /// again before; what they held is lost.
    #[serde(default)]
    pub skip_bad_sectors: bool,
}

/// Changes a migration's rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRate {
    /// The copier's new limit in bytes per second; `null` lifts it.
    pub rate: Option<u64>,
}
