//! A move that has copied everything and cannot switch over: each attempt is undone, as the
//! guest would be held for too long. `core::mirror` tries it again, at longer and longer
//! intervals, and pauses the move after a quarter of an hour. Until then people are told.

use sterna_api::Warning;
use sterna_core::mirror::{HOLD_BUDGET, Phase};
use sterna_os::lock;
use sterna_state::{MigrationRecord, Step};

use crate::Moves;

/// From so many on it is told: one or two are undone by chance on a busy host.
const TOLD: u32 = 4;

impl Moves {
    /// What keeps a move from its switch-over, if attempts were undone, and what to do.
    pub fn undone(&self, record: &MigrationRecord) -> Option<Warning> {
        let job = self.job(record.id).filter(|job| job.running())?;
        let progress = lock(&job.state).counters.progress()?;
        let is_at_it = matches!(record.step, Step::Copying | Step::Switching);
        let is_told =
            is_at_it && !record.cancel && progress.phase == Phase::SwitchingOver;
        (is_told && progress.undone >= TOLD).then(|| warning(record, progress.undone))
    }
}

fn warning(record: &MigrationRecord, undone: u32) -> Warning {
    let (id, from, to) = (record.id, &record.from.datastore, &record.to.datastore);
    let message = format!(
        "Sterna undid the switch-over {undone} times: writes fell behind while {from} \
         and {to} were flushed, or the end did not fit into {HOLD_BUDGET} because {to} or \
         the state directory is slow"
    );
    let hint = format!(
        "Sterna tries again; check both datastores and the state directory, or cancel the \
         move: `sterna migration cancel {id}`"
    );
    Warning { about: format!("migration {id}"), message, hint }
}
