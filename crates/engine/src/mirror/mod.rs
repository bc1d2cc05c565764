//! The mirror on a reactor: its driver, its jobs, and the region map in its file.

mod buffer_loans;
mod comparison;
mod driver;
mod job;
mod jobs;
pub mod map;
mod runs;
mod translate;

use std::path::PathBuf;
use std::sync::Arc;

use sterna_core::mirror::{Allowance, Findings, MirrorEnd, Notice, Progress};

use crate::boot::BootId;
use crate::image::{Budget, ImageSpec};
use sterna_core::DiskId;

pub use driver::SourceLook;
pub(crate) use driver::{Message, MirrorDriver};
pub use map::{MapError, MapFile, MapKey};

/// Names a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MigrationId(pub u64);

/// What is known of the destination when a migration starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing was copied yet; any old map is replaced.
    Fresh,
    /// The region map says, as far as it is to be believed; what was equal beyond that is
    /// compared.
    Resume,
    /// There is no map that could be believed: both sides are compared.
    Suspect,
}

/// How a migration is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Compare both sides before the switch-over.
    pub verify: bool,
    /// The copier's limit in bytes per second.
    pub rate: Option<u64>,
    /// What it may take beside that limit, until something else is said.
    pub allowance: Allowance,
    /// Do not start until told to.
    pub paused: bool,
    /// Zeroes may lose their space on the destination.
    pub thin: bool,
    /// Zeroes are written out on the destination (thick-zeroed).
    pub write_zeroes: bool,
    /// The destination reads as zeroes where it was never written.
    pub reads_zero: bool,
    /// Sectors of the source that cannot be read are left behind.
    pub skip_bad: bool,
    /// Bytes that the source has allocated; none if it cannot say.
    pub allocated: Option<u64>,
}

/// A migration to be started.
#[derive(Clone, Debug)]
pub struct MigrationSpec {
    /// Its name.
    pub id: MigrationId,
    /// The disk that moves.
    pub disk: DiskId,
    /// The image that it moves from, which is the disk's.
    pub source: ImageSpec,
    /// The image that it moves to.
    pub destination: ImageSpec,
    /// What the destination's datastore lets through: for all images there.
    pub budget: Arc<Budget>,
    /// The region map's file.
    pub map: PathBuf,
    /// What is known of the destination.
    pub start: Start,
    /// The present boot.
    pub boot: BootId,
    /// How it is to be done.
    pub options: Options,
}

/// What a migration tells the daemon. `Prepare`, `Seal` and `Commit` are asked
/// for once at a time and wait for their answer.
#[derive(Clone, Debug)]
pub enum MigrationEvent {
    /// Record durably that a switch-over is about to begin.
    Prepare(MigrationId),
    /// Make the destination's sidecar say active, durably. The guest is held.
    Seal(MigrationId),
    /// A seal was undone: give the source's sidecar a newer generation.
    Unseal(MigrationId),
    /// Make the destination the truth, durably. The guest is held.
    Commit(MigrationId),
    /// Something worth telling.
    Notice(MigrationId, Notice),
    /// The migration has ended; its last figures, and what was found.
    Ended(MigrationId, MirrorEnd, Box<(Progress, Findings)>),
    /// Nothing is in flight any more on the image that lost; it is closed.
    Released(MigrationId),
}
