//! Migrations: moving a disk's image to another datastore, live.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Application, AskGuard, Balanced, BindingLimit, Guarding, Predicted, Provision,
};

/// The state of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationState {
    /// Sterna creates the destination image.
    Created,
    /// Regions are being copied.
    Copying,
    /// Both sides are being read and compared.
    Verifying,
    /// The switch-over is being made.
    SwitchingOver,
    /// The migration is paused, with a reason; `resume` continues it.
    Paused,
    /// It was cancelled; the destination image is being removed.
    Cancelling,
    /// The destination is the truth; Sterna retires or removes the source image.
    CleaningUp,
    /// The destination is the truth, and all work is done.
    Completed,
    /// The source is the truth, as before.
    Cancelled,
}

impl MigrationState {
    /// Whether this state is final.
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

/// The progress of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// The disk's size.
    pub total: u64,
    /// Bytes on the destination that equal the source's.
    pub synced: u64,
    /// Bytes that the copier has written to the destination, over restarts of the daemon;
    /// a region that is copied again counts again.
    pub copied: u64,
    /// Bytes verified so far, if verification was asked for.
    pub verified: Option<u64>,
    /// Bytes that are still to be copied, as far as is known. Holes take no time and do not
    /// count.
    pub to_copy: u64,
    /// Bytes of each side that are still to be compared, like those.
    pub to_compare: u64,
    /// Regions that are behind and must be copied again.
    pub late_regions: u64,
    /// The copier's speed now, in bytes of the disk per second; 0 while it is paused.
    pub rate: f64,
    /// How long the rest will take at this rate, in seconds. Nothing while that is unknown: a
    /// move that stands still, or whose switch-over was undone and is tried again.
    pub eta_s: Option<f64>,
    /// How long the guest was held at the switch-over, in milliseconds.
    pub switch_over_ms: Option<f64>,
    /// Switch-overs begun and undone since the daemon that carries out the move was started.
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

/// The results of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Report {
    /// From the request to the end, pauses included, in seconds.
    pub duration_s: f64,
    /// Bytes written to the destination by the copier.
    pub copied: u64,
    /// Bytes copied per second of copying, without pauses and verification.
    pub average_rate: f64,
    /// Bytes compared, because the destination had an old copy.
    #[serde(default)]
    pub compared: Option<u64>,
    /// How long the guest was held at the switch-over, in milliseconds.
    pub switch_over_ms: Option<f64>,
    /// Switch-overs begun and undone since the daemon that carries out the move was started.
    pub undone: u32,
    /// Bytes verified, if verification was asked for.
    pub verified: Option<u64>,
    /// The space that the destination image occupies, if its datastore reports it.
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
    /// The destination datastore.
    pub to: String,
    /// How the destination image is provisioned.
    pub provision: Provision,
    /// The copier's limit in bytes per second, if there is one.
    pub rate: Option<u64>,
    /// Whether both sides are compared before the switch-over.
    pub verify: bool,
    /// Whether the source image is kept.
    pub keep_source: bool,
    /// Whether the migration skips sectors of the source that cannot be read.
    #[serde(default)]
    pub skip_bad_sectors: bool,
    /// The guard and its state, if the migration has a guard.
    #[serde(default)]
    pub guard: Option<Guarding>,
    /// Where it is.
    pub state: MigrationState,
    /// Why it is paused, why it does not end, or why it ended otherwise than asked.
    pub reason: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
    /// When it was asked for (seconds since 1970).
    pub started: u64,
    /// When it ended (seconds since 1970).
    pub ended: Option<u64>,
    /// The prediction when it began; absent if Sterna could not predict it.
    #[serde(default)]
    pub predicted: Option<Predicted>,
    /// What Storage DRS predicted, and what it measured; absent if Storage DRS has not
    /// started the migration.
    #[serde(default)]
    pub balanced: Option<Balanced>,
    /// The limit on all copies that holds its copy back now; absent if none does.
    #[serde(default)]
    pub held: Option<BindingLimit>,
    /// Its progress; absent while unknown.
    pub progress: Option<Progress>,
    /// The effect on the application.
    pub application: Application,
    /// Known sectors of the source that cannot be read. Once the migration is completed,
    /// the skipped sectors: on the destination they read as zeroes, or as the data that
    /// was copied while they could be read.
    #[serde(default)]
    pub bad_sectors: Option<Places>,
    /// Parts that still read differently on the destination after they were copied again.
    #[serde(default)]
    pub differing: Option<Places>,
    /// Its results; present once it has ended.
    pub report: Option<Report>,
    /// The VM ended during the switch-over, so it is unknown which of both images has the
    /// last writes. Sterna keeps both, and `hint` says what to do. The value becomes
    /// false once Sterna has seen the VM with the destination.
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
    /// How to provision the destination image; like the source image if left out.
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
    /// Skip sectors that cannot be read on the source, instead of pausing when the rest
    /// is copied. The data of skipped sectors is lost.
    #[serde(default)]
    pub skip_bad_sectors: bool,
    /// The guard.
    #[serde(default)]
    pub guard: AskGuard,
}

/// Resumes a paused migration; every field is optional.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct ResumeMigration {
    /// From now on skip sectors that cannot be read on the source, after one more try.
    /// The data of skipped sectors is lost.
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
